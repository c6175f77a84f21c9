package pagecheck_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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
	data := build(t, shape{pageSize: 4096, journal: 60_000, contents: 30, valueMax: 64 << 10})
	m := image{data, 4096}
	c := &counting{r: bytes.NewReader(data)}
	rep, err := pagecheck.Inspect(context.Background(), c, int64(len(data)))
	require.NoError(t, err)
	require.True(t, rep.OK())
	require.Greater(t, rep.Leaves, uint64(1000))

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
	base := newImage(t, small)
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

func TestBranchDamage(t *testing.T) {
	base := newImage(t, small)
	root := base.root(t, "journal")
	branches, leaves := base.pages(root)
	kids := base.children(root)

	t.Run("header and element positions", func(t *testing.T) {
		for _, id := range branches {
			for bit := range 16 * 8 {
				base.flipped(id, bit, func() {
					require.False(t, inspect(t, base.data).OK(), "page %d header bit %d", id, bit)
				})
			}
			n := int(base.count(id))
			for bit := range n * 64 {
				e, bit := bit/64, bit%64
				grows := e == n-1 && bit >= 32 && base.page(id)[16+16*e+bit/8]>>(bit%8)&1 == 0
				base.flipped(id, (16+16*e)*8+bit, func() {
					// Only a last key that grows into the zeros behind it may pass.
					if rep := inspect(t, base.data); !grows || !rep.OK() {
						require.False(t, rep.OK(), "page %d element %d bit %d", id, e, bit)
					}
				})
			}
		}
	})
	t.Run("child", func(t *testing.T) {
		for _, id := range branches {
			for e := range int(base.count(id)) {
				for bit := range 64 {
					base.flipped(id, (16+16*e+8)*8+bit, func() {
						require.False(t, inspectAll(t, base.data).OK(), "page %d element %d bit %d", id, e, bit)
					})
				}
			}
		}
	})
	t.Run("count", func(t *testing.T) {
		m := base.clone()
		m.setCount(kids[0], base.count(kids[0])-1)
		requireProblem(t, inspect(t, m.data).Problems, kids[0], pagecheck.KindCountMismatch)
		got, _, err := walk(t, m.data, "journal")
		require.NoError(t, err)
		require.Len(t, got, small.journal, "the true count is still known")
	})
	t.Run("branches swapped", func(t *testing.T) {
		m := base.clone()
		swapChildren(m, root, 0, 1)
		require.Contains(t, kinds(inspect(t, m.data).Problems), pagecheck.KindKeysOutOfOrder)
	})
	t.Run("leaves swapped", func(t *testing.T) {
		m := base.clone()
		swapChildren(m, kids[0], 3, 4)
		require.Contains(t, kinds(inspectAll(t, m.data).Problems), pagecheck.KindKeysOutOfOrder)
	})
	t.Run("page ids swapped", func(t *testing.T) {
		m := base.clone()
		binary.LittleEndian.PutUint64(m.page(kids[0]), kids[1])
		binary.LittleEndian.PutUint64(m.page(kids[1]), kids[0])
		for _, id := range kids[:2] {
			requireProblem(t, inspect(t, m.data).Problems, id, pagecheck.KindIDMismatch)
		}
	})
	t.Run("leaf named twice", func(t *testing.T) {
		m := base.clone()
		setChild(m, kids[0], 4, base.children(kids[0])[3])
		requireProblem(t, inspect(t, m.data).Problems, base.children(kids[0])[3], pagecheck.KindReferencedTwice)
	})
	t.Run("cycle", func(t *testing.T) {
		m := base.clone()
		setChild(m, kids[1], 2, root)
		requireProblem(t, inspectAll(t, m.data).Problems, root, pagecheck.KindReferencedTwice)
		requireProblem(t, inspect(t, m.data).Problems, root, pagecheck.KindReferencedTwice)
		_, problems, err := walk(t, m.data, "journal")
		require.NoError(t, err)
		requireProblem(t, problems, root, pagecheck.KindReferencedTwice)
	})
	t.Run("leaf in place of a branch", func(t *testing.T) {
		// On the left edge, so that the bucket looks one level lower.
		m := base.clone()
		setChild(m, root, 0, leaves[len(leaves)-1])
		requireProblem(t, inspect(t, m.data).Problems, leaves[len(leaves)-1], pagecheck.KindWrongType)
	})
	t.Run("out of range", func(t *testing.T) {
		for _, id := range []uint64{0, 1, base.hwm(), 1 << 40, ^uint64(0)} {
			m := base.clone()
			setChild(m, kids[0], 5, id)
			requireProblem(t, inspect(t, m.data).Problems, id, pagecheck.KindOutOfRange)
		}
	})
	t.Run("key", func(t *testing.T) {
		m := base.clone()
		p := m.page(kids[0])[16+16*2:]
		pos := binary.LittleEndian.Uint32(p)
		p[pos] ^= 0x80
		requireProblem(t, inspect(t, m.data).Problems, kids[0], pagecheck.KindKeysOutOfOrder)
	})
	t.Run("edges of the bucket are read", func(t *testing.T) {
		for _, id := range []uint64{leaves[0], leaves[len(leaves)-1]} {
			m := base.clone()
			m.setCount(id, base.count(id)-1)
			require.Equal(t, []pagecheck.Kind{pagecheck.KindCountMismatch}, kinds(inspect(t, m.data).Problems))
			for _, at := range []int{0, 8} {
				m := base.clone()
				m.page(id)[at] ^= 0x40
				require.False(t, inspect(t, m.data).OK())
			}
		}
	})
}

func setChild(m image, id uint64, e int, child uint64) {
	binary.LittleEndian.PutUint64(m.page(id)[16+16*e+8:], child)
}

func swapChildren(m image, id uint64, a, b int) {
	kids := m.children(id)
	setChild(m, id, a, kids[b])
	setChild(m, id, b, kids[a])
}

func TestLeafDamage(t *testing.T) {
	base := newImage(t, small)
	_, leaves := base.pages(base.root(t, "journal"))
	id := leaves[7]
	for n := range base.count(id) {
		// The order of the keys that are left is right; only the place of the
		// data tells.
		m := base.clone()
		m.setCount(id, n)
		requireProblem(t, inspectAll(t, m.data).Problems, id, pagecheck.KindCountMismatch)
		got, problems, err := walk(t, m.data, "journal")
		require.NoError(t, err)
		requireProblem(t, problems, id, pagecheck.KindCountMismatch)
		require.Len(t, got, small.journal)
	}
	for flag := range 32 {
		m := base.clone()
		m.page(id)[16+16*2+flag/8] ^= 1 << (flag % 8)
		require.False(t, inspectAll(t, m.data).OK(), "element flag %d", flag)
		got, problems, err := walk(t, m.data, "journal")
		require.NoError(t, err)
		require.NotEmpty(t, problems)
		require.Len(t, got, small.journal)
		require.NotContains(t, fmt.Sprint(kinds(problems)), "count")
	}
	_, leaves = base.pages(base.root(t, "contents"))
	for _, id := range leaves {
		for bit := range 32 {
			m := base.clone()
			m.setOverflow(id, base.overflow(id)^1<<bit)
			require.False(t, inspectAll(t, m.data).OK(), "page %d overflow bit %d", id, bit)
		}
	}
}

func TestUnaccounted(t *testing.T) {
	m := newImage(t, small)
	ids := m.freeIDs()
	last := ids[len(ids)-1]
	p := m.page(m.freelist())
	m.setCount(m.freelist(), uint16(len(ids)-1))
	binary.LittleEndian.PutUint64(p[16+8*(len(ids)-1):], 0)
	require.True(t, inspect(t, m.data).OK(), "a page too few in the freelist is no danger")
	rep := inspectAll(t, m.data)
	require.Equal(t, []pagecheck.Kind{pagecheck.KindUnaccounted}, kinds(rep.Problems))
	require.Equal(t, last, rep.Problems[0].Page)
}

func TestTruncation(t *testing.T) {
	m := newImage(t, small)
	size := int(m.hwm()) * m.pageSize
	require.LessOrEqual(t, size, len(m.data))
	require.True(t, inspectAll(t, m.data[:size]).OK(), "nothing is used beyond the high water mark")
	for cut := size - 1; cut >= 0; cut -= 100 {
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
