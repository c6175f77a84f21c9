package pagecheck_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"childlog/eventlog/pagecheck"
)

// shape says what a test file holds. All files are written by bbolt itself, in
// the way a store writes them: an append-only journal, and contents of which some
// are deleted again.
type shape struct {
	pageSize int
	journal  int // records
	contents int // values; every third one is deleted
	valueMax int
	noSync   bool // freelist not stored
	nested   bool
}

var (
	small = shape{pageSize: 1024, journal: 700, contents: 40, valueMax: 6 << 10}
	// tall has the same branches, and little else to read.
	tall = shape{pageSize: 1024, journal: 700, contents: 4, valueMax: 3 << 10}
)

func be(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func random(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// build returns the bytes of a file of that shape.
func build(t testing.TB, s shape) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	fill(t, path, s)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

func fill(t testing.TB, path string, s shape) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		PageSize: s.pageSize, FreelistType: bolt.FreelistMapType,
		NoSync: true, NoFreelistSync: s.noSync,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	r := rand.New(rand.NewPCG(1, uint64(s.pageSize)))

	update := func(fn func(tx *bolt.Tx) error) { require.NoError(t, db.Update(fn)) }
	update(func(tx *bolt.Tx) error {
		for _, name := range []string{"contents", "empty", "journal", "settings"} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		b := tx.Bucket([]byte("settings"))
		for i := range 3 {
			if err := b.Put(fmt.Appendf(nil, "key %d", i), fmt.Appendf(nil, "value %d", i)); err != nil {
				return err
			}
		}
		return b.SetSequence(7)
	})
	const perTx = 40
	for from := 0; from < s.journal; from += perTx {
		update(func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte("journal"))
			b.FillPercent = 1.0
			for i := from; i < min(from+perTx, s.journal); i++ {
				if err := b.Put(be(uint64(i)), random(r, 40+r.IntN(40))); err != nil {
					return err
				}
			}
			return b.SetSequence(uint64(min(from+perTx, s.journal)))
		})
	}
	for from := 0; from < s.contents; from += 5 {
		update(func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte("contents"))
			for i := from; i < min(from+5, s.contents); i++ {
				if err := b.Put(be(uint64(i)), random(r, 1+r.IntN(s.valueMax))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if s.nested {
		update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket([]byte("outer"))
			if err != nil {
				return err
			}
			for _, name := range []string{"inner", "small"} {
				inner, err := b.CreateBucket([]byte(name))
				if err != nil {
					return err
				}
				for i := range map[string]int{"inner": 300, "small": 2}[name] {
					if err := inner.Put(be(uint64(i)), random(r, 30)); err != nil {
						return err
					}
				}
			}
			return b.Put([]byte("plain"), []byte("value"))
		})
	}
	// Deletes after the appends leave free pages in the middle of the file.
	update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("contents"))
		for i := 0; i < s.contents; i += 3 {
			if err := b.Delete(be(uint64(i))); err != nil {
				return err
			}
		}
		return nil
	})
	update(func(tx *bolt.Tx) error { return tx.Bucket([]byte("journal")).SetSequence(uint64(s.journal)) })
}

type pair struct {
	key, value []byte // value nil: a nested bucket
}

// contentsOf reads all top-level buckets with bbolt.
func contentsOf(t testing.TB, data []byte) map[string][]pair {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	got := map[string][]pair{}
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			got[string(name)] = []pair{}
			return b.ForEach(func(k, v []byte) error {
				got[string(name)] = append(got[string(name)], pair{bytes.Clone(k), bytes.Clone(v)})
				return nil
			})
		})
	}))
	return got
}

func inspect(t testing.TB, data []byte) pagecheck.Report {
	t.Helper()
	rep, err := pagecheck.Inspect(context.Background(), bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return rep
}

func inspectAll(t testing.TB, data []byte) pagecheck.Report {
	t.Helper()
	rep, err := pagecheck.InspectAll(context.Background(), bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return rep
}

func walk(t testing.TB, data []byte, bucket string) ([]pair, []pagecheck.Problem, error) {
	t.Helper()
	got := []pair{}
	problems, err := pagecheck.Walk(context.Background(), bytes.NewReader(data), int64(len(data)), []byte(bucket),
		func(_ uint64, k, v []byte) error {
			got = append(got, pair{bytes.Clone(k), bytes.Clone(v)})
			return nil
		})
	return got, problems, err
}

func kinds(problems []pagecheck.Problem) []pagecheck.Kind {
	var ks []pagecheck.Kind
	for _, p := range problems {
		ks = append(ks, p.Kind)
	}
	return ks
}

// requireProblem wants a problem of that kind at that page.
func requireProblem(t testing.TB, problems []pagecheck.Problem, page uint64, kind pagecheck.Kind) {
	t.Helper()
	for _, p := range problems {
		if p.Page == page && p.Kind == kind {
			return
		}
	}
	require.Failf(t, "problem missing", "want page %d: %s, got %v", page, kind, problems)
}

// image gives raw access to the pages of a file, apart from the package under
// test.
type image struct {
	data     []byte
	pageSize int
}

func (m image) clone() image { return image{bytes.Clone(m.data), m.pageSize} }

// flipped runs fn with one bit of a page changed.
func (m image) flipped(page uint64, bit int, fn func()) {
	b := &m.page(page)[bit/8]
	*b ^= 1 << (bit % 8)
	defer func() { *b ^= 1 << (bit % 8) }()
	fn()
}

func (m image) page(id uint64) []byte { return m.data[int(id)*m.pageSize:] }

func (m image) flags(id uint64) uint16    { return binary.LittleEndian.Uint16(m.page(id)[8:]) }
func (m image) count(id uint64) uint16    { return binary.LittleEndian.Uint16(m.page(id)[10:]) }
func (m image) overflow(id uint64) uint32 { return binary.LittleEndian.Uint32(m.page(id)[12:]) }

func (m image) setCount(id uint64, n uint16) { binary.LittleEndian.PutUint16(m.page(id)[10:], n) }
func (m image) setOverflow(id uint64, n uint32) {
	binary.LittleEndian.PutUint32(m.page(id)[12:], n)
}

// meta is the newer meta page, without its header.
func (m image) meta() []byte {
	a, b := m.page(0)[16:80], m.page(1)[16:80]
	if binary.LittleEndian.Uint64(b[48:]) > binary.LittleEndian.Uint64(a[48:]) {
		return b
	}
	return a
}

func (m image) freelist() uint64 { return binary.LittleEndian.Uint64(m.meta()[32:]) }
func (m image) hwm() uint64      { return binary.LittleEndian.Uint64(m.meta()[40:]) }

// seal renews the checksum of the newer meta page.
func (m image) seal() { sealMeta(m.meta()) }

// sealPage renews the checksum of a meta page.
func (m image) sealPage(id uint64) { sealMeta(m.page(id)[16:80]) }

func sealMeta(b []byte) {
	h := fnv.New64a()
	_, _ = h.Write(b[:56])
	binary.LittleEndian.PutUint64(b[56:], h.Sum64())
}

func (m image) freeIDs() []uint64 {
	p := m.page(m.freelist())
	ids := make([]uint64, binary.LittleEndian.Uint16(p[10:]))
	for i := range ids {
		ids[i] = binary.LittleEndian.Uint64(p[16+8*i:])
	}
	return ids
}

// children of a branch page.
func (m image) children(id uint64) []uint64 {
	p := m.page(id)
	ids := make([]uint64, m.count(id))
	for i := range ids {
		ids[i] = binary.LittleEndian.Uint64(p[16+16*i+8:])
	}
	return ids
}

// pages below a root, by type and in key order.
func (m image) pages(root uint64) (branches, leaves []uint64) {
	if m.flags(root) == 0x02 {
		return nil, []uint64{root}
	}
	branches = []uint64{root}
	for _, c := range m.children(root) {
		b, l := m.pages(c)
		branches, leaves = append(branches, b...), append(leaves, l...)
	}
	return branches, leaves
}

func (m image) root(t testing.TB, bucket string) uint64 {
	t.Helper()
	for _, b := range inspect(t, m.data).Buckets {
		if string(b.Name) == bucket {
			return b.Root
		}
	}
	require.Failf(t, "bucket missing", "%s", bucket)
	return 0
}

func newImage(t testing.TB, s shape) image {
	t.Helper()
	return image{build(t, s), s.pageSize}
}
