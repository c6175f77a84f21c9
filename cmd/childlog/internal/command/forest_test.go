package command

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/eventlog"
)

// A tree says so where a parent is missing, and where nothing is granted.
func TestTreeOfOrphans(t *testing.T) {
	var b bytes.Buffer
	a := &app{out: term.New(&b, term.Console{}, false)}
	orphan := ops.Node{Row: eventlog.Row{Kind: eventlog.KindChild, Session: uuid.UUID{3}, Parent: uuid.UUID{9}}, Orphan: true, Err: os.ErrInvalid}
	a.tree([]ops.Node{orphan}, uuid.Nil, shortIDs([]uuid.UUID{{3}}))
	require.Contains(t, b.String(), "* its parent is not in this store")
	require.Contains(t, b.String(), "nothing is granted")
}

func TestShortIDs(t *testing.T) {
	a, b := uuid.MustParse("0a0a0a0a-0000-4000-8000-000000000001"), uuid.MustParse("0b0a0a0a-0000-4000-8000-000000000001")
	require.Equal(t, "0a0a0a0a", shortIDs([]uuid.UUID{a, b, a}).of(a))
	c := uuid.MustParse("0a0a0a0a-0000-4000-8000-000000000002")
	require.Equal(t, a.String(), shortIDs([]uuid.UUID{a, c}).of(a), "what is shown names one session")
	require.Equal(t, "", shortIDs(nil).of(uuid.Nil))
}

func TestDirectory(t *testing.T) {
	a := &app{files: files.Local{}}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	for in, want := range map[string]string{
		"":                         "",
		filepath.Join(dir, "link"): filepath.Join(dir, "real"),
		dir + "/link/a/../b":       filepath.Join(dir, "real", "b"),
		filepath.Join(dir, "x/y"):  filepath.Join(dir, "x/y"),
		dir + "/./real//":          filepath.Join(dir, "real"),
		"/nonesuch/of/all":         "/nonesuch/of/all",
	} {
		got, err := a.directory(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	_, err = a.directory(filepath.Join(dir, "loop"))
	require.ErrorIs(t, err, eventlog.ErrInvalid)
}

func TestGrouped(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		require.Equal(t, want, grouped(n))
	}
}
