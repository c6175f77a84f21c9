package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// pageSizes are those that a store.db may have had to choose from.
var pageSizes = []int{4 << 10, 8 << 10, 16 << 10, 32 << 10}

// newStoreOfPages makes a store whose store.db has pages of a size.
func newStoreOfPages(t testing.TB, pageSize int) *testStore {
	dir := filepath.Join(t.TempDir(), "store")
	id, err := Init(ctx, dir)
	require.NoError(t, err)
	id.Key = "" // as before there were signatures
	for _, name := range filesOf(t, dir) {
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	require.NoError(t, fillStore(dir, id, pageSize))
	return useStore(t, dir)
}

// TestPageSizes: a store of any page size opens, is written, checked and
// guarded alike, and a compaction moves it to the one of today.
func TestPageSizes(t *testing.T) {
	for _, size := range append([]int{1 << 10, 2 << 10, 64 << 10}, pageSizes...) {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			ts := newStoreOfPages(t, size)
			ts.busy(2)
			ts.say(sid(0), numbers(300)...)
			_, err := ts.Append(ctx, Batch{Session: sid(0), Expect: Any(), Events: []NewEvent{octets(noise(1, 3*chunkSize))}})
			require.NoError(t, err)
			require.Equal(t, size, ts.journal.pageSize)
			ts.reopen()
			require.Empty(t, ts.Notices())
			require.NoError(t, ts.Close())
			requireSound(t, ts.dir)
			path := filepath.Join(ts.dir, journalFile)
			report, err := inspectFile(ctx, path)
			require.NoError(t, err)
			require.NoError(t, report.Err())
			require.Equal(t, size, report.PageSize)

			damaged := filepath.Join(t.TempDir(), "damaged")
			copyDir(t, ts.dir, damaged)
			flipFile(t, filepath.Join(damaged, journalFile), size+16+56) // the second meta page
			_, err = Open(ctx, damaged, Options{})
			require.ErrorIs(t, err, ErrCorrupt)

			before := contentsOf(t, ts.dir)
			require.Equal(t, journalPageSize, compact(t, ts.dir).PageSize)
			require.Equal(t, before, contentsOf(t, ts.dir))
			ts.open()
			require.Equal(t, journalPageSize, ts.journal.pageSize)
			ts.narrow(sid(1))
			require.NoError(t, ts.Close())
		})
	}
}

// BenchmarkPageSize is what journalPageSize was chosen by: for each page size
// and 1, 64 and 512 sessions, each waiting for its append of one or eight events
// of 300 bytes, the time of an append, what a commit writes, the pages in use
// for each byte of content, and a scan of everything out of no cache.
func BenchmarkPageSize(b *testing.B) {
	for _, load := range []struct{ sessions, batch int }{{1, 1}, {64, 1}, {512, 1}, {1, 8}, {64, 8}} {
		for _, size := range pageSizes {
			b.Run(fmt.Sprintf("sessions=%d/batch=%d/page=%d", load.sessions, load.batch, size), func(b *testing.B) {
				sessions := load.sessions
				ts := newStoreOfPages(b, size)
				for i := range sessions {
					ts.root(sid(i))
				}
				facts := mustFacts(map[string]any{"call": "call-17", "tool": "read"})
				events := make([]NewEvent, load.batch)
				for i := range events {
					events[i] = NewEvent{Type: TypeToolCall, Facts: facts, Media: MediaOctets, Content: noise(uint64(i), 300)}
				}
				var left atomic.Int64
				left.Store(int64(b.N))
				before := ts.journal.db.Stats().TxStats
				pages, free, err := ts.journal.usage()
				require.NoError(b, err)
				idle := (pages - free) * uint64(size)
				txs := func() (id int) {
					require.NoError(b, ts.journal.view(func(tx *bolt.Tx) error { id = tx.ID(); return nil }))
					return id
				}
				commits := -txs()
				var wg sync.WaitGroup
				b.ResetTimer()
				for i := range sessions {
					wg.Go(func() {
						for left.Add(-1) >= 0 {
							if _, err := ts.Append(ctx, Batch{Session: sid(i), Expect: Any(), Events: events}); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				commits += txs()
				after := ts.journal.db.Stats().TxStats
				b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(commits), "us/commit")
				b.ReportMetric(float64(after.GetPageAlloc()-before.GetPageAlloc())/1024/float64(commits), "KiB/commit")
				pages, free, err = ts.journal.usage()
				require.NoError(b, err)
				b.ReportMetric(float64((pages-free)*uint64(size)-idle)/float64(300*load.batch*b.N), "disk/content")
				require.NoError(b, ts.Close())
				b.ReportMetric(coldScan(b, ts.dir), "cold-frames/s")
			})
		}
	}
}

// coldScan reads every frame and every content that the kernel does not hold
// any more, and returns frames a second.
func coldScan(b *testing.B, dir string) float64 {
	f, err := os.Open(filepath.Join(dir, journalFile))
	require.NoError(b, err)
	require.NoError(b, errors.Join(unix.Fsync(int(f.Fd())), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close()))
	start := time.Now()
	j, err := openJournal(context.Background(), dir, true, 0)
	require.NoError(b, err)
	next, _, err := j.ends()
	require.NoError(b, err)
	scan := journalScan{j: j, end: next}
	for {
		more, err := scan.next()
		require.NoError(b, err)
		if !more {
			break
		}
	}
	took := time.Since(start)
	require.NoError(b, j.close())
	return float64(next) / took.Seconds()
}
