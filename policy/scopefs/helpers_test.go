//go:build linux

package scopefs

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree is a workspace on disk, in a directory of the test.
type tree struct {
	t    testing.TB
	root string
}

// newTree builds a workspace from lines like "dir/", "file", "link -> text",
// "name = other" for a hard link, "fifo |" and "socket =o". A "$" in a link is
// the workspace.
func newTree(t testing.TB, lines ...string) tree {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	tr := tree{t: t, root: filepath.Join(root, "w")}
	require.NoError(t, os.Mkdir(tr.root, 0o755))
	for _, line := range lines {
		tr.add(line)
	}
	return tr
}

func (tr tree) path(rel string) string { return filepath.Join(tr.root, rel) }

func (tr tree) add(line string) {
	if name, text, ok := strings.Cut(line, " -> "); ok {
		tr.parent(name)
		require.NoError(tr.t, os.Symlink(strings.ReplaceAll(text, "$", tr.root), tr.path(name)))
		return
	}
	if name, other, ok := strings.Cut(line, " = "); ok {
		tr.parent(name)
		require.NoError(tr.t, os.Link(tr.path(other), tr.path(name)))
		return
	}
	if name, ok := strings.CutSuffix(line, " |"); ok {
		tr.parent(name)
		require.NoError(tr.t, syscall.Mkfifo(tr.path(name), 0o600))
		return
	}
	if name, ok := strings.CutSuffix(line, " =o"); ok {
		tr.parent(name)
		l, err := net.Listen("unix", tr.path(name))
		require.NoError(tr.t, err)
		tr.t.Cleanup(func() { l.Close() })
		return
	}
	if name, ok := strings.CutSuffix(line, "/"); ok {
		require.NoError(tr.t, os.MkdirAll(tr.path(name), 0o755))
		return
	}
	tr.parent(line)
	require.NoError(tr.t, os.WriteFile(tr.path(line), []byte("old"), 0o600))
}

func (tr tree) parent(name string) {
	require.NoError(tr.t, os.MkdirAll(filepath.Dir(tr.path(name)), 0o755))
}

// content returns what is in a file, or "absent".
func (tr tree) content(rel string) string {
	b, err := os.ReadFile(tr.path(rel))
	if os.IsNotExist(err) {
		return "absent"
	}
	require.NoError(tr.t, err)
	return string(b)
}

func scope(t testing.TB, entries ...string) policy.Scope {
	s, err := policy.ParseScope(entries)
	require.NoError(t, err)
	return s
}

const writeFlags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC

// write opens a target as a tool that writes a file does, and writes to it.
func (tr tree) write(s policy.Scope, target string, opts Options) error {
	f, err := OpenWithin(tr.root, s, target, writeFlags, 0o600, opts)
	if err != nil {
		return err
	}
	_, err = f.WriteString("new")
	require.NoError(tr.t, err)
	return f.Close()
}

// inside and outside ask both Check and OpenWithin, which must agree.
func (tr tree) inside(s policy.Scope, target, resolved string, opts Options) {
	tr.t.Helper()
	got, err := Check(tr.root, s, target, opts)
	require.NoError(tr.t, err, target)
	assert.Equal(tr.t, resolved, got, target)
	if info, err := os.Stat(tr.path(resolved)); err == nil && info.IsDir() {
		return
	}
	require.NoError(tr.t, tr.write(s, target, opts), target)
	assert.Equal(tr.t, "new", tr.content(resolved), target)
}

func (tr tree) outside(s policy.Scope, target, want string, opts Options) {
	tr.t.Helper()
	before := tr.snapshot()
	_, checked := Check(tr.root, s, target, opts)
	opened := tr.write(s, target, opts)
	for _, err := range []error{checked, opened} {
		require.ErrorIs(tr.t, err, policy.ErrOutside, target)
		assert.ErrorContains(tr.t, err, want, target)
	}
	assert.Equal(tr.t, checked.Error(), opened.Error(), "the same answer everywhere")
	assert.Equal(tr.t, before, tr.snapshot(), "nothing was made or changed for %s", target)
}

// snapshot lists everything around the workspace, with modes and contents.
func (tr tree) snapshot() map[string]string {
	all := map[string]string{}
	require.NoError(tr.t, filepath.WalkDir(filepath.Dir(tr.root), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		all[path] = d.Type().String()
		if d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			require.NoError(tr.t, err)
			all[path] += string(b)
		}
		return nil
	}))
	return all
}
