package eventlog

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// TestStatsPages: pages are counted alike by a reader, by a writer that wrote
// nothing yet, and by one that did.
func TestStatsPages(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, numbers(500)...)
	written, err := ts.Stats()
	require.NoError(t, err)
	require.Positive(t, written.FreePages)
	require.Equal(t, foldVersion, written.Fold)
	for _, opts := range []Options{{ReadOnly: true}, {}} {
		ts.reopen(opts)
		st, err := ts.Stats()
		require.NoError(t, err)
		require.Equal(t, written.Pages, st.Pages)
		require.Equal(t, written.FreePages, st.FreePages)
		require.Positive(t, st.UsedBytes())
		require.LessOrEqual(t, st.UsedBytes()+st.FreeBytes(), st.JournalBytes)
		require.False(t, st.WantsCompact())
	}
}

// TestStatsWantCompaction where free pages are many, or a large share.
func TestStatsWantCompaction(t *testing.T) {
	for _, c := range []struct {
		pages, free int
		want        bool
	}{
		{4, 2, false}, {1 << 20, 39_999, false}, {1 << 20, 40_000, true}, {16384, 4096, true}, {16384, 4095, false}, {16385, 4096, false},
	} {
		st := Stats{Pages: c.pages, FreePages: c.free, PageSize: 4096}
		require.Equal(t, c.want, st.WantsCompact(), "%+v", c)
	}

	// And a compaction then helps.
	ts := newStore(t)
	id := ts.root(sid(1))
	for i := range 10 {
		_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{octets(noise(uint64(i), 3<<20))}})
		require.NoError(t, err)
	}
	ts.expectDamage()
	require.NoError(t, ts.Close())
	changeDB(t, filepath.Join(ts.dir, journalFile), func(tx *bolt.Tx) error {
		if err := tx.DeleteBucket(bucketContents); err != nil {
			return err
		}
		_, err := tx.CreateBucket(bucketContents)
		return err
	})
	ts.open()
	st, err := ts.Stats()
	require.NoError(t, err)
	require.True(t, st.WantsCompact())
	require.Greater(t, st.FreeBytes(), int64(30<<20))
	compactAgain(t, ts)
	st, err = ts.Stats()
	require.NoError(t, err)
	require.False(t, st.WantsCompact())
	require.Less(t, st.JournalBytes, int64(1<<20))
}

// TestLargest keeps the n largest, in order, whatever the order of the ids.
func TestLargest(t *testing.T) {
	ts := newStore(t)
	sizes := map[int]int{1: 3, 2: 9, 3: 1, 4: 9, 5: 0, 6: 12}
	for i, n := range sizes {
		ts.say(ts.root(sid(i)), numbers(n)...)
	}
	rules := NewEvent{Type: TypeStoreRules, Facts: must(StoreRulesFacts(nil, nil, "operator"))}
	events := []NewEvent{StoreCreated()}
	for range 30 {
		events = append(events, rules)
	}
	_, err := ts.transact(EntryStore, Batch{Session: StoreSession, Events: events})
	require.NoError(t, err)
	for n, want := range map[int][]uuid.UUID{0: nil, 1: {sid(6)}, 4: {sid(6), sid(2), sid(4), sid(1)}, 100: {sid(6), sid(2), sid(4), sid(1), sid(3), sid(5)}} {
		rows, err := ts.Largest(ctx, n)
		require.NoError(t, err)
		var got []uuid.UUID
		for _, r := range rows {
			got = append(got, r.Session)
			require.Equal(t, r.Head, uint64(sizes[int(r.Session[15])]+1))
		}
		require.Equal(t, want, got)
	}
}

// TestMeasure: what a scan adds up is what the file holds, by bucket and by day.
func TestMeasure(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ts := newStore(t, Options{Clock: func() time.Time { return now }})
	id := ts.root(sid(1))
	for range 40 { // days, one append each but every second day three
		now = now.Add(24 * time.Hour)
		ts.say(id, "a", "b", "c")
	}
	now = now.Add(-39 * 24 * time.Hour) // a clock set back: an old day again
	ts.say(id, "old")
	_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("x"), octets(noise(1, 3*chunkSize))}})
	require.NoError(t, err)
	now = now.Add(39 * 24 * time.Hour)
	ts.say(id, numbers(copyPageFrames)...) // the last day, on two pages
	calls := 0
	m, err := ts.Measure(ctx, func(done, of int) { calls++; require.LessOrEqual(t, done, of) })
	require.NoError(t, err)
	require.Equal(t, 2, calls)
	require.NoError(t, ts.Close())

	var frames, contents BucketSize
	for key, v := range contentsOf(t, ts.dir) {
		var k []byte
		if _, err := fmt.Sscanf(key, "journal %x", &k); err == nil {
			frames.Keys++
			frames.Bytes += uint64(len(k) + len(v))
		} else if _, err := fmt.Sscanf(key, "contents %x", &k); err == nil {
			contents.Keys++
			contents.Bytes += uint64(len(k) + len(v))
		}
	}
	require.Equal(t, frames, m.Frames)
	require.Equal(t, contents, m.Contents)
	require.Zero(t, m.Tombstones)
	require.Len(t, m.Days, maxDays)
	require.Equal(t, time.Date(2026, 2, 10, 0, 0, 0, 0, time.UTC), m.Days[0].Date)
	require.EqualValues(t, 3+copyPageFrames, m.Days[0].Events)
	events, bytes := m.Earlier.Events, m.Earlier.Bytes
	for i, d := range m.Days {
		if i > 0 {
			require.EqualValues(t, 3, d.Events)
			require.Equal(t, m.Days[0].Date.AddDate(0, 0, -i), d.Date)
		}
		events += d.Events
		bytes += d.Bytes
	}
	require.EqualValues(t, 1+40*3+3+copyPageFrames, events)
	require.EqualValues(t, 1+9*3+3, m.Earlier.Events)
	require.Equal(t, m.Days[maxDays-1].Date.AddDate(0, 0, -1), m.Earlier.Date)
	require.Greater(t, m.Earlier.Bytes, uint64(3*chunkSize), "the old day's large content")
	require.Equal(t, frames.Bytes+contents.Bytes, bytes)
}

// TestMeasureOfADamagedStore says where.
func TestMeasureOfADamagedStore(t *testing.T) {
	ts := damagedStore(t, damages["a frame is gone"])
	ts.open(Options{ReadOnly: true})
	_, err := ts.Measure(ctx, nil)
	var ce *CorruptError
	require.ErrorAs(t, err, &ce)
	require.EqualValues(t, 3, ce.Position)
	require.NoError(t, ts.Close())
	_, err = ts.Measure(ctx, nil)
	require.ErrorIs(t, err, ErrStoreClosed)
	require.NoError(t, os.RemoveAll(ts.dir))
}
