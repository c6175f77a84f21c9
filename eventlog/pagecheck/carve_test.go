package pagecheck_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog/pagecheck"
)

// TestWalkLeaves: by leaves the same comes as by keys, and each value stands
// where the entry says.
func TestWalkLeaves(t *testing.T) {
	for _, s := range []shape{{pageSize: 1024, journal: 300, contents: 20, valueMax: 3000}, {pageSize: 4096, journal: 3, valueMax: 20}} {
		data := build(t, s)
		for bucket, want := range contentsOf(t, data) {
			got := []pair{}
			problems, err := pagecheck.WalkLeaves(context.Background(), bytes.NewReader(data), int64(len(data)), []byte(bucket), func(l pagecheck.Leaf) error {
				require.True(t, l.Sound)
				require.Empty(t, l.Gaps)
				for i, e := range l.Entries {
					require.Equal(t, i, e.Index)
					require.Equal(t, e.Value, data[e.Offset:e.Offset+int64(len(e.Value))])
					got = append(got, pair{bytes.Clone(e.Key), bytes.Clone(e.Value)})
				}
				return nil
			})
			require.NoError(t, err)
			require.Empty(t, problems)
			require.Equal(t, want, got, bucket)
		}
	}
}

// TestCarver: each leaf is read on its own as the walk reads it, also with a
// header that is gone; and what elements lost is in the gaps.
func TestCarver(t *testing.T) {
	data := build(t, shape{pageSize: 1024, journal: 300, contents: 20, valueMax: 3000})
	var leaves []pagecheck.Leaf
	_, err := pagecheck.WalkLeaves(context.Background(), bytes.NewReader(data), int64(len(data)), []byte("journal"), func(l pagecheck.Leaf) error {
		kept := l
		kept.Entries = nil
		for _, e := range l.Entries {
			e.Key, e.Value = bytes.Clone(e.Key), bytes.Clone(e.Value)
			kept.Entries = append(kept.Entries, e)
		}
		leaves = append(leaves, kept)
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(leaves), 10)
	for _, want := range leaves {
		c, err := pagecheck.NewCarver(bytes.NewReader(data), int64(len(data)), 1024)
		require.NoError(t, err)
		got, ok, err := c.Leaf(want.Page)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, got)

		damaged := bytes.Clone(data)
		clear(damaged[want.Page*1024 : want.Page*1024+10]) // id and flags
		c, err = pagecheck.NewCarver(bytes.NewReader(damaged), int64(len(damaged)), 1024)
		require.NoError(t, err)
		got, ok, err = c.Leaf(want.Page)
		require.NoError(t, err)
		require.True(t, ok)
		require.False(t, got.Sound)
		require.Equal(t, want.Entries, got.Entries)

		if len(want.Entries) < 4 {
			continue
		}
		damaged = bytes.Clone(data)
		damaged[want.Page*1024+16+16*1+6] ^= 0x55 // where the second element stands
		c, err = pagecheck.NewCarver(bytes.NewReader(damaged), int64(len(damaged)), 1024)
		require.NoError(t, err)
		got, _, err = c.Leaf(want.Page)
		require.NoError(t, err)
		require.Len(t, got.Gaps, 1)
		e := want.Entries[1]
		require.Equal(t, append(bytes.Clone(e.Key), e.Value...), got.Gaps[0].Bytes)
		require.Equal(t, e.Offset-int64(len(e.Key)), got.Gaps[0].Offset)
		require.Equal(t, [2]int{1, 1}, [2]int{got.Gaps[0].Index, got.Gaps[0].Count})
	}
	for _, size := range []int{0, 1000, 512, 1 << 17} {
		_, err := pagecheck.NewCarver(bytes.NewReader(nil), 0, size)
		require.Error(t, err)
	}
}

// TestCarverIsBounded: a file in which every page claims to be as long as a leaf
// can be is read a few times over, not once for each page.
func TestCarverIsBounded(t *testing.T) {
	const pages = 2000
	data := make([]byte, pages*1024)
	for id := range pages {
		p := data[id*1024:]
		binary.LittleEndian.PutUint64(p, uint64(id))
		binary.LittleEndian.PutUint16(p[8:], 2)
		binary.LittleEndian.PutUint16(p[10:], 1)
		binary.LittleEndian.PutUint32(p[12:], uint32(pages-id-1))
		binary.LittleEndian.PutUint32(p[16+4:], 16)
		binary.LittleEndian.PutUint32(p[16+8:], 8)
		binary.LittleEndian.PutUint32(p[16+12:], uint32((pages-id)*1024-40))
	}
	r := &counted{ReaderAt: bytes.NewReader(data)}
	c, err := pagecheck.NewCarver(r, int64(len(data)), 1024)
	require.NoError(t, err)
	for id := range uint64(pages) {
		_, _, err := c.Leaf(id)
		require.NoError(t, err)
	}
	require.Less(t, r.n, 9*len(data)+65<<20)
	require.Less(t, 3*r.n, pages*len(data)/2, "as much as the pages claim")
}

// counted counts the bytes read.
type counted struct {
	io.ReaderAt
	n int
}

func (c *counted) ReadAt(b []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(b, off)
	c.n += n
	return n, err
}

// TestRepairMetas: any one byte of either meta page, or one of each, is put
// right; two bytes of one are not, and nothing is made up.
func TestRepairMetas(t *testing.T) {
	for _, size := range []int{1024, 4096} {
		data := build(t, shape{pageSize: size, journal: 30, valueMax: 100})
		want := [2][]byte{data[16:80], data[size+16 : size+80]}
		r := rand.New(rand.NewPCG(1, uint64(size)))
		for at := range 64 {
			damaged := bytes.Clone(data)
			damaged[16+at] ^= byte(1 + r.IntN(255))
			if at%2 == 0 {
				damaged[size+16+r.IntN(64)] ^= byte(1 + r.IntN(255))
			}
			patched := pagecheck.Patched{R: bytes.NewReader(damaged), Patches: pagecheck.RepairMetas(bytes.NewReader(damaged), int64(len(damaged)))}
			got := make([]byte, len(data))
			_, err := patched.ReadAt(got, 0)
			require.NoError(t, err)
			require.Equal(t, want[0], got[16:80], "byte %d", at)
			require.Equal(t, want[1], got[size+16:size+80], "byte %d", at)
		}
		damaged := bytes.Clone(data)
		damaged[16+20] ^= 1
		damaged[16+40] ^= 1
		require.Empty(t, pagecheck.RepairMetas(bytes.NewReader(damaged), int64(len(damaged))))
		require.Empty(t, pagecheck.RepairMetas(bytes.NewReader(data), int64(len(data))))
		clear(damaged[:80])
		clear(damaged[size : size+80])
		require.Empty(t, pagecheck.RepairMetas(bytes.NewReader(damaged), int64(len(damaged))))
		require.Equal(t, size, pagecheck.GuessPageSize(bytes.NewReader(damaged), int64(len(damaged))))
	}
	require.Zero(t, pagecheck.GuessPageSize(bytes.NewReader(make([]byte, 1<<16)), 1<<16))
}

// TestMetaFor: a tree can be walked again once a meta page names its root.
func TestMetaFor(t *testing.T) {
	data := build(t, shape{pageSize: 1024, journal: 100, valueMax: 100})
	want, _, err := walk(t, data, "journal")
	require.NoError(t, err)
	m := image{data, 1024}
	root := binary.LittleEndian.Uint64(m.meta()[16:])
	pages := m.hwm()
	damaged := bytes.Clone(data)
	clear(damaged[:2048])
	r := pagecheck.Patched{R: bytes.NewReader(damaged), Patches: []pagecheck.Patch{pagecheck.MetaFor(1024, root, pages, 0)}}
	var got []pair
	_, err = pagecheck.Walk(context.Background(), r, int64(len(damaged)), []byte("journal"), func(_ uint64, k, v []byte) error {
		got = append(got, pair{bytes.Clone(k), bytes.Clone(v)})
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, want, got)
	c, err := pagecheck.NewCarver(bytes.NewReader(damaged), int64(len(damaged)), 1024)
	require.NoError(t, err)
	buckets, ok, err := c.RootBucket(root)
	require.NoError(t, err)
	require.True(t, ok)
	require.NotEmpty(t, buckets)
}

// TestSurvey: a page is in use or free; one that a branch lost is neither.
func TestSurvey(t *testing.T) {
	m := newImage(t, shape{pageSize: 1024, journal: 300, valueMax: 100})
	rep, states, err := pagecheck.Survey(context.Background(), bytes.NewReader(m.data), int64(len(m.data)))
	require.NoError(t, err)
	require.True(t, rep.OK())
	require.True(t, states.FreelistSound())
	free := map[uint64]bool{}
	for _, id := range m.freeIDs() {
		free[id] = true
	}
	for id := range m.hwm() {
		require.Equal(t, free[id], states.Free(id), "page %d", id)
	}
	require.True(t, states.Free(m.hwm()))
	_, leaves := m.pages(m.root(t, "journal"))
	damaged := m.clone()
	binary.LittleEndian.PutUint64(damaged.page(leaves[3]), 999)
	_, states, err = pagecheck.Survey(context.Background(), bytes.NewReader(damaged.data), int64(len(damaged.data)))
	require.NoError(t, err)
	require.True(t, states.FreelistSound())
	require.False(t, states.Free(leaves[3]))
}
