package harness_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/eventlog"
)

// behind serves what answer does, and returns a client of it.
func behind(t *testing.T, answer http.HandlerFunc) *harness.Client {
	t.Helper()
	srv := httptest.NewServer(answer)
	c, err := harness.Dial(ctx, srv.URL, harness.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		srv.CloseClientConnections()
		srv.Close()
	})
	return c
}

// hangUp closes the connection without an answer.
func hangUp(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func anAppend(h harness.Harness, ctx context.Context) error {
	_, err := h.Append(ctx, harness.AppendRequest{Session: rootID, Events: []harness.Event{{Type: "user/message"}}})
	return err
}

func aRead(h harness.Harness, ctx context.Context) error {
	_, err := h.Show(ctx, harness.SessionRequest{Session: rootID})
	return err
}

// TestCase18_LostAnswerOfAWrite: it may have been written, and nobody guesses.
func TestCase18_LostAnswerOfAWrite(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"hung up": func(w http.ResponseWriter, r *http.Request) { hangUp(w) },
		"cut": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"session":`)
		},
		"no JSON": func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"proxy": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "<html>bad gateway</html>")
		},
		"stopped": func(w http.ResponseWriter, r *http.Request) { fail(w, context.Canceled) },
		"endless": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := behind(t, answer)
			c.SetMost(1 << 20)
			require.ErrorIs(t, anAppend(c, ctx), eventlog.ErrOutcomeUnknown)
			err := aRead(c, ctx)
			require.Error(t, err)
			require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown)
			_, err = c.Check(ctx, harness.CheckRequest{Session: rootID, Call: write("c", "a")})
			require.Error(t, err)
			require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown, "nothing was to be recorded")
			_, err = c.Check(ctx, harness.CheckRequest{Session: rootID, Record: true, Call: write("c", "a")})
			require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
		})
	}
}

// TestCase18_RetryAfterALostAnswer: the commit succeeds and the reply is lost; the
// same request again finds out, under a key and by event ids.
func TestCase18_RetryAfterALostAnswer(t *testing.T) {
	inner := handler(embedded(t))
	var lose atomic.Bool
	c := behind(t, func(w http.ResponseWriter, r *http.Request) {
		if lose.Swap(false) {
			inner.ServeHTTP(httptest.NewRecorder(), r)
			hangUp(w)
			return
		}
		inner.ServeHTTP(w, r)
	})
	scene(t, c)
	delegate := harness.DelegateRequest{Parent: rootID, Child: harness.Child{Key: "run 5", Label: "second"}}
	lose.Store(true)
	_, err := c.Delegate(ctx, delegate)
	require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	made, err := c.Delegate(ctx, delegate)
	require.NoError(t, err)
	require.True(t, made.Existing)
	batch := harness.AppendRequest{Session: made.Session, Events: []harness.Event{{ID: "5e551041-0000-4000-8000-0000000000e1", Type: "user/message", ContentText: new("a")}}}
	lose.Store(true)
	_, err = c.Append(ctx, batch)
	require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	done, err := c.Append(ctx, batch)
	require.NoError(t, err)
	require.True(t, done.Replayed)
	page, err := c.Log(ctx, harness.LogRequest{Session: made.Session, EventFilter: harness.EventFilter{Types: []string{"user/*"}}})
	require.NoError(t, err)
	require.Len(t, page.Events, 1)
}

// TestStaleConnection: a service that gives up a kept connection costs a read
// nothing.
func TestStaleConnection(t *testing.T) {
	h := embedded(t)
	scene(t, h)
	inner := handler(h)
	var again atomic.Int64
	used := sync.Map{}
	c := behind(t, func(w http.ResponseWriter, r *http.Request) {
		if _, kept := used.LoadOrStore(r.RemoteAddr, true); kept {
			again.Add(1)
			hangUp(w) // as if it had timed out just now
			return
		}
		inner.ServeHTTP(w, r)
	})
	for again.Load() < 3 { // which connection a request takes is the transport's affair
		require.NoError(t, aRead(c, ctx))
	}
}

func TestNobodyThere(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	c, err := harness.Dial(ctx, srv.URL, harness.Options{})
	require.NoError(t, err)
	defer c.Close()
	srv.Close()
	err = anAppend(c, ctx)
	require.ErrorIs(t, err, eventlog.ErrStoreClosed, "nothing was sent")
	require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	_, err = harness.Dial(ctx, srv.URL, harness.Options{})
	require.ErrorIs(t, err, eventlog.ErrStoreClosed)
	_, err = harness.Dial(ctx, "unix:"+t.TempDir(), harness.Options{})
	require.ErrorIs(t, err, eventlog.ErrStoreClosed)
	for _, err := range c.Follow(ctx, harness.FollowRequest{}) {
		require.ErrorIs(t, err, eventlog.ErrStoreClosed)
	}
}

// timed is a context whose time is over once it is told.
type timed struct {
	context.Context
	over chan struct{}
}

func (c timed) Done() <-chan struct{} { return c.over }

func (c timed) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestDeadline(t *testing.T) {
	var short timed // ends when the service has the request
	c := behind(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(short.over)
		<-r.Context().Done()
	})
	short = timed{ctx, make(chan struct{})}
	err := anAppend(c, short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	short = timed{ctx, make(chan struct{})}
	err = aRead(c, short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	err = anAppend(c, ended)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown, "it was never sent")
}

func TestTargets(t *testing.T) {
	for _, bad := range []string{"", "store", "ftp://x", "http://", "http://u:p@127.0.0.1:1", "http://127.0.0.1:1?x=1"} {
		_, err := harness.Dial(ctx, bad, harness.Options{})
		require.ErrorIs(t, err, eventlog.ErrInvalid, bad)
	}
	_, err := harness.Dial(ctx, "http://192.0.2.1:80", harness.Options{Token: "secret-token"})
	require.ErrorIs(t, err, eventlog.ErrInvalid, "a token in clear")
	require.NotContains(t, err.Error(), "secret-token")
	var got atomic.Value
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization"))
		http.Redirect(w, r, "http://192.0.2.1/", http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	c, err := harness.Dial(ctx, srv.URL, harness.Options{Token: "secret-token"})
	require.NoError(t, err)
	defer c.Close()
	err = aRead(c, ctx)
	var remote *harness.RemoteError
	require.ErrorAs(t, err, &remote, "a redirect is not followed: the token would go along")
	require.Equal(t, "Bearer secret-token", got.Load())
}

// TestUnixSocketOfAnyLength: the system takes 107 bytes of a path; a store may
// lie deeper.
func TestUnixSocketOfAnyLength(t *testing.T) {
	for _, name := range []string{"s", strings.Repeat("long/", 40)} {
		dir := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		short, err := os.MkdirTemp("", "childlog")
		require.NoError(t, err)
		defer os.RemoveAll(short)
		l, err := net.Listen("unix", filepath.Join(short, "s"))
		require.NoError(t, err)
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		require.NoError(t, os.Rename(filepath.Join(short, "s"), filepath.Join(dir, harness.Socket)))
		srv := &http.Server{Handler: handler(embedded(t)), ReadHeaderTimeout: time.Minute}
		done := make(chan error, 1)
		go func() { done <- srv.Serve(l) }()
		c, err := harness.Dial(ctx, "unix:"+dir, harness.Options{})
		require.NoError(t, err)
		scene(t, c)
		require.NoError(t, aRead(c, ctx))
		require.NoError(t, c.Close())
		require.NoError(t, srv.Close())
		require.ErrorIs(t, <-done, http.ErrServerClosed)
	}
}

// TestManyCallers: every append of 96 callers is there once, over connections
// that are kept, and nothing is left of them after Close.
func TestManyCallers(t *testing.T) {
	before := runtime.NumGoroutine()
	h := embedded(t)
	var made atomic.Int64
	srv := httptest.NewUnstartedServer(handler(h))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			made.Add(1)
		}
	}
	srv.Start()
	c, err := harness.Dial(ctx, srv.URL, harness.Options{})
	require.NoError(t, err)
	scene(t, c)
	const callers, each = 96, 10
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for k := range each {
				_, err := c.Append(ctx, harness.AppendRequest{Session: rootID, Events: []harness.Event{{Type: "x-test/n", Facts: map[string]any{"caller": i, "n": k}}}})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	last := uint64(0)
	for from := uint64(1); from != 0; {
		page, err := c.Log(ctx, harness.LogRequest{Session: rootID, From: from})
		require.NoError(t, err)
		for _, ev := range page.Events {
			require.Equal(t, last+1, ev.Seq)
			last = ev.Seq
			if ev.Type == "x-test/n" {
				seen[string(ev.Facts)] = true
			}
		}
		from = page.Next
	}
	require.Len(t, seen, callers*each)
	require.LessOrEqual(t, made.Load(), int64(callers*each/2), "connections are kept")
	require.NoError(t, c.Close())
	srv.CloseClientConnections()
	srv.Close()
	require.NoError(t, h.Unwrap().Close())
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before+1)
}

// TestFollowGoesOn: a stream that is cut after each event, and a service that is
// away for a moment, lose nothing and repeat nothing.
func TestFollowGoesOn(t *testing.T) {
	h := embedded(t)
	inner := handler(h)
	var streams atomic.Int64
	c := behind(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != harness.FollowPath {
			inner.ServeHTTP(w, r)
			return
		}
		switch n := streams.Add(1); {
		case n%5 == 2:
			w.WriteHeader(http.StatusBadGateway)
		case n%5 == 3:
			hangUp(w)
		case n%5 == 4:
			fmt.Fprint(w, "event: error\ndata: {\"error\":{\"code\":\"store_closed\",\"message\":\"stopping\",\"hint\":\"\"}}\n\n")
		default:
			short, cancel := context.WithCancel(r.Context())
			defer cancel()
			inner.ServeHTTP(&cutWriter{ResponseWriter: w, after: 2, cut: cancel}, r.WithContext(short))
		}
	})
	scene(t, c)
	for n := range 20 {
		_, err := c.Append(ctx, harness.AppendRequest{Session: rootID, Events: []harness.Event{{Type: "x-test/n", Facts: map[string]any{"n": n}}}})
		require.NoError(t, err)
	}
	row, err := h.Show(ctx, harness.SessionRequest{Session: rootID})
	require.NoError(t, err)
	var seqs []uint64
	for v, err := range c.Follow(ctx, harness.FollowRequest{Session: rootID}) {
		require.NoError(t, err)
		if seqs = append(seqs, v.Event.Seq); v.Event.Seq == row.Head.Seq {
			break
		}
	}
	require.Len(t, seqs, int(row.Head.Seq))
	for i, seq := range seqs {
		require.Equal(t, uint64(i+1), seq)
	}
	require.Greater(t, streams.Load(), int64(5))
}

// cutWriter ends a stream after so many events, in the middle of the next one.
type cutWriter struct {
	http.ResponseWriter
	after int
	cut   func()
}

func (w *cutWriter) Write(b []byte) (int, error) {
	if w.after--; w.after < 0 {
		w.cut()
		n, _ := w.ResponseWriter.Write(b[:len(b)/2])
		return n, io.ErrClosedPipe
	}
	return w.ResponseWriter.Write(b)
}

func (w *cutWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }
