package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"childlog/cmd/childlog/internal/forward"
	"childlog/cmd/childlog/internal/trunk"
)

// trunkLine is the connection to a store's socket that all writes of a client
// share (package trunk). It is made when the first one needs it, and again when
// it was lost. What only reads goes by HTTP: its answers may be large, and others
// would wait behind them. A nil one has no line.
type trunkLine struct {
	dir  string // of the store
	most *int64 // bytes of an answer

	now    atomic.Pointer[line]
	none   atomic.Bool   // the service has no trunks
	change chan struct{} // room for who changes what is above or below
	closed bool
}

// errNoTrunk says that everything goes by HTTP.
var errNoTrunk = errors.New("the service takes one request a connection")

// do makes an exchange whose request is small. What was not sent goes over a new
// line once, since the one before may have been lost just now.
func (t *trunkLine) do(ctx context.Context, x *exchange, body []byte) (r reply, err error) {
	for again := false; ; again = true {
		l, err := t.get(ctx, x.c.ctx)
		if err != nil {
			return r, err
		}
		r, sent, err := l.do(ctx, x.name, body)
		if err == nil || sent || again || ctx.Err() != nil {
			x.sent.Store(sent)
			return r, err
		}
	}
}

// get returns the line, unless ctx or open ends first. Nothing was sent if it
// fails. Errors: errNoTrunk; the answer of a service that takes no connection;
// those of the network and of ctx.
func (t *trunkLine) get(ctx, open context.Context) (*line, error) {
	if t == nil || t.none.Load() {
		return nil, errNoTrunk
	}
	if l := t.now.Load(); l.usable() {
		return l, nil
	}
	select {
	case t.change <- struct{}{}:
		defer func() { <-t.change }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch l := t.now.Load(); {
	case t.closed:
		return nil, net.ErrClosed
	case l.usable():
		return l, nil
	}
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	defer context.AfterFunc(open, cancel)()
	l, err := t.connect(dialing)
	switch {
	case err == nil:
		t.now.Swap(l).close()
		return l, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case dialing.Err() != nil: // the caller's time is not over
		return nil, fmt.Errorf("no connection within %v", dialTimeout)
	}
	t.none.Store(errors.Is(err, errNoTrunk))
	return nil, err
}

// connect makes a line.
func (t *trunkLine) connect(ctx context.Context) (*line, error) {
	conn, err := forward.Connect(ctx, t.dir)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(conn, trunk.ReadAhead)
	answer, err := forward.Upgrade(ctx, conn, in, trunk.Path, trunk.Protocol)
	if err == nil && answer.StatusCode == http.StatusSwitchingProtocols {
		return newLine(conn, in, int(*t.most)), nil
	}
	defer conn.Close()
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode == http.StatusNotFound, answer.StatusCode == http.StatusUpgradeRequired:
		return nil, errNoTrunk // it is of another version
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if err != nil {
		return nil, err
	}
	re, _ := remoteError(answer.StatusCode, text)
	return nil, re
}

// maxRefusal bounds the answer to who wants an upgrade, bytes.
const maxRefusal = 64 << 10

// close ends the line for good, and waits for what it runs.
func (t *trunkLine) close() {
	if t == nil {
		return
	}
	t.change <- struct{}{}
	defer func() { <-t.change }()
	t.closed = true
	t.now.Load().close()
}

// line is one connection.
type line struct {
	conn  *net.UnixConn
	out   *trunk.Writer
	slots chan struct{} // one for each request under way
	runs  sync.WaitGroup

	mu      sync.Mutex
	last    uint32
	waiting map[uint32]chan<- reply
	err     error         // why no further request is taken
	gone    chan struct{} // closed when no further answer comes
}

type reply struct {
	status int
	text   []byte
}

func newLine(conn *net.UnixConn, in *bufio.Reader, most int) *line {
	l := &line{conn: conn, out: trunk.NewWriter(conn, 0, writeTime), slots: make(chan struct{}, trunk.InFlight), waiting: map[uint32]chan<- reply{}, gone: make(chan struct{})}
	written := make(chan struct{})
	l.runs.Go(func() {
		defer close(written)
		err := l.out.Run()
		l.retire(err)
		if !errors.Is(err, syscall.EPIPE) { // then answers to what was sent before may come still
			_ = l.conn.Close()
		}
	})
	l.runs.Go(func() {
		err := l.read(trunk.NewReader(conn, in, most, answerTime))
		l.retire(err)
		_ = l.conn.Close()
		l.out.Close()
		<-written // now it is known what was sent
		close(l.gone)
	})
	return l
}

// How long the service has to take what is sent to it, and to send the rest of
// an answer that began.
const (
	writeTime  = time.Minute
	answerTime = time.Minute
)

func (l *line) usable() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil
}

// retire lets no further request begin.
func (l *line) retire(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}

func (l *line) close() {
	if l == nil {
		return
	}
	l.retire(net.ErrClosed)
	_ = l.conn.Close()
	l.runs.Wait()
}

// read hands out answers until no more come.
func (l *line) read(in *trunk.Reader) error {
	for {
		f, err := in.Next()
		if err != nil {
			return err
		}
		l.mu.Lock()
		answer := l.waiting[f.ID]
		delete(l.waiting, f.ID)
		l.mu.Unlock()
		if answer != nil { // else its caller waits no longer
			answer <- reply{int(f.Code), f.Body} // has room for the one
		}
	}
}

// do sends a request and waits for its answer. sent reports whether it may have
// reached the service.
func (l *line) do(ctx context.Context, name string, body []byte) (r reply, sent bool, err error) {
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return r, false, ctx.Err()
	}
	if ctx.Err() != nil {
		return r, false, ctx.Err()
	}
	answer := make(chan reply, 1)
	id, alone, err := l.begin(answer)
	if err != nil {
		return r, false, fmt.Errorf("the connection was lost: %w", err)
	}
	number := l.out.Send(id, uint16(len(name)), alone, []byte(name), body)
	select {
	case r = <-answer:
		return r, true, nil
	case <-ctx.Done():
		l.mu.Lock()
		delete(l.waiting, id)
		l.mu.Unlock()
		l.out.Send(id, 0, false)
		return r, true, ctx.Err()
	case <-l.gone:
	}
	select {
	case r = <-answer: // the last that came
		return r, true, nil
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return r, l.out.Taken(number), fmt.Errorf("the connection was lost: %w", l.err)
}

// begin takes an id for a request. alone reports whether no other one is under
// way.
func (l *line) begin(answer chan<- reply) (id uint32, alone bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, false, l.err
	}
	for l.last++; l.waiting[l.last] != nil; l.last++ { // it begins anew after 4 billion
	}
	l.waiting[l.last] = answer
	return l.last, len(l.waiting) == 1, nil
}
