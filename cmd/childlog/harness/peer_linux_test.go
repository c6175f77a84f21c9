package harness_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
)

// TestAProcessOfAnotherUserIsNobody: what listens where a store's socket should
// be, and is another user's, is told nothing and gets to say nothing: it could
// allow anything.
func TestAProcessOfAnotherUserIsNobody(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "cl") // short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: filepath.Join(dir, harness.Socket)}))
	// Whose process it is counts when it begins to listen.
	require.NoError(t, storetest.AsNobody(t, func() error { return unix.Listen(fd, 8) }))
	c, err := harness.Dial(ctx, "unix:"+dir, harness.Options{})
	if err == nil {
		c.Close()
	}
	require.ErrorIs(t, err, eventlog.ErrStoreClosed)
	require.ErrorIs(t, err, os.ErrPermission)
}
