package harness_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/forward"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/cmd/childlog/internal/trunk"
	serving "childlog/cmd/childlog/serve"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// fakeHolder listens where a holder does. Each connection that asks for a trunk
// gets one, which serve then has, with its number from 1 on.
func fakeHolder(t *testing.T, serve func(n int, conn net.Conn, in *trunk.Reader)) (dir string) {
	t.Helper()
	dir = t.TempDir()
	path, done, err := forward.Short(dir, harness.Socket)
	require.NoError(t, err)
	defer done()
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	var running sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); running.Wait() })
	var trunks atomic.Int64
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				r, err := http.ReadRequest(in)
				if err != nil || r.URL.Path != trunk.Path {
					return // Dial looks whether somebody is there
				}
				fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", trunk.Protocol)
				serve(int(trunks.Add(1)), conn, trunk.NewReader(conn, in, 1<<20, time.Minute))
			})
		}
	})
	return dir
}

func dialed(t *testing.T, dir string) *harness.Client {
	t.Helper()
	c, err := harness.Dial(ctx, "unix:"+dir, harness.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// written answers an append.
func written(conn net.Conn, f trunk.Frame) {
	const body = `{"session":"5e551041-0000-4000-8000-000000000001","seq":2,"first_seq":2,"last_seq":2,"hash":"","replayed":false}`
	reply(conn, f.ID, http.StatusOK, body)
}

func reply(conn net.Conn, id uint32, status int, body string) {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, id), uint16(status))
	_, _ = conn.Write(append(b, body...)) // a test that needs it waits for it
}

// TestCase18_LostTrunk: every write that was sent and not answered is of unknown
// outcome, the others have theirs, and the next one goes over a new connection.
func TestCase18_LostTrunk(t *testing.T) {
	for name, lose := range map[string]func(net.Conn, trunk.Frame){
		"hung up":  func(conn net.Conn, _ trunk.Frame) {},
		"cut":      func(conn net.Conn, _ trunk.Frame) { _, _ = io.WriteString(conn, "\x00\x00\x01") },
		"nonsense": func(conn net.Conn, _ trunk.Frame) { _, _ = io.WriteString(conn, "HTTP/1.1 500 Oh\r\n\r\n") },
		"no JSON":  func(conn net.Conn, f trunk.Frame) { reply(conn, f.ID, http.StatusOK, "<html>") },
		"no error": func(conn net.Conn, f trunk.Frame) { reply(conn, f.ID, http.StatusBadGateway, "<html>") },
		"stopped": func(conn net.Conn, f trunk.Frame) {
			reply(conn, f.ID, 503, `{"error":{"code":"interrupted","message":"m","hint":""}}`)
		},
		"not for it": func(conn net.Conn, f trunk.Frame) { reply(conn, f.ID+1000, http.StatusOK, "{}") },
	} {
		t.Run(name, func(t *testing.T) {
			const lost = 5
			dir := fakeHolder(t, func(n int, conn net.Conn, in *trunk.Reader) {
				for i := 0; ; i++ {
					f, err := in.Next()
					if err != nil {
						return
					}
					if n > 1 || i == 0 {
						written(conn, f)
						continue
					}
					if i == lost { // all of them have come, and this one is
						lose(conn, f)
						return
					}
				}
			})
			c := dialed(t, dir)
			require.NoError(t, anAppend(c, ctx))
			var wg sync.WaitGroup
			for range lost {
				wg.Go(func() {
					if err := anAppend(c, ctx); !errors.Is(err, eventlog.ErrOutcomeUnknown) {
						t.Errorf("got %v, want an unknown outcome", err)
					}
				})
			}
			wg.Wait()
			require.Eventually(t, func() bool { return anAppend(c, ctx) == nil }, time.Minute, time.Millisecond)
		})
	}
}

// TestTrunkIsDialedAnew: what was not sent is nobody's loss. A holder that is
// gone for good is said to be.
func TestTrunkIsDialedAnew(t *testing.T) {
	s := storetest.New(t)
	h := harness.On(s)
	scene(t, h)
	begin := headOf(t, h)
	var c *harness.Client
	for range 3 {
		stop := serveStore(t, s)
		if c == nil {
			c = dialed(t, s.Dir())
		}
		require.NoError(t, anAppend(c, ctx))
		require.NoError(t, aRead(c, ctx))
		stop()
	}
	err := anAppend(c, ctx)
	require.ErrorIs(t, err, eventlog.ErrStoreClosed)
	require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	require.Equal(t, begin+3, headOf(t, h))
}

// TestTrunkIsLeft: a service that leaves a connection while requests come over it
// answers those that arrived, and the others come over the next one: each once,
// and no outcome is unknown.
func TestTrunkIsLeft(t *testing.T) {
	var came atomic.Int64
	dir := fakeHolder(t, func(n int, conn net.Conn, in *trunk.Reader) {
		for i := 0; ; i++ {
			f, err := in.Next()
			if err != nil {
				return
			}
			came.Add(1)
			written(conn, f)
			if i == 0 && n%2 == 1 { // of each client the first
				_ = conn.(*net.UnixConn).CloseRead()
			}
		}
	})
	const clients, callers, each = 20, 3, 5
	for i := range clients {
		c := dialed(t, dir)
		withEnd, cancel := context.WithCancel(ctx) // is to be interrupted, of which no later one is to know
		var wg sync.WaitGroup
		for range 1 + i%callers { // one reads itself, of several one reads for all
			wg.Go(func() {
				for range each {
					before := came.Load()
					if err := anAppend(c, withEnd); err != nil {
						t.Error(err)
					}
					if came.Load() == before {
						t.Error("an append was answered that nobody got")
					}
				}
			})
		}
		wg.Wait()
		cancel()
		require.NoError(t, anAppend(c, ctx))
		require.NoError(t, c.Close())
	}
	sent := clients
	for i := range clients {
		sent += each * (1 + i%callers)
	}
	require.Equal(t, int64(sent), came.Load())
}

// TestTrunkWaits: a caller stops waiting when its context ends, the service is
// told, and the others wait on. Close ends them all.
func TestTrunkWaits(t *testing.T) {
	before := runtime.NumGoroutine()
	came, gaveUp := make(chan uint32, 10), make(chan uint32, 10)
	dir := fakeHolder(t, func(_ int, conn net.Conn, in *trunk.Reader) {
		for {
			f, err := in.Next()
			if err != nil {
				return
			}
			if f.Code == 0 {
				gaveUp <- f.ID
				written(conn, f) // too late
				continue
			}
			came <- f.ID
		}
	})
	c, err := harness.Dial(ctx, "unix:"+dir, harness.Options{})
	require.NoError(t, err)
	ended, cancel := context.WithCancel(ctx)
	results := make(chan error, 2)
	go func() { results <- anAppend(c, ended) }()
	first := <-came
	other := make(chan error, 1)
	go func() { other <- anAppend(c, ctx) }()
	<-came
	cancel()
	err = <-results
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	require.Equal(t, first, <-gaveUp)
	err = anAppend(c, ended)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown, "it was never sent")
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-other, eventlog.ErrOutcomeUnknown)
	require.ErrorIs(t, anAppend(c, ctx), eventlog.ErrStoreClosed)
	require.NoError(t, c.Close(), "twice is once")
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+3 }, time.Minute, time.Millisecond, "the holder's are left")
}

// TestTrunkManyClients: appends of many callers over few clients are each there
// once, beside requests that are too large for a trunk.
func TestTrunkManyClients(t *testing.T) {
	s := storetest.New(t)
	h := harness.On(s)
	scene(t, h)
	begin := headOf(t, h)
	defer serveStore(t, s)()
	const clients, callers, each = 3, 12, 12
	large := string(make([]byte, trunk.MaxRequest))
	var wg sync.WaitGroup
	for range clients {
		c := dialed(t, s.Dir())
		for i := range callers {
			wg.Go(func() {
				for n := range each {
					text := "x"
					if i == 0 && n == 0 {
						text = large
					}
					if _, err := c.Append(ctx, harness.AppendRequest{Session: rootID, Events: []harness.Event{{Type: "user/message", ContentText: &text}}}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	require.Equal(t, begin+clients*callers*each, headOf(t, h))
}

// TestNoTrunk: a holder that has no room or is about to end says so, nothing was
// sent to one that does not answer, and one of another version gets HTTP.
func TestNoTrunk(t *testing.T) {
	const locked = `{"error":{"code":"locked","message":"no room","hint":""}}`
	var answer atomic.Value
	dir := t.TempDir()
	path, done, err := forward.Short(dir, harness.Socket)
	require.NoError(t, err)
	l, err := net.Listen("unix", path)
	done()
	require.NoError(t, err)
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == trunk.Path {
			answer.Load().(http.HandlerFunc)(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"session":"s","seq":2}`)
	})}
	go func() { _ = srv.Serve(l) }() // until Close
	defer srv.Close()
	c := dialed(t, dir)
	answer.Store(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, locked)
	}))
	err = anAppend(c, ctx)
	require.ErrorIs(t, err, eventlog.ErrLocked)
	require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	asked := make(chan struct{}, 1)
	answer.Store(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	short, cancel := context.WithCancel(ctx)
	go func() {
		<-asked
		cancel()
	}()
	err = anAppend(c, short)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	answer.Store(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { hangUp(w) }))
	require.ErrorIs(t, anAppend(c, ctx), eventlog.ErrStoreClosed)
	answer.Store(http.HandlerFunc(http.NotFound))
	require.NoError(t, anAppend(c, ctx))
}

func headOf(t *testing.T, h harness.Harness) uint64 {
	t.Helper()
	shown, err := h.Show(ctx, harness.SessionRequest{Session: rootID})
	require.NoError(t, err)
	return shown.Head.Seq
}

// serveStore serves a store on its socket until it is stopped.
func serveStore(t *testing.T, s *eventlog.Store) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- serving.Store(ctx, s, serving.Options{Ready: func(wire.Serving) { close(ready) }})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		require.NoError(t, err)
	}
	return stop
}
