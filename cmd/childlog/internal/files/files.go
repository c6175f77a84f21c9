package files

import (
	"io/fs"
	"os"
	"path"
)

// Files are the files of whoever asked for a command. Names are as the caller
// wrote them. Errors are those of package os, and errors.Is finds fs.ErrNotExist
// and the like in them. The methods may be called concurrently.
type Files interface {
	// Open opens a file for reading. It may be a pipe, and then waits for who
	// writes into it.
	Open(name string) (*os.File, error)
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	// ReadDir lists a directory by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	// EvalSymlinks is filepath.EvalSymlinks, Abs is filepath.Abs.
	EvalSymlinks(name string) (string, error)
	Abs(name string) (string, error)
	// Real finds where absolute names lead, one place for each: see [Local.Real].
	Real(names ...string) []Place
	// Rewrite opens a file for writing, empty, and makes it with mode 0600 if
	// it is not there.
	Rewrite(name string) (*os.File, error)
	// Create begins a file that must be new. Errors: fs.ErrExist.
	Create(name string) (*Draft, error)
	// Directory begins a directory that must be new, or empty; what says what
	// for, in its temporary name. Errors: eventlog.ErrExists.
	Directory(name, what string) (*Directory, error)
}

// Write writes a file with mode 0600, over one that is there.
func Write(f Files, name string, data []byte) error {
	out, err := f.Rewrite(name)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Draft is a file in the making: it gets its name once it is whole, or never.
type Draft struct {
	*os.File
	publish func() error
	discard func()
}

// NewDraft makes a draft of an open file. publish gives it its name, discard
// takes it away; one of the two is called, once, after the file was closed.
func NewDraft(f *os.File, publish func() error, discard func()) *Draft {
	return &Draft{f, publish, discard}
}

// Commit makes the file durable and gives it its name. Errors: fs.ErrExist,
// if the name was taken meanwhile.
func (d *Draft) Commit() error {
	err := d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		d.discard()
		return err
	}
	return d.publish()
}

// Discard takes the draft away.
func (d *Draft) Discard() {
	d.Close() // nothing of it is kept
	d.discard()
}

// Same reports whether both describe one file.
func Same(a, b fs.FileInfo) bool {
	if os.SameFile(a, b) {
		return true
	}
	x, ok := a.(*Info)
	y, also := b.(*Info)
	return ok && also && x.Device == y.Device && x.Inode == y.Inode
}

// Walk is filepath.WalkDir on f: links are not followed, and a directory's
// entries come in the order of their names.
func Walk(f Files, root string, fn fs.WalkDirFunc) error {
	return fs.WalkDir(tree{f}, path.Clean(root), fn)
}

// tree makes Files an fs.FS that takes any name, for fs.WalkDir.
type tree struct{ f Files }

func (t tree) Open(name string) (fs.File, error)          { return t.f.Open(name) }
func (t tree) Stat(name string) (fs.FileInfo, error)      { return t.f.Lstat(name) }
func (t tree) ReadDir(name string) ([]fs.DirEntry, error) { return t.f.ReadDir(name) }
