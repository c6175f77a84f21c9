package holder

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"childlog/cmd/childlog/internal/forward"
	"childlog/eventlog"
)

// makingPrefix begins the name of the directory in which a socket is made.
const makingPrefix = ".sock-"

// socket is a holder's listening socket.
type socket struct {
	*net.UnixListener
	path string
	made fs.FileInfo
	log  *slog.Logger
}

// listen makes the socket of the store at dir, whose lock this process has.
func listen(dir string, log *slog.Logger) (*socket, error) {
	if err := sweep(dir); err != nil {
		return nil, err
	}
	making, err := os.MkdirTemp(dir, makingPrefix) // mode 0700
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(making)
	short, done, err := forward.Short(making, "s")
	if err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	done()
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // that name is gone by then
	s := &socket{UnixListener: l, path: filepath.Join(dir, forward.Socket), log: log}
	made := filepath.Join(making, "s")
	err = os.Chmod(made, 0o600)
	if err == nil {
		s.made, err = os.Lstat(made)
	}
	if err == nil {
		err = os.Rename(made, s.path)
		if errors.Is(err, fs.ErrExist) { // a directory: anything else gives way
			err = fmt.Errorf("%w: %s is a directory, and the socket's place: remove it", eventlog.ErrExists, s.path)
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

// sweep removes what a holder left that was killed while it made its socket.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), makingPrefix) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Accept takes the next connection of a process of this user; others are hung
// up on.
func (s *socket) Accept() (net.Conn, error) {
	for {
		conn, err := s.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if err := forward.Peer(conn); err != nil {
			s.log.Warn("connection refused", "reason", err.Error())
			conn.Close()
			continue
		}
		return conn, nil
	}
}

// remove takes the name away, if it is still this socket's.
func (s *socket) remove() error {
	if fi, err := os.Lstat(s.path); err != nil || !os.SameFile(fi, s.made) {
		return nil
	}
	if err := os.Remove(s.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
