package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"childlog/eventlog"
)

// Directory is a directory in the making: it gets its name once it is whole, or
// never.
type Directory struct {
	Path    string // that it gets, absolute, as its caller names it
	f       *os.File
	publish func() error
	discard func()
}

// NewDirectory makes a directory of an open one. publish gives it its name,
// discard takes it away; one of the two is called, once.
func NewDirectory(f *os.File, path string, publish func() error, discard func()) *Directory {
	return &Directory{Path: path, f: f, publish: publish, discard: discard}
}

// File is the open directory.
func (d *Directory) File() *os.File { return d.f }

// Within is a path by which this process reaches the directory itself, whatever
// becomes of its name: through the descriptor, which only Linux has a path for.
// Errors: errors.ErrUnsupported.
func (d *Directory) Within() (string, error) {
	path := "/proc/self/fd/" + strconv.Itoa(int(d.f.Fd()))
	there, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%w: to reach an open directory: %w", errors.ErrUnsupported, err)
	}
	if is, err := d.f.Stat(); err != nil || !os.SameFile(there, is) {
		return "", fmt.Errorf("%w: to reach an open directory", errors.ErrUnsupported)
	}
	return path, nil
}

// Renamed is an error about the path within, told of the name that the caller
// knows.
func (d *Directory) Renamed(err error, within string) error {
	return &renamedError{err, strings.ReplaceAll(err.Error(), within, d.Path)}
}

type renamedError struct {
	error
	text string
}

func (e *renamedError) Error() string { return e.text }
func (e *renamedError) Unwrap() error { return e.error }

// Commit makes the directory durable and gives it its name. Errors:
// eventlog.ErrExists, if the name was taken meanwhile.
func (d *Directory) Commit() error {
	d.f.Close() // was not written through
	return d.publish()
}

// Discard takes the directory away.
func (d *Directory) Discard() {
	d.f.Close() // was not written through
	d.discard()
}

// errDiscarded ends the making of a directory that is not wanted any more.
var errDiscarded = errors.New("not wanted any more")

// Directory is made as the library makes one. The goroutine ends with Commit or
// Discard.
func (Local) Directory(name, what string) (*Directory, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	made, verdict, done := make(chan string), make(chan error), make(chan error, 1)
	go func() {
		done <- eventlog.PublishDir(context.Background(), path, what, func(tmp string) error {
			made <- tmp
			return <-verdict
		})
	}()
	end := func(how error) error {
		verdict <- how
		return <-done
	}
	select {
	case err := <-done:
		return nil, err
	case tmp := <-made:
		f, err := os.Open(tmp)
		if err != nil {
			return nil, errors.Join(err, end(errDiscarded))
		}
		return NewDirectory(f, path, func() error { return end(nil) }, func() { _ = end(errDiscarded) }), nil
	}
}
