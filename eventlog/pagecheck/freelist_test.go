package pagecheck_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"childlog/eventlog/pagecheck"
)

func TestFreelistEveryBit(t *testing.T) {
	t.Parallel()
	base := newImage(t, shape{pageSize: 1024, journal: 200, contents: 20, valueMax: 6 << 10})
	list, n := base.freelist(), len(base.freeIDs())
	require.Greater(t, n, 20)
	for bit := range n * 64 {
		base.flipped(list, 16*8+bit, func() {
			require.False(t, inspect(t, base.data).OK(), "id %d bit %d", bit/64, bit%64)
			if bit%11 == 0 {
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
	t.Parallel()
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

// From 65,535 ids on the count moves into the body of the list. The file is grown
// by hand, and bbolt's own check has to agree with it.
func TestFreelistLong(t *testing.T) {
	t.Parallel()
	m := newImage(t, tall)
	const added = 70_000
	list, old := m.hwm(), m.freelist()
	require.Zero(t, m.overflow(old))
	ids := append(m.freeIDs(), old)
	slices.Sort(ids)
	const pages = (16+8*(added+2000))/1024 + 1
	for id := list + pages; id < list+pages+added; id++ {
		ids = append(ids, id)
	}
	body := binary.LittleEndian.AppendUint64(nil, list)
	body = append(body, 0x10, 0, 0xFF, 0xFF)
	body = binary.LittleEndian.AppendUint32(body, pages-1)
	body = binary.LittleEndian.AppendUint64(body, uint64(len(ids)))
	for _, id := range ids {
		body = binary.LittleEndian.AppendUint64(body, id)
	}
	require.LessOrEqual(t, len(body), pages*1024)
	binary.LittleEndian.PutUint64(m.meta()[32:], list)
	binary.LittleEndian.PutUint64(m.meta()[40:], list+pages+added)
	m.seal()
	path := filepath.Join(t.TempDir(), "store.db")
	require.NoError(t, os.WriteFile(path, append(m.data[:list*1024:list*1024], body...), 0o600))
	require.NoError(t, os.Truncate(path, int64(list+pages+added)*1024))
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, PreLoadFreelist: true})
	require.NoError(t, err)
	require.Equal(t, len(ids), db.Stats().FreePageN)
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			require.NoError(t, err)
		}
		return nil
	}))
	require.NoError(t, db.Close())

	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	info, err := f.Stat()
	require.NoError(t, err)
	check := func() pagecheck.Report {
		rep, err := pagecheck.Inspect(context.Background(), f, info.Size())
		require.NoError(t, err)
		return rep
	}
	put := func(n uint64, off int64) {
		_, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, n), off)
		require.NoError(t, err)
	}
	get := func(off int64) uint64 {
		var b [8]byte
		_, err := f.ReadAt(b[:], off)
		require.NoError(t, err)
		return binary.LittleEndian.Uint64(b[:])
	}

	rep := check()
	require.NoError(t, rep.Err())
	require.Greater(t, rep.Free, uint64(0xFFFF))
	full, err := pagecheck.InspectAll(context.Background(), f, info.Size())
	require.NoError(t, err)
	require.NoError(t, full.Err())

	start := int64(list)*1024 + 16
	require.Equal(t, rep.Free, get(start))
	at := start + 8 + 8*60_000 // beyond the first block that is read
	id := get(at)
	put(id+1, at)
	requireProblem(t, check().Problems, list, pagecheck.KindFreelistDamaged)
	put(id, at)
	require.True(t, check().OK())
	put(rep.Free-1, start)
	requireProblem(t, check().Problems, list, pagecheck.KindFreelistDamaged)
}
