package bundle

import (
	"crypto/sha256"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"childlog/eventlog"
)

// node is a full subtree of the RFC 6962 tree over positions: of 2^level leaves,
// the first at index<<level.
type node struct {
	level uint8
	index uint64
	hash  eventlog.Hash
}

func (n node) first() uint64 { return n.index << n.level }

// maxLevel bounds subtrees, so that no shift overflows.
const maxLevel = 62

func parent(left, right node) node {
	h := tlog.NodeHash(tlog.Hash(left.hash), tlog.Hash(right.hash))
	return node{left.level + 1, left.index >> 1, eventlog.Hash(h)}
}

// frontier is a tree that grows at its end: the full subtrees that its size is
// made of, the largest first. It takes leaves and whole subtrees, and holds at
// most one for each bit of the size.
type frontier struct {
	size  uint64
	nodes []node
}

// add takes the next leaf or subtree. It must begin where the tree ends.
func (t *frontier) add(n node) error {
	if n.level > maxLevel || n.index > 1<<(maxLevel-n.level) || n.first() != t.size {
		return fmt.Errorf("a subtree of level %d at index %d does not begin at position %d", n.level, n.index, t.size)
	}
	t.size += 1 << n.level
	t.nodes = append(t.nodes, n)
	for k := len(t.nodes); k > 1 && t.nodes[k-2].level == t.nodes[k-1].level; k = len(t.nodes) {
		t.nodes = append(t.nodes[:k-2], parent(t.nodes[k-2], t.nodes[k-1]))
	}
	return nil
}

// root is the tree's root hash.
func (t *frontier) root() eventlog.Hash {
	k := len(t.nodes)
	if k == 0 {
		return sha256.Sum256(nil)
	}
	h := t.nodes[k-1].hash
	for i := k - 2; i >= 0; i-- {
		h = eventlog.Hash(tlog.NodeHash(tlog.Hash(t.nodes[i].hash), tlog.Hash(h)))
	}
	return h
}

// gap gathers a run of leaves that are not handed on into the largest subtrees
// that it is made of.
type gap struct{ nodes []node }

func (g *gap) add(n node) {
	g.nodes = append(g.nodes, n)
	for k := len(g.nodes); k > 1 && g.nodes[k-2].level == g.nodes[k-1].level && g.nodes[k-2].index%2 == 0; k = len(g.nodes) {
		g.nodes = append(g.nodes[:k-2], parent(g.nodes[k-2], g.nodes[k-1]))
	}
}
