package serve_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/command"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/cmd/childlog/internal/tokens"
	"childlog/cmd/childlog/serve"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

var ctx = context.Background()

// serving serves a store until the test ends, or stop is called.
func serving(t testing.TB, s *eventlog.Store, o serve.Options) (v wire.Serving, stop func()) {
	t.Helper()
	ready := make(chan wire.Serving, 1)
	o.Ready = func(v wire.Serving) { ready <- v }
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- serve.Store(ctx, s, o) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	select {
	case v = <-ready:
	case err := <-done:
		done <- err
		t.Fatalf("it ended: %v", err)
	}
	return v, stop
}

func run(t testing.TB, dir, stdin string, args ...string) (int, string) {
	t.Helper()
	var out, msg bytes.Buffer
	code := command.Run(ctx, append([]string{"--store", dir, "--json"}, args...), strings.NewReader(stdin), &out, &msg)
	return code, out.String() + msg.String()
}

// TestEmbeddingProgram: a program uses its store while commands, a client of the
// socket and one over TCP work on it. All is in one log, in one order.
func TestEmbeddingProgram(t *testing.T) {
	before := runtime.NumGoroutine()
	s := storetest.New(t)
	own := harness.On(s)
	root, err := own.Root(ctx, harness.RootRequest{Sandbox: &harness.Sandbox{Mode: "workspace-write"}, Workspace: "/srv/app"})
	require.NoError(t, err)
	v, stop := serving(t, s, serve.Options{Listen: "127.0.0.1:0"})
	_, token, err := tokens.New(s.Dir(), tokens.Request{Role: tokens.Harness, Label: "test", Now: time.Now()})
	require.NoError(t, err)

	socket, err := harness.Dial(ctx, "unix:"+s.Dir(), harness.Options{})
	require.NoError(t, err)
	tcp, err := harness.Dial(ctx, *v.URL, harness.Options{Token: token})
	require.NoError(t, err)
	for _, h := range []harness.Harness{own, socket, tcp} {
		_, err := h.Append(ctx, harness.AppendRequest{Session: root.Session, Events: []harness.Event{{Type: "x-test/n"}}})
		require.NoError(t, err)
	}
	code, out := run(t, s.Dir(), `{"type":"x-test/n"}`, "append", root.Session)
	require.Zero(t, code, out)
	_, err = tcp.Narrow(ctx, harness.NarrowRequest{Session: root.Session, Sandbox: &harness.Sandbox{Mode: "read-only"}, Reason: "x"})
	require.ErrorIs(t, err, eventlog.ErrUnauthorized, "a harness's token is no operator's")
	_, err = socket.Narrow(ctx, harness.NarrowRequest{Session: root.Session, Sandbox: &harness.Sandbox{Mode: "read-only"}, Reason: "x"})
	require.NoError(t, err)
	stranger, err := harness.Dial(ctx, *v.URL, harness.Options{Token: "childlog_x"})
	require.NoError(t, err)
	_, err = stranger.Show(ctx, harness.SessionRequest{Session: root.Session})
	require.ErrorIs(t, err, eventlog.ErrUnauthorized)

	page, err := own.Log(ctx, harness.LogRequest{Session: root.Session, EventFilter: harness.EventFilter{Types: []string{"x-test/*"}}})
	require.NoError(t, err)
	require.Len(t, page.Events, 4)
	code, out = run(t, s.Dir(), "", "compact")
	require.Equal(t, 7, code, out)

	for _, c := range []*harness.Client{socket, tcp, stranger} {
		require.NoError(t, c.Close())
	}
	stop()
	require.NoFileExists(t, filepath.Join(s.Dir(), harness.Socket))
	_, err = own.Append(ctx, harness.AppendRequest{Session: root.Session, Events: []harness.Event{{Type: "x-test/n"}}})
	require.NoError(t, err, "the store is the program's")
	require.NoError(t, s.Close())
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before+1, "no goroutine is left")
}

// TestStopKeepsWhatWasAcknowledged: a service that stops while 32 callers append
// loses none of what it answered, and a client tells what is in doubt.
func TestStopKeepsWhatWasAcknowledged(t *testing.T) {
	s := storetest.New(t)
	own := harness.On(s)
	root, err := own.Root(ctx, harness.RootRequest{})
	require.NoError(t, err)
	_, stop := serving(t, s, serve.Options{})
	c, err := harness.Dial(ctx, "unix:"+s.Dir(), harness.Options{})
	require.NoError(t, err)
	defer c.Close()
	var mu sync.Mutex
	acked := map[uint64]bool{}
	enough := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for {
				w, err := c.Append(ctx, harness.AppendRequest{Session: root.Session, Events: []harness.Event{{Type: "x-test/n"}}})
				if err != nil { // it stops
					if !errors.Is(err, eventlog.ErrStoreClosed) && !errors.Is(err, eventlog.ErrOutcomeUnknown) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				acked[w.Seq] = true
				if len(acked) > 200 {
					once.Do(func() { close(enough) })
				}
				mu.Unlock()
			}
		})
	}
	go func() {
		wg.Wait() // they failed before it stopped, and said why
		once.Do(func() { close(enough) })
	}()
	<-enough
	stop()
	wg.Wait()
	shown, err := own.Show(ctx, harness.SessionRequest{Session: root.Session})
	require.NoError(t, err)
	for seq := range acked {
		require.LessOrEqual(t, seq, shown.Head.Seq)
	}
	require.GreaterOrEqual(t, shown.Head.Seq, uint64(len(acked)))
}
