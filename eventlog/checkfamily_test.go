package eventlog

import (
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// rewrite replaces the journal by one that holds the frames that keep lets
// through, changed by it, renumbered and with units closed again, and takes all
// signatures away: what somebody does who may write the file and knows the format. No content may move.
func rewrite(t *testing.T, dir string, keep func(*frame) bool) {
	t.Helper()
	changeDB(t, filepath.Join(dir, journalFile), func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketJournal)
		var kept []frame
		if err := b.ForEach(func(_, raw []byte) error {
			f, err := decodeFrame(append([]byte(nil), raw...))
			if err == nil && keep(&f) {
				f.continues, f.framesLeft = false, 0
				kept = append(kept, f)
			}
			return err
		}); err != nil {
			return err
		}
		for at := uint64(0); at < b.Sequence(); at++ {
			if err := b.Delete(positionKey(at)); err != nil {
				return err
			}
		}
		for at := range kept {
			if err := b.Put(positionKey(uint64(at)), appendFrame(nil, &kept[at])); err != nil {
				return err
			}
		}
		return b.SetSequence(uint64(len(kept)))
	})
	require.NoError(t, removeIndex(dir))
	unsign(t, dir)
}

// bare makes roots without contents, which a rewrite would have to move.
func (ts *testStore) bare(ids ...uuid.UUID) {
	for _, id := range ids {
		events := rootEvents(id, "")
		events[0].Media, events[0].Content = MediaNone, nil
		_, err := ts.transact(EntryCreate, Batch{Session: id, Events: events})
		require.NoError(ts.t, err)
	}
}

// TestCase33_AWholeChildRemoved: the store that is left is whole in every page,
// frame, chain and unit, and the parent's own log still names the child.
func TestCase33_AWholeChildRemoved(t *testing.T) {
	ts := newStore(t)
	ts.bare(sid(1))
	ts.child(sid(1), sid(2), "a")
	ts.child(sid(1), sid(3), "b")
	grandchild := ts.child(sid(2), sid(4), "c")
	ts.expectDamage()
	require.NoError(t, ts.Close())
	rewrite(t, ts.dir, func(f *frame) bool { return f.session != sid(3) })

	report := checkStore(t, ts.dir)
	require.Len(t, report.Findings, 1)
	f := report.Findings[0]
	require.Equal(t, [3]any{FindDelegation, sid(1), uint64(3)}, [3]any{f.Kind, f.Session, f.Seq})
	require.Contains(t, f.Detail, "child "+sid(3).String()+" was started here and has no log in this store")

	ts.open(Options{ReadOnly: true})
	of := func(id uuid.UUID) []string {
		report, err := ts.Check(ctx, CheckOptions{Session: id})
		require.NoError(t, err)
		return report.kinds()
	}
	require.Equal(t, []string{FindDelegation}, of(sid(1)))
	require.Empty(t, of(sid(2)), "its brother's end is not its own")
	require.Empty(t, of(grandchild))
}

// TestAParentRemoved, or cut off before it named its child: the child's receipt
// still names the parent.
func TestAParentRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		keep func(*frame) bool
		want []string
	}{
		"removed":     {func(f *frame) bool { return f.session != sid(1) }, []string{"its parent " + sid(1).String() + " has no log"}},
		"cut off":     {func(f *frame) bool { return f.session != sid(1) || f.first < 3 }, []string{"the log of its parent " + sid(1).String() + " does not name it"}},
		"both halves": {func(f *frame) bool { return f.session != sid(3) && (f.session != sid(1) || f.first < 3) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ts := newStore(t)
			ts.bare(sid(1), sid(9))
			ts.child(sid(1), sid(2), "a")
			ts.child(sid(1), sid(3), "b")
			ts.expectDamage()
			require.NoError(t, ts.Close())
			rewrite(t, ts.dir, c.keep)
			report := checkStore(t, ts.dir)
			var got []string
			for _, f := range report.Findings {
				require.Equal(t, FindDelegation, f.Kind)
				if f.Session == sid(3) {
					got = append(got, f.Detail)
				}
			}
			require.Len(t, got, len(c.want))
			for i := range got {
				require.Contains(t, got[i], c.want[i])
			}
		})
	}
}

// TestAnotherReceipt: a child that was replaced, log and all, by one that its
// parent did not make.
func TestAnotherReceipt(t *testing.T) {
	ts, other := newStore(t), newStore(t)
	for _, s := range []*testStore{ts, other} {
		s.bare(sid(1))
		s.child(sid(1), sid(2), "a")
		require.NoError(t, s.Close())
	}
	ts.expectDamage()
	var swapped [][]byte
	changeDB(t, filepath.Join(other.dir, journalFile), func(tx *bolt.Tx) error {
		return tx.Bucket(bucketJournal).ForEach(func(_, raw []byte) error { swapped = append(swapped, append([]byte(nil), raw...)); return nil })
	})
	changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error {
		return tx.Bucket(bucketJournal).Put(positionKey(1), swapped[1])
	})
	require.NoError(t, removeIndex(ts.dir))
	unsign(t, ts.dir)
	report := checkStore(t, ts.dir)
	require.Len(t, report.Findings, 1)
	require.Equal(t, [2]any{FindDelegation, sid(1)}, [2]any{report.Findings[0].Kind, report.Findings[0].Session})
	require.Contains(t, report.Findings[0].Detail, "was started with receipt ")
	ts.open(Options{ReadOnly: true})
	one, err := ts.Check(ctx, CheckOptions{Session: sid(2)})
	require.NoError(t, err)
	require.Len(t, one.Findings, 1, "it concerns the child as well")
	require.Equal(t, sid(2), one.Findings[0].Session)
}

// TestCheckOfOneSession counts what concerns it: its own damage, and frames
// that were lost and may have been its own.
func TestCheckOfOneSession(t *testing.T) {
	ts := newStore(t)
	ts.bare(sid(1), sid(2), sid(3))
	ts.say(sid(1), "a") // position 3
	ts.say(sid(2), "b") // 4
	ts.say(sid(3), "c") // 5
	ts.say(sid(1), "d") // 6
	ts.say(sid(2), "e") // 7
	ts.expectDamage()
	require.NoError(t, ts.Close())
	of := func(id uuid.UUID) []string {
		ts.open(Options{ReadOnly: true})
		defer ts.Close()
		report, err := ts.Check(ctx, CheckOptions{Session: id})
		require.NoError(t, err)
		return report.kinds()
	}
	changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error {
		return tx.Bucket(bucketContents).Delete(contentKey(4, 0, 0))
	})
	require.Empty(t, of(sid(1)))
	require.Equal(t, []string{FindContent}, of(sid(2)))
	require.Empty(t, of(sid(3)))

	changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error { return tx.Bucket(bucketJournal).Delete(positionKey(5)) })
	require.NoError(t, removeIndex(ts.dir))
	require.Empty(t, of(sid(1)), "its log goes on behind the lost frame without a gap")
	require.Equal(t, []string{FindContent}, of(sid(2)))
	require.Equal(t, []string{FindMissing}, of(sid(3)), "it may have lost its newest")
}

// TestPanicText: what bbolt's panics say becomes words about the file.
func TestPanicText(t *testing.T) {
	try := func(fn func()) string {
		return protect("store.db", func() error { fn(); return nil }).Error()
	}
	var none []byte
	var nobody *frame
	require.Equal(t, "corrupt: store.db: a damaged page leads out of the file", try(func() { _ = none[len(none)+5] }))
	require.Equal(t, "corrupt: store.db: a damaged page leads out of the file", try(func() { _ = nobody.first }))
	require.Equal(t, "corrupt: store.db: page 5: not leaf", try(func() { panic("assertion failed: page 5: not leaf") }))
}
