package eventlog

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// purge orders a purge and requires it to be carried out.
func (ts *testStore) purge(session uuid.UUID, subtree bool) PurgeReport {
	out, err := ts.Purge(ctx, PurgeRequest{Order: Order{Code: "retention"}, Session: session, Subtree: subtree})
	require.NoError(ts.t, err)
	return out
}

// familyStore has a root with two children, one of them with a child of its own.
func familyStore(t *testing.T) *testStore {
	ts := newStore(t)
	ts.root(sid(1))
	ts.child(sid(1), sid(2), "two")
	ts.child(sid(1), sid(3), "three")
	ts.child(sid(2), sid(4), "four")
	for n := range 4 {
		ts.say(sid(n+1), numbers(20)...)
	}
	return ts
}

// TestPurge: nothing of the sessions can be read any more, what is kept says
// what they were, and the logs of the others are what they were.
func TestPurge(t *testing.T) {
	ts := familyStore(t)
	two, root := must(ts.Row(sid(2))), must(ts.Row(sid(1)))
	receipt := ts.receiptOf(sid(2))
	out, err := ts.Purge(ctx, PurgeRequest{Order: Order{Code: "retention", By: "ops", Reason: "old"}, Session: sid(2), Subtree: true})
	require.NoError(t, err)
	require.Len(t, out.Sessions, 2)
	require.Equal(t, sid(4), out.Sessions[1].Session)
	require.NotZero(t, out.Before.Size, "the tree is signed before")
	require.Equal(t, out.Before.Size+2, out.After.Size, "and after: it brought the store's own session and one frame")
	check := func() {
		_, err := ts.Row(sid(2))
		require.ErrorIs(t, err, ErrPurged)
		_, err = ts.Read(ctx, sid(4), ReadOptions{})
		require.ErrorIs(t, err, ErrPurged)
		_, err = ts.Append(ctx, Batch{Session: sid(2), Expect: Any(), Events: []NewEvent{text("x")}})
		require.ErrorIs(t, err, ErrPurged)
		kept, err := ts.Purged(ctx, sid(2))
		require.NoError(t, err)
		require.Equal(t, two.Hash, kept.Hash)
		require.Equal(t, two.Head, kept.Head)
		require.Equal(t, receipt, kept.Receipt)
		require.Equal(t, KeyHash(sid(1), "two"), kept.Key)
		require.Equal(t, "ops", kept.By)
		require.Equal(t, []uuid.UUID{sid(2), sid(3)}, must(ts.Children(sid(1))))
		require.Equal(t, root, must(ts.Row(sid(1))))
		require.Equal(t, sid(2), must(ts.ByKey(sid(1), "two")))
		report := must(ts.Check(ctx, CheckOptions{}))
		require.Empty(t, report.Findings)
		require.EqualValues(t, 2, report.Purged)
		require.Equal(t, out.Frames, report.Tombstones)
		require.Equal(t, report.Totals, must(ts.Stats()).Totals)
	}
	check()
	ts.flushIndex()
	check()
	ts.reopen()
	require.Empty(t, ts.Notices())
	check()
	require.NoError(t, ts.Close())
	_, err = Reindex(ctx, ts.dir, Options{})
	require.NoError(t, err)
	ts.open()
	check()
	_, err = ts.transact(EntryCreate, Batch{Session: sid(4), Events: rootEvents(sid(4), "again")})
	require.ErrorIs(t, err, ErrExists)
	require.ErrorIs(t, err, ErrPurged)
	_, err = ts.transact(EntryDelegation, ts.delegation(sid(1), sid(9), "two")...)
	require.ErrorIs(t, err, ErrExists)
}

// TestPurgeRefuses what would split a family, cut off a run, or is not there,
// and changes nothing by it.
func TestPurgeRefuses(t *testing.T) {
	ts := familyStore(t)
	ts.activate(sid(4), 1)
	order := Order{Code: "x"}
	before := contentsOf2(ts)
	_, err := ts.Purge(ctx, PurgeRequest{Order: order, Session: sid(1)})
	var ce *ChildrenError
	require.ErrorAs(t, err, &ce)
	require.Equal(t, []uuid.UUID{sid(2), sid(3)}, ce.Children)
	_, err = ts.Purge(ctx, PurgeRequest{Order: order, Session: sid(1), Subtree: true})
	require.ErrorIs(t, err, ErrConflict)
	require.ErrorContains(t, err, sid(4).String()+" has an open activation")
	_, err = ts.Purge(ctx, PurgeRequest{Order: order, Session: sid(9)})
	require.ErrorIs(t, err, ErrNotFound)
	_, err = ts.Purge(ctx, PurgeRequest{Order: order, Session: StoreSession})
	require.ErrorIs(t, err, ErrNotFound, "there is none yet")
	_, err = ts.Purge(ctx, PurgeRequest{Session: sid(3)})
	require.ErrorIs(t, err, ErrInvalid)
	would, err := ts.Purge(ctx, PurgeRequest{Order: order, Session: sid(3), DryRun: true})
	require.NoError(t, err)
	require.Len(t, would.Sessions, 1)
	require.Equal(t, before, contentsOf2(ts))
	ts.purge(sid(3), false)
	_, err = ts.Purge(ctx, PurgeRequest{Order: order, Session: sid(3)})
	require.ErrorIs(t, err, ErrPurged)
	_, err = ts.Purge(ctx, PurgeRequest{Order: order, Session: StoreSession})
	require.ErrorIs(t, err, ErrInvalid)
}

// TestPurgeInParts: a child first, its parent later. The record of the first
// stays where it was below the second.
func TestPurgeInParts(t *testing.T) {
	ts := familyStore(t)
	ts.purge(sid(4), false)
	ts.flushIndex()
	ts.purge(sid(2), false)
	check := func() {
		require.Equal(t, []uuid.UUID{sid(4)}, must(ts.Children(sid(2))))
		require.Equal(t, sid(2), must(ts.Purged(ctx, sid(4))).Parent)
		var order []uuid.UUID
		require.NoError(t, ts.EachPurged(ctx, func(p *Purged) error { order = append(order, p.Session); return nil }))
		require.Equal(t, []uuid.UUID{sid(4), sid(2)}, order)
		_, err := ts.transact(EntryOperator, Batch{Session: sid(1), Expect: Any(), Events: []NewEvent{{Type: TypeSessionTitled, Media: MediaText, Content: []byte("t")}}})
		require.NoError(t, err)
	}
	check()
	ts.reopen(Options{fresh: true})
	check()
	rows := 0
	require.NoError(t, ts.EachRow(ctx, func(*Row) (bool, error) { rows++; return true, nil }))
	require.Equal(t, 3, rows, "the root, one child and the store's own")
}

// TestCase27_PurgeAll: of 100 children one is damaged. All others are purged,
// the one is reported, the files shrink and every digest holds.
func TestCase27_PurgeAll(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(0))
	for i := 1; i <= 100; i++ {
		ts.child(sid(0), sid(i), fmt.Sprint(i))
		_, err := ts.Append(ctx, Batch{Session: sid(i), Expect: Any(), Events: []NewEvent{octets(noise(uint64(i), 20_000))}})
		require.NoError(t, err)
	}
	heads := map[uuid.UUID]Hash{}
	for i := 0; i <= 100; i++ {
		heads[sid(i)] = must(ts.Row(sid(i))).Hash
	}
	ts.change(bucketJournal, positionKey(must(ts.Row(sid(42))).LastPos), flip(-1))
	ts.reopen(Options{fresh: true})
	ts.expectDamage()
	done := 0
	for i := 1; i <= 100; i++ {
		_, err := ts.Purge(ctx, PurgeRequest{Order: Order{Code: "all"}, Session: sid(i)})
		if err == nil {
			done++
			continue
		}
		var ce *CorruptError
		require.ErrorAs(t, err, &ce, "%v", err)
		require.Equal(t, sid(42), ce.Session, err.Error())
	}
	require.Equal(t, 99, done)
	report := must(ts.Check(ctx, CheckOptions{}))
	require.EqualValues(t, 99, report.Purged)
	for _, f := range report.Findings {
		require.Equal(t, sid(42), f.Session, "%+v", f)
	}
	require.NoError(t, ts.Close())
	_, to := salvaged(t, ts.dir, SalvageOptions{}) // a compaction refuses damage, see TestCase27_CompactNamesTheDamagedOne
	before, after := fileSize(t, ts.dir), fileSize(t, to)
	require.Less(t, after, before/2)
	saved := must(Open(ctx, to, Options{ReadOnly: true}))
	defer saved.Close()
	require.Equal(t, heads[sid(0)], must(saved.Row(sid(0))).Hash)
	require.NoError(t, saved.EachPurged(ctx, func(p *Purged) error { require.Equal(t, heads[p.Session], p.Hash); return nil }))

	sound := newStore(t)
	sound.root(sid(0))
	for i := 1; i <= 20; i++ {
		sound.child(sid(0), sid(i), fmt.Sprint(i))
		_, err := sound.Append(ctx, Batch{Session: sid(i), Expect: Any(), Events: []NewEvent{octets(noise(uint64(i), 20_000))}})
		require.NoError(t, err)
		sound.purge(sid(i), false)
	}
	require.NoError(t, sound.Close())
	out := compact(t, sound.dir)
	require.Less(t, out.Bytes, out.Before/2)
	require.EqualValues(t, 40, out.Tombstones)
	sound.open()
}

func fileSize(t *testing.T, dir string) int64 {
	fi, err := os.Stat(filepath.Join(dir, journalFile))
	require.NoError(t, err)
	return fi.Size()
}

// TestCase36_PurgeTakesTheWholeSubtreeOrNothing: by flag. What is kept are ids,
// digests, who and when; after a compaction not one byte is left in any file nor
// in a new backup, and what remains verifies with its policies.
func TestCase36_PurgeTakesTheWholeSubtreeOrNothing(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	ts.root(sid(7))
	_, err := ts.transact(EntryCreate, Batch{Session: sid(2), Events: rootEvents(sid(2), "label-55-secret")})
	require.NoError(t, err)
	ts.child(sid(2), sid(3), "fresh")
	ts.say(sid(2), "secret of the parent 8127")
	ts.say(sid(3), "secret of the child 9941", "and what follows it 9942")
	big := append(noise(2, chunkSize+20), noise(1, 100)...) // nothing that compression would change
	_, err = ts.Append(ctx, Batch{Session: sid(3), Expect: Any(), Events: []NewEvent{octets(big)}})
	require.NoError(t, err)
	ts.child(sid(1), sid(4), "stays")
	ts.say(sid(4), "what stays")
	ts.flushIndex()
	secrets := []string{"label-55-secret", "secret of the parent 8127", "secret of the child 9941", "follows it 9942", string(noise(1, 100))}
	for _, s := range secrets {
		require.NotEmpty(t, held(t, ts.dir, s))
	}
	_, err = ts.Purge(ctx, PurgeRequest{Order: Order{Code: "retention"}, Session: sid(2)})
	require.ErrorIs(t, err, ErrConflict, "nothing")
	require.Equal(t, "label-55-secret", must(ts.Row(sid(2))).Label)
	was := must(ts.Row(sid(3)))
	policies, _, err := ts.Policy(ctx, sid(4), 0)
	require.NoError(t, err)
	_, err = ts.Purge(ctx, PurgeRequest{Order: Order{Code: "retention", Basis: "6m", By: "ops"}, Session: sid(2), Subtree: true})
	require.NoError(t, err)
	require.NoError(t, ts.Close())
	out := compact(t, ts.dir)
	require.EqualValues(t, was.Frames+3, out.Tombstones)
	ts.open()
	backup := aside(ts, "backup")
	must(ts.Backup(ctx, backup, BackupOptions{}))
	for _, s := range secrets {
		require.Empty(t, held(t, ts.dir, s))
		require.Empty(t, held(t, backup, s))
	}
	kept := must(ts.Purged(ctx, sid(3)))
	require.Equal(t, was.Hash, kept.Hash)
	require.Equal(t, sid(2), kept.Top)
	require.Equal(t, "ops", kept.By)
	require.False(t, kept.At.IsZero())
	after, _, err := ts.Policy(ctx, sid(4), 0)
	require.NoError(t, err)
	require.Equal(t, policies, after)
}
