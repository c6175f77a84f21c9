package eventlog

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// TestCheckCounts what it has looked at.
func TestCheckCounts(t *testing.T) {
	ts := newStore(t)
	ts.busy(2)
	st, err := ts.Stats()
	require.NoError(t, err)
	var calls, last, of int
	report, err := ts.Check(ctx, CheckOptions{Progress: func(done, total int) { calls++; last, of = done, total }})
	require.NoError(t, err)
	require.True(t, report.OK())
	require.Equal(t, st.Totals, report.Totals)
	require.Equal(t, uint64(3), report.Sessions)
	require.Equal(t, uint64(5), report.Contents) // the root's label, and a text and a title of each child
	require.Positive(t, calls)
	require.Equal(t, [2]int{int(st.Frames), int(st.Frames)}, [2]int{last, of})

	one, err := ts.Check(ctx, CheckOptions{Session: sid(1)})
	require.NoError(t, err)
	require.Equal(t, uint64(1), one.Sessions)
	row, err := ts.Row(sid(1))
	require.NoError(t, err)
	require.Equal(t, row.Head, one.Events)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = ts.Check(canceled, CheckOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

// TestCheckBesideWriters: a check of a store in use finds nothing wrong with
// what is appended meanwhile.
func TestCheckBesideWriters(t *testing.T) {
	ts := newStore(t)
	parent := ts.root(sid(0))
	stop, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for i := 1; i <= 3; i++ {
		wg.Go(func() {
			for n := 0; stop.Err() == nil; n++ {
				child := uuid.New()
				_, err := ts.transact(EntryDelegation, ts.delegation(parent, child, child.String())...)
				if err == nil {
					consumed := mustFacts(map[string]any{"child": child, "settled_seq": n})
					_, err = ts.transact(EntryRuntime, Batch{Session: parent, Expect: Any(), Events: []NewEvent{{Type: TypeNoticeConsumed, Facts: consumed}}})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 20 {
		report, err := ts.Check(ctx, CheckOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
		ts.flushIndex()
	}
	cancel()
	wg.Wait()
}

// TestCheckListsABoundedNumber of findings and counts the rest.
func TestCheckListsABoundedNumber(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, numbers(maxFindings+50)...)
	ts.expectDamage()
	require.NoError(t, ts.Close())
	changeDB(t, ts.dir+"/"+journalFile, func(tx *bolt.Tx) error {
		return tx.Bucket(bucketContents).ForEach(func(k, _ []byte) error { return tx.Bucket(bucketContents).Delete(k) })
	})
	report := checkStore(t, ts.dir)
	require.Len(t, report.Findings, maxFindings)
	require.GreaterOrEqual(t, report.More, uint64(51))
}

// TestLagCountsWhatAnOpenReads: contents are not read by an open after a
// crash, so they are no reason for writers to wait.
func TestLagCountsWhatAnOpenReads(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{octets(noise(1, 1<<20))}})
	require.NoError(t, err)
	_, bytes := ts.st.lag()
	require.Less(t, bytes, uint64(2000))
	ts.flushIndex()
	frames, bytes := ts.st.lag()
	require.Zero(t, frames)
	require.Zero(t, bytes)
}
