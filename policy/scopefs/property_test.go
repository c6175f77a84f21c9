//go:build linux

package scopefs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// randomTree fills a workspace with directories, files, hard links, FIFOs, and
// links of every kind: to neighbours, upwards, absolute, to nowhere, in loops.
// Some of it lies beside the workspace.
func randomTree(t *rapid.T, base string) (root string, names []string) {
	root = filepath.Join(base, "w")
	require.NoError(t, os.MkdirAll(root, 0o755))
	name := rapid.SampledFrom([]string{"a", "b", "c", ".git", "A"})
	dirs := []string{root, base}
	var files []string
	for range rapid.IntRange(0, 20).Draw(t, "entries") {
		dir := rapid.SampledFrom(dirs).Draw(t, "dir")
		path := filepath.Join(dir, name.Draw(t, "name"))
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0, 1:
			require.NoError(t, os.Mkdir(path, 0o755))
			dirs = append(dirs, path)
		case 2:
			require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
			files = append(files, path)
		case 3:
			if len(files) > 0 {
				require.NoError(t, os.Link(rapid.SampledFrom(files).Draw(t, "other"), path))
			}
		case 4:
			require.NoError(t, unix.Mkfifo(path, 0o600))
		default:
			parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", ".git", "..", "..", ".", "w", "A"}), 1, 4).Draw(t, "text")
			text := strings.Join(parts, "/")
			switch rapid.IntRange(0, 3).Draw(t, "absolute") {
			case 0:
				text = root + "/" + text
			case 1:
				text = rapid.SampledFrom(dirs).Draw(t, "to")
			}
			require.NoError(t, os.Symlink(text, path))
		}
	}
	for range 12 {
		target := rapid.SliceOfN(name, 1, 4).Draw(t, "target")
		if rapid.Bool().Draw(t, "near") {
			target = append([]string{rapid.SampledFrom([]string{"a", "b", "a/b"}).Draw(t, "top")}, target[1:]...)
		}
		names = append(names, strings.Join(target, "/"))
	}
	return root, names
}

// really returns where the kernel opens path, which it may create, or "" if it
// cannot. This is the model: no resolution of our own, but the name that the
// kernel has for the file it opened.
func really(t require.TestingT, path string) (real string, info unix.Stat_t) {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err == unix.EISDIR {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return "", info
	}
	defer unix.Close(fd)
	real, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	require.NoError(t, err)
	require.NoError(t, unix.Fstat(fd, &info))
	return real, info
}

// Nothing that the check admits is outside: over random trees, whatever the
// kernel opens under an admitted name is the path the check said, in the scope,
// not protected, with one name. Conversely a name in the scope that the kernel
// opens at an admissible place is admitted.
func TestPropertyCheckedIsInside(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("needs /proc to ask the kernel what it opened")
	}
	tmp, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	n := 0
	admitted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		base := filepath.Join(tmp, fmt.Sprint(n))
		root, names := randomTree(t, base)
		defer os.RemoveAll(base)
		entries := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "a/b", "a/.git", "c/a", "b/c", ".git"}), 1, 3).Draw(t, "scope")
		s, err := policy.ParseScope(entries)
		require.NoError(t, err)
		if rapid.IntRange(0, 9).Draw(t, "unscoped") == 0 {
			s = policy.Unscoped()
		}
		opts := Options{}
		if rapid.Bool().Draw(t, "store") {
			opts.Protected = []string{filepath.Join(root, "a/b"), filepath.Join(root, "c")}
		}
		for _, name := range names {
			target := name
			if rapid.Bool().Draw(t, "absolute") {
				target = filepath.Join(root, name)
			}
			resolved, err := Check(root, s, target, opts)
			var f *os.File
			opened := fmt.Errorf("not tried")
			if err == nil {
				f, opened = OpenWithin(root, s, target, os.O_WRONLY|os.O_CREATE, 0o600, opts)
			}
			if opened == nil {
				real, e := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
				require.NoError(t, e)
				require.NoError(t, f.Close())
				require.Equal(t, filepath.Join(root, resolved), real, "OpenWithin opens what Check found")
			}
			real, info := really(t, filepath.Join(root, name))
			if err == nil {
				admitted++
				require.NotEqual(t, "", resolved)
				if real == "" {
					require.Error(t, opened)
					continue
				}
				require.Equal(t, filepath.Join(root, resolved), real)
				require.True(t, s.Admits(resolved), "%v admits %s", s, resolved)
				isDir := info.Mode&unix.S_IFMT == unix.S_IFDIR
				require.True(t, isDir || info.Mode&unix.S_IFMT == unix.S_IFREG && info.Nlink == 1)
				require.True(t, isDir || opened == nil, "%v", opened)
				for _, p := range opts.Protected {
					p, e := filepath.EvalSymlinks(p)
					require.False(t, e == nil && (real == p || strings.HasPrefix(real, p+"/")))
				}
				continue
			}
			refused++
			rel, ok := below(root, real)
			if real == "" || !ok || len(opts.Protected) > 0 || info.Mode&unix.S_IFMT != unix.S_IFREG || info.Nlink != 1 || !s.Stated() {
				continue
			}
			require.False(t, s.Admits(name) && s.Admits(rel), "%s, really %s, refused: %v", name, rel, err)
		}
	})
	t.Logf("%d admitted, %d refused", admitted, refused)
	require.NotZero(t, admitted)
	require.NotZero(t, refused)
}

// The target of a call reaches the file system only through the check, so no
// text of it may get anywhere else, nor take long.
func FuzzCheck(f *testing.F) {
	tr := newTree(f, "src/a", "src/up -> ..", "src/loop -> loop", "src/.git/x", "other/x")
	for _, s := range []string{"src/a", "src/up/other/x", "src/loop", "src/.git/x", tr.path("src/a"), "src/../other/x", "src/\x00", "src/\u2028"} {
		f.Add(s)
	}
	s := scope(f, "src")
	f.Fuzz(func(t *testing.T, target string) {
		resolved, err := Check(tr.root, s, target, Options{})
		if err != nil {
			require.ErrorIs(t, err, policy.ErrOutside)
			return
		}
		require.True(t, s.Admits(resolved))
	})
}
