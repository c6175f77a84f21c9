//go:build linux

package scopefs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCase38_LinksOutOfTheScope(t *testing.T) {
	tr := newTree(t, "out/", "other/", "elsewhere/deep/",
		"out/next -> ../other/new.txt", // absent
		"out/abs -> $/other/new.txt",
		"out/far -> /nonexistent-childlog/new.txt",
		"out/dir -> ../elsewhere", "out/deep -> dir/deep", "out/parent -> ..",
		"out/loop -> loop", "out/ping -> pong", "out/pong -> ping", "out/round -> ../out/round/x",
		"out/two -> next", "out/up -> ../../../../../../../../../../../../etc/passwd",
		"out/gone -> missing/../../other/x", "out/file", "out/slash -> file/", "out/dot -> file/.", "out/none -> absent/", "out/mid -> absent/x")
	s := scope(t, "out")
	tr.outside(s, "out/next", `(really "other/new.txt")`, Options{})
	assert.Equal(t, "absent", tr.content("other/new.txt"))
	tr.outside(s, tr.path("out/next"), `(really "other/new.txt")`, Options{})
	tr.outside(s, "out/two", `(really "other/new.txt")`, Options{})
	tr.outside(s, "out/abs", `(really "other/new.txt")`, Options{})
	tr.outside(s, "out/far", "a place in the workspace", Options{})
	tr.outside(s, "out/up", "a place in the workspace", Options{})

	// A link on the way, to whatever lies behind it.
	tr.outside(s, "out/dir/x", `(really "elsewhere/x")`, Options{})
	tr.outside(s, "out/dir/new/er/x", `(really "elsewhere/new/er/x")`, Options{})
	tr.outside(s, "out/deep/x", `(really "elsewhere/deep/x")`, Options{})
	tr.outside(s, "out/parent/other/x", `(really "other/x")`, Options{})
	tr.outside(s, "out/parent", `(really ".")`, Options{})

	for _, loop := range []string{"out/loop", "out/ping", "out/pong/x", "out/round"} {
		tr.outside(s, loop, "want no loop", Options{})
	}
	for _, nowhere := range []string{"out/gone", "out/slash", "out/dot", "out/none"} {
		tr.outside(s, nowhere, "want a directory before it", Options{})
	}

	resolved, err := Check(tr.root, s, "out/mid/y", Options{})
	require.NoError(t, err, "a link to nowhere inside is inside")
	assert.Equal(t, "out/absent/x/y", resolved)
}

func TestInside(t *testing.T) {
	tr := newTree(t, "src/a/file", "src/link -> a/file", "src/abs -> $/src/a/file", "src/dir -> a", "src/new -> a/made",
		"src/in -> ../src/./a//in", "src/home -> ../../w/src/a/home", "data -> src")
	s := scope(t, "src")
	tr.inside(s, "src", "src", Options{})
	tr.inside(s, "src/a", "src/a", Options{})
	tr.inside(s, "src/a/file", "src/a/file", Options{})
	tr.inside(s, "./src//a/./file", "src/a/file", Options{})
	tr.inside(s, tr.path("src/a/file"), "src/a/file", Options{})
	tr.inside(s, "src/link", "src/a/file", Options{})
	tr.inside(s, "src/abs", "src/a/file", Options{})
	tr.inside(s, "src/dir/file", "src/a/file", Options{})
	tr.inside(s, "src/new", "src/a/made", Options{})
	tr.inside(s, "src/in", "src/a/in", Options{})
	tr.inside(s, "src/home", "src/a/home", Options{})
	tr.inside(s, "src/b", "src/b", Options{})

	// A missing directory is inside, but not made.
	resolved, err := Check(tr.root, s, "src/x/y/z", Options{})
	require.NoError(t, err)
	assert.Equal(t, "src/x/y/z", resolved)
	assert.ErrorIs(t, tr.write(s, "src/x/y/z", Options{}), os.ErrNotExist)
	assert.Equal(t, "absent", tr.content("src/x"))

	// By the name of a link to the scope nothing is inside, nor by a scope
	// whose own directory is a link.
	tr.outside(s, "data/a/file", "a path within src", Options{})
	tr.outside(scope(t, "data"), "data/a/file", `(really "src/a/file")`, Options{})

	// The workspace itself may be reached through a link.
	link := filepath.Join(filepath.Dir(tr.root), "link")
	require.NoError(t, os.Symlink("w", link))
	resolved, err = Check(link, s, filepath.Join(link, "src/abs"), Options{})
	require.NoError(t, err)
	assert.Equal(t, "src/a/file", resolved)
}

func TestOutsideByName(t *testing.T) {
	tr := newTree(t, "src/a", "srcx/a")
	s := scope(t, "src")
	for target, want := range map[string]string{
		"srcx/a":                            "a path within src",
		"SRC/a":                             "a path within src",
		"src/../src/a":                      "no .. segment",
		`src\a`:                             `no \`,
		" src/a":                            "no outer spaces",
		"src/a\x00":                         "no control",
		"src/e\u0301":                       "NFC",
		"/etc/passwd":                       "in the workspace",
		"C:/src/a":                          "no drive letter",
		"":                                  "a path",
		".":                                 "a path within src",
		"src/" + strings.Repeat("a", 300):   "can be resolved", // no such name on this file system
		"src/a/b":                           "can be resolved", // a is a file
		"src/" + strings.Repeat("a/", 2100): "4096 bytes",
	} {
		tr.outside(s, target, want, Options{})
	}
	tr.outside(scope(t), "src/a", "no path: the write scope is empty", Options{})
	tr.outside(policy.Scope{}, "src/a", "no path: the write scope is empty", Options{})
	tr.inside(policy.Unscoped(), "srcx/a", "srcx/a", Options{})

	// The name that a link leads to is judged as a target of a call is.
	for name, text := range map[string]string{"bad1": `x\y`, "bad2": "x\ny", "bad3": "e\u0301", "bad4": "x\xff"} {
		require.NoError(t, os.Symlink(text, tr.path("src/"+name)))
		_, err := Check(tr.root, s, "src/"+name, Options{})
		assert.ErrorIs(t, err, policy.ErrOutside, text)
		_, err = Check(tr.root, policy.Unscoped(), "src/"+name, Options{})
		assert.ErrorIs(t, err, policy.ErrOutside, text)
	}
}

func TestNotOrdinary(t *testing.T) {
	tr := newTree(t, "src/fifo |", "src/s =o", "other/file", "src/hard = other/file", "src/one", "src/two = src/one",
		"src/null -> /dev/null", "src/viafifo -> fifo")
	s := scope(t, "src")
	tr.outside(s, "src/fifo", "not a FIFO", Options{})
	tr.outside(s, "src/viafifo", "not a FIFO", Options{})
	tr.outside(s, "src/fifo/x", "can be resolved", Options{})
	tr.outside(s, "src/s", "not a socket", Options{})
	tr.outside(s, "src/hard", "not 2 hard links", Options{})
	tr.outside(s, "src/one", "not 2 hard links", Options{}) // whose other name nobody knows
	tr.outside(s, "src/null", "a place in the workspace", Options{})

	require.NoError(t, os.Remove(tr.path("src/two")))
	tr.inside(s, "src/one", "src/one", Options{})

	resolved, err := Check("/dev", policy.Unscoped(), "null", Options{})
	assert.ErrorContains(t, err, "not a device")
	assert.Empty(t, resolved)
}

// The store's directory is outside, however it is reached; so is the way to it.
func TestCase59_StoreInsideAWritableRoot(t *testing.T) {
	tr := newTree(t, "data/store/store.db", "data/free", "src/", "src/in -> ../data/store", "src/file -> ../data/store/store.db", "src/up -> ..", "data/alias -> store")
	opts := Options{Protected: []string{tr.path("data/store")}}
	for _, s := range []policy.Scope{policy.Unscoped(), scope(t, "data", "src"), scope(t, "data/store")} {
		for _, target := range []string{"data/store/store.db", "data/store/new", "data/store", "data/store/a/b"} {
			tr.outside(s, target, "no protected directory", opts)
		}
	}
	wide := scope(t, "data", "src")
	for _, target := range []string{"src/in/store.db", "src/in", "src/file", "data/alias/new", "src/up/data/store/new"} {
		tr.outside(wide, target, "no protected directory", opts)
	}
	tr.outside(wide, "data", "no protected directory", opts) // whoever moves data moves the store
	tr.outside(policy.Unscoped(), ".", "no protected directory", opts)
	tr.inside(wide, "data/free", "data/free", opts)
	tr.inside(wide, "data/storex", "data/storex", opts)

	// It need not exist, may be given by a link, and may hold the workspace.
	tr.outside(wide, "data/later/x", "no protected directory", Options{Protected: []string{tr.path("data/later")}})
	tr.outside(wide, "data/store/new", "no protected directory", Options{Protected: []string{tr.path("src/in")}})
	tr.outside(wide, "src/x", "no protected directory", Options{Protected: []string{filepath.Dir(tr.root)}})
	tr.outside(wide, "src/x", "no protected directory", Options{Protected: []string{"/nonexistent-childlog", tr.root}})
}

func TestProtectedNames(t *testing.T) {
	tr := newTree(t, ".git/config", "src/.git/hooks/pre-commit", "src/.claude/settings.json", "src/a", "src/link -> .git/hooks", "src/GIT -> .git", "src/.codex -> a", ".gitignore")
	s := scope(t, "src")
	for _, target := range []string{
		"src/.git", "src/.git/hooks/pre-commit", "src/.git/new", "src/.claude/settings.json", "src/.codex", "src/.GIT/x", "src/deep/new/.Claude/x",
		"src/link/pre-commit", "src/GIT/config", "src/link",
	} {
		tr.outside(s, target, "need an entry of their own", Options{})
	}
	for _, target := range []string{".git/config", "src/.git/new", "src/link/pre-commit"} {
		tr.outside(policy.Unscoped(), target, "no .git, .codex, .claude or .childlog", Options{})
	}
	tr.inside(policy.Unscoped(), ".gitignore", ".gitignore", Options{})
	granted := scope(t, "src", "src/.git/hooks")
	tr.inside(granted, "src/.git/hooks/pre-commit", "src/.git/hooks/pre-commit", Options{})
	tr.inside(granted, "src/link/post-commit", "src/.git/hooks/post-commit", Options{})
	tr.outside(granted, "src/.git/config", "a path within src, src/.git/hooks", Options{})
}

func TestInvalidRoots(t *testing.T) {
	tr := newTree(t, "src/a")
	for _, root := range []string{"", "w", "./w", tr.root + "/absent", tr.root + "/src/a", tr.root + "/../w", `C:\w`} {
		_, err := Check(root, scope(t, "src"), "src/a", Options{})
		assert.ErrorIs(t, err, policy.ErrInvalid, root)
		_, err = OpenWithin(root, scope(t, "src"), "src/a", os.O_RDONLY, 0, Options{})
		assert.ErrorIs(t, err, policy.ErrInvalid, root)
	}
	tr.add("loop -> loop")
	for _, path := range []string{"store", "", tr.path("loop"), tr.path("src/a/x")} {
		_, err := Check(tr.root, scope(t, "src"), "src/a", Options{Protected: []string{path}})
		assert.ErrorIs(t, err, policy.ErrInvalid, path)
	}
}

// What cannot be looked at is outside: the resolution of it is unknown.
func TestUnreadableDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("the superuser may read every directory")
	}
	tr := newTree(t, "src/closed/a")
	require.NoError(t, os.Chmod(tr.path("src/closed"), 0))
	t.Cleanup(func() { os.Chmod(tr.path("src/closed"), 0o700) })
	_, err := Check(tr.root, scope(t, "src"), "src/closed/a", Options{})
	require.ErrorIs(t, err, policy.ErrOutside)
	assert.ErrorIs(t, err, os.ErrPermission)
}

// Long chains of links end, whatever they lead through.
func TestLinkChains(t *testing.T) {
	tr := newTree(t, "src/l0")
	for i := range 50 {
		require.NoError(t, os.Symlink("l"+string(rune('0'+i)), tr.path("src/l"+string(rune('1'+i)))))
	}
	s := scope(t, "src")
	tr.inside(s, "src/l"+string(rune('0'+maxLinks)), "src/l0", Options{})
	tr.outside(s, "src/l"+string(rune('0'+maxLinks+1)), "want no loop", Options{})

	// Each link a detour of a thousand segments through the one before.
	tr.add("src/x0/")
	for i := range 30 {
		name := "x" + string(rune('0'+i))
		require.NoError(t, os.Symlink(strings.Repeat("../src/", 300)+name, tr.path("src/x"+string(rune('1'+i)))))
	}
	tr.outside(s, "src/x"+string(rune('0'+30)), "segments with all links", Options{})
}
