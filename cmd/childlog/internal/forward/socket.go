package forward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Socket is the name of a holder's socket in the store's directory.
const Socket = "SOCK"

// maxSocketPath is the longest path that every system takes for a socket: 104
// bytes with the final zero on BSDs and macOS, 108 on Linux (sun_path).
const maxSocketPath = 103

// Short returns a path of the file name in dir that is short enough for a
// socket, and what must be called once it was used. A store may lie at any
// depth, and the system takes about a hundred bytes. On Linux the way leads
// through the open directory's descriptor; elsewhere through a link in a
// temporary directory that nobody else can enter.
func Short(dir, name string) (path string, done func(), err error) {
	if path = filepath.Join(dir, name); len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	if d, openErr := os.Open(dir); openErr != nil {
		return "", nil, openErr
	} else if _, statErr := os.Stat("/proc/self/fd/" + strconv.Itoa(int(d.Fd()))); statErr == nil {
		return filepath.Join("/proc/self/fd", strconv.Itoa(int(d.Fd())), name), func() { d.Close() }, nil
	} else {
		d.Close()
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, err
	}
	tmp, err := os.MkdirTemp("", "cl") // mode 0700
	if err != nil {
		return "", nil, err
	}
	done = func() { os.RemoveAll(tmp) } // the link, not what it leads to
	if err := os.Symlink(abs, filepath.Join(tmp, "d")); err != nil {
		done()
		return "", nil, err
	}
	return filepath.Join(tmp, "d", name), done, nil
}

// ErrNoHolder says that nobody serves the store.
var ErrNoHolder = errors.New("no process serves the store")

// busyPause is how long a caller waits before it knocks again at a holder whose
// queue is full.
const busyPause = 5 * time.Millisecond

// Connect reaches the holder of the store at dir, which is a process of this
// user. A socket that nobody listens at was left by a holder that was killed.
// Errors: ErrNoHolder; the end of ctx.
func Connect(ctx context.Context, dir string) (*net.UnixConn, error) {
	path, done, err := Short(dir, Socket)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoHolder, err)
	}
	defer done()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		switch {
		case err == nil:
			unix := conn.(*net.UnixConn)
			if err := Peer(unix); err != nil {
				unix.Close()
				return nil, fmt.Errorf("%w: %w", ErrNoHolder, err)
			}
			return unix, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.Is(err, syscall.EAGAIN): // Linux: the queue of connections is full
			return nil, fmt.Errorf("%w: %w", ErrNoHolder, err)
		}
		time.Sleep(busyPause)
	}
}

// Peer is nil if the process at the other end of a socket runs under the same
// user id as this one. A caller of another user would be served files of this
// one's store; a holder of another user would be handed the caller's files.
func Peer(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var uid int
	var uidErr error
	if err := raw.Control(func(fd uintptr) { uid, uidErr = peerUID(int(fd)) }); err != nil {
		return err
	}
	if uidErr != nil {
		return fmt.Errorf("whose process is at the other end: %w", uidErr)
	}
	if own := os.Geteuid(); uid != own {
		return fmt.Errorf("%w: the other end is a process of user %d, want %d", os.ErrPermission, uid, own)
	}
	return nil
}
