//go:build linux

package scopefs

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// swap replaces what is at name by another entry that is already there, in one
// step, as an attacker would.
func (tr tree) swap(name, with string) {
	require.NoError(tr.t, unix.Renameat2(unix.AT_FDCWD, tr.path(name), unix.AT_FDCWD, tr.path(with), unix.RENAME_EXCHANGE))
}

// once returns a hook that acts when a stage is reached for the first time.
func once(at stage, act func()) func(stage) {
	var o sync.Once
	return func(s stage) {
		if s == at {
			o.Do(act)
		}
	}
}

func TestCase59_SwappedBetweenCheckAndOpen(t *testing.T) {
	for _, c := range []struct {
		name, target string
		swap         func(tree)
		want         string
	}{
		{"the top directory for a link", "src/a/file", func(tr tree) { tr.swap("src", "evil") }, `a directory at "src", not a link`},
		{"a deeper directory for a link beside it", "src/a/file", func(tr tree) { tr.swap("src/a", "src/evil") }, `a directory at "a", not a link`},
		{"for a link that stays in its directory", "src/a/file", func(tr tree) { tr.add("src/b/file"); tr.add("src/beside -> b"); tr.swap("src/a", "src/beside") }, `a directory at "a", not a link`},
		{"for a FIFO", "src/a/file", func(tr tree) { tr.add("src/pipe |"); tr.swap("src/a", "src/pipe") }, "not a FIFO"},
		{"for a file", "src/a/file", func(tr tree) { tr.add("src/f"); tr.swap("src/a", "src/f") }, "not a file"},
		{"the file for a link", "src/a/file", func(tr tree) { tr.add("src/a/l -> ../../other/file"); tr.swap("src/a/file", "src/a/l") }, "not a link"},
		{"the file for a link beside it", "src/a/file", func(tr tree) {
			tr.add("src/a/sibling")
			tr.add("src/a/l -> sibling")
			tr.swap("src/a/file", "src/a/l")
		}, "not a link"},
		{"the file for a hard link", "src/a/file", func(tr tree) { tr.add("src/a/h = other/file"); tr.swap("src/a/file", "src/a/h") }, "not 2 hard links"},
		{"the file for a FIFO", "src/a/file", func(tr tree) { tr.add("src/a/p |"); tr.swap("src/a/file", "src/a/p") }, "not a FIFO"},
		{"the file for a directory", "src/a/file", func(tr tree) { tr.add("src/a/d/"); tr.swap("src/a/file", "src/a/d") }, "not a directory"},
		{"a new file for a link", "src/a/new", func(tr tree) { tr.add("src/a/new -> ../../other/file") }, "not a link"},
		{"a new file for a link to nowhere", "src/a/new", func(tr tree) { tr.add("src/a/new -> ../../other/new") }, "not a link"},
		{"the workspace", "src/a/file", func(tr tree) {
			require.NoError(tr.t, os.Rename(tr.root, tr.root+".moved"))
			require.NoError(tr.t, os.Symlink(filepath.Base(tr.root)+".moved/other", tr.root))
		}, "the workspace that was checked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTree(t, "src/a/file", "other/file", "other/a/file", "evil -> other", "src/evil -> ../other")
			// From here on the tree is the attacker's: what it looks like right
			// after the swap is what it must look like after the open.
			var before map[string]string
			err := tr.write(scope(t, "src/a"), c.target, Options{hook: once(stageChecked, func() { c.swap(tr); before = tr.snapshot() })})
			require.ErrorIs(t, err, policy.ErrOutside)
			assert.ErrorContains(t, err, c.want)
			if c.name != "the file for a directory" {
				assert.ErrorIs(t, err, ErrChanged)
			}
			assert.Equal(t, before, tr.snapshot(), "nothing was made, truncated or written")
		})
	}
}

// A directory that vanishes, or a file that an editor replaces, is no attack.
func TestHarmlessChanges(t *testing.T) {
	tr := newTree(t, "src/a/file", "src/a/saved")
	s := scope(t, "src")
	err := tr.write(s, "src/a/file", Options{hook: once(stageChecked, func() { tr.swap("src/a/file", "src/a/saved") })})
	require.NoError(t, err)
	assert.Equal(t, "new", tr.content("src/a/file"))
	assert.Equal(t, "old", tr.content("src/a/saved"))

	require.NoError(t, tr.write(s, "src/a/file", Options{hook: once(stageChecked, func() { require.NoError(t, os.Remove(tr.path("src/a/file"))) })}))
	assert.Equal(t, "new", tr.content("src/a/file"))
	require.NoError(t, tr.write(s, "src/a/next", Options{hook: once(stageChecked, func() { tr.add("src/a/next") })}))
	assert.Equal(t, "new", tr.content("src/a/next"))

	err = tr.write(s, "src/a/file", Options{hook: once(stageChecked, func() { require.NoError(t, os.RemoveAll(tr.path("src/a"))) })})
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.NotErrorIs(t, err, ErrChanged)

	// A protected directory that is moved in between is recognized by identity.
	tr.add("store/db")
	tr.add("src/dir/")
	opts := Options{Protected: []string{tr.path("store")}, hook: once(stageChecked, func() { tr.swap("src/dir", "store") })}
	assert.ErrorIs(t, tr.write(s, "src/dir/db", opts), ErrChanged)
	assert.Equal(t, "old", tr.content("src/dir/db"))
}

// The instants within the open: somebody swaps right before a system call and
// swaps back right after it, so that a look before and after sees nothing.
func TestSwappedForAnInstant(t *testing.T) {
	s := policy.Scope{}
	flip := func(tr tree, before, after stage, name, with string) Options {
		swap := func() { tr.swap(name, with) }
		there, back := once(before, swap), once(after, swap)
		return Options{hook: func(s stage) { there(s); back(s) }}
	}

	// A directory, for a link that os.Root follows, since it stays below src.
	tr := newTree(t, "src/a/file", "src/b/file", "src/beside -> b")
	s = scope(t, "src/a")
	skipTop := flip(tr, stageDir, stageDirOpened, "src/a", "src/beside")
	dirs := 0
	opts := Options{hook: func(s stage) {
		if s == stageDir {
			dirs++
		}
		if dirs == 2 {
			skipTop.hook(s)
		}
	}}
	err := tr.write(s, "src/a/file", opts)
	require.ErrorIs(t, err, ErrChanged)
	assert.ErrorContains(t, err, `the directory "a" that was checked`)
	assert.Equal(t, "old", tr.content("src/b/file"))
	assert.Equal(t, "old", tr.content("src/a/file"))

	// The file, for a link to one beside it: seen, looked at again, and then
	// the right file is opened.
	tr = newTree(t, "src/file", "src/other", "src/l -> other")
	s = scope(t, "src/file")
	require.NoError(t, tr.write(s, "src/file", flip(tr, stageFile, stageFileOpened, "src/file", "src/l")))
	assert.Equal(t, "new", tr.content("src/file"))
	assert.Equal(t, "old", tr.content("src/other"), "neither truncated nor written")

	// A new file, for a link to one that would be made beside it.
	tr = newTree(t, "src/")
	s = scope(t, "src/new")
	err = tr.write(s, "src/new", Options{hook: once(stageFile, func() { tr.add("src/new -> made") })})
	require.ErrorIs(t, err, ErrChanged)
	assert.Equal(t, "absent", tr.content("src/made"))

	// Every time anew: not an editor any more.
	tr = newTree(t, "src/file", "src/other")
	err = tr.write(scope(t, "src/file"), "src/file", Options{hook: func(s stage) {
		if s == stageFile {
			tr.swap("src/file", "src/other")
		}
	}})
	require.NoError(t, err, "what is opened is what is there when it is open")
	err = tr.write(scope(t, "src/file"), "src/file", Options{hook: func(s stage) {
		if s == stageFileOpened {
			tr.swap("src/file", "src/other")
		}
	}})
	require.ErrorIs(t, err, ErrChanged)
	assert.ErrorContains(t, err, "stays in place")
}

// A protected directory that is reached under another name, as by a second
// mount of it, is known by identity.
func TestProtectedByIdentity(t *testing.T) {
	tr := newTree(t, "mount/db", "free")
	info, err := os.Stat(tr.path("mount"))
	require.NoError(t, err)
	c := &check{protected: []protected{{path: "/elsewhere/store", info: info}}}
	assert.True(t, c.isProtected(tr.path("mount/db")))
	assert.True(t, c.isProtected(tr.path("mount/absent/x")))
	assert.False(t, c.isProtected(tr.path("free")))
}

// One goroutine swaps the directory for a link as fast as it can, and one the
// file; the file outside must never change.
func TestSwapRace(t *testing.T) {
	tr := newTree(t, "src/a/file", "other/file", "src/evil -> ../other", "src/a/l -> ../../other/file")
	var stop atomic.Bool
	var attackers sync.WaitGroup
	for _, swap := range [][3]string{{"src", "a", "evil"}, {"src/a", "file", "l"}} {
		// By a handle: by name, one attacker would lead the other's rename out
		// of the scope and change the file there all by itself.
		dir, err := os.Open(tr.path(swap[0]))
		require.NoError(t, err)
		defer dir.Close()
		attackers.Go(func() {
			for !stop.Load() {
				_ = unix.Renameat2(int(dir.Fd()), swap[1], int(dir.Fd()), swap[2], unix.RENAME_EXCHANGE)
			}
		})
	}
	written, refused := 0, 0
	for range 4000 {
		err := tr.write(scope(t, "src/a"), "src/a/file", Options{})
		if err == nil {
			written++
		} else {
			refused++
			require.ErrorIs(t, err, policy.ErrOutside)
		}
		require.Equal(t, "old", tr.content("other/file"))
	}
	stop.Store(true)
	attackers.Wait()
	t.Logf("%d written, %d refused", written, refused)
	entries, err := os.ReadDir(tr.path("other"))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no file was made outside")
}

func TestOpenFlags(t *testing.T) {
	tr := newTree(t, "src/a")
	s := scope(t, "src")
	open := func(target string, flag int, perm os.FileMode) (*os.File, error) {
		return OpenWithin(tr.root, s, target, flag, perm, Options{})
	}
	f, err := open("src/a", os.O_RDONLY, 0)
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	assert.Equal(t, "old", string(b))

	f, err = open("src/a", os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.WriteString("er")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	assert.Equal(t, "older", tr.content("src/a"))

	f, err = open("src/a", os.O_RDWR|os.O_CREATE, 0o644)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	assert.Equal(t, "older", tr.content("src/a"), "creating does not truncate")

	_, err = open("src/a", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	assert.ErrorIs(t, err, os.ErrExist)
	f, err = open("src/b", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	info, err := os.Stat(tr.path("src/b"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0), info.Mode().Perm()&^0o640)

	_, err = open("src/absent", os.O_RDONLY, 0)
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.NotErrorIs(t, err, policy.ErrOutside)
	_, err = open("src", os.O_RDONLY, 0)
	assert.ErrorContains(t, err, "not a directory")
	_, err = OpenWithin(tr.root, policy.Unscoped(), ".", os.O_RDONLY, 0, Options{})
	assert.ErrorContains(t, err, "not a directory")
	_, err = open("src/c", os.O_WRONLY|os.O_CREATE, os.ModeSetuid|0o600)
	assert.Error(t, err)
	assert.Equal(t, "absent", tr.content("src/c"))
}
