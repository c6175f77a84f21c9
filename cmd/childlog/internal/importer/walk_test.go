package importer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/cmd/childlog/internal/files"
	"childlog/eventlog"
)

// TestFind: directories give their logs by name; links, pipes, other files and
// the store itself are passed over; a named file is taken whatever its name.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "logs", "store")
	for _, name := range []string{"logs/b.jsonl", "logs/a.jsonl", "logs/deep/er/c.jsonl.zst", "logs/notes.txt", "logs/d.jsonl.bak", "logs/store/x.jsonl", "outside/o.jsonl"} {
		write(t, dir, name, []byte("x\n"))
	}
	logs := filepath.Join(dir, "logs")
	require.NoError(t, os.Symlink(filepath.Join(dir, "outside"), filepath.Join(logs, "link")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "outside", "o.jsonl"), filepath.Join(logs, "link.jsonl")))
	require.NoError(t, os.Symlink(logs, filepath.Join(logs, "loop")))
	require.NoError(t, unix.Mkfifo(filepath.Join(logs, "pipe.jsonl"), 0o600))

	in := func(names ...string) (out []string) {
		for _, n := range names {
			out = append(out, filepath.Join(dir, n))
		}
		return out
	}
	want := in("logs/a.jsonl", "logs/b.jsonl", "logs/deep/er/c.jsonl.zst")
	got, findings, err := Find(files.Local{}, []string{logs}, store)
	require.NoError(t, err)
	require.Empty(t, findings)
	require.Equal(t, want, got)

	got, _, err = Find(files.Local{}, in("logs/notes.txt", "logs", "logs/a.jsonl", "logs/deep/../a.jsonl"), store)
	require.NoError(t, err)
	require.Equal(t, append(in("logs/notes.txt"), want...), got, "each once")

	require.NoError(t, os.Symlink(logs, filepath.Join(dir, "entry")))
	got, _, err = Find(files.Local{}, in("entry"), store)
	require.NoError(t, err)
	require.Equal(t, in("entry/a.jsonl", "entry/b.jsonl", "entry/deep/er/c.jsonl.zst"), got, "a link that is named is meant")
	got, _, err = Find(files.Local{}, in("logs/link.jsonl"), store)
	require.NoError(t, err)
	require.Equal(t, in("logs/link.jsonl"), got)

	_, _, err = Find(files.Local{}, in("logs", "none"), store)
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	_, _, err = Find(files.Local{}, in("logs/pipe.jsonl"), store)
	require.ErrorIs(t, err, eventlog.ErrInvalid)

	t.Chdir(logs)
	got, _, err = Find(files.Local{}, []string{"."}, store)
	require.NoError(t, err)
	require.Equal(t, []string{"a.jsonl", "b.jsonl", "deep/er/c.jsonl.zst"}, got)
}
