package scopefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"childlog/policy"
)

// Options are what a check needs to know beside the scope. The zero value has
// no protected directory.
type Options struct {
	// Protected are directories in which nothing is ever inside, whatever the
	// scope says: absolute paths, which need not exist. The directory of the
	// store belongs here, or a child that may write to the workspace around it
	// can rewrite its own policy. They are recognized by identity as well as by
	// name, so a second mount of one is found.
	Protected []string

	// hook is called at the points of OpenWithin where somebody may interfere,
	// for tests that do.
	hook func(stage)
}

// stage names a point between two system calls of OpenWithin.
type stage string

const (
	stageChecked    stage = "checked"     // the answer of Check is known, nothing is open
	stageDir        stage = "dir"         // a directory was looked at, and is about to be opened
	stageDirOpened  stage = "dir opened"  // it is open, and is about to be looked at again
	stageFile       stage = "file"        // the file was looked at
	stageFileOpened stage = "file opened" // it is open
)

func (o Options) reached(s stage) {
	if o.hook != nil {
		o.hook(s)
	}
}

// Check returns where target, a path given in a call, really leads: relative to
// the workspace, with forward slashes, without links, "." for the workspace
// itself. It changes nothing on disk.
//
// root is the absolute directory of the workspace; it may be a link. A relative
// target is taken as relative to it, an absolute one must be spelled below it.
// A [*policy.TargetError] for a target that is outside in the sense of the
// package comment; wrapped [policy.ErrInvalid] for a root that is not a
// directory or a protected path that is not absolute, in which case no target is
// inside.
func Check(root string, scope policy.Scope, target string, opts Options) (resolved string, err error) {
	c, err := newCheck(root, scope, opts)
	if err != nil {
		return "", err
	}
	p, err := c.target(target)
	if err != nil {
		return "", err
	}
	return p.rel, nil
}

// check is the state that the targets of one workspace share.
type check struct {
	workspace policy.Workspace
	root      string      // resolved
	info      fs.FileInfo // of root, to notice that it was swapped
	scope     policy.Scope
	protected []protected
}

// protected is one directory in which nothing is inside.
type protected struct {
	path string      // resolved as far as it exists
	info fs.FileInfo // nil if it does not exist
}

// located is a target that was found to be inside.
type located struct {
	rel  string      // resolved, relative to the root
	info fs.FileInfo // nil if nothing is there
}

func newCheck(root string, scope policy.Scope, opts Options) (*check, error) {
	if root == "" {
		return nil, fmt.Errorf("%w: workspace root: got none, want an absolute directory", policy.ErrInvalid)
	}
	workspace, err := policy.NewWorkspace(root, policy.PathStylePosix)
	if err != nil {
		return nil, err
	}
	c := &check{workspace: workspace, scope: scope}
	if c.root, err = filepath.EvalSymlinks(root); err == nil {
		c.info, err = os.Lstat(c.root)
	}
	if err == nil && !c.info.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: workspace root: got %q, want a directory: %w", policy.ErrInvalid, root, err)
	}
	for _, path := range opts.Protected {
		if !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("%w: protected directory: got %q, want an absolute path", policy.ErrInvalid, path)
		}
		p, err := walk("/", path)
		if err != nil {
			return nil, fmt.Errorf("%w: protected directory: got %q, want one that can be resolved: %w", policy.ErrInvalid, path, err)
		}
		c.protected = append(c.protected, protected{path: p.path, info: p.info})
	}
	return c, nil
}

// target finds out where a target leads and whether that is inside.
func (c *check) target(target string) (located, error) {
	rel, err := c.workspace.Target(target)
	if err != nil {
		return located{}, err
	}
	outside := func(resolved, want string, err error) (located, error) {
		return located{}, &policy.TargetError{Target: target, Resolved: resolved, Want: want, Err: err}
	}
	if want := c.admitted(rel); want != "" {
		return outside("", want, nil)
	}
	p, err := walk(c.root, rel)
	if err != nil {
		return outside("", "a path that can be resolved", err)
	}
	inside, ok := below(c.root, p.path)
	if !ok {
		return outside("", "a place in the workspace", nil)
	}
	if want := c.admitted(inside); want != "" {
		return outside(inside, want, nil)
	}
	if p.info != nil {
		if want := ordinary(p.info); want != "" {
			return outside(inside, want, nil)
		}
	}
	if c.isProtected(p.path) {
		return outside(inside, "no protected directory", nil)
	}
	return located{rel: inside, info: p.info}, nil
}

// admitted returns "" for a relative path that the scope admits.
func (c *check) admitted(rel string) (want string) {
	want = c.scope.Want(rel)
	if want == "" && !c.scope.Stated() && policy.Protected(rel) {
		want = "no .git, .codex, .claude or .childlog"
	}
	return want
}

// ordinary returns "" for what may be written: a directory, or a regular file
// that has no second name.
func ordinary(info fs.FileInfo) (want string) {
	switch {
	case info.IsDir():
		return ""
	case !info.Mode().IsRegular():
		return fmt.Sprintf("a regular file or a directory, not %s", kind(info.Mode()))
	}
	switch n, known := hardLinks(info); {
	case !known:
		return "a file whose hard links can be counted"
	case n > 1:
		return fmt.Sprintf("a file with one name, not %d hard links", n)
	}
	return ""
}

// kind names what is neither a file nor a directory.
func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a link"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// isProtected reports whether a resolved path lies in a protected directory or
// on the way to one.
func (c *check) isProtected(path string) bool {
	if len(c.protected) == 0 {
		return false
	}
	for _, p := range c.protected {
		if _, ok := below(p.path, path); ok {
			return true
		}
		if _, ok := below(path, p.path); ok {
			return true
		}
	}
	// By identity: every directory from the root of the file system down to
	// the path. What cannot be looked at here was looked at by walk.
	for dir := path; ; dir = filepath.Dir(dir) {
		if info, err := os.Lstat(dir); err == nil && c.sameAsProtected(info) {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

func (c *check) sameAsProtected(info fs.FileInfo) bool {
	for _, p := range c.protected {
		if p.info != nil && os.SameFile(p.info, info) {
			return true
		}
	}
	return false
}

// below returns the path relative to dir, "." for dir itself. Both are
// absolute, clean and free of links.
func below(dir, path string) (rel string, ok bool) {
	rest, ok := strings.CutPrefix(path, dir)
	if !ok || rest != "" && rest[0] != '/' && dir != "/" {
		return "", false
	}
	if rest = strings.TrimPrefix(rest, "/"); rest == "" {
		rest = "."
	}
	return rest, true
}
