package holder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/forward"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
)

// patience ends a test that hangs. No test asserts a time.
const patience = time.Minute

// held is a store that is served until the test ends.
type held struct {
	dir  string
	stop func() error // ends Serve, and returns what it said
}

func serve(t *testing.T, dir string, o Options) *held {
	if _, err := os.Stat(filepath.Join(dir, "IDENTITY")); err != nil {
		_, err := eventlog.Init(t.Context(), dir)
		require.NoError(t, err)
	}
	if o.Run == nil {
		o.Run = echo
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	o.Ready = func() { close(ready) }
	go func() {
		done <- access.Serve(ctx, access.Place{Dir: dir, Command: "the holder"}, func(ctx context.Context, h *access.Held) error {
			return Serve(ctx, h, o)
		})
	}()
	select {
	case <-ready:
	case err := <-done:
		require.NoError(t, err)
	}
	h := &held{dir: dir, stop: sync.OnceValue(func() error {
		cancel()
		return <-done
	})}
	t.Cleanup(func() {
		require.NoError(t, h.stop())
		storetest.RequireSound(t, dir)
	})
	return h
}

// echo is a command that prints its arguments.
func echo(_ context.Context, env forward.Env, args []string) int {
	fmt.Fprint(env.Stdout, strings.Join(args, " "))
	return 0
}

// call runs a command through the socket.
func (h *held) call(t *testing.T, args ...string) (out string, code int, err error) {
	c, err := forward.Dial(t.Context(), h.dir)
	if err != nil {
		return "", 0, err
	}
	var b bytes.Buffer
	code, err = c.Run(t.Context(), forward.Env{Stdin: strings.NewReader(""), Stdout: &b, Stderr: io.Discard, Files: files.Local{}, Getenv: func(string) string { return "" }}, args)
	return b.String(), code, err
}

func (h *held) dial(t *testing.T) net.Conn {
	path, done, err := forward.Short(h.dir, forward.Socket)
	require.NoError(t, err)
	defer done()
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	return conn
}

// TestSocket: it is the user's alone, it takes the place of one that was left,
// and is gone with the holder, as is what a killed one was about to make.
func TestSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep", 40), "store")
	_, err := eventlog.Init(t.Context(), dir)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, forward.Socket), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, makingPrefix+"1"), 0o700))
	h := serve(t, dir, Options{})
	fi, err := os.Lstat(filepath.Join(dir, forward.Socket))
	require.NoError(t, err)
	require.Equal(t, fs.ModeSocket|0o600, fi.Mode())
	require.NoDirExists(t, filepath.Join(dir, makingPrefix+"1"))
	out, code, err := h.call(t, "a", "b")
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, "a b", out)
	require.NoError(t, h.stop())
	require.NoFileExists(t, filepath.Join(dir, forward.Socket))
	_, _, err = h.call(t)
	require.ErrorIs(t, err, forward.ErrNoHolder)
}

// TestTheSocketsPlaceIsADirectory: it is not removed with what is in it, and the
// error says what is wrong.
func TestTheSocketsPlaceIsADirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, forward.Socket), 0o700))
	_, err := listen(dir, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, eventlog.ErrExists)
	require.ErrorContains(t, err, filepath.Join(dir, forward.Socket)+" is a directory")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// TestNothingIsLeftOfConnections: 2,000 that come and go in every way.
func TestNothingIsLeftOfConnections(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 400
	}
	h := serve(t, filepath.Join(t.TempDir(), "s"), Options{})
	count := func() (goroutines, fds int) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("descriptors can't be counted here: ", err)
		}
		return runtime.NumGoroutine(), len(entries)
	}
	_, _, err := h.call(t, "warm")
	require.NoError(t, err)
	goroutines, fds := count()
	upgrade := "POST " + forward.Path + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: " + forward.Protocol + "\r\n\r\n"
	for i := range n {
		if i%5 == 0 {
			out, _, err := h.call(t, "x")
			require.NoError(t, err)
			require.Equal(t, "x", out)
			continue
		}
		conn := h.dial(t)
		switch i % 5 {
		case 1: // nothing
		case 2:
			_, err = io.WriteString(conn, "GET / HT")
		case 3:
			_, err = io.WriteString(conn, "\x00\xff no HTTP\r\n\r\n")
		case 4:
			_, err = io.WriteString(conn, upgrade) // and no hello
		}
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	require.Eventually(t, func() bool {
		g, f := count()
		return g <= goroutines+2 && f <= fds+2
	}, patience, 10*time.Millisecond, "goroutines or descriptors are left")
}

// TestTooManyConnections: there is an answer, and room again when some leave.
func TestTooManyConnections(t *testing.T) {
	h := serve(t, filepath.Join(t.TempDir(), "s"), Options{Connections: 2})
	one, two := h.dial(t), h.dial(t)
	require.Eventually(t, func() bool {
		_, _, err := h.call(t)
		refused := (*forward.RefusedError)(nil)
		return err != nil && (!errors.As(err, &refused) || refused.Status == http.StatusServiceUnavailable)
	}, patience, 10*time.Millisecond)
	require.NoError(t, one.Close())
	require.NoError(t, two.Close())
	require.Eventually(t, func() bool {
		_, _, err := h.call(t)
		return err == nil
	}, patience, 10*time.Millisecond)
}

// TestOtherProtocol: a caller of another version is told.
func TestOtherProtocol(t *testing.T) {
	h := serve(t, filepath.Join(t.TempDir(), "s"), Options{})
	conn := h.dial(t)
	defer conn.Close()
	_, err := io.WriteString(conn, "POST "+forward.Path+" HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: childlog-command/99\r\n\r\n")
	require.NoError(t, err)
	b := make([]byte, 4096)
	got, err := conn.Read(b)
	require.NoError(t, err)
	require.Contains(t, string(b[:got]), "426 Upgrade Required")
	require.Contains(t, string(b[:got]), "Upgrade: "+forward.Protocol)
	require.Contains(t, string(b[:got]), "speaks "+forward.Protocol)
}

// TestAPIBeside: what is no command goes to the API.
func TestAPIBeside(t *testing.T) {
	h := serve(t, filepath.Join(t.TempDir(), "s"), Options{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })})
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return h.dial(t), nil }}}
	answer, err := client.Get("http://childlog/v1/sessions")
	require.NoError(t, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "/v1/sessions", string(b))
}

// TestStop: what is at work comes to its end, what only waits ends at once, and
// what does not end is ended after the grace.
func TestStop(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	h := serve(t, filepath.Join(t.TempDir(), "s"), Options{Grace: patience, Run: func(_ context.Context, env forward.Env, args []string) int {
		began <- struct{}{}
		<-env.Stopping
		if args[0] == "work" {
			<-goOn
		}
		return 9
	}})
	codes := make(chan int, 2)
	for _, arg := range []string{"work", "wait"} {
		go func() {
			_, code, err := h.call(t, arg)
			if err != nil {
				code = -1
			}
			codes <- code
		}()
		<-began
	}
	stopped := make(chan error, 1)
	go func() { stopped <- h.stop() }()
	require.Equal(t, 9, <-codes, "the one that waits")
	close(goOn)
	require.Equal(t, 9, <-codes)
	require.NoError(t, <-stopped)

	h = serve(t, filepath.Join(t.TempDir(), "s"), Options{Grace: time.Millisecond, Run: func(ctx context.Context, _ forward.Env, _ []string) int {
		began <- struct{}{}
		<-ctx.Done()
		return 9
	}})
	result := make(chan error, 1)
	go func() {
		_, _, err := h.call(t)
		result <- err
	}()
	<-began
	require.NoError(t, h.stop())
	require.ErrorIs(t, <-result, forward.ErrStopped)
}

// TestAlone: what needs the store alone gets it, and the store is there again.
func TestAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	_, err := eventlog.Init(t.Context(), dir)
	require.NoError(t, err)
	require.NoError(t, access.Serve(t.Context(), access.Place{Dir: dir}, func(ctx context.Context, h *access.Held) error {
		p := access.Shared(h, "", access.Place{})
		var users sync.WaitGroup
		for range 8 {
			users.Go(func() {
				for range 20 {
					if err := h.Use(ctx, func(s *eventlog.Store) error { _, err := s.Stats(); return err }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 3 {
			if _, err := access.Compact(ctx, p, nil); err != nil {
				return err
			}
			if _, _, err := access.Reindex(ctx, p); err != nil {
				return err
			}
		}
		users.Wait()
		return nil
	}))
	storetest.RequireSound(t, dir)

	s, err := eventlog.Open(t.Context(), dir, eventlog.Options{})
	require.NoError(t, err)
	defer s.Close()
	_, err = access.Compact(t.Context(), access.Shared(access.Hold(s, access.HoldOptions{Command: "a harness"}), "", access.Place{}), nil)
	require.ErrorIs(t, err, eventlog.ErrLocked)
	require.ErrorContains(t, err, "a harness")
}
