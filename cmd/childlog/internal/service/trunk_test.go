package service_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/internal/trunk"
	"childlog/cmd/childlog/internal/trunk/trunktest"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// line is a client of a trunk that says what a test wants it to.
type line struct {
	t        *testing.T
	conn     *net.UnixConn
	in       *trunk.Reader
	cancel   context.CancelFunc // of what Trunk runs under
	stopping chan struct{}
	ended    <-chan error // what Trunk returned
}

func (v *served) trunk(t *testing.T) *line {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	mine, theirs := trunktest.Pair(t)
	l := &line{t: t, conn: mine, in: trunk.NewReader(mine, bufio.NewReader(mine), 1<<20, time.Minute), cancel: cancel, stopping: make(chan struct{})}
	ended := make(chan error, 1)
	l.ended = ended
	var running sync.WaitGroup
	running.Go(func() {
		ended <- v.service.Trunk(ctx, l.stopping, theirs, nil)
		_ = theirs.Close()
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return l
}

func (l *line) write(text string) {
	l.t.Helper()
	_, err := io.WriteString(l.conn, text)
	require.NoError(l.t, err)
}

func (l *line) ask(id uint32, name, body string) {
	l.t.Helper()
	l.write(frame(id, len(name), name+body))
}

func frame(id uint32, code int, body string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, id), uint16(code))
	return string(b) + body
}

func (l *line) answer() (id uint32, status int, text string) {
	l.t.Helper()
	f, err := l.in.Next()
	require.NoError(l.t, err)
	return f.ID, int(f.Code), string(f.Body)
}

// blocking is a harness whose appends end when they are let go, or given up.
type blocking struct {
	harness.Harness
	began, free chan struct{}
}

func newBlocking() *blocking { return &blocking{began: make(chan struct{}), free: make(chan struct{})} }

func (b *blocking) on(s *eventlog.Store) harness.Harness {
	b.Harness = harness.On(s)
	return b
}

func (b *blocking) Append(ctx context.Context, r harness.AppendRequest) (wire.Written, error) {
	b.began <- struct{}{}
	select {
	case <-b.free:
		return b.Harness.Append(ctx, r)
	case <-ctx.Done():
		return wire.Written{}, ctx.Err()
	}
}

func (b *blocking) Send(context.Context, harness.SendRequest) (wire.Sent, error) { panic("broken") }

// TestTrunkAnswersAsHTTP: each request gets the status and the text that a POST
// of it over the socket gets.
func TestTrunkAnswersAsHTTP(t *testing.T) {
	v := serve(t, service.Options{})
	id := v.root()
	l := v.trunk(t)
	for n, c := range []struct{ name, body string }{
		{"show", `{"session":"` + id + `"}`},
		{"narrow", `{"session":"` + id + `","reason":"r","sandbox":{"mode":"read-only"}}`}, // an operator's
		{"append", `{"session":"` + id + `","expect":77,"events":[{"type":"user/message"}]}`},
		{"append", `{"session":"` + id + `","events":[{"type":"policy/x"}]}`},
		{"append", `{"session":"` + id + `","even`},
		{"append", ``},
		{"show", `{"session":"88888888"}`},
		{"nothing", `{}`},
		{"follow", `{}`},
		{strings.Repeat("n", 60), ``},
	} {
		l.ask(uint32(n), c.name, c.body)
		got, status, text := l.answer()
		require.Equal(t, uint32(n), got)
		if c.name == "follow" { // is a GET
			require.Equal(t, http.StatusNotFound, status)
			continue
		}
		want := v.direct(v.service.Socket(), http.MethodPost, harness.Prefix+c.name, c.body)
		require.Equal(t, want.status, status, c)
		if status != http.StatusOK || c.name == "show" {
			require.Equal(t, want.body, text+"\n", c)
		}
	}
	require.Contains(t, v.log.String(), "route=/v1/append status=409")
	require.NotContains(t, v.log.String(), id, "no content of a request is logged")
	require.Contains(t, v.get("/metrics", "operator").body, `childlog_requests_total{route="/v1/narrow",status="200"}`)
	require.NoError(t, l.conn.Close())
	require.NoError(t, <-l.ended)
}

// TestTrunkManyAtATime: a slow one keeps nobody waiting, and one that is given up
// ends.
func TestTrunkManyAtATime(t *testing.T) {
	b := newBlocking()
	v := serve(t, service.Options{On: b.on})
	id := v.root()
	l := v.trunk(t)
	appending := `{"session":"` + id + `","events":[{"type":"user/message"}]}`
	l.ask(1, "append", appending)
	<-b.began
	l.ask(2, "append", appending)
	<-b.began
	l.ask(3, "show", `{"session":"`+id+`"}`)
	got, status, _ := l.answer()
	require.Equal(t, []int{3, http.StatusOK}, []int{int(got), status})
	l.ask(4, "send", `{"session":"`+id+`","by":"operator","text":"x"}`)
	got, status, text := l.answer()
	require.Equal(t, []int{4, http.StatusInternalServerError}, []int{int(got), status})
	require.NotContains(t, text, "broken")
	l.write(frame(1, 0, ""))
	l.write(frame(99, 0, "")) // of nobody's
	got, _, text = l.answer()
	require.Equal(t, uint32(1), got)
	require.Contains(t, text, "interrupted")
	b.free <- struct{}{}
	got, status, _ = l.answer()
	require.Equal(t, []int{2, http.StatusOK}, []int{int(got), status})
}

// TestTrunkIsGivenUp: the work for a peer that hung up, or sends what is no
// request, ends, and so does that of a service whose time is over.
func TestTrunkIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*line)
		want error
	}{
		"hung up":  {func(l *line) { _ = l.conn.Close() }, nil},
		"no frame": {func(l *line) { l.write("GET / HTTP/1.1\r\n\r\n") }, trunk.ErrProtocol},
		"no name":  {func(l *line) { l.write(frame(2, 9, "append")) }, trunk.ErrProtocol},
		"same id":  {func(l *line) { l.ask(1, "show", "{}") }, trunk.ErrProtocol},
		"large":    {func(l *line) { l.write("\x00\x02\x00\x00\x00\x00\x00\x02\x00\x01") }, trunk.ErrProtocol},
		"torn":     {func(l *line) { l.write("\x00"); _ = l.conn.Close() }, io.ErrUnexpectedEOF},
		"the end":  {func(l *line) { l.cancel() }, net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBlocking()
			v := serve(t, service.Options{On: b.on})
			l := v.trunk(t)
			l.ask(1, "append", `{"session":"`+v.root()+`","events":[{"type":"user/message"}]}`)
			<-b.began
			c.do(l)
			require.ErrorIs(t, <-l.ended, c.want)
		})
	}
}

// TestTrunkSlowPeer: one that sends and does not read costs a bounded amount, and
// is left when its time is over.
func TestTrunkSlowPeer(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{WriteTime: 200 * time.Millisecond}})
	id := v.root()
	l := v.trunk(t)
	go func() {
		for n := uint32(1); ; n++ { // until nobody listens
			if _, err := io.WriteString(l.conn, frame(n, 4, `show{"session":"`+id+`"}`)); err != nil {
				return
			}
		}
	}()
	require.Error(t, <-l.ended)
}

// TestTrunkStops: what is at work ends and is answered, what comes late is told
// so, and then the connection ends.
func TestTrunkStops(t *testing.T) {
	b := newBlocking()
	v := serve(t, service.Options{On: b.on})
	id := v.root()
	l := v.trunk(t)
	l.ask(1, "append", `{"session":"`+id+`","events":[{"type":"user/message"}]}`)
	<-b.began
	v.service.Stop()
	l.ask(2, "show", `{"session":"`+id+`"}`)
	got, status, text := l.answer()
	require.Equal(t, []int{2, http.StatusServiceUnavailable}, []int{int(got), status})
	require.Contains(t, text, "store_closed")
	close(l.stopping)
	close(b.free)
	got, status, text = l.answer()
	require.Equal(t, []int{1, http.StatusOK}, []int{int(got), status}, text)
	require.NoError(t, <-l.ended)
	_, err := l.in.Next()
	require.ErrorIs(t, err, io.EOF, "the connection has ended")
}

// TestTrunkStopsInTheMiddleOfAFrame: that one is nobody's request yet, and what
// is at work beside it comes to its end all the same.
func TestTrunkStopsInTheMiddleOfAFrame(t *testing.T) {
	b := newBlocking()
	v := serve(t, service.Options{On: b.on})
	l := v.trunk(t)
	l.ask(1, "append", `{"session":"`+v.root()+`","events":[{"type":"user/message"}]}`)
	<-b.began
	l.write("\x00\x00\xff\xff\x00\x00\x00\x02\x00\x06append") // of which 64 KiB are announced
	close(l.stopping)
	for err := error(nil); err == nil; time.Sleep(time.Millisecond) {
		_, err = l.conn.Write([]byte{' '})
	}
	time.Sleep(20 * time.Millisecond) // for the mistake to show: it would be given up
	close(b.free)
	got, status, text := l.answer()
	require.Equal(t, []int{1, http.StatusOK}, []int{int(got), status}, text)
	require.NoError(t, <-l.ended)
}

// TestTrunkIdle: one that asks for nothing is left, as is one that never did, and
// one that waits for an answer is not. What was written before the end is
// answered, and what was not was not written.
func TestTrunkIdle(t *testing.T) {
	const idle = 10 * time.Millisecond
	b := newBlocking()
	v := serve(t, service.Options{On: b.on, Limits: service.Limits{IdleTime: idle}})
	id := v.root()
	require.NoError(t, <-v.trunk(t).ended, "it never asked")
	l := v.trunk(t)
	request := `append{"session":"` + id + `","events":[{"type":"user/message"}]}`
	for _, err := io.WriteString(l.conn, frame(1, 6, request)); err != nil; _, err = io.WriteString(l.conn, frame(1, 6, request)) {
		require.ErrorIs(t, err, syscall.EPIPE, "it was left already: this process had a pause")
		l = v.trunk(t)
	}
	<-b.began
	time.Sleep(10 * idle)
	close(b.free)
	got, status, text := l.answer()
	require.Equal(t, []int{1, http.StatusOK}, []int{int(got), status}, text)
	require.NoError(t, <-l.ended)
	_, err := l.in.Next()
	require.ErrorIs(t, err, io.EOF)

	const rounds = 50
	b.free = make(chan struct{})
	close(b.free)
	for n := range uint32(rounds) {
		l := v.trunk(t)
		time.Sleep(idle - idle*time.Duration(n)/(2*rounds)) // about when it is left
		_, err := io.WriteString(l.conn, frame(n, 4, `show{"session":"`+id+`"}`))
		if err != nil {
			require.ErrorIs(t, err, syscall.EPIPE)
			continue
		}
		got, status, text := l.answer()
		require.Equal(t, []int{int(n), http.StatusOK}, []int{int(got), status}, text)
	}
}
