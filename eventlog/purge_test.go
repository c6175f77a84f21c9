package eventlog

import (
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
