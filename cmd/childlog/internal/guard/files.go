package guard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"childlog/cmd/childlog/internal/files"
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
	Real(names ...string) []files.Place
}

// firstLink returns the first of names that is a symbolic link, "" if none is.
func firstLink(from Files, names ...string) string {
	for _, name := range names {
		if info, err := from.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return name
		}
	}
	return ""
}

// readFile reads a file of at most limit bytes.
func readFile(from Files, path string, limit int) ([]byte, error) {
	f, err := from.Open(path)
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
func projectFiles(from Files, home, cwd string) (found []Project) {
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
		_, err := from.Stat(filepath.Join(dir, ".git"))
		if err != nil && !files.Absent(err) {
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
		doc, err := projectFile(from, path)
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
func projectFile(from Files, path string) ([]byte, error) {
	info, err := from.Stat(path)
	if files.Absent(err) {
		if name := firstLink(from, path, filepath.Dir(path)); name != "" { // somebody meant a policy to be there
			return nil, fmt.Errorf("%s: %w", name, files.ErrDangling)
		}
		return nil, fs.ErrNotExist
	}
	if err == nil && !info.Mode().IsRegular() { // opening a pipe would wait
		err = fmt.Errorf("%w: want a regular file", eventlog.ErrInvalid)
	}
	var doc []byte
	if err == nil {
		doc, err = readFile(from, path, maxDocument)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return doc, nil
}
