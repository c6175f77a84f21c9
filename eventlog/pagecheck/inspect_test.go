package pagecheck_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"childlog/eventlog/pagecheck"
)

func TestCleanFiles(t *testing.T) {
	shapes := map[string]shape{
		"page 1024":            small,
		"page 4096":            {pageSize: 4096, journal: 3000, contents: 60, valueMax: 64 << 10},
		"page 16384":           {pageSize: 16384, journal: 9000, contents: 60, valueMax: 64 << 10},
		"page 65536":           {pageSize: 65536, journal: 3000, contents: 10, valueMax: 200 << 10},
		"freelist not stored":  {pageSize: 4096, journal: 500, contents: 20, valueMax: 9 << 10, noSync: true},
		"nested":               {pageSize: 1024, journal: 100, contents: 10, valueMax: 5 << 10, nested: true},
		"empty buckets":        {pageSize: 4096},
		"one page of contents": {pageSize: 4096, contents: 3, valueMax: 1000},
	}
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) { t.Parallel(); requireClean(t, build(t, s)) })
	}
	t.Run("just created", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "new.db")
		db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: 4096})
		require.NoError(t, err)
		require.NoError(t, db.Close())
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		requireClean(t, data)
	})
	t.Run("copied", func(t *testing.T) {
		// A copy has both metas from one transaction, and ends at the mark.
		path := filepath.Join(t.TempDir(), "store.db")
		fill(t, path, small)
		db, err := bolt.Open(path, 0o600, nil)
		require.NoError(t, err)
		var copied bytes.Buffer
		require.NoError(t, db.View(func(tx *bolt.Tx) error { _, err := tx.WriteTo(&copied); return err }))
		require.NoError(t, db.Close())
		requireClean(t, copied.Bytes())
	})
	t.Run("compacted", func(t *testing.T) {
		dir := t.TempDir()
		fill(t, filepath.Join(dir, "a.db"), small)
		from, err := bolt.Open(filepath.Join(dir, "a.db"), 0o600, nil)
		require.NoError(t, err)
		to, err := bolt.Open(filepath.Join(dir, "b.db"), 0o600, &bolt.Options{PageSize: 4096})
		require.NoError(t, err)
		require.NoError(t, bolt.Compact(to, from, 0))
		require.NoError(t, from.Close())
		require.NoError(t, to.Close())
		data, err := os.ReadFile(filepath.Join(dir, "b.db"))
		require.NoError(t, err)
		requireClean(t, data)
	})
}

// requireClean compares everything in the reports and all that Walk gives with
// what bbolt says about the file.
func requireClean(t *testing.T, data []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, PreLoadFreelist: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()

	first, full := inspect(t, data), inspectAll(t, data)
	require.Empty(t, first.Problems)
	require.Empty(t, full.Problems)
	require.NoError(t, first.Err())
	require.True(t, full.OK())
	require.Equal(t, db.Info().PageSize, full.PageSize)
	require.True(t, full.Metas[0].Valid)
	require.True(t, full.Metas[1].Valid)

	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			require.NoError(t, err, "bbolt's own check")
		}
		require.EqualValues(t, tx.ID(), full.Txid)
		require.EqualValues(t, tx.Size(), full.Pages*uint64(full.PageSize))
		require.Equal(t, uint64(tx.ID()), max(full.Metas[0].Txid, full.Metas[1].Txid))

		root := tx.Cursor().Bucket().Stats()
		i, branches, leaves := 0, root.BranchPageN, root.LeafPageN
		require.NoError(t, tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			got := full.Buckets[i]
			i++
			require.Equal(t, string(name), string(got.Name))
			require.EqualValues(t, b.Root(), got.Root)
			require.Equal(t, b.Sequence(), got.Sequence)
			require.Equal(t, b.Root() == 0, got.Inline)

			walked, problems, err := walk(t, data, string(name))
			require.NoError(t, err)
			require.Empty(t, problems)
			n := 0
			require.NoError(t, b.ForEach(func(k, v []byte) error {
				require.Less(t, n, len(walked))
				require.True(t, bytes.Equal(k, walked[n].key) && bytes.Equal(v, walked[n].value), "pair %d", n)
				require.Equal(t, v == nil, walked[n].value == nil, "pair %d", n)
				n++
				return nil
			}))
			require.Equal(t, n, len(walked))
			return nil
		}))
		require.Len(t, full.Buckets, i)
		require.Equal(t, full.Buckets, first.Buckets)
		// The stats of the root bucket include those of all buckets in it.
		require.EqualValues(t, branches, full.Branches)
		require.EqualValues(t, leaves, full.Leaves)
		stored := image{data, full.PageSize}.freelist() != ^uint64(0)
		if stored {
			require.EqualValues(t, db.Stats().FreePageN, full.Free)
		} else {
			require.Zero(t, full.Free)
		}
		return nil
	}))
}

// Keys near bbolt's limit make branch pages that have overflow, and more names of
// buckets than are kept.
func TestLongNames(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: 4096, NoSync: true})
	require.NoError(t, err)
	add := func(from, to int) {
		require.NoError(t, db.Update(func(tx *bolt.Tx) error {
			for i := from; i < to; i++ {
				if _, err := tx.CreateBucket(append(be(uint64(i)), make([]byte, 32_000)...)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	read := func() []byte {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		return data
	}
	add(0, 100)
	requireClean(t, read())
	m := image{read(), 4096}
	require.NotZero(t, m.overflow(binary.LittleEndian.Uint64(m.meta()[16:])), "a branch with overflow")
	add(100, 140)
	require.NoError(t, db.Close())
	rep := inspect(t, read())
	require.Contains(t, kinds(rep.Problems), pagecheck.KindTooLarge)
	require.Greater(t, len(rep.Buckets), 120)
}

func TestShapeHasWhatTheTestsNeed(t *testing.T) {
	m := newImage(t, small)
	branches, leaves := m.pages(m.root(t, "journal"))
	require.Greater(t, len(branches), 2, "two levels of branches")
	require.Greater(t, len(leaves), 40)
	_, leaves = m.pages(m.root(t, "contents"))
	over := 0
	for _, l := range leaves {
		over += int(m.overflow(l))
	}
	require.Greater(t, over, 10, "overflow pages")
	require.Greater(t, len(m.freeIDs()), 20)
}

func TestNoFreelistStored(t *testing.T) {
	data := build(t, shape{pageSize: 4096, journal: 100, contents: 20, valueMax: 9 << 10, noSync: true})
	require.Equal(t, ^uint64(0), image{data, 4096}.freelist())
	require.Zero(t, inspect(t, data).Free)
}

// counting fails the test when a leaf is read, and counts the calls.
type counting struct {
	r     io.ReaderAt
	mu    sync.Mutex
	calls int
	bytes int
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	c.mu.Lock()
	c.calls++
	c.bytes += len(p)
	c.mu.Unlock()
	return c.r.ReadAt(p, off)
}

func TestInspectReadsBranchesOnly(t *testing.T) {
	t.Parallel()
	data := build(t, shape{pageSize: 4096, journal: 30_000, contents: 30, valueMax: 64 << 10})
	m := image{data, 4096}
	c := &counting{r: bytes.NewReader(data)}
	rep, err := pagecheck.Inspect(context.Background(), c, int64(len(data)))
	require.NoError(t, err)
	require.True(t, rep.OK())
	require.Greater(t, rep.Leaves, uint64(500))

	runs, prev := 0, uint64(0)
	for _, id := range m.freeIDs() {
		if id != prev+1 {
			runs++
		}
		prev = id
	}
	// Two metas, two reads of the freelist, the root's leaf, and for each of the
	// two buckets with pages: two edges of up to three pages with up to two
	// reads each, and two leaf heads.
	few := 2 + 2 + 1 + 2*(2*3*2+2)
	require.LessOrEqual(t, c.calls, int(rep.Branches)+runs+few, "%d branches, %d runs of free pages", rep.Branches, runs)
	require.Less(t, c.bytes, len(data)/20)
}

func TestMetaFlips(t *testing.T) {
	t.Parallel()
	base := newImage(t, tall)
	clean := inspect(t, base.data)
	for page := range uint64(2) {
		for bit := range 64 * 8 {
			var reports []pagecheck.Report
			base.flipped(page, 16*8+bit, func() {
				reports = append(reports, inspect(t, base.data))
				if bit%16 == 0 {
					reports = append(reports, inspectAll(t, base.data))
				}
			})
			for _, rep := range reports {
				requireProblem(t, rep.Problems, page, pagecheck.KindOneMetaInvalid)
				require.False(t, rep.Metas[page].Valid)
				require.NotEmpty(t, rep.Metas[page].Reason)
				require.True(t, rep.Metas[1-page].Valid)
				require.Equal(t, clean.Metas[1-page].Txid, rep.Txid)
				require.Equal(t, clean.PageSize, rep.PageSize)
			}
		}
		for name, at := range map[string]int{"id": 3, "flags": 8} {
			m := base.clone()
			m.page(page)[at] ^= 0x10
			rep := inspect(t, m.data)
			want := map[string]pagecheck.Kind{"id": pagecheck.KindIDMismatch, "flags": pagecheck.KindWrongType}[name]
			require.Equal(t, []pagecheck.Kind{want}, kinds(rep.Problems))
			require.Equal(t, page, rep.Problems[0].Page)
			require.Equal(t, clean.Txid, rep.Txid, "bbolt does not look at the header of a meta page")
		}
	}
}

// The older meta page is a whole consistent state, so falling back to it finds
// nothing else wrong.
func TestOlderMetaIsConsistent(t *testing.T) {
	m := newImage(t, small)
	m.meta()[48] ^= 1
	require.Equal(t, []pagecheck.Kind{pagecheck.KindOneMetaInvalid}, kinds(inspectAll(t, m.data).Problems))
}

func TestNoValidMeta(t *testing.T) {
	m := newImage(t, small)
	m.page(0)[20] ^= 1
	m.page(1)[20] ^= 1
	for _, data := range [][]byte{m.data, nil, make([]byte, 100), make([]byte, 1<<16)} {
		rep := inspect(t, data)
		require.Equal(t, []pagecheck.Kind{pagecheck.KindNoValidMeta}, kinds(rep.Problems))
		require.Zero(t, rep.PageSize)
		require.ErrorIs(t, rep.Err(), pagecheck.ErrDamaged)
		_, problems, err := walk(t, data, "journal")
		require.ErrorIs(t, err, pagecheck.ErrDamaged)
		require.Len(t, problems, 1)
	}
}

func TestTruncation(t *testing.T) {
	t.Parallel()
	m := newImage(t, small)
	size := int(m.hwm()) * m.pageSize
	require.LessOrEqual(t, size, len(m.data))
	require.True(t, inspectAll(t, m.data[:size]).OK(), "nothing is used beyond the high water mark")
	var cuts []int
	for page := range size / m.pageSize {
		cuts = append(cuts, page*m.pageSize, page*m.pageSize+1+page*7%(m.pageSize-1))
	}
	for _, cut := range cuts {
		data := m.data[:cut]
		for _, rep := range []pagecheck.Report{inspect(t, data), inspectAll(t, data)} {
			if cut < 80 {
				require.Equal(t, []pagecheck.Kind{pagecheck.KindNoValidMeta}, kinds(rep.Problems))
				continue
			}
			requireProblem(t, rep.Problems, uint64(cut/m.pageSize), pagecheck.KindTruncated)
		}
		_, _, err := walk(t, data, "journal")
		if err != nil {
			require.True(t, errors.Is(err, pagecheck.ErrDamaged) || errors.Is(err, pagecheck.ErrNoBucket), "%v", err)
		}
	}
	// The caller's size may also be ahead of a file that got shorter.
	short := bytes.NewReader(m.data[:size/2])
	rep, err := pagecheck.InspectAll(context.Background(), short, int64(size))
	require.NoError(t, err)
	require.Contains(t, kinds(rep.Problems), pagecheck.KindTruncated)
}
