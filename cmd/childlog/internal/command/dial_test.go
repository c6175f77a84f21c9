package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/forward"
	"childlog/cmd/childlog/internal/holder"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
)

// Who took the store to serve it does not answer before the store is open. A
// command that comes meanwhile waits for it, whether it says so in LOCK or the
// command was told to wait. Who will not serve is reported at once.
func TestCommandsWaitForWhoBeginsToServe(t *testing.T) {
	for _, c := range []struct {
		holder string
		args   []string
		want   int
	}{
		{serveCommand, []string{"ls"}, failure.ExitOK},
		{"a program", []string{"ls", "--wait", "1m"}, failure.ExitOK},
		{"a program", []string{"ls"}, failure.ExitUnavailable},
	} {
		s := storetest.Open(t, eventlog.Options{Command: c.holder})
		dir := s.Dir()
		var out, msg bytes.Buffer
		ran := make(chan int, 1)
		go func() {
			ran <- Run(context.Background(), append([]string{"--store", dir}, c.args...), strings.NewReader(""), &out, &msg)
		}()
		if c.want != failure.ExitOK {
			require.Equal(t, c.want, <-ran)
			require.Contains(t, msg.String(), c.holder)
			continue
		}
		sleep(t.Context(), 5*lookAgain) // usually it has looked by then; either way it has to get through
		ctx, stop := context.WithCancel(context.Background())
		held := access.Hold(s, access.HoldOptions{Command: c.holder})
		served := make(chan error, 1)
		go func() { served <- holder.Serve(ctx, held, holder.Options{Run: Runner(held)}) }()
		require.Equal(t, c.want, <-ran, msg.String())
		stop()
		require.NoError(t, <-served)
	}
}

// TestAnotherUsersHolderIsNotWaitedFor: it refuses this user again and again, and
// would have a line in its log for each.
func TestAnotherUsersHolderIsNotWaitedFor(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	s := storetest.Open(t, eventlog.Options{Command: serveCommand})
	path, done, err := forward.Short(s.Dir(), forward.Socket)
	require.NoError(t, err)
	defer done()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	listening := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with its identity
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)); errno != 0 {
			listening <- errno
			return
		}
		listening <- unix.Listen(fd, 1024)
	}()
	require.NoError(t, <-listening)
	var out, msg bytes.Buffer
	require.Equal(t, failure.ExitUnavailable, Run(t.Context(), []string{"--store", s.Dir(), "ls"}, strings.NewReader(""), &out, &msg))
	knocks := 0
	for ; ; knocks++ {
		conn, _, err := unix.Accept(fd)
		if err != nil {
			require.ErrorIs(t, err, unix.EAGAIN)
			break
		}
		require.NoError(t, unix.Close(conn))
	}
	require.Equal(t, 1, knocks)
}

// TestAStoreIsNamedAsItsCallerNamesIt, whoever holds it under what name.
func TestAStoreIsNamedAsItsCallerNamesIt(t *testing.T) {
	s := storetest.New(t)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(s.Dir(), link))
	ctx, stop := context.WithCancel(t.Context())
	held := access.Hold(s, access.HoldOptions{Command: serveCommand})
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() {
		served <- holder.Serve(ctx, held, holder.Options{Run: Runner(held), Ready: func() { close(ready) }})
	}()
	<-ready
	var out, msg bytes.Buffer
	require.Equal(t, failure.ExitOK, Run(t.Context(), []string{"--store", link, "stats", "--json"}, strings.NewReader(""), &out, &msg), msg.String())
	require.Contains(t, out.String(), `"path":"`+link+`"`)
	stop()
	require.NoError(t, <-served)
}
