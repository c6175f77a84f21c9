package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/cmd/childlog/internal/files"
	"childlog/eventlog"
)

// inHolder runs do as a command of a caller whose command line is args.
func inHolder(t *testing.T, args []string, do func(files.Files)) {
	t.Helper()
	before := openFiles(t)
	r := through(t, t.Context(), func(_ context.Context, env Env, _ []string) int {
		do(env.Files)
		return 0
	}, quiet{t}, args...)
	require.NoError(t, r.err)
	require.NoError(t, r.served)
	require.LessOrEqual(t, openFiles(t), before+2, "no descriptor is left but those of the pair")
}

// TestFilesOfTheCaller: what a command sees of its caller's files is what the
// caller sees, errors included.
func TestFilesOfTheCaller(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a\xff.jsonl")
	require.NoError(t, os.WriteFile(name, []byte("0123456789"), 0o640))
	for i := range 2*pageEntries + 1 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("z%04d", i)), nil, 0o600))
	}
	require.NoError(t, os.Symlink("gone", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink(name, filepath.Join(dir, "good")))
	require.NoError(t, os.Link(name, filepath.Join(dir, "again")))
	none := filepath.Join(dir, "none")
	local := files.Local{}
	inHolder(t, []string{dir}, func(f files.Files) {
		file, err := f.Open(name)
		require.NoError(t, err)
		_, err = file.Seek(5, io.SeekStart)
		require.NoError(t, err)
		b, err := io.ReadAll(file)
		require.NoError(t, err)
		require.Equal(t, "56789", string(b))
		require.NoError(t, file.Close())

		for _, stat := range [][2]func(string) (fs.FileInfo, error){{local.Stat, f.Stat}, {local.Lstat, f.Lstat}} {
			for _, path := range []string{name, dir, none, filepath.Join(dir, "link"), filepath.Join(name, "x"), ""} {
				want, wantErr := stat[0](path)
				got, gotErr := stat[1](path)
				same(t, wantErr, gotErr)
				if wantErr == nil {
					there := files.InfoOf(want)
					require.True(t, there.Modified.Equal(got.ModTime()), path)
					there.Modified = got.ModTime() // the same in another zone
					require.Equal(t, there, got, path)
					require.True(t, files.Same(there, got), path)
				}
			}
		}
		want, err := local.ReadDir(dir)
		require.NoError(t, err)
		got, err := f.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i].Name(), got[i].Name())
			require.Equal(t, want[i].Type(), got[i].Type())
		}
		for _, path := range []string{dir, none, filepath.Join(dir, "link"), "."} {
			want, wantErr := local.EvalSymlinks(path)
			got, gotErr := f.EvalSymlinks(path)
			same(t, wantErr, gotErr)
			require.Equal(t, want, got)
			want, wantErr = local.Abs(path)
			got, gotErr = f.Abs(path)
			same(t, wantErr, gotErr)
			require.Equal(t, want, got)
		}
		names := []string{dir, name, none, filepath.Join(none, "further"), filepath.Join(name, "x"), filepath.Join(dir, "good"), filepath.Join(dir, "link"), filepath.Join(dir, "link", "x"), "/"}
		for range maxPlaces {
			names = append(names, filepath.Join(dir, "link"), filepath.Join(none, strings.Repeat("x", maxPlaceBytes/3)), filepath.Join(none, strings.Repeat("a/", 20)))
		}
		places := f.Real(names...)
		require.Len(t, places, len(names))
		for i, want := range local.Real(names...) {
			same(t, want.Err, places[i].Err)
			require.Equal(t, errors.Is(want.Err, files.ErrDangling), errors.Is(places[i].Err, files.ErrDangling), names[i])
			require.Equal(t, want.Path, places[i].Path)
			require.Equal(t, want.Info == nil, places[i].Info == nil, "%.100s", names[i])
			require.True(t, want.Info == nil || files.Same(files.InfoOf(want.Info), places[i].Info), "%.100s", names[i])
		}
		require.Empty(t, f.Real())
		_, wantErr := local.Open(none)
		_, gotErr := f.Open(none)
		same(t, wantErr, gotErr)
		_, wantErr = local.ReadDir(none)
		_, gotErr = f.ReadDir(none)
		same(t, wantErr, gotErr)
	})
}

// same holds an error that came over the connection against what it was.
func same(t *testing.T, want, got error) {
	t.Helper()
	if want == nil {
		require.NoError(t, got)
		return
	}
	require.EqualError(t, got, want.Error())
	for _, is := range []error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, unix.ENOTDIR, eventlog.ErrExists} {
		require.Equal(t, errors.Is(want, is), errors.Is(got, is), "%v is %v", got, is)
	}
}

// TestPipeOfTheCaller: a FIFO is read to its end, as a shell's <(...) is.
func TestPipeOfTheCaller(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(name, 0o600))
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(name, []byte("through a pipe"), 0o600) }()
	inHolder(t, []string{name}, func(f files.Files) {
		file, err := f.Open(name)
		require.NoError(t, err)
		b, err := io.ReadAll(file)
		require.NoError(t, err)
		require.Equal(t, "through a pipe", string(b))
		require.NoError(t, file.Close())
	})
	require.NoError(t, <-wrote)
}

// TestNewFilesOfTheCaller are there as a whole or not at all, with mode 0600.
func TestNewFilesOfTheCaller(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	inHolder(t, []string{"--output=" + at("new"), "-o" + at("dropped"), at("left"), at("old"), at("made"), at("note")}, func(f files.Files) {
		d, err := f.Create(at("new"))
		require.NoError(t, err)
		_, err = d.WriteString("whole")
		require.NoError(t, err)
		require.NoFileExists(t, at("new"))
		require.NoError(t, d.Commit())
		_, err = f.Create(at("new"))
		require.ErrorIs(t, err, fs.ErrExist)

		d, err = f.Create(at("dropped"))
		require.NoError(t, err)
		d.Discard()

		d, err = f.Create(at("old"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(at("old"), []byte("first"), 0o600))
		require.ErrorIs(t, d.Commit(), fs.ErrExist)

		require.NoError(t, files.Write(f, at("note"), []byte("longer")))
		require.NoError(t, files.Write(f, at("note"), []byte("note")))

		made, err := f.Directory(at("made"), "backup")
		require.NoError(t, err)
		within, err := made.Within()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(within, "in"), []byte("it"), 0o600))
		require.NoDirExists(t, at("made"))
		require.NoError(t, made.Commit())
		_, err = f.Directory(at("made"), "backup")
		require.ErrorIs(t, err, eventlog.ErrExists)

		left, err := f.Create(at("left")) // and neither: the caller takes it away
		require.NoError(t, err)
		require.NoError(t, left.Close())
	})
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"made", "new", "note", "old"}, names)
	for name, want := range map[string]string{"new": "whole", "old": "first", "note": "note", "made/in": "it"} {
		b, err := os.ReadFile(at(name))
		require.NoError(t, err)
		require.Equal(t, want, string(b))
		fi, err := os.Stat(at(name))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), fi.Mode())
	}
}

// TestOnlyWhatTheCommandLineNames: a forged holder gets no other file opened.
func TestOnlyWhatTheCommandLineNames(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.MkdirAll(at("logs/deep"), 0o700))
	require.NoError(t, os.MkdirAll(at("project/.childlog"), 0o700))
	for _, name := range []string{"secret", "logs/deep/a.jsonl", "one.jsonl", "one.meta.json", "project/.childlog/guard.json", "project/key"} {
		require.NoError(t, os.WriteFile(at(name), []byte("x"), 0o600))
	}
	require.NoError(t, os.Symlink("logs", at("link")))
	inHolder(t, []string{"import", "codex", at("link"), at("one.jsonl"), "-o" + at("out")}, func(f files.Files) {
		for _, name := range []string{at("link/deep/a.jsonl"), at("logs/deep/a.jsonl"), at("one.jsonl"), at("one.meta.json"), at("project/.childlog/guard.json")} {
			file, err := f.Open(name)
			require.NoError(t, err, name)
			require.NoError(t, file.Close())
		}
		for _, name := range []string{at("secret"), at("link/../secret"), at("project/key"), "/etc/passwd", dir, "/"} {
			_, err := f.Open(name)
			require.ErrorIs(t, err, fs.ErrPermission, name)
			_, err = f.ReadDir(name)
			require.ErrorIs(t, err, fs.ErrPermission, name)
		}
		for _, name := range []string{at("logs/deep/new"), at("secret"), at("out/below")} {
			_, err := f.Create(name)
			require.ErrorIs(t, err, fs.ErrPermission, name)
			_, err = f.Rewrite(name)
			require.ErrorIs(t, err, fs.ErrPermission, name)
			_, err = f.Directory(name, "backup")
			require.ErrorIs(t, err, fs.ErrPermission, name)
		}
	})
	require.NoFileExists(t, at("logs/deep/new"))
}
