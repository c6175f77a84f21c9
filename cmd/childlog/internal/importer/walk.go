package importer

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"childlog/cmd/childlog/internal/files"
	"childlog/eventlog"
)

// suffixes of the files that are taken from a directory. A file that is named
// itself may have any name.
var suffixes = []string{".jsonl", ".jsonl.zst"}

// Find lists the files below paths, each once: a named file as it is, of a
// directory the *.jsonl and *.jsonl.zst in the order of their names. Links
// inside directories are not followed, so that a tree of logs can't lead out
// of itself; the store's own directory is passed over. A directory that can't
// be read is a finding; a path that does not exist ends the import before it
// began. Errors: eventlog.ErrNotFound, ErrInvalid (neither file nor directory).
func Find(from files.Files, paths []string, storeDir string) ([]string, []Finding, error) {
	var out []string
	var findings []Finding
	seen := map[string]bool{}
	add := func(path string) {
		key := path
		if abs, err := from.Abs(path); err == nil {
			key = abs
		}
		if real, err := from.EvalSymlinks(key); err == nil {
			key = real
		}
		if !seen[key] {
			seen[key] = true
			out = append(out, path)
		}
	}
	store, storeErr := from.Stat(storeDir)
	for _, path := range paths {
		fi, err := from.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, fmt.Errorf("%w: no file or directory %s", eventlog.ErrNotFound, path)
		case err != nil:
			return nil, nil, err
		case fi.Mode().IsRegular():
			add(path)
			continue
		case !fi.IsDir():
			return nil, nil, fmt.Errorf("%w: %s is neither a regular file nor a directory", eventlog.ErrInvalid, path)
		}
		root := path
		if real, err := from.EvalSymlinks(path); err == nil {
			root = real // WalkDir does not enter a link, not even the one that was named
		}
		err = files.Walk(from, root, func(p string, d fs.DirEntry, err error) error {
			if rel, relErr := filepath.Rel(root, p); relErr == nil {
				p = filepath.Join(path, rel)
			}
			if err != nil {
				findings = append(findings, Finding{Code: CodeUnreadableFile, File: p, Detail: "not entered: " + err.Error()})
				if d != nil && d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			if d.IsDir() {
				if fi, err := d.Info(); err == nil && storeErr == nil && files.Same(fi, store) {
					return fs.SkipDir
				}
				return nil
			}
			if d.Type().IsRegular() && wanted(d.Name()) {
				add(p)
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return out, findings, nil
}

func wanted(name string) bool {
	for _, s := range suffixes {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}
