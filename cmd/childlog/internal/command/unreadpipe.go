package command

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// untilUnread is ctx until nobody reads what is written to a pipe or a socket any
// more. Who only waits for something to print would else find out when there is
// something, which may be never. Other outputs have no reader that goes.
//
// stop ends the watch, and returns when it has ended.
func untilUnread(ctx context.Context, out io.Writer) (watched context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	f, ok := out.(*os.File)
	if !ok {
		return ctx, cancel
	}
	st, err := f.Stat()
	if err != nil || st.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		return ctx, cancel
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return ctx, cancel
	}
	wake, end, err := os.Pipe()
	if err != nil {
		return ctx, cancel
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer wake.Close()
		_ = conn.Control(func(fd uintptr) { // of a closed output: there is nothing to watch
			if gone(int(fd), int(wake.Fd())) {
				cancel()
			}
		})
	}()
	return ctx, func() {
		end.Close()
		<-done
		cancel()
	}
}

// gone waits until nobody reads fd any more, or until the other end of wake was
// closed: then it is false. An end that has no reader is an error without having
// been asked for (POSIX poll).
func gone(fd, wake int) bool {
	for {
		fds := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(wake), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil, fds[1].Revents != 0:
			return false
		case fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
			return true
		case fds[0].Revents != 0: // closed by this process
			return false
		}
	}
}
