package eventlog

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

// plainRoot is the tree of RFC 6962 section 2.1, written as it stands there.
func plainRoot(leaves []Hash) Hash {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leaves[0]
	}
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	left, right := plainRoot(leaves[:k]), plainRoot(leaves[k:])
	return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
}

func someLeaves(n int) []Hash {
	out := make([]Hash, n)
	for i := range out {
		out[i] = leafHash(leafNative, sid(i), 1, 1, Hash{byte(i), byte(i >> 8)})
	}
	return out
}

// TestTreeEdge: the edge has the root of the plain tree at every size, the nodes
// that it hands out are those of the tree, and an edge that was put away goes on.
func TestTreeEdge(t *testing.T) {
	leaves := someLeaves(1100)
	var g treeGrowth
	for i, leaf := range leaves {
		root, err := g.edge.root()
		require.NoError(t, err)
		if i < 70 || i%64 < 2 {
			require.Equal(t, plainRoot(leaves[:i]), root, "size %d", i)
		}
		g.add(leaf)
		if i%37 == 0 {
			g.edge = restoredEdge(g.edge.size, g.edge.nodes)
		}
	}
	require.Len(t, g.nodes, 4+2+1)
	for n, h := range g.nodes {
		require.Equal(t, plainRoot(leaves[n.n<<n.level:(n.n+1)<<n.level]), h, "%+v", n)
	}
	lost := restoredEdge(5, nil)
	_, err := lost.root()
	require.ErrorIs(t, err, ErrCorrupt)
}

// leavesOf are the leaves of a store, each for itself.
func leavesOf(t require.TestingT, s *Store) []Hash {
	var out []Hash
	for p := range s.st.durable() {
		leaf, err := s.LeafAt(p)
		require.NoError(t, err)
		out = append(out, leaf)
	}
	return out
}

// TestTreeHashes: roots and proofs at every size agree with the plain tree, with
// an index, with part of one and without, and while the store is written.
func TestTreeHashes(t *testing.T) {
	ts := newStore(t)
	ts.busy(2)
	ts.say(sid(1), numbers(600)...)
	ts.flushIndex()
	ts.say(sid(1), numbers(300)...)
	check := func() {
		leaves := leavesOf(t, ts.Store)
		require.Greater(t, len(leaves), 900)
		for _, size := range []int{0, 1, 2, 255, 256, 257, 512, 700, len(leaves)} {
			root, err := ts.rootAt(ctx, uint64(size))
			require.NoError(t, err)
			require.Equal(t, plainRoot(leaves[:size]), root, "size %d", size)
		}
		size := int64(len(leaves))
		r, err := ts.TreeHashes(ctx, uint64(size))
		require.NoError(t, err)
		root := tlog.Hash(plainRoot(leaves))
		for _, n := range []int64{0, 255, 256, 600, size - 1} {
			p, err := tlog.ProveRecord(size, n, r)
			require.NoError(t, err)
			require.NoError(t, tlog.CheckRecord(p, size, root, n, tlog.Hash(leaves[n])))
		}
		_, err = ts.TreeHashes(ctx, uint64(size)+1)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = ts.LeafAt(uint64(size))
		require.ErrorIs(t, err, ErrNotFound)
		small, err := ts.TreeHashes(ctx, 300)
		require.NoError(t, err)
		_, err = small.ReadHashes([]int64{tlog.StoredHashIndex(0, 300)})
		require.ErrorIs(t, err, ErrNotFound, "a tree has no leaf behind its end")
	}
	check()
	ts.reopen(Options{ReadOnly: true})
	check()
	require.NoError(t, ts.Close())
	require.NoError(t, removeIndex(ts.dir))
	ts.open(Options{ReadOnly: true})
	check()
}

// TestTreeOfAnyHistory: whatever is appended, however often the store is closed,
// flushed and reopened, the head that is signed is the plain tree's, and what was
// signed before is a prefix of it.
func TestTreeOfAnyHistory(t *testing.T) {
	parent, runs := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		if testing.Short() && runs > 12 {
			return
		}
		ts := newStoreAt(rt, filepath.Join(parent, fmt.Sprint(runs)))
		ts.root(sid(1))
		var signed []Checkpoint
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				ts.say(sid(1), numbers(rapid.IntRange(1, 200).Draw(rt, "n"))...)
			case 1:
				ts.flushIndex()
			case 2:
				ts.reopen()
			case 3:
				c, err := ts.Checkpoint(ctx)
				require.NoError(rt, err)
				signed = append(signed, c)
			}
		}
		c, err := ts.Checkpoint(ctx)
		require.NoError(rt, err)
		leaves := leavesOf(rt, ts.Store)
		key, err := ParseVerifierKey(ts.VerifierKey())
		require.NoError(rt, err)
		for _, c := range append(signed, c) {
			require.NoError(rt, c.Verify(key))
			require.Equal(rt, plainRoot(leaves[:c.Size]), c.Root)
			require.Equal(rt, ts.Identity().Origin(), c.Origin)
		}
		require.Equal(rt, uint64(len(leaves)), c.Size)
		raw, err := os.ReadFile(filepath.Join(ts.dir, checkpointFile))
		require.NoError(rt, err)
		require.Equal(rt, c.Note, raw)
	})
}

// BenchmarkTreeLeaf is what the tree costs a frame of an append: its leaf and,
// amortized, one inner node.
func BenchmarkTreeLeaf(b *testing.B) {
	var g treeGrowth
	for i := range b.N {
		g.add(leafHash(leafNative, sid(1), uint64(i), 1, Hash{byte(i)}))
		if i%4096 == 0 {
			g.nodes = nil // as a flush would
		}
	}
}
