package scopefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many links one name may lead through: what Linux allows.
const maxLinks = 40

// maxSteps bounds the segments of one name with all its links. A link can hold
// two thousand of them, and each is a system call.
const maxSteps = 8192

// place is where a name really leads.
type place struct {
	path string      // absolute, clean, free of links
	info fs.FileInfo // nil if nothing is there
}

// walk follows name, segment by segment, from the resolved directory start, as
// the kernel would; unlike filepath.EvalSymlinks it goes on where nothing
// exists any more, because that is where a file would be created. An absolute
// link starts again at "/". Errors are those of the file system, and a loop.
func walk(start, name string) (place, error) {
	var (
		at      = place{path: start}
		todo    = segments(name) // what is left to follow, last segment first
		links   int
		missing bool
	)
	for steps := 0; len(todo) > 0; steps++ {
		if steps == maxSteps {
			return place{}, fmt.Errorf("got more than %d segments with all links", maxSteps)
		}
		segment := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if segment == ".." || segment == "." {
			// Both are entries of a directory that exists. The path is free of
			// links, so its parent by name is the real one.
			if missing || at.info != nil && !at.info.IsDir() {
				return place{}, fmt.Errorf("got %q behind %q, want a directory before it", segment, filepath.Base(at.path))
			}
			if segment == ".." {
				at = place{path: filepath.Dir(at.path)}
			}
			continue
		}
		next := filepath.Join(at.path, segment)
		if missing {
			at.path = next
			continue
		}
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = true
			at = place{path: next}
		case err != nil:
			return place{}, err
		case info.Mode()&fs.ModeSymlink == 0:
			at = place{path: next, info: info}
		default:
			if links++; links > maxLinks {
				return place{}, fmt.Errorf("got more than %d links, want no loop", maxLinks)
			}
			text, err := os.Readlink(next)
			if err != nil {
				return place{}, err
			}
			if strings.HasPrefix(text, "/") {
				at = place{path: "/"}
			} else {
				at.info = nil // at the directory that holds the link
			}
			// A link that ends in a slash leads to a directory or nowhere.
			if last := text[strings.LastIndexByte(text, '/')+1:]; last == "" || last == "." {
				todo = append(todo, ".")
			}
			todo = append(todo, segments(text)...)
		}
	}
	if at.info == nil && !missing {
		// The name ended in "..", in a link to "/" or nowhere but the start.
		info, err := os.Lstat(at.path)
		if err != nil {
			return place{}, err
		}
		at.info = info
	}
	return at, nil
}

// segments returns the segments of a name that lead anywhere, last first.
func segments(name string) []string {
	parts := strings.Split(name, "/")
	reversed := make([]string, 0, len(parts))
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i] != "" && parts[i] != "." {
			reversed = append(reversed, parts[i])
		}
	}
	return reversed
}
