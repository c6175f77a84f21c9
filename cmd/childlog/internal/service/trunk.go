package service

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/tokens"
	"childlog/cmd/childlog/internal/trunk"
	"childlog/eventlog"
)

// trunkRoom is how many bytes of answers wait for a client to read them before
// its next ones wait with those who made them.
const trunkRoom = 1 << 20

// Trunk answers the many requests of one peer of the store's Unix socket
// (package trunk) until the peer hangs up or ctx ends, which gives up what is at
// work, or stopping is closed or the peer asked for nothing during
// [Limits.IdleTime], at most twice that, which do not. It returns when nothing of
// it is left. The requests are those of the routes, and are bounded, counted and
// logged as those are; whoever calls it has compared the peer's user id.
//
// Errors: trunk.ErrProtocol; those of the connection.
func (s *Service) Trunk(ctx context.Context, stopping <-chan struct{}, conn *net.UnixConn, ready []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &trunkCalls{s: s, ctx: ctx, out: trunk.NewWriter(conn, trunkRoom, s.limits.WriteTime), slots: make(chan struct{}, trunk.InFlight), idle: make(chan call), cancels: map[uint32]context.CancelFunc{}}
	cut := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer cut()
	var writing sync.WaitGroup
	var writeErr error
	writing.Go(func() {
		if err := t.out.Run(); err != nil && ctx.Err() == nil {
			writeErr = err
			cancel() // nobody hears the answers
		}
	})
	stop := make(chan struct{})
	ended := false // by this side; known once waiting is over
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if ended = t.end(stopping, stop); ended {
			_ = conn.CloseRead() // what arrived is read and answered still; what did not fails for the peer, which knows by it that nothing was sent
		}
	})
	in := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(ready), conn), trunk.ReadAhead)
	err := t.read(trunk.NewReader(conn, in, trunk.MaxRequest+maxName, s.limits.BodyTime))
	close(stop)
	waiting.Wait()
	if ended && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // reading ended in the middle of a frame, which is no request then
	}
	if err != nil || !ended {
		cancel() // the peer has gone
	}
	close(t.idle)
	t.workers.Wait()
	t.out.Close()
	writing.Wait()
	return errors.Join(err, writeErr)
}

// end waits for a reason to take no further requests: the service stops, or the
// peer has nothing under way and began nothing for a while, as one that forgot
// the connection would for ever. It reports whether there was one before stop.
// Whoever only rests makes another connection when it goes on.
func (t *trunkCalls) end(stopping, stop <-chan struct{}) bool {
	look := time.NewTicker(t.s.limits.IdleTime)
	defer look.Stop()
	for began := uint64(0); ; {
		select {
		case <-stopping:
			return true
		case <-stop:
			return false
		case <-look.C:
			now, busy := t.activity()
			if now == began && !busy {
				return true
			}
			began = now
		}
	}
}

// maxName is more than any operation's name has.
const maxName = 64

// trunkCalls are the requests of one connection.
type trunkCalls struct {
	s     *Service
	ctx   context.Context
	out   *trunk.Writer
	slots chan struct{} // one for each request under way

	idle    chan call // to a worker that has nothing to do
	workers sync.WaitGroup

	mu      sync.Mutex
	began   uint64                        // requests, ever
	cancels map[uint32]context.CancelFunc // by the id of a request under way
}

// activity tells how many requests ever began, and whether one is under way.
func (t *trunkCalls) activity() (began uint64, busy bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.began, len(t.cancels) > 0
}

// read takes requests until no more come.
func (t *trunkCalls) read(in *trunk.Reader) error {
	for {
		f, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case f.Code == 0:
			t.giveUp(f.ID)
			continue
		}
		name, body, err := f.Request()
		if err != nil {
			return err
		}
		t.slots <- struct{}{} // one comes free, since an operation's time is bounded and an answer's too
		ctx, cancel := context.WithTimeout(t.ctx, t.s.limits.WorkTime)
		if !t.begin(f.ID, cancel) {
			cancel()
			return fmt.Errorf("%w: request %d is under way already", trunk.ErrProtocol, f.ID)
		}
		c := call{ctx, f.ID, name, body}
		select {
		case t.idle <- c:
		default:
			t.workers.Go(func() { t.work(c) })
		}
	}
}

// call is one request.
type call struct {
	ctx  context.Context
	id   uint32
	name string
	body []byte
}

// work answers a request, and then others: a new goroutine would have to grow
// its stack each time.
func (t *trunkCalls) work(c call) {
	for more := true; more; c, more = <-t.idle {
		status, text := t.s.answerCall(c.ctx, c.name, c.body)
		t.out.Send(c.id, uint16(status), t.done(c.id), text)
		<-t.slots
	}
}

func (t *trunkCalls) begin(id uint32, cancel context.CancelFunc) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancels[id] != nil {
		return false
	}
	t.cancels[id] = cancel
	t.began++
	return true
}

// done reports whether no other request is under way.
func (t *trunkCalls) done(id uint32) (alone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancels[id]()
	delete(t.cancels, id)
	return len(t.cancels) == 0
}

// giveUp ends the work of a request whose caller waits no longer. Its answer
// may be on the way.
func (t *trunkCalls) giveUp(id uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cancel := t.cancels[id]; cancel != nil {
		cancel()
	}
}

// answerCall answers one request as its POST over the socket is answered.
func (s *Service) answerCall(ctx context.Context, name string, body []byte) (status int, text []byte) {
	way, known := s.routes[harness.Prefix+name]
	w := &record{begun: s.now(), method: http.MethodPost, route: way.path, peer: overUnix, role: tokens.Operator, in: int64(len(body))}
	defer func() {
		if p := recover(); p != nil {
			status, text, _ = w.failure(s.panicked(w))
		}
		w.wrote, w.status, w.out = true, status, int64(len(text))
		s.note(ctx, w)
	}()
	var err error
	switch {
	case !known || way.run == nil:
		err = refuse(http.StatusNotFound, "no_such_path", "no such path", docsHint)
	case int64(len(body)) > way.limit:
		err = &eventlog.TooLargeError{What: "request in bytes", Limit: uint64(way.limit), Size: uint64(len(body))}
	case s.stopped():
		err = stopping()
	default:
		text, err = way.run(s, ctx, caller{role: tokens.Operator}, body)
	}
	if err != nil {
		status, text, _ = w.failure(err)
		return status, text
	}
	return http.StatusOK, text
}
