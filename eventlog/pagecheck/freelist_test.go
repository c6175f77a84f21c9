package pagecheck_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"childlog/eventlog/pagecheck"
)

func TestFreelistEveryBit(t *testing.T) {
	base := newImage(t, small)
	list, n := base.freelist(), len(base.freeIDs())
	require.Greater(t, n, 20)
	for bit := range n * 64 {
		base.flipped(list, 16*8+bit, func() {
			require.False(t, inspect(t, base.data).OK(), "id %d bit %d", bit/64, bit%64)
			if bit%5 == 0 {
				require.False(t, inspectAll(t, base.data).OK(), "id %d bit %d", bit/64, bit%64)
			}
		})
	}
	for bit := range 12 * 8 { // without the overflow, see below
		base.flipped(list, bit, func() {
			require.False(t, inspect(t, base.data).OK(), "header bit %d", bit)
		})
	}
}

// The overflow of a freelist is generous, so a larger one can only be told by
// the pages it takes.
func TestFreelistOverflow(t *testing.T) {
	base := newImage(t, small)
	for bit := range 32 {
		m := base.clone()
		m.setOverflow(m.freelist(), base.overflow(m.freelist())^1<<bit)
		require.False(t, inspectAll(t, m.data).OK(), "overflow bit %d", bit)
	}
}

// Whatever page in use takes the place of a free one in the list: Inspect names
// it, without having read a leaf in full.
func TestFreelistLivePage(t *testing.T) {
	for _, s := range []shape{small, {pageSize: 4096, journal: 3000, contents: 60, valueMax: 64 << 10}} {
		base := newImage(t, s)
		free := map[uint64]bool{}
		for _, id := range base.freeIDs() {
			free[id] = true
		}
		overflow := 0
		for id := uint64(2); id < base.hwm(); id++ {
			if free[id] {
				continue
			}
			m, list := base, base.page(base.freelist())[:base.pageSize]
			before := bytes.Clone(list)
			putFree(m, id)
			rep := inspect(t, m.data)
			requireProblem(t, rep.Problems, id, pagecheck.KindFreelistLivePage)
			for _, p := range rep.Problems {
				require.Equal(t, pagecheck.KindFreelistLivePage, p.Kind)
			}
			if s == small {
				requireProblem(t, inspectAll(t, m.data).Problems, id, pagecheck.KindFreelistLivePage)
			}
			copy(list, before)
			if binary.LittleEndian.Uint64(base.page(id)) != id {
				overflow++
			}
		}
		require.Greater(t, overflow, 10)
	}
}

// putFree replaces the id next to the given one in the freelist, which keeps
// the list in order.
func putFree(m image, id uint64) {
	ids := m.freeIDs()
	at := len(ids) - 1
	for i, v := range ids {
		if v > id {
			at = i
			break
		}
	}
	binary.LittleEndian.PutUint64(m.page(m.freelist())[16+8*at:], id)
}

func TestFreelistMalformed(t *testing.T) {
	base := newImage(t, small)
	list, ids := base.freelist(), base.freeIDs()
	set := func(m image, i int, id uint64) { binary.LittleEndian.PutUint64(m.page(list)[16+8*i:], id) }
	for name, damage := range map[string]func(m image){
		"duplicate":            func(m image) { set(m, 4, ids[3]) },
		"unsorted":             func(m image) { set(m, 3, ids[4]); set(m, 4, ids[3]) },
		"meta page":            func(m image) { set(m, 0, 1) },
		"zero":                 func(m image) { set(m, 0, 0) },
		"beyond the mark":      func(m image) { set(m, len(ids)-1, m.hwm()) },
		"count beyond page":    func(m image) { m.setCount(list, 4000) },
		"count smaller":        func(m image) { m.setCount(list, uint16(len(ids)-1)) },
		"count larger":         func(m image) { m.setCount(list, uint16(len(ids)+1)) },
		"count in body is few": func(m image) { m.setCount(list, 0xFFFF) },
		"count in body is all": func(m image) { m.setCount(list, 0xFFFF); set(m, 0, ^uint64(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			m := base.clone()
			damage(m)
			requireProblem(t, inspect(t, m.data).Problems, list, pagecheck.KindFreelistDamaged)
			requireProblem(t, inspectAll(t, m.data).Problems, list, pagecheck.KindFreelistDamaged)
		})
	}
	m := base.clone()
	binary.LittleEndian.PutUint64(m.meta()[32:], m.root(t, "journal"))
	m.seal()
	requireProblem(t, inspect(t, m.data).Problems, m.freelist(), pagecheck.KindWrongType)
	m = base.clone()
	binary.LittleEndian.PutUint64(m.meta()[32:], m.hwm())
	m.seal()
	requireProblem(t, inspect(t, m.data).Problems, m.hwm(), pagecheck.KindOutOfRange)
}

// From 65,535 ids on the count moves into the body of the list.
func TestFreelistLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: 1024, FreelistType: bolt.FreelistMapType, NoSync: true})
	require.NoError(t, err)
	big := make([]byte, 1<<20)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("big"))
		if err != nil {
			return err
		}
		for i := range uint64(66) {
			if err := b.Put(be(i), big); err != nil {
				return err
			}
		}
		_, err = tx.CreateBucket([]byte("journal"))
		return err
	}))
	require.NoError(t, db.Update(func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("big")) }))
	require.NoError(t, db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte("journal")).Put(be(1), be(1)) }))
	require.NoError(t, db.Close())
	data, err := os.ReadFile(path)
	require.NoError(t, err)

	rep := inspect(t, data)
	require.NoError(t, rep.Err())
	require.Greater(t, rep.Free, uint64(0xFFFF))
	require.True(t, inspectAll(t, data).OK())

	m := image{data, 1024}
	list := m.freelist()
	require.EqualValues(t, 0xFFFF, m.count(list))
	// Far into the list, beyond the first block that is read.
	at := m.page(list)[16+8+8*60_000:]
	keep := binary.LittleEndian.Uint64(at)
	binary.LittleEndian.PutUint64(at, keep+1)
	requireProblem(t, inspect(t, data).Problems, list, pagecheck.KindFreelistDamaged)
	binary.LittleEndian.PutUint64(at, keep)
	binary.LittleEndian.PutUint64(m.page(list)[16:], rep.Free-1)
	requireProblem(t, inspect(t, data).Problems, list, pagecheck.KindFreelistDamaged)
}
