package pagecheck_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog/pagecheck"
)

func TestBranchDamage(t *testing.T) {
	t.Parallel()
	base := newImage(t, tall)
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
				for bit := e % 3; bit < 64; bit += 3 {
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
		require.Len(t, got, tall.journal, "the true count is still known")
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
	t.Run("overflow named as a page", func(t *testing.T) {
		// The second page of a leaf is made to look like a page of its own, and
		// is met before the leaf.
		m := newImage(t, small)
		root := m.root(t, "contents")
		_, under := m.pages(root)
		id := under[len(under)-1]
		require.NotZero(t, m.overflow(id))
		p := m.page(id + 1)
		clear(p[:m.pageSize])
		binary.LittleEndian.PutUint64(p, id+1)
		p[8] = 0x02
		setChild(m, root, 0, id+1)
		requireProblem(t, inspectAll(t, m.data).Problems, id+1, pagecheck.KindReferencedTwice)
		_, problems, err := walk(t, m.data, "contents")
		require.NoError(t, err)
		requireProblem(t, problems, id+1, pagecheck.KindReferencedTwice)
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
	t.Parallel()
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
	for i, id := range leaves {
		for bit := i % 4; bit < 32; bit += 4 {
			base.flipped(id, 12*8+bit, func() {
				require.False(t, inspectAll(t, base.data).OK(), "page %d overflow bit %d", id, bit)
			})
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
	for _, rep := range []pagecheck.Report{inspect(t, m.data), inspectAll(t, m.data)} {
		require.Equal(t, []pagecheck.Kind{pagecheck.KindUnaccounted}, kinds(rep.Problems))
		require.Equal(t, last, rep.Problems[0].Page)
	}
}

// A bucket that starts further down in itself is a consistent, smaller bucket.
// Only the pages that are left over tell.
func TestBucketCutOff(t *testing.T) {
	base := newImage(t, small)
	old := base.root(t, "journal")
	branches, leaves := base.pages(old)
	root := binary.LittleEndian.Uint64(base.meta()[16:])
	for _, id := range append(branches[1:], leaves...) {
		m := base.clone()
		at := bytes.Index(m.page(root), []byte("journal")) + len("journal")
		require.Equal(t, old, binary.LittleEndian.Uint64(m.page(root)[at:]))
		binary.LittleEndian.PutUint64(m.page(root)[at:], id)
		require.Contains(t, kinds(inspect(t, m.data).Problems), pagecheck.KindUnaccounted)
	}
}

func TestLeafKeysAndSlack(t *testing.T) {
	t.Parallel()
	base := newImage(t, tall)
	_, leaves := base.pages(base.root(t, "journal"))
	id := leaves[7]
	n := int(base.count(id))
	key := func(m image, i int) []byte {
		e := m.page(id)[16+16*i:]
		pos := binary.LittleEndian.Uint32(e[4:])
		return e[pos : pos+8]
	}
	only := func(m image) pagecheck.Problem {
		t.Helper()
		problems := inspectAll(t, m.data).Problems
		require.Len(t, problems, 1)
		require.Equal(t, id, problems[0].Page)
		return problems[0]
	}

	m := base.clone()
	copy(key(m, n-1), be(binary.BigEndian.Uint64(key(base, n-1))+1)) // the next leaf's first key
	require.Equal(t, pagecheck.KindKeysOutOfOrder, only(m).Kind, "beyond the upper bound")

	m = base.clone()
	copy(key(m, 0), be(binary.BigEndian.Uint64(key(base, 0))-1)) // the last key of the leaf before
	require.Equal(t, pagecheck.KindKeysOutOfOrder, only(m).Kind, "below the lower bound")

	m = base.clone()
	copy(key(m, 3), key(base, 2))
	require.Equal(t, pagecheck.KindKeysOutOfOrder, only(m).Kind, "equal keys")

	m = base.clone()
	m.page(id)[m.pageSize-1] = 1
	require.Equal(t, pagecheck.KindSizeMismatch, only(m).Kind, "a byte behind the last element")

	// With the count damaged too, the overflow is only judged once the count is
	// known again.
	m = base.clone()
	m.setCount(id, 1)
	m.setOverflow(id, 1)
	problems := inspectAll(t, m.data).Problems
	requireProblem(t, problems, id, pagecheck.KindCountMismatch)
	requireProblem(t, problems, id, pagecheck.KindSizeMismatch)
	require.Contains(t, fmt.Sprint(problems), "spans 2 pages, its elements need 1")
}

// TestLastLeafIsRead: a key of the leaf that the next append goes to is out of
// order. The short check finds it too: bbolt would put new keys where nobody
// finds them, and give pages away that are in use.
func TestLastLeafIsRead(t *testing.T) {
	m := newImage(t, shape{pageSize: 1024, journal: 500, contents: 12, valueMax: 5 << 10})
	for _, bucket := range []string{"journal", "contents"} {
		_, leaves := m.pages(m.root(t, bucket))
		last := leaves[len(leaves)-1]
		for i := range int(m.count(last)) {
			element := m.page(last)[16+16*i:]
			key := element[binary.LittleEndian.Uint32(element[4:]):]
			key[0] ^= 0x80
			all := inspectAll(t, m.data)
			if i+1 < int(m.count(last)) { // the last key may be as high as it likes
				requireProblem(t, all.Problems, last, pagecheck.KindKeysOutOfOrder)
			}
			require.Equal(t, kinds(all.Problems), kinds(inspect(t, m.data).Problems), "bucket %s key %d", bucket, i)
			key[0] ^= 0x80
		}
	}
	require.True(t, inspect(t, m.data).OK())
}
