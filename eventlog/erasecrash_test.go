package eventlog

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// images copies the store before and after each write of store.db while fn runs:
// what a process that dies there leaves behind.
func (ts *testStore) images(t *testing.T, fn func()) (dirs []string) {
	top := t.TempDir()
	on := true
	take := func() {
		dir := filepath.Join(top, fmt.Sprint(len(dirs)))
		copyDir(t, ts.dir, dir)
		dirs = append(dirs, dir)
	}
	hookWrites(ts.journal.db, func(_ int64, write func() (int, error)) (int, error) {
		if on {
			take()
		}
		return write()
	})
	fn()
	take()
	on = false
	return dirs
}

// TestRedactionIsAtomic: whenever the process dies, the content is there, or it
// is gone and the log says so; in the files of a child's copies too.
func TestRedactionIsAtomic(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, "one", "secret two", "three")
	unit := withSeed(ts.delegation(id, sid(2), "fork"), copyOf(ts, id, 3))
	_, err := ts.transact(EntryDelegation, unit...)
	require.NoError(t, err)
	whole, gone := 0, 0
	for _, dir := range ts.images(t, func() { ts.redact(RedactRequest{Session: id, Seqs: []uint64{3}}) }) {
		s := useStore(t, dir)
		report := must(s.Check(ctx, CheckOptions{}))
		require.Empty(t, report.Findings)
		original, seeded := must(s.Read(ctx, id, ReadOptions{From: 3, To: 3, Contents: true})).Events[0], must(s.Read(ctx, sid(2), ReadOptions{From: 2, To: 2, Contents: true})).Events[0]
		require.Equal(t, original.Redacted == nil, seeded.Redacted == nil, "both or none")
		if original.Redacted == nil {
			require.Equal(t, "secret two", string(original.Content))
			require.Zero(t, report.Redacted)
			whole++
		} else {
			require.EqualValues(t, 2, report.Redacted)
			gone++
		}
		require.NoError(t, s.Close())
	}
	require.Positive(t, whole)
	require.Positive(t, gone)
}

// copyOf is a seed copy of an event.
func copyOf(ts *testStore, session uuid.UUID, seq uint64) NewEvent {
	ev := must(ts.Read(ctx, session, ReadOptions{From: seq, To: seq, Contents: true})).Events[0]
	return NewEvent{Type: ev.Type, Source: ev.Source, Facts: ev.Facts, Media: ev.Media, Content: ev.Content, Inherited: &Ref{session, seq}}
}

// TestFailedRedaction: a commit that has no room erases nothing and says so, and
// the same order later is carried out.
func TestFailedRedaction(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, "one", "two")
	full := true
	hookWrites(ts.journal.db, func(_ int64, write func() (int, error)) (int, error) {
		if full {
			return 0, syscall.ENOSPC
		}
		return write()
	})
	_, err := ts.Redact(ctx, RedactRequest{Order: Order{Code: "x"}, Session: id, Seqs: []uint64{2}})
	require.ErrorIs(t, err, ErrNoSpace)
	require.Equal(t, []string{"one", "two"}, ts.texts(id, 2))
	full = false
	ts.redact(RedactRequest{Session: id, Seqs: []uint64{2}})
	require.Equal(t, []string{"", "two", ""}, ts.texts(id, 2))
}

// smallSweeps makes a purge take several commits.
func smallSweeps(t *testing.T) {
	was := sweepFrames
	sweepFrames = 7
	t.Cleanup(func() { sweepFrames = was })
}

// TestInterruptedPurgeIsFinished: wherever a purge dies, the sessions are whole
// or gone for every reader, and the next open for writing finishes what was
// recorded. What is left says the same wherever that was.
func TestInterruptedPurgeIsFinished(t *testing.T) {
	smallSweeps(t)
	for name, flush := range map[string]bool{"with an index": true, "that the index lags behind": false} {
		t.Run(name, func(t *testing.T) {
			ts := familyStore(t)
			if flush {
				ts.flushIndex()
			}
			heads := map[uuid.UUID]Row{sid(2): must(ts.Row(sid(2))), sid(4): must(ts.Row(sid(4)))}
			var frames uint64
			dirs := ts.images(t, func() { frames = ts.purge(sid(2), true).Frames })
			want := contentsOf2(ts)
			recorded := 0
			for _, dir := range dirs {
				requirePurgeState(t, dir, heads)
				s := useStore(t, dir)
				require.NoError(t, s.journal.purged())
				report := must(s.Check(ctx, CheckOptions{}))
				require.Empty(t, report.Findings)
				require.Equal(t, report.Totals, must(s.Stats()).Totals)
				if report.Purged > 0 {
					recorded++
					require.Equal(t, frames, report.Tombstones)
					require.Equal(t, want, contentsOf2(s))
				}
				require.NoError(t, s.Close())
			}
			require.Greater(t, recorded, 4, "the purge takes several commits")
			require.Less(t, recorded, len(dirs))
		})
	}
}

// contentsOf2 are the journal and the tombstones of an open store.
func contentsOf2(ts *testStore) map[string]string {
	out := map[string]string{}
	err := ts.journal.view(func(tx *bolt.Tx) error {
		for _, name := range copiedBuckets {
			if err := tx.Bucket(name).ForEach(func(k, v []byte) error { out[fmt.Sprintf("%s %x", name, k)] = string(v); return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(ts.t, err)
	return out
}

// requirePurgeState opens a store for reading: both sessions are there as they
// were, or neither is.
func requirePurgeState(t *testing.T, dir string, heads map[uuid.UUID]Row) {
	s, err := Open(ctx, dir, Options{ReadOnly: true})
	require.NoError(t, err)
	defer s.Close()
	there := 0
	for id, want := range heads {
		row, err := s.Row(id)
		if err == nil {
			require.Equal(t, want, row)
			there++
			continue
		}
		require.ErrorIs(t, err, ErrPurged)
	}
	require.Contains(t, []int{0, len(heads)}, there)
	report, err := s.Check(ctx, CheckOptions{})
	require.NoError(t, err)
	for _, f := range report.Findings {
		require.Equal(t, FindErased, f.Kind)
		require.Contains(t, f.Detail, "interrupted")
	}
}

// TestUnfinishedPurge: a purge that stops in between is recorded, says so, and
// keeps everybody from copying what is to be gone until it is finished.
func TestUnfinishedPurge(t *testing.T) {
	smallSweeps(t)
	ts := familyStore(t)
	stopped := errors.New("stopped")
	swept := 0
	_, err := ts.Purge(ctx, PurgeRequest{Order: Order{Code: "x"}, Session: sid(2), Subtree: true, at: func(step string) error {
		if swept++; swept == 3 {
			return stopped
		}
		return nil
	}})
	require.ErrorIs(t, err, stopped)
	require.ErrorContains(t, err, "recorded and not finished")
	_, err = ts.Row(sid(4))
	require.ErrorIs(t, err, ErrPurged)
	ts.say(sid(3), "others go on")
	report := must(ts.Check(ctx, CheckOptions{}))
	require.Len(t, report.Findings, 1)
	require.Contains(t, report.Findings[0].Detail, "interrupted")
	_, err = ts.Backup(ctx, filepath.Join(t.TempDir(), "b"), BackupOptions{})
	require.ErrorIs(t, err, ErrReadOnly)
	_, err = ts.Purge(ctx, PurgeRequest{Order: Order{Code: "x"}, Session: sid(3)})
	require.ErrorIs(t, err, ErrReadOnly)
	require.NoError(t, ts.Close())
	_, err = Compact(ctx, ts.dir, CompactOptions{})
	require.ErrorIs(t, err, ErrReadOnly)
	rep, to := salvaged(t, ts.dir, SalvageOptions{})
	require.True(t, rep.Complete, "%+v", rep)
	saved := useStore(t, to)
	require.NoError(t, saved.journal.purged(), "the new store went on with it")
	_, err = saved.Row(sid(2))
	require.ErrorIs(t, err, ErrPurged)
	ts.open()
	ts.purge(sid(3), false)
	_, err = ts.Backup(ctx, filepath.Join(t.TempDir(), "b"), BackupOptions{})
	require.NoError(t, err)
}
