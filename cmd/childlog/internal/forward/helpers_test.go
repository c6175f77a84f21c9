package forward

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/cmd/childlog/internal/files"
)

// patience ends a test that hangs. No test asserts a time.
const patience = time.Minute

// pair is a connected pair of sockets.
func pair(t *testing.T) (a, b *net.UnixConn) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	conns := make([]*net.UnixConn, 2)
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		conn, err := net.FileConn(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		t.Cleanup(func() { conn.Close() })
		conns[i] = conn.(*net.UnixConn)
	}
	return conns[0], conns[1]
}

// ran is a command that went through a connection.
type ran struct {
	code     int
	err      error // of the caller
	served   error // of the holder
	out, msg string
}

// through runs a command for a caller with args, stdin and the local files.
func through(t *testing.T, ctx context.Context, run Runner, stdin io.Reader, args ...string) ran {
	a, b := pair(t)
	served := make(chan error, 1)
	go func() { served <- Serve(context.Background(), nil, a, nil, run, ServeOptions{}) }()
	var out, msg bytes.Buffer
	var r ran
	env := Env{Stdin: stdin, Stdout: &out, Stderr: &msg, Files: files.Local{}, Getenv: func(name string) string {
		return map[string]string{"TERM": "xterm\xff", "SECRET": "x"}[name]
	}}
	r.code, r.err = (&Call{newLink(b, nil)}).Run(ctx, env, args)
	r.served = <-served
	r.out, r.msg = out.String(), msg.String()
	return r
}

// quiet is a stdin that must not be read.
type quiet struct{ t *testing.T }

func (q quiet) Read([]byte) (int, error) {
	q.t.Error("stdin was read")
	return 0, io.EOF
}

// forged is a holder that the test speaks for, behind the caller's hello.
func forged(t *testing.T, args ...string) (l *link, done func() ran) {
	a, b := pair(t)
	l = newLink(a, nil)
	result := make(chan ran, 1)
	go func() {
		var out bytes.Buffer
		code, err := (&Call{newLink(b, nil)}).Run(context.Background(), Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard,
			Files: files.Local{}, Getenv: func(string) string { return "" }}, args)
		result <- ran{code: code, err: err, out: out.String()}
	}()
	k, _, err := l.next()
	require.NoError(t, err)
	require.Equal(t, kindHello, k)
	return l, func() ran { return <-result }
}

// greet begins a command that the test is the caller of.
func greet(t *testing.T, run Runner, o ServeOptions) (l *link, served chan error) {
	a, b := pair(t)
	served = make(chan error, 1)
	go func() { served <- Serve(context.Background(), nil, a, nil, run, o) }()
	l = newLink(b, nil)
	require.NoError(t, l.sendJSON(kindHello, hello{}, nil))
	return l, served
}

// openFiles counts the descriptors of this process.
func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("descriptors can't be counted here: ", err)
	}
	return len(entries)
}
