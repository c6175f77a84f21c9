package pagecheck_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog/pagecheck"
)

func TestWalkGoesOnPastDamagedPages(t *testing.T) {
	base := newImage(t, small)
	want := contentsOf(t, base.data)["journal"]
	branches, leaves := base.pages(base.root(t, "journal"))
	perLeaf := func(ids ...uint64) (n int) {
		for _, id := range ids {
			n += int(base.count(id))
		}
		return n
	}
	_, under := base.pages(branches[1])
	for name, tt := range map[string]struct {
		page   uint64
		damage func(m image, id uint64)
		kind   pagecheck.Kind
		lost   int
	}{
		"leaf id":        {leaves[5], func(m image, id uint64) { m.page(id)[3] ^= 1 }, pagecheck.KindIDMismatch, perLeaf(leaves[5])},
		"leaf type":      {leaves[5], func(m image, id uint64) { m.page(id)[8] ^= 8 }, pagecheck.KindWrongType, perLeaf(leaves[5])},
		"leaf zeroed":    {leaves[0], func(m image, id uint64) { clear(m.page(id)[:m.pageSize]) }, pagecheck.KindIDMismatch, perLeaf(leaves[0])},
		"branch id":      {branches[1], func(m image, id uint64) { m.page(id)[1] ^= 1 }, pagecheck.KindIDMismatch, perLeaf(under...)},
		"leaf count":     {leaves[9], func(m image, id uint64) { m.setCount(id, 60000) }, pagecheck.KindCountMismatch, 0},
		"branch count":   {branches[1], func(m image, id uint64) { m.setCount(id, 1) }, pagecheck.KindCountMismatch, 0},
		"branch key":     {branches[1], func(m image, id uint64) { m.page(id)[16+16*3+4] ^= 0x40 }, pagecheck.KindElementDamaged, 0},
		"leaf overflow":  {leaves[9], func(m image, id uint64) { m.setOverflow(id, 3) }, pagecheck.KindSizeMismatch, 0},
		"element pos":    {leaves[9], func(m image, id uint64) { m.page(id)[16+16*3+4] ^= 4 }, pagecheck.KindElementDamaged, 1},
		"element vsize":  {leaves[9], func(m image, id uint64) { m.page(id)[16+16*3+12] ^= 4 }, pagecheck.KindElementDamaged, 1},
		"element ksize":  {leaves[9], func(m image, id uint64) { m.page(id)[16+16*3+10] ^= 4 }, pagecheck.KindElementDamaged, 1},
		"first pos":      {leaves[9], func(m image, id uint64) { m.page(id)[16+4] ^= 16 }, pagecheck.KindElementDamaged, 1},
		"element zeroed": {leaves[9], func(m image, id uint64) { clear(m.page(id)[16:32]) }, pagecheck.KindElementDamaged, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := base.clone()
			tt.damage(m, tt.page)
			got, problems, err := walk(t, m.data, "journal")
			require.NoError(t, err)
			requireProblem(t, problems, tt.page, tt.kind)
			require.Len(t, got, len(want)-tt.lost)
			// What is handed out is true and in order.
			i := 0
			for _, p := range got {
				for !bytes.Equal(want[i].key, p.key) {
					i++
					require.Less(t, i, len(want))
				}
				require.Equal(t, want[i].value, p.value)
			}
			require.False(t, inspectAll(t, m.data).OK())
		})
	}
}

// A flipped flag turns a value into a bucket, and bbolt's cursor then hides it.
func TestWalkBucketFlag(t *testing.T) {
	m := newImage(t, small)
	want := contentsOf(t, m.data)["journal"]
	_, leaves := m.pages(m.root(t, "journal"))
	m.page(leaves[5])[16+16*2] ^= 1
	got, problems, err := walk(t, m.data, "journal")
	require.NoError(t, err)
	requireProblem(t, problems, leaves[5], pagecheck.KindBucketDamaged)
	require.Equal(t, want, got)
}

func TestWalkStops(t *testing.T) {
	data := build(t, small)
	stop := errors.New("enough")
	n := 0
	_, err := pagecheck.Walk(context.Background(), bytes.NewReader(data), int64(len(data)), []byte("journal"),
		func(uint64, []byte, []byte) error {
			if n++; n == 10 {
				return stop
			}
			return nil
		})
	require.Equal(t, stop, err)
	require.Equal(t, 10, n)
}

func TestWalkPageNumbers(t *testing.T) {
	m := newImage(t, small)
	_, leaves := m.pages(m.root(t, "journal"))
	var got []uint64
	_, err := pagecheck.Walk(context.Background(), bytes.NewReader(m.data), int64(len(m.data)), []byte("journal"),
		func(page uint64, _, _ []byte) error {
			if len(got) == 0 || got[len(got)-1] != page {
				got = append(got, page)
			}
			return nil
		})
	require.NoError(t, err)
	require.Equal(t, leaves, got)
}

func TestWalkNoBucket(t *testing.T) {
	data := build(t, small)
	_, problems, err := walk(t, data, "nothing")
	require.ErrorIs(t, err, pagecheck.ErrNoBucket)
	require.Empty(t, problems)
	_, _, err = walk(t, data, "")
	require.ErrorIs(t, err, pagecheck.ErrNoBucket)
}

func TestCancel(t *testing.T) {
	data := build(t, small)
	size := int64(len(data))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := pagecheck.Inspect(ctx, bytes.NewReader(data), size)
	require.ErrorIs(t, err, context.Canceled)

	// And on the way.
	for _, after := range []int{3, 10, 30} {
		ctx, cancel := context.WithCancel(context.Background())
		c := &cancelling{r: bytes.NewReader(data), left: after, cancel: cancel}
		_, err = pagecheck.InspectAll(ctx, c, size)
		require.ErrorIs(t, err, context.Canceled)
		require.Less(t, c.left, 1)
		require.Greater(t, c.left, -5, "reads after the cancel")
	}
	n := 0
	ctx, cancel = context.WithCancel(context.Background())
	_, err = pagecheck.Walk(ctx, bytes.NewReader(data), size, []byte("journal"), func(uint64, []byte, []byte) error {
		n++
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, n, 40, "the rest of the leaf only")
}

type cancelling struct {
	r      io.ReaderAt
	left   int
	cancel func()
}

func (c *cancelling) ReadAt(p []byte, off int64) (int, error) {
	if c.left--; c.left == 0 {
		c.cancel()
	}
	return c.r.ReadAt(p, off)
}

// failing returns an error for one page, as a disk with a bad sector does.
type failing struct {
	r        io.ReaderAt
	from, to int64
}

var errSector = errors.New("bad sector")

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off < f.to && off+int64(len(p)) > f.from {
		return 0, errSector
	}
	return f.r.ReadAt(p, off)
}

func TestUnreadablePages(t *testing.T) {
	m := newImage(t, small)
	size := int64(len(m.data))
	at := func(id uint64) failing {
		return failing{bytes.NewReader(m.data), int64(id) * 1024, int64(id+1) * 1024}
	}
	branches, leaves := m.pages(m.root(t, "journal"))
	n := 0
	count := func(uint64, []byte, []byte) error { n++; return nil }

	problems, err := pagecheck.Walk(context.Background(), at(leaves[4]), size, []byte("journal"), count)
	require.NoError(t, err)
	requireProblem(t, problems, leaves[4], pagecheck.KindUnreadable)
	require.Equal(t, small.journal-int(m.count(leaves[4])), n)

	for _, id := range []uint64{branches[1], m.freelist(), leaves[0]} {
		rep, err := pagecheck.Inspect(context.Background(), at(id), size)
		require.NoError(t, err)
		requireProblem(t, rep.Problems, id, pagecheck.KindUnreadable)
	}
	for id := range uint64(2) {
		rep, err := pagecheck.Inspect(context.Background(), at(id), size)
		require.NoError(t, err)
		requireProblem(t, rep.Problems, id, pagecheck.KindOneMetaInvalid)
	}
	_, err = pagecheck.Inspect(context.Background(), failing{bytes.NewReader(m.data), 0, size}, size)
	require.ErrorIs(t, err, errSector)
	_, err = pagecheck.Inspect(context.Background(), bytes.NewReader(m.data), -1)
	require.Error(t, err)
	_, err = pagecheck.Walk(context.Background(), bytes.NewReader(m.data), -1, []byte("journal"), count)
	require.Error(t, err)

	// The overflow of a leaf is unreadable: its first page still is.
	_, leaves = m.pages(m.root(t, "contents"))
	for _, id := range leaves {
		if m.overflow(id) > 0 {
			rep, err := pagecheck.InspectAll(context.Background(), at(id+1), size)
			require.NoError(t, err)
			requireProblem(t, rep.Problems, id, pagecheck.KindUnreadable)
		}
	}
}

func TestConcurrentCalls(t *testing.T) {
	data := build(t, small)
	r := bytes.NewReader(data)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			rep, err := pagecheck.InspectAll(context.Background(), r, int64(len(data)))
			if err != nil || !rep.OK() {
				t.Errorf("got %v, %v", rep.Problems, err)
			}
		})
	}
	wg.Wait()
}

func TestRootBucketDamage(t *testing.T) {
	m := newImage(t, small)
	root := binary.LittleEndian.Uint64(m.meta()[16:])
	// Element 2 is "journal": contents, empty, journal, settings.
	m.flipped(root, (16+16*2)*8, func() {
		rep := inspect(t, m.data)
		require.Equal(t, []pagecheck.Kind{pagecheck.KindBucketDamaged}, kinds(rep.Problems))
		require.Len(t, rep.Buckets, 3)
		_, problems, err := walk(t, m.data, "journal")
		require.ErrorIs(t, err, pagecheck.ErrNoBucket)
		require.Equal(t, rep.Problems, problems)
	})
	// A root page that is not what it should be.
	for bit := range 64 {
		e := m.page(root)[16+16*2:]
		at := binary.LittleEndian.Uint32(e[4:]) + uint32(len("journal"))
		m.flipped(root, (16+16*2+int(at))*8+bit, func() {
			require.False(t, inspect(t, m.data).OK(), "root bit %d", bit)
		})
	}
}

func TestInlineBucketDamage(t *testing.T) {
	m := newImage(t, small)
	root := binary.LittleEndian.Uint64(m.meta()[16:])
	at := int(root)*m.pageSize + bytes.Index(m.page(root), []byte("settings")) + len("settings")
	want := contentsOf(t, m.data)["settings"]
	require.Len(t, want, 3)
	for bit := range (16 + 16 + 3*16) * 8 {
		if bit >= 64 && bit < 128 {
			continue // the sequence
		}
		m.flipped(0, at*8+bit, func() {
			require.False(t, inspect(t, m.data).OK(), "bit %d", bit)
			got, _, err := walk(t, m.data, "settings")
			if err == nil && bit >= 32*8 {
				require.GreaterOrEqual(t, len(got), 1, "bit %d", bit)
			}
		})
	}
}
