package deepseek

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// TestGrowingFile: a second run goes on where the first stopped, a third adds
// nothing, and the log is the same as that of one run over the whole file but
// for the marks of the runs.
func TestGrowingFile(t *testing.T) {
	whole, err := os.ReadFile("testdata/tree/b-child.jsonl")
	require.NoError(t, err)
	want := load(t, newStore(t), importer.Options{}, "testdata/tree/b-child.jsonl").SessionList[0]

	for cut := 1; cut < len(whole); cut += 97 {
		s := newStore(t)
		path := filepath.Join(t.TempDir(), "b-child.jsonl")
		require.NoError(t, os.WriteFile(path, whole[:cut], 0o600))
		first := load(t, s, importer.Options{}, path)
		if whole[cut-1] != '\n' {
			require.Contains(t, codes(first), importer.CodeTorn)
		}
		require.NoError(t, os.WriteFile(path, whole, 0o600))
		second := load(t, s, importer.Options{}, path)
		require.NotContains(t, codes(second), importer.CodeTorn)
		got := second.SessionList[0]
		require.Equal(t, want.SHA256, got.SHA256)
		require.Equal(t, want.Sandbox, got.Sandbox)
		third := load(t, s, importer.Options{}, path)
		require.Zero(t, third.Events)
		lines := 0
		for _, ev := range events(t, s, got.ID) {
			if ev.Type != importer.TypeSource {
				lines++
			}
		}
		require.EqualValues(t, want.Lines+1, lines, "cut at %d", cut)
		require.Equal(t, second.DelegationList[0].Effective, load(t, s, importer.Options{DryRun: true}, path).DelegationList[0].Effective)
	}
}

// TestTornLine is left alone until its newline is there.
func TestTornLine(t *testing.T) {
	s := newStore(t)
	path := lines(t, t.TempDir(), "a.jsonl", `{"type":"session","version":0,"id":"torn-1","createdAt":1}`, `{"type":"turn/start","data":{"turn":1}}`)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"type":"turn/end","da`)
	require.NoError(t, err)
	report := load(t, s, importer.Options{Strict: true}, path)
	torn := finding(t, report, importer.CodeTorn)
	require.EqualValues(t, 3, torn.Line)
	require.Contains(t, torn.Detail, "22 bytes at byte offset 99")
	require.EqualValues(t, 4, report.Events)
	_, err = f.WriteString(`ta":{"turn":1}}` + "\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	report = load(t, s, importer.Options{}, path)
	require.EqualValues(t, 2, report.Events, "the line and the run's mark")
	require.Equal(t, []string{"session/created", "import/other session", "turn/start", "import/source", "turn/end", "import/source"},
		types(events(t, s, find(t, s, "torn-1"))))

	empty := lines(t, t.TempDir(), "empty.jsonl")
	onlyTorn := filepath.Join(t.TempDir(), "torn.jsonl")
	require.NoError(t, os.WriteFile(onlyTorn, []byte(`{"type":"session","id":"x"`), 0o600))
	report = load(t, s, importer.Options{}, empty, onlyTorn)
	require.Equal(t, 2, report.Skipped)
	require.ElementsMatch(t, []string{importer.CodeNoHeader, importer.CodeTorn}, codes(report))
}

// TestRewrittenFile: another line where one was imported stops everything.
func TestRewrittenFile(t *testing.T) {
	s := newStore(t)
	header := `{"type":"session","version":0,"id":"rw-1","createdAt":1}`
	turn := func(n int) string { return fmt.Sprintf(`{"type":"turn/start","data":{"turn":%d}}`, n) }
	dir := t.TempDir()
	path := lines(t, dir, "a.jsonl", header, turn(1), turn(2), turn(3))
	load(t, s, importer.Options{}, path)
	lines(t, dir, "a.jsonl", header, turn(1), turn(7), turn(3), turn(4))
	report := load(t, s, importer.Options{}, path)
	changed := finding(t, report, importer.CodeChanged)
	require.EqualValues(t, 3, changed.Line)
	require.Zero(t, report.Events)
	require.Equal(t, 1, report.Skipped)

	lines(t, dir, "a.jsonl", header, turn(1))
	report = load(t, s, importer.Options{}, path)
	require.Equal(t, []string{importer.CodeShorter}, codes(report))
	require.Zero(t, report.Events)

	// An older copy beside the newer file changes nothing, whichever is first.
	lines(t, dir, "b.jsonl", header, turn(1), turn(2), turn(3), turn(4))
	report = load(t, s, importer.Options{}, dir)
	require.EqualValues(t, 2, report.Events)
	require.Zero(t, load(t, s, importer.Options{}, dir).Events)
}

// TestInterrupted: a run that ended between two batches is taken up where it
// stopped, and gets its mark.
func TestInterrupted(t *testing.T) {
	s := newStore(t)
	all := []string{`{"type":"session","version":0,"id":"big-1","createdAt":1}`}
	for i := range 9000 {
		all = append(all, fmt.Sprintf(`{"type":"turn/start","data":{"turn":%d,"pad":"%s"}}`, i, strings.Repeat("x", 900)))
	}
	path := lines(t, t.TempDir(), "a.jsonl", all...)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Import(ctx, s, []string{path}, importer.Options{Progress: func(done, of int64) {
		if done > of*3/4 { // in the middle of the second pass
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)

	id := find(t, s, "big-1")
	row, err := s.Row(id)
	require.NoError(t, err)
	require.NotZero(t, row.Head)
	require.Less(t, row.Head, uint64(9000))
	require.Zero(t, row.Head%2048, "whole batches")
	load(t, s, importer.Options{}, path)
	list := events(t, s, id)
	require.Len(t, list, 9000+3)
	require.Equal(t, importer.TypeSource, list[len(list)-1].Type)
	require.Zero(t, load(t, s, importer.Options{}, path).Events)
}

// TestMarkOnly: all lines are there and the run's last word is not.
func TestMarkOnly(t *testing.T) {
	s := newStore(t)
	path := "testdata/tree/c-root.jsonl"
	load(t, s, importer.Options{}, path)
	id := find(t, s, "r-0001")
	list := events(t, s, id)

	other := newStore(t)
	_, err := other.Transact(t.Context(), eventlog.EntryImport, func(*eventlog.View) ([]eventlog.Batch, error) {
		var batch []eventlog.NewEvent
		for _, ev := range list[:len(list)-1] {
			batch = append(batch, eventlog.NewEvent{ID: ev.ID, Type: ev.Type, Facts: ev.Facts, Media: ev.Media, Content: ev.Content, Time: ev.Time, Ignorable: ev.Ignorable})
		}
		return []eventlog.Batch{{Session: id, Events: batch}}, nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 1, load(t, other, importer.Options{}, path).Events)
	require.Equal(t, types(list), types(events(t, other, id)))
	require.Zero(t, load(t, other, importer.Options{}, path).Events)
}

// TestCompressed: a zstd file gives the same session as its text, whole, while
// it grows, and when it is damaged.
func TestCompressed(t *testing.T) {
	raw, err := os.ReadFile("testdata/tree/b-child.jsonl")
	require.NoError(t, err)
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	packed := enc.EncodeAll([]byte(strings.Repeat(string(raw), 1)), nil)

	plain, s := newStore(t), newStore(t)
	want := load(t, plain, importer.Options{}, "testdata/tree/b-child.jsonl").SessionList[0]
	path := filepath.Join(t.TempDir(), "b-child.jsonl.zst")
	require.NoError(t, os.WriteFile(path, packed, 0o600))
	got := load(t, s, importer.Options{}, filepath.Dir(path)).SessionList[0]
	require.Equal(t, want.ID, got.ID)
	require.Equal(t, want.SHA256, got.SHA256)
	require.Equal(t, want.Events, got.Events)
	a, b := events(t, plain, want.ID), events(t, s, got.ID)
	for i := range a[:len(a)-1] {
		require.Equal(t, a[i].ID, b[i].ID)
	}
	require.Equal(t, uint64(len(packed)), b[len(b)-1].Facts.Uint("file_bytes"))
	require.Zero(t, load(t, s, importer.Options{}, path, "testdata/tree/b-child.jsonl").Events, "the same session, packed and not")

	cut := newStore(t)
	require.NoError(t, os.WriteFile(path, packed[:len(packed)-6], 0o600))
	load(t, cut, importer.Options{}, path)
	require.NoError(t, os.WriteFile(path, packed, 0o600))
	load(t, cut, importer.Options{}, path)
	require.Len(t, linesOf(events(t, cut, want.ID)), int(want.Lines)+1)

	damaged := append([]byte{}, packed...)
	for i := 40; i < 60; i++ {
		damaged[i] ^= 0x5a
	}
	require.NoError(t, os.WriteFile(path, damaged, 0o600))
	report := load(t, newStore(t), importer.Options{}, path)
	require.NotEmpty(t, report.Findings)
	require.Zero(t, report.Delegations)
}

func linesOf(list []eventlog.Event) (out []eventlog.Event) {
	for _, ev := range list {
		if ev.Type != importer.TypeSource {
			out = append(out, ev)
		}
	}
	return out
}
