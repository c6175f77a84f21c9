package forward

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"childlog/cmd/childlog/internal/files"
)

// opened are the names that a command line mentions: what a holder may have
// opened for it. Which of the arguments are names of files only the command
// knows, so any may be one.
type opened []string

// named collects them: arguments, and what stands behind a flag in one.
func named(args []string) opened {
	var out opened
	for _, arg := range args {
		out = append(out, arg)
		if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' {
			out = append(out, strings.TrimPrefix(arg[2:], "=")) // -oFILE
		}
		if _, value, ok := strings.Cut(arg, "="); ok {
			out = append(out, value)
		}
	}
	return out
}

// check is nil if the command line covers what is asked for. Reading is covered
// below a name too, for directories of logs, and beside one, for a file's
// .meta.json. A project's policy for guards may be read wherever it is. Writing
// is covered at a name only.
func (o opened) check(op op, name string, f files.Files) error {
	exact := false
	switch op {
	case opOpen, opReadDir:
	case opRewrite, opCreate, opDirectory:
		exact = true
	default:
		return nil // hands out no content
	}
	want := filepath.Clean(name)
	if !exact && strings.HasSuffix(want, policyFile) {
		return nil // which a guard looks for above the directory that a hook names on stdin
	}
	for _, arg := range o {
		if arg == "" {
			continue
		}
		clean := filepath.Clean(arg)
		if want == clean {
			return nil
		}
		if exact {
			continue
		}
		if within(clean, want) || strings.HasSuffix(want, ".meta.json") && filepath.Dir(want) == filepath.Dir(clean) {
			return nil
		}
		// A directory that was named is entered by its real name.
		if real, err := f.EvalSymlinks(clean); err == nil && (want == real || within(real, want)) {
			return nil
		}
	}
	return &fs.PathError{Op: string(op), Path: name, Err: fmt.Errorf("%w: the command line does not name it", fs.ErrPermission)}
}

// policyFile is what a project says of its guards (package guard).
const policyFile = "/.childlog/guard.json"

// within reports whether path lies below dir, both clean.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != "." && filepath.IsLocal(rel)
}
