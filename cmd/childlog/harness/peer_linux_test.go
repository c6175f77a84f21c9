package harness_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/cmd/childlog/harness"
	"childlog/eventlog"
)

// TestAProcessOfAnotherUserIsNobody: what listens where a store's socket should
// be, and is another user's, is told nothing and gets to say nothing: it could
// allow anything.
func TestAProcessOfAnotherUserIsNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	dir, err := os.MkdirTemp("/tmp", "cl") // short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: filepath.Join(dir, harness.Socket)}))
	// Whose process it is counts when it begins to listen. The thread ends with
	// its identity.
	listening := make(chan error)
	go func() {
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)); errno != 0 {
			listening <- errno
			return
		}
		listening <- unix.Listen(fd, 8)
	}()
	require.NoError(t, <-listening)
	c, err := harness.Dial(ctx, "unix:"+dir, harness.Options{})
	if err == nil {
		c.Close()
	}
	require.ErrorIs(t, err, eventlog.ErrStoreClosed)
	require.ErrorIs(t, err, os.ErrPermission)
}
