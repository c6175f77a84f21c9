package pagecheck_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"childlog/eventlog/pagecheck"
)

// benchFile is a journal of 100,000 leaves of 4 KiB.
func benchFile(b *testing.B) (*os.File, int64) {
	path := filepath.Join(b.TempDir(), "store.db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: 4096, FreelistType: bolt.FreelistMapType, NoSync: true})
	require.NoError(b, err)
	value := bytes.Repeat([]byte{1}, 1990)
	for from := uint64(0); from < 200_000; from += 10_000 {
		require.NoError(b, db.Update(func(tx *bolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("journal"))
			if err != nil {
				return err
			}
			bucket.FillPercent = 1.0
			for i := from; i < from+10_000; i++ {
				if err := bucket.Put(be(i), value); err != nil {
					return err
				}
			}
			return bucket.SetSequence(from + 10_000)
		}))
	}
	require.NoError(b, db.Close())
	f, err := os.Open(path)
	require.NoError(b, err)
	b.Cleanup(func() { _ = f.Close() })
	info, err := f.Stat()
	require.NoError(b, err)
	return f, info.Size()
}

func benchmark(b *testing.B, fn func(context.Context, io.ReaderAt, int64) (pagecheck.Report, error)) {
	f, size := benchFile(b)
	c := &counting{r: f}
	rep, err := fn(context.Background(), c, size)
	require.NoError(b, err)
	require.NoError(b, rep.Err())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fn(context.Background(), f, size); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rep.Pages), "pages")
	b.ReportMetric(float64(rep.Branches), "branches")
	b.ReportMetric(float64(c.calls), "reads/op")
	b.ReportMetric(float64(c.bytes), "read-bytes/op")
}

func BenchmarkInspect(b *testing.B)    { benchmark(b, pagecheck.Inspect) }
func BenchmarkInspectAll(b *testing.B) { benchmark(b, pagecheck.InspectAll) }
