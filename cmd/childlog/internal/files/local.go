package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Local are the files of this process.
type Local struct{}

var _ Files = Local{}

func (Local) Open(name string) (*os.File, error)         { return os.Open(name) }
func (Local) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (Local) Lstat(name string) (fs.FileInfo, error)     { return os.Lstat(name) }
func (Local) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (Local) EvalSymlinks(name string) (string, error)   { return filepath.EvalSymlinks(name) }
func (Local) Abs(name string) (string, error)            { return filepath.Abs(name) }

func (Local) Rewrite(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

// Create makes the draft beside the name, so that it can be linked to it.
func (Local) Create(name string) (*Draft, error) {
	if _, err := os.Lstat(name); err == nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".new-") // mode 0600
	if err != nil {
		return nil, err
	}
	discard := func() { os.Remove(f.Name()) }
	return NewDraft(f, func() error {
		defer discard()
		err := os.Link(f.Name(), name) // a rename would overwrite
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
		return os.Rename(f.Name(), name) // a file system without links
	}, discard), nil
}
