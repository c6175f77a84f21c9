package pagecheck

import (
	"encoding/binary"
	"fmt"
)

const unknownHeight = -1

// tree is the walk of one bucket.
type tree struct {
	// height is the depth of the leaves below the bucket's root. All leaves of
	// a bucket are equally deep, as bbolt splits and merges pages at one level.
	height int
	// byID: pages at height are leaves and are not read, except for the last: a
	// key that is put at the end goes there. bbolt searches and sorts by the keys
	// that it finds, so one that is out of order hides what is put behind it, and
	// makes it free pages that are in use.
	byID bool
	// leaf gets each leaf that is read, after its own checks. The page is valid
	// until leaf returns or loads another.
	leaf func(at ref, p page, t *table) error
}

// ref is a place that refers to a page.
type ref struct {
	id   uint64
	from uint64 // the branch that refers to it
	what string // for the first page of something, instead of from and keys
	keys keyRange
	// depth counts from the bucket's root, level from the first bucket that
	// this one is nested in.
	depth, level int
	// On the left or right edge of the bucket.
	left, right bool
}

func (r ref) String() string {
	if r.what != "" {
		return r.what
	}
	return fmt.Sprintf("page %d for %v", r.from, r.keys)
}

// top is the ref to the root page of a bucket.
func top(root uint64, what string) ref {
	return ref{id: root, what: what, left: true, right: true}
}

func (in *inspector) visit(t *tree, at ref) error {
	if err := in.ctx.Err(); err != nil {
		return err
	}
	if !in.claim(at) {
		return nil
	}
	if t.byID && at.depth == t.height && !at.right {
		in.rep.Leaves++
		in.leaves.add(at.id)
		if at.left {
			in.peekLeaf(at.id)
		}
		return nil
	}
	if at.level >= maxLevels {
		in.probs.add(at.id, KindTooDeep, "%d branches lead to the page, want at most %d", at.level, maxLevels)
		return nil
	}
	in.pageStart = in.probs.total()
	p, ok := in.load(at)
	if !ok {
		return nil
	}
	tab := &in.tables[at.level]
	var problem string
	*tab, problem = newTable(p.buf, p.count, p.flags == flagLeaf, false)
	if problem != "" {
		in.probs.add(p.id, KindCountMismatch, "%s", problem)
	}
	if tab.n == 0 && (p.flags == flagBranch || at.depth > 0) && problem == "" {
		in.probs.add(p.id, KindCountMismatch, "%s without elements, named by %v", typeName(p.flags), at)
	}
	in.checkElements(p.id, tab, at.keys, false)
	in.checkSize(p, tab)
	if p.flags == flagBranch {
		return in.branch(t, at, p, tab)
	}
	return in.leaf(t, at, p, tab)
}

func (in *inspector) branch(t *tree, at ref, p page, tab *table) error {
	in.rep.Branches++
	if t.height != unknownHeight && at.depth >= t.height {
		in.probs.add(p.id, KindWrongType, "branch at depth %d, want a leaf as elsewhere in the bucket", at.depth)
	}
	for i := range tab.n {
		e, ok := tab.element(i)
		// An element with damaged key bounds still names a page; what it names
		// has to state its own id.
		keys := at.keys
		if ok {
			keys.lower = tab.key(e)
		}
		if i+1 < tab.n {
			if next, ok := tab.element(i + 1); ok {
				keys.upper = tab.key(next)
			}
		}
		err := in.visit(t, ref{
			id: e.child, from: p.id, keys: keys,
			depth: at.depth + 1, level: at.level + 1,
			left: at.left && i == 0, right: at.right && i == tab.n-1,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (in *inspector) leaf(t *tree, at ref, p page, tab *table) error {
	in.rep.Leaves++
	switch {
	case t.height == unknownHeight:
		t.height = at.depth
	case t.height != at.depth:
		in.probs.add(p.id, KindWrongType, "leaf at depth %d, want depth %d as elsewhere in the bucket", at.depth, t.height)
	}
	if t.byID {
		in.leaves.add(p.id)
	}
	if t.leaf == nil {
		return nil
	}
	return t.leaf(at, p, tab)
}

// height finds the depth of a bucket's leaves without reading one: down the left
// and the right edge, 32 bytes a page. When the edges disagree a damaged page made
// one of them end too early, and the longer one is right. It adds no problems;
// the pages are met again by the walk.
func (in *inspector) height(root uint64) int {
	return max(in.edge(root, false), in.edge(root, true))
}

func (in *inspector) edge(id uint64, right bool) int {
	for depth := range maxLevels {
		if id < firstDataPage || id >= in.src.limit {
			return unknownHeight
		}
		buf := in.small[:]
		if in.src.read(buf, id, 0) != nil {
			return unknownHeight
		}
		h := decodeHeader(buf)
		entry := buf[headerSize:]
		switch {
		case h.id != id:
			return unknownHeight
		case h.flags == flagLeaf:
			return depth
		case h.flags != flagBranch || h.count == 0:
			return unknownHeight
		}
		if right {
			off := headerSize + elementSize*(uint64(h.count)-1)
			if id+(off+elementSize-1)/in.src.pageSize >= in.src.limit || in.src.read(entry, id, off) != nil {
				return unknownHeight
			}
		}
		id = binary.LittleEndian.Uint64(entry[8:])
	}
	return unknownHeight
}
