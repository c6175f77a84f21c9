package eventlog

import (
	"context"
	"fmt"
	"math"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/mod/sumdb/tlog"
)

// LeafAt is the leaf of a position in the tree: that of its frame, or the one
// that the tombstone of a purged frame keeps. Errors: ErrNotFound (behind the
// last durable position), ErrCorrupt.
func (s *Store) LeafAt(position uint64) (leaf Hash, err error) {
	if err := s.usable(); err != nil {
		return leaf, err
	}
	if next := s.st.durable(); position >= next {
		return leaf, fmt.Errorf("%w: position %d, the journal ends before %d", ErrNotFound, position, next)
	}
	err = s.hashLeaves(position, position+1, func(_ uint64, h Hash) { leaf = h })
	return leaf, err
}

// lastLeaf is the leaf of the last position below next, zero if there is none.
func (s *Store) lastLeaf(next uint64) (leaf Hash, err error) {
	if next == 0 {
		return leaf, nil
	}
	err = s.hashLeaves(next-1, next, func(_ uint64, h Hash) { leaf = h })
	return leaf, err
}

// hashLeaves hashes the positions from..to-1, in one transaction: few of them.
func (s *Store) hashLeaves(from, to uint64, fn func(uint64, Hash)) error {
	return s.journal.view(func(tx *bolt.Tx) error {
		var scratch []byte
		return eachPosition(tx, from, to, func(position uint64, raw []byte) error {
			leaf, buf, err := leafOf(tx, position, raw, s.identity.Salvaged, scratch)
			if scratch = buf; err == nil {
				fn(position, leaf)
			}
			return err
		})
	})
}

// TreeHashes reads the tree over the first size positions, as the package tlog
// wants it: for roots, and for proofs of inclusion and consistency. Inner nodes
// come from the index, what lies below them from the frames; it fails rather
// than to guess one. The reader lives as long as the store is open and may be
// used by several goroutines.
//
// Errors: ErrNotFound (more than is durable), ErrStoreClosed; of the reader
// ErrCorrupt.
func (s *Store) TreeHashes(ctx context.Context, size uint64) (tlog.HashReader, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if next := s.st.durable(); size > next {
		return nil, fmt.Errorf("%w: a tree of %d positions, the journal has %d", ErrNotFound, size, next)
	}
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			level, n := tlog.SplitStoredHashIndex(index)
			if n < 0 || level > 62 || (n+1) > int64(size>>level) {
				return nil, fmt.Errorf("%w: node %d of level %d is not in a tree of %d", ErrNotFound, n, level, size)
			}
			h, err := s.node(ctx, treeNode{uint8(level), uint64(n)})
			if err != nil {
				return nil, err
			}
			out[i] = tlog.Hash(h)
		}
		return out, nil
	}), nil
}

// node is a complete inner node, or a leaf.
func (s *Store) node(ctx context.Context, t treeNode) (Hash, error) {
	if t.level < tileLevel {
		return s.tilePart(t)
	}
	if h, ok, err := s.st.node(t); ok || err != nil {
		return h, err
	}
	// An index that lacks a node is one of a store with damage before it, or
	// there is none yet: what it would be is decided by the leaves.
	if err := ctx.Err(); err != nil {
		return Hash{}, err
	}
	left, err := s.node(ctx, treeNode{t.level - 1, 2 * t.n})
	if err != nil {
		return Hash{}, err
	}
	right, err := s.node(ctx, treeNode{t.level - 1, 2*t.n + 1})
	return Hash(tlog.NodeHash(tlog.Hash(left), tlog.Hash(right))), err
}

// tilePart hashes the leaves below a node that is not stored.
func (s *Store) tilePart(t treeNode) (Hash, error) {
	var e treeEdge
	if err := s.hashLeaves(t.n<<t.level, (t.n+1)<<t.level, func(_ uint64, leaf Hash) { e.add(leaf, nil) }); err != nil {
		return Hash{}, err
	}
	return e.root()
}

// node looks up a stored inner node.
func (s *state) node(t treeNode) (h Hash, ok bool, err error) {
	s.mu.RLock()
	h, ok = s.nodes[t]
	s.mu.RUnlock()
	if ok || s.index == nil {
		return h, ok, nil
	}
	ok, err = s.index.get(bucketTree, t.key(), "tree", func(v []byte) error {
		if len(v) != len(h) {
			return &CorruptError{Reason: fmt.Sprintf("index: tree: want a hash of %d bytes, got %d", len(h), len(v))}
		}
		copy(h[:], v)
		return nil
	})
	return h, ok, err
}

// rootAt is the root of the tree over the first size positions.
func (s *Store) rootAt(ctx context.Context, size uint64) (Hash, error) {
	s.st.mu.RLock()
	edge := s.st.tree.clone()
	s.st.mu.RUnlock()
	if size == edge.size {
		return edge.root()
	}
	if size > math.MaxInt64 {
		return Hash{}, fmt.Errorf("%w: a tree of %d positions", ErrNotFound, size)
	}
	r, err := s.TreeHashes(ctx, size)
	if err != nil {
		return Hash{}, err
	}
	root, err := tlog.TreeHash(int64(size), r)
	return Hash(root), err
}
