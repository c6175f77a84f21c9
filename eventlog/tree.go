package eventlog

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/mod/sumdb/tlog"
)

// The tree is the Merkle tree of RFC 6962 section 2.1 over the positions of the
// journal, in their order. What stands at a position decides its leaf:
//
//	frame      SHA-256(0x00 | 0x01 | session | first seq u64be | count u32be | chain hash after)
//	imported   the same with 0x03 in place of 0x01: a frame that came from another store (foreign.go)
//	tombstone  the leaf of the purged frame, which the tombstone holds
//	lost       SHA-256(0x00 | 0x02 | position u64be)
//
// The first byte is RFC 6962's prefix of a leaf, the second tells the kinds
// apart, so that no frame can pass for a loss or the other way round. A position
// is lost where salvage left a mark, or a hole in a store that says that it was
// salvaged; a hole in any other store is damage, and has no leaf. What is lost is
// so stated in the tree and can't come back unseen.
//
// Of the inner nodes those from tileLevel up are kept in the index, one for
// every 256 leaves and their ancestors, about 64 bytes in all; those below are
// hashed again from at most 255 frames. They are derived: a check hashes the
// whole journal and looks at none of them.
const tileLevel = 8

// lostLeaf is the leaf of a position whose frame is known to be lost.
func lostLeaf(position uint64) Hash {
	var b [1 + 1 + 8]byte
	b[1] = leafLost
	binary.BigEndian.PutUint64(b[2:], position)
	return Hash(tlog.RecordHash(b[1:]))
}

// frameLeaf is the leaf of a stored frame. It checks the envelope and follows
// the chain over the headers without decoding them. scratch is returned for
// reuse.
func frameLeaf(raw, scratch []byte) (Hash, []byte, error) {
	f, err := decodeFrame(raw)
	if err != nil {
		return Hash{}, scratch, err
	}
	hash, rest := f.prev, f.headers
	for i := range f.count {
		n, k, err := readUvarint(rest)
		if err != nil || n > uint64(len(rest)-k) {
			return Hash{}, scratch, fmt.Errorf("frame: header %d: length %d of %d bytes left", i, n, len(rest)-k)
		}
		hash, scratch = chainNext(hash, rest[k:k+int(n)], scratch)
		rest = rest[k+int(n):]
	}
	return f.leaf(hash), scratch, nil
}

// leafOf is the leaf of a position. raw is what the journal holds there, nil
// if nothing. Errors: ErrCorrupt, if nothing says what stood there.
func leafOf(tx *bolt.Tx, position uint64, raw []byte, salvaged bool, scratch []byte) (Hash, []byte, error) {
	if raw == nil {
		purged, err := getCopy(tx.Bucket(bucketTombstones), positionKey(position))
		switch {
		case err != nil:
			return Hash{}, scratch, err
		case purged != nil:
			leaf, err := purgedLeaf(position, purged)
			return leaf, scratch, err
		case salvaged:
			return lostLeaf(position), scratch, nil
		}
		return Hash{}, scratch, corruptf(position, "no frame and no tombstone")
	}
	if isMark(raw) {
		return lostLeaf(position), scratch, nil
	}
	leaf, scratch, err := frameLeaf(raw, scratch)
	if err != nil {
		err = corruptf(position, "%v", err)
	}
	return leaf, scratch, err
}

// purgedLeaf reads a tombstone.
func purgedLeaf(position uint64, tombstone []byte) (leaf Hash, err error) {
	if len(tombstone) < len(leaf) {
		return leaf, corruptf(position, "tombstone: want a leaf hash of %d bytes, got %d", len(leaf), len(tombstone))
	}
	return Hash(tombstone[:len(leaf)]), nil
}

// treeNode names an inner node: at level l the n-th covers the leaves from
// n<<l to (n+1)<<l - 1.
type treeNode struct {
	level uint8
	n     uint64
}

func (t treeNode) key() []byte {
	return binary.BigEndian.AppendUint64([]byte{t.level}, t.n)
}

// treeEdge is the right edge of a tree: the roots of the perfect subtrees that
// its size is the sum of, which is all that its root and its growth need. The
// zero value is the empty tree.
type treeEdge struct {
	size  uint64
	nodes []Hash // by level; that of level l counts if bit l of size is set
	err   error  // a leaf could not be read: there is no root from there on
}

// add appends a leaf. grown, if not nil, is given each inner node from tileLevel
// up that is complete with it.
func (e *treeEdge) add(leaf Hash, grown func(treeNode, Hash)) {
	h, level := leaf, 0
	for n := e.size; n&1 == 1; n >>= 1 {
		h = Hash(tlog.NodeHash(tlog.Hash(e.nodes[level]), tlog.Hash(h)))
		if level++; level >= tileLevel && grown != nil {
			grown(treeNode{uint8(level), n >> 1}, h)
		}
	}
	if level == len(e.nodes) {
		e.nodes = append(e.nodes, h)
	} else {
		e.nodes[level] = h
	}
	e.size++
}

// spoil notes that the leaf at the edge can't be read. The first reason stays.
func (e *treeEdge) spoil(err error) {
	if e.err == nil {
		e.err = err
	}
	e.add(Hash{}, nil)
}

// root is the hash of the tree's head. Errors: ErrCorrupt.
func (e *treeEdge) root() (Hash, error) {
	if e.err != nil {
		return Hash{}, e.err
	}
	var h tlog.Hash
	for level, first := 0, true; level < len(e.nodes); level++ {
		switch {
		case e.size>>level&1 == 0:
		case first:
			h, first = tlog.Hash(e.nodes[level]), false
		default:
			h = tlog.NodeHash(tlog.Hash(e.nodes[level]), h)
		}
	}
	if e.size == 0 {
		h, _ = tlog.TreeHash(0, nil) // the hash of nothing
	}
	return Hash(h), nil
}

// treeGrowth is an edge on its way, with the inner nodes that it completed.
type treeGrowth struct {
	edge  treeEdge
	nodes map[treeNode]Hash
}

func (g *treeGrowth) add(leaf Hash) {
	g.edge.add(leaf, func(n treeNode, h Hash) {
		if g.nodes == nil {
			g.nodes = map[treeNode]Hash{}
		}
		g.nodes[n] = h
	})
}

// note adds the leaf of a position that was read, or that could not be.
func (g *treeGrowth) note(leaf Hash, err error) {
	if err != nil {
		g.edge.spoil(err)
		return
	}
	g.add(leaf)
}

func (e *treeEdge) clone() treeEdge {
	return treeEdge{size: e.size, nodes: slices.Clone(e.nodes), err: e.err}
}

// restoredEdge is the edge of size leaves that an index kept. A store with a
// frame that could not be read has none.
func restoredEdge(size uint64, nodes []Hash) treeEdge {
	e := treeEdge{size: size, nodes: slices.Clone(nodes)}
	if n := bits.Len64(size); len(nodes) != n {
		e.nodes = make([]Hash, n)
		e.err = &CorruptError{Reason: fmt.Sprintf("a frame below position %d could not be read when the index was made", size)}
	}
	return e
}
