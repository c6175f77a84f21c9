package importtest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// Format is an importer with a parent's and its child's file, for the tests that
// every importer passes alike: what an operator orders between two runs stays
// done, and stops nothing else.
type Format struct {
	Import        func(context.Context, *eventlog.Store, []string, importer.Options) (importer.Report, error)
	Store         func(testing.TB) *eventlog.Store // checked in full at the end
	System        string
	Parent, Child string // paths
	ParentID      string // external
}

func (f *Format) load(t *testing.T, s *eventlog.Store, paths ...string) importer.Report {
	t.Helper()
	report, err := f.Import(context.Background(), s, paths, importer.Options{})
	require.NoError(t, err)
	return report
}

// sessionsOf are the sessions that a file held.
func sessionsOf(r importer.Report, path string) (ids []uuid.UUID) {
	for _, s := range r.SessionList {
		if s.File == path {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

func codesOf(r importer.Report, path string) (codes []string) {
	for _, f := range r.Findings {
		if f.File == path {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

func purge(t *testing.T, s *eventlog.Store, id uuid.UUID, subtree bool) {
	t.Helper()
	_, err := s.Purge(context.Background(), eventlog.PurgeRequest{Order: eventlog.Order{Code: "retention", By: "ops"}, Session: id, Subtree: subtree})
	require.NoError(t, err)
}

// Purged: the file of a purged session is reported and brings nothing back; the
// other files are imported, and a child of it is linked to it as ever.
func (f *Format) Purged(t *testing.T) {
	s := f.Store(t)
	first := f.load(t, s, f.Parent, f.Child)
	child, root := sessionsOf(first, f.Child)[0], sessionsOf(first, f.Parent)[0]
	purge(t, s, child, true)
	again := f.load(t, s, f.Parent, f.Child)
	require.Contains(t, codesOf(again, f.Child), importer.CodePurged)
	require.NotContains(t, codesOf(again, f.Parent), importer.CodePurged)
	require.Equal(t, 1, again.Skipped)
	require.Empty(t, sessionsOf(again, f.Child))
	require.Equal(t, root, sessionsOf(again, f.Parent)[0])
	require.Zero(t, again.Events)
	_, err := s.Row(child)
	require.ErrorIs(t, err, eventlog.ErrPurged)

	s = f.Store(t)
	first = f.load(t, s, f.Parent)
	parent, err := s.ByExternal(f.System, f.ParentID)
	require.NoError(t, err)
	purge(t, s, parent, true)
	later := f.load(t, s, f.Parent, f.Child)
	require.Contains(t, codesOf(later, f.Parent), importer.CodePurged)
	require.Equal(t, 1, later.Skipped)
	row, err := s.Row(sessionsOf(later, f.Child)[0])
	require.NoError(t, err)
	require.Equal(t, parent, row.Parent)
	require.Equal(t, parent, row.Root)
	require.NotContains(t, codesOf(later, f.Child), importer.CodeParentMissing)
	require.Zero(t, f.load(t, s, f.Parent, f.Child).Events)
}

// Ordered: a file that grows after its session was redacted and held goes on
// where it was, and what was erased does not come back.
func (f *Format) Ordered(t *testing.T) {
	ctx := context.Background()
	whole, err := os.ReadFile(f.Parent)
	require.NoError(t, err)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	once := f.load(t, f.Store(t), f.Parent)
	s := f.Store(t)
	path := filepath.Join(t.TempDir(), filepath.Base(f.Parent))
	order := eventlog.Order{Code: "erasure-request", By: "dpo"}
	var id uuid.UUID
	erased := map[uint64]bool{}
	for _, n := range []int{len(lines) / 3, 2 * len(lines) / 3, len(lines)} {
		require.NoError(t, os.WriteFile(path, bytes.Join(lines[:n], nil), 0o600))
		grown := f.load(t, s, path)
		require.NotContains(t, codesOf(grown, path), importer.CodeChanged)
		require.NotContains(t, codesOf(grown, path), importer.CodeShorter)
		require.Positive(t, grown.Events)
		id = sessionsOf(grown, path)[0]
		row, err := s.Row(id)
		require.NoError(t, err)
		seqs := []uint64{1, 2, row.Head - 1, row.Head} // the label, the first line, the last one and the file's name
		_, err = s.Redact(ctx, eventlog.RedactRequest{Order: order, Session: id, Seqs: seqs})
		require.NoError(t, err)
		for _, seq := range seqs {
			erased[seq] = true
		}
		hold, err := s.Hold(ctx, eventlog.HoldRequest{Order: order, Session: id})
		require.NoError(t, err)
		again := f.load(t, s, path)
		require.Zero(t, again.Events, "nothing is added twice")
		require.NotContains(t, codesOf(again, path), importer.CodeChanged)
		_, err = s.Release(ctx, eventlog.ReleaseRequest{Order: order, Session: id, ID: hold.ID})
		require.NoError(t, err)
	}
	lineEvents := 0
	require.NoError(t, s.Replay(ctx, id, true, func(ev *eventlog.Event) error {
		require.NoError(t, ev.ContentErr)
		if erased[ev.Seq] && ev.HasContent {
			require.NotNil(t, ev.Redacted, "seq %d", ev.Seq)
		}
		if ev.Source == eventlog.SourceImport && ev.Type != importer.TypeSource {
			lineEvents++
		}
		return nil
	}))
	want := 0
	for _, x := range once.SessionList {
		if x.ID == id {
			want = int(x.Events) - 1 // its import/source
		}
	}
	require.Equal(t, want, lineEvents)
}
