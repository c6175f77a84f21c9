package holder

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/cmd/childlog/internal/forward"
)

// TestOtherUsers are hung up on, even if the modes let them in.
func TestOtherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	root, err := os.MkdirTemp("/tmp", "cl")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	h := serve(t, filepath.Join(root, "s"), Options{})
	for _, dir := range []string{root, h.dir} {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	require.NoError(t, os.Chmod(filepath.Join(h.dir, forward.Socket), 0o777))
	// The identity of one thread, which is not given back to the others.
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)); errno != 0 {
			result <- errno
			return
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: filepath.Join(h.dir, forward.Socket)})
		}
		if err == nil {
			var n int
			if n, err = unix.Read(fd, make([]byte, 1)); n > 0 {
				err = fmt.Errorf("it was answered")
			}
		}
		result <- err
	}()
	err = <-result
	if err != nil {
		require.ErrorIs(t, err, unix.ECONNRESET)
	}
	_, _, err = h.call(t)
	require.NoError(t, err, "the others go on")
}
