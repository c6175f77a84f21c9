package eventlog

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// snapshotDir lists every file with its bytes, mode and time of change.
func snapshotDir(t require.TestingT, dir string) map[string]string {
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		out[path] = info.Mode().String() + " " + info.ModTime().String() + " " + string(raw)
		return err
	}))
	return out
}

// requireUntouched runs fn and requires that no file under dir changed.
func requireUntouched(t require.TestingT, dir string, fn func()) {
	before := snapshotDir(t, dir)
	fn()
	after := snapshotDir(t, dir)
	for path, was := range before {
		require.True(t, after[path] == was, "%s changed", path)
	}
	require.Len(t, after, len(before))
}

// TestStoreStates tells a store from none, from a lost one and from somebody
// else's, and touches nothing while it does.
func TestStoreStates(t *testing.T) {
	other := emptyStore(t)
	replace := func(name, from, to string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.Contains(raw, []byte(from)))
			require.NoError(t, os.WriteFile(path, bytes.Replace(raw, []byte(from), []byte(to), 1), 0o600))
		}
	}
	remove := func(names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				require.NoError(t, os.Remove(filepath.Join(dir, name)))
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*testing.T, string)
		want   error
		text   string
	}{
		{"no directory", func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)) }, ErrNotFound, "no store at"},
		{"an empty directory", remove(lockFile, identityFile, journalFile), ErrNotFound, "no store at"},
		{"store.db is gone", remove(journalFile), ErrStoreLost, "has an IDENTITY but no store.db"},
		{"IDENTITY is gone", remove(identityFile), ErrStoreLost, "has a store.db but no IDENTITY"},
		{"store.db is empty", func(t *testing.T, dir string) { require.NoError(t, os.Truncate(filepath.Join(dir, journalFile), 0)) }, ErrStoreLost, "store.db is empty"},
		{"another store's store.db", func(t *testing.T, dir string) {
			copyFile(t, filepath.Join(other, journalFile), filepath.Join(dir, journalFile))
		}, ErrCorrupt, "store.db belongs to store"},
		{"another store's IDENTITY", func(t *testing.T, dir string) {
			copyFile(t, filepath.Join(other, identityFile), filepath.Join(dir, identityFile))
		}, ErrCorrupt, "store.db belongs to store"},
		{"another incarnation", replace(identityFile, `"incarnation":1`, `"incarnation":2`), ErrCorrupt, "incarnation"},
		{"a newer format", replace(identityFile, `"format":1`, `"format":2`), ErrNewerFormat, "store format: want 1 to 1, got 2; it was written by a newer childlog"},
		{"no format", replace(identityFile, `"format":1`, `"format":0`), ErrCorrupt, "store format: want at least 1, got 0"},
		{"an IDENTITY that is cut off", func(t *testing.T, dir string) { require.NoError(t, os.Truncate(filepath.Join(dir, identityFile), 20)) }, ErrCorrupt, "IDENTITY: "},
		{"an IDENTITY that is empty", func(t *testing.T, dir string) { require.NoError(t, os.Truncate(filepath.Join(dir, identityFile), 0)) }, ErrCorrupt, "IDENTITY: "},
		{"a store.db that is no database", func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, journalFile), make([]byte, 32<<10), 0o600))
		}, ErrCorrupt, "store.db: "},
		{"a store.db of a few bytes", func(t *testing.T, dir string) { require.NoError(t, os.Truncate(filepath.Join(dir, journalFile), 100)) }, ErrCorrupt, "store.db: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := emptyStore(t)
			c.change(t, dir)
			if _, err := os.Stat(dir); err != nil {
				dir = filepath.Join(dir, "none")
			}
			for how, opts := range map[string]Options{"to write": {}, "to read": {ReadOnly: true}} {
				s, err := Open(ctx, dir, opts)
				require.Nil(t, s)
				require.ErrorIs(t, err, c.want, how)
				require.ErrorContains(t, err, c.text, how)
			}
			if _, err := os.Stat(dir); err == nil {
				requireUntouched(t, dir, func() {
					_, err := Open(ctx, dir, Options{ReadOnly: true})
					require.Error(t, err)
				})
			}
		})
	}
}

func TestInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "store") // parents are made too
	id, err := Init(ctx, dir)
	require.NoError(t, err)
	require.Equal(t, FormatVersion, id.Format)
	require.Equal(t, uint64(1), id.Incarnation)
	ts := useStore(t, dir)
	require.Equal(t, id.Store, ts.Identity().Store)
	ts.root(sid(1))
	_, err = Init(ctx, dir)
	require.ErrorIs(t, err, ErrExists, "a store that is in use")
	require.NoError(t, ts.Close())
	_, err = Init(ctx, dir)
	require.ErrorIs(t, err, ErrExists)
	ts.open()
	require.Len(t, ts.rows(), 1)

	files := t.TempDir()
	path := filepath.Join(files, "precious")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	requireUntouched(t, files, func() {
		_, err = Init(ctx, files)
		require.ErrorIs(t, err, ErrExists)
		require.ErrorContains(t, err, "holds other files")
		_, err = Init(ctx, path)
		require.ErrorIs(t, err, ErrExists)
		require.ErrorContains(t, err, "is not a directory")
	})

	empty := t.TempDir()
	_, err = Init(ctx, empty)
	require.NoError(t, err)
	require.NoError(t, useStore(t, empty).Close())

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	never := filepath.Join(t.TempDir(), "never")
	_, err = Init(canceled, never)
	require.ErrorIs(t, err, context.Canceled)
	left, err := os.ReadDir(filepath.Dir(never))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestInitRace: of many that create the store at once one does, and it is
// whole.
func TestInitRace(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "store")
	var wg sync.WaitGroup
	var mu sync.Mutex
	var made []Identity
	for range 8 {
		wg.Go(func() {
			id, err := Init(ctx, dir)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made = append(made, id)
			} else if !errors.Is(err, ErrExists) {
				t.Errorf("want ErrExists, got %v", err)
			}
		})
	}
	wg.Wait()
	require.Len(t, made, 1)
	ts := useStore(t, dir)
	require.Equal(t, made[0].Store, ts.Identity().Store)
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary directory is left")
}

// TestInitLeftovers: what a crash in the middle of Init left is not the store
// and in nobody's way.
func TestInitLeftovers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for _, leftover := range []string{".store.new-1", ".store.new-2"} {
		require.NoError(t, os.Mkdir(filepath.Join(filepath.Dir(dir), leftover), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(dir), ".store.new-2", identityFile), []byte("{"), 0o600))
	_, err := Open(ctx, dir, Options{})
	require.ErrorIs(t, err, ErrNotFound)
	newStoreAt(t, dir).root(sid(1))
}

// TestPermissions: prompts and tool outputs are nobody else's, whatever the
// umask says.
func TestPermissions(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	ts := newStoreAt(t, filepath.Join(t.TempDir(), "new", "store"))
	ts.root(sid(1))
	ts.say(sid(1), numbers(closeLagFrames+1)...)
	require.NoError(t, ts.Close())
	_, err := Reindex(ctx, ts.dir, Options{})
	require.NoError(t, err)
	var names []string
	require.NoError(t, filepath.WalkDir(filepath.Dir(ts.dir), func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		require.Equal(t, want, info.Mode().Perm(), path)
		names = append(names, d.Name())
		return nil
	}))
	require.Equal(t, "new store CHECKPOINT IDENTITY KEY LOCK index.db store.db", strings.Join(names, " "))
}

// TestCase34_ReadingAStoreThatCannotBeWritten: mode 0400 in a directory of 0500,
// as on read-only media. It needs no write permission and leaves every byte.
func TestCase34_ReadingAStoreThatCannotBeWritten(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, "a", "b")
	require.NoError(t, ts.Close())
	entries, err := os.ReadDir(ts.dir)
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, os.Chmod(filepath.Join(ts.dir, e.Name()), 0o400))
	}
	require.NoError(t, os.Chmod(ts.dir, 0o500))
	defer os.Chmod(ts.dir, 0o700)
	requireUntouched(t, ts.dir, func() {
		ts.open(Options{ReadOnly: true})
		require.Equal(t, []string{"a", "b"}, ts.texts(id, 2))
		report, err := ts.Check(ctx, CheckOptions{})
		require.NoError(t, err)
		require.True(t, report.OK())
		require.NoError(t, ts.Close())
	})
	require.NoError(t, os.Chmod(ts.dir, 0o700))
	require.NoError(t, os.Remove(filepath.Join(ts.dir, lockFile)))
	ts.open(Options{ReadOnly: true}) // without a LOCK that can't be made
}
