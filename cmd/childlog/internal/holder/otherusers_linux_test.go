package holder

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/cmd/childlog/internal/forward"
	"childlog/cmd/childlog/internal/storetest"
)

// TestOtherUsers are hung up on, even if the modes let them in.
func TestOtherUsers(t *testing.T) {
	root, err := os.MkdirTemp("/tmp", "cl")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	h := serve(t, filepath.Join(root, "s"), Options{})
	for _, dir := range []string{root, h.dir} {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	require.NoError(t, os.Chmod(filepath.Join(h.dir, forward.Socket), 0o777))
	err = storetest.AsNobody(t, func() error {
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
		return err
	})
	if err != nil {
		require.ErrorIs(t, err, unix.ECONNRESET)
	}
	_, _, err = h.call(t)
	require.NoError(t, err, "the others go on")
}
