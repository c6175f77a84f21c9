package guard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"childlog/eventlog"
)

// PolicyFile is where a project keeps its policy, below its top directory.
const PolicyFile = ".childlog/guard.json"

// Files is the file system of the process that the harness started, which need
// not be the one that decides. Errors are those of package os.
type Files interface {
	Open(name string) (*os.File, error)
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	EvalSymlinks(name string) (string, error)
}

// errDangling says that a name is a link to what is not there: whoever opens it
// makes a file that nobody decided about.
var errDangling = errors.New("a link to what is not there")

// real returns where an absolute path leads, as far as it exists, and what is
// there, nil if nothing is. Unlike EvalSymlinks it goes on where nothing exists
// any more, because that is where a file will be made.
func real(files Files, path string) (string, fs.FileInfo, error) {
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		to, err := files.EvalSymlinks(at)
		if err == nil {
			info, err := files.Lstat(to)
			if rest != "" { // of what is there nothing has the name
				info = nil
			}
			return filepath.Join(to, rest), info, err
		}
		if !absent(err) {
			return "", nil, err
		}
		if _, err := files.Lstat(at); err == nil {
			return "", nil, errDangling
		} else if !absent(err) {
			return "", nil, err
		}
		if at == filepath.Dir(at) {
			return filepath.Clean(path), nil, nil
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// firstLink returns the first of names that is a symbolic link, "" if none is.
func firstLink(files Files, names ...string) string {
	for _, name := range names {
		if info, err := files.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return name
		}
	}
	return ""
}

// absent reports whether an error says that a file is not there, also since what
// should be its directory is a file.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// readFile reads a file of at most limit bytes.
func readFile(files Files, path string, limit int) ([]byte, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(b) > limit {
		err = &eventlog.TooLargeError{What: "file in bytes", Limit: uint64(limit), Size: uint64(len(b))}
	}
	return b, err
}

// projectFiles finds the policy files of the project that cwd lies in, the
// nearest first: in cwd and above it up to the top of the repository; without a
// repository below the home directory, and never in it or outside of it, where a
// file would speak for other people's work. All of them count, since each only
// takes away: one that is nearer hides none that is stricter.
func projectFiles(files Files, home, cwd string) (found []Project) {
	if !filepath.IsAbs(cwd) {
		return nil // no root is made of it
	}
	var looked []string
	inside := false // the last place looked at belongs to a repository or to the home directory
	for dir := filepath.Clean(cwd); ; dir = filepath.Dir(dir) {
		if dir == home {
			inside = true
			break
		}
		looked = append(looked, dir)
		_, err := files.Stat(filepath.Join(dir, ".git"))
		if err != nil && !absent(err) {
			return []Project{{Path: dir, Err: err.Error()}}
		}
		if inside = err == nil; inside || dir == filepath.Dir(dir) {
			break
		}
	}
	if !inside {
		looked = looked[:1]
	}
	for _, dir := range looked {
		path := filepath.Join(dir, filepath.FromSlash(PolicyFile))
		doc, err := projectFile(files, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			found = append(found, Project{Path: path, Err: err.Error()})
		default:
			found = append(found, Project{Path: path, Doc: doc})
		}
		if len(found) > maxProjects {
			return []Project{{Path: path, Err: fmt.Sprintf("more than %d files of a policy above %s", maxProjects, cwd)}}
		}
	}
	return found
}

// maxProjects bounds the policy files of one project.
const maxProjects = 8

// projectFile reads one policy file. Errors: fs.ErrNotExist if there is none.
func projectFile(files Files, path string) ([]byte, error) {
	info, err := files.Stat(path)
	if absent(err) {
		if name := firstLink(files, path, filepath.Dir(path)); name != "" { // somebody meant a policy to be there
			return nil, fmt.Errorf("%s: %w", name, errDangling)
		}
		return nil, fs.ErrNotExist
	}
	if err == nil && !info.Mode().IsRegular() { // opening a pipe would wait
		err = fmt.Errorf("%w: want a regular file", eventlog.ErrInvalid)
	}
	var doc []byte
	if err == nil {
		doc, err = readFile(files, path, maxDocument)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return doc, nil
}
