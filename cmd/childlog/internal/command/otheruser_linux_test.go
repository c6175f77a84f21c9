package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/forward"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
)

// TestAnotherUsersHolderIsNotWaitedFor: it refuses this user again and again, and
// would have a line in its log for each.
func TestAnotherUsersHolderIsNotWaitedFor(t *testing.T) {
	s := storetest.Open(t, eventlog.Options{Command: serveCommand})
	path, done, err := forward.Short(s.Dir(), forward.Socket)
	require.NoError(t, err)
	defer done()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	require.NoError(t, storetest.AsNobody(t, func() error { return unix.Listen(fd, 1024) }))
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
