package files

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
)

// Place is where a name leads.
type Place struct {
	Path string      // absolute and without links as far as it exists
	Info fs.FileInfo // of what is there; nil if nothing is
	Err  error       // ErrDangling, or what kept the name from being followed
}

// ErrDangling says that a name is a link to what is not there: whoever opens it
// makes a file that nobody decided about.
var ErrDangling = errors.New("a link to what is not there")

// Real finds where absolute names lead. Unlike EvalSymlinks it goes on where
// nothing exists any more, because that is where a file will be made.
func (l Local) Real(names ...string) []Place {
	places := make([]Place, len(names))
	for i, name := range names {
		places[i].Path, places[i].Info, places[i].Err = l.real(name)
	}
	return places
}

func (l Local) real(path string) (string, fs.FileInfo, error) {
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		to, err := l.EvalSymlinks(at)
		if err == nil {
			info, err := l.Lstat(to)
			if rest != "" { // of what is there nothing has the name
				info = nil
			}
			return filepath.Join(to, rest), info, err
		}
		if !Absent(err) {
			return "", nil, err
		}
		if _, err := l.Lstat(at); err == nil {
			return "", nil, ErrDangling
		} else if !Absent(err) {
			return "", nil, err
		}
		if at == filepath.Dir(at) {
			return filepath.Clean(path), nil, nil
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// Absent reports whether an error says that a file is not there, also since what
// should be its directory is a file.
func Absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }
