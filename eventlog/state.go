package eventlog

import (
	"maps"
	"sync"

	"github.com/google/uuid"
)

// nameSpace keeps external ids, idempotency keys and asks apart in one table.
type nameSpace byte

const (
	nameExternal nameSpace = 'x'
	nameKey      nameSpace = 'k'
	nameAsk      nameSpace = 'a' // of a session's code, as the next two: leads to the seq of the question
	nameDecided  nameSpace = 'd' // to that of its decision
	nameCall     nameSpace = 'c' // to that of the newest decision on a call
	nameBatch    nameSpace = 'b' // to that of the first event of a batch that has a key
	namePurged   nameSpace = 'p' // of a session id: leads to its session/purged, see purgedName
)

type name struct {
	space nameSpace
	hash  Hash
}

// link is what a parent's state keeps of a child.
type link struct {
	Consumed uint64 // settled_seq of the last notice the parent consumed
}

// linkKey leads from a session to its child or, with copies, to one whose seed
// holds copies of its events: its fork, or who adopted it.
type linkKey struct {
	parent, child uuid.UUID
	copies        bool
}

// framePos locates a frame of a session.
type framePos struct{ pos, first uint64 }

// entry is a session's state in memory and is never changed once published.
// The positions of its first flushed frames are in the index; pending goes on
// from there. Versions of an entry share pending's array: only the committer
// appends, and nobody reads past the length of the version it holds.
type entry struct {
	row     Row
	flushed uint64
	pending []framePos
}

// changes is a set of new values over some base: what a unit or a group has
// staged, or what the index does not cover yet.
type changes struct {
	rows  map[uuid.UUID]*entry
	names map[name]uuid.UUID
	links map[linkKey]link
	gone  map[uuid.UUID]Totals // sessions that were purged, and what they counted; nil: none
}

func newChanges() *changes {
	return &changes{rows: map[uuid.UUID]*entry{}, names: map[name]uuid.UUID{}, links: map[linkKey]link{}}
}

// state is the writer's and the readers' view of every session: the overlay
// of what the index does not cover, over the index. Everything in it is
// durable; it is replaced group by group, never event by event.
type state struct {
	flushMu sync.Mutex // one flush at a time
	mu      sync.RWMutex
	over    *changes
	index   *index // nil: everything is in the overlay
	next    uint64 // position after the last durable frame
	covered uint64 // positions below are in the index
	bytes   uint64 // of frames that the index does not cover
	totals  Totals
	lost    []uint64 // positions of frames that no session could be found for
	unsure  string   // why any session may have lost its newest events, "" if none

	tree       treeEdge          // over the positions below next
	nodes      map[treeNode]Hash // of the tree, that the index does not have
	rolledBack *RollbackError    // the store is not what it was: it is read, and grants nothing
}

// Totals counts the store.
type Totals struct {
	Sessions, Events, Frames uint64
}

// lookup returns the session's state, nil if it has none. The entry is shared:
// read only.
func (s *state) lookup(id uuid.UUID) (*entry, error) { return s.find(id, true) }

func (s *state) find(id uuid.UUID, verified bool) (*entry, error) {
	s.mu.RLock()
	e := s.over.rows[id]
	_, gone := s.over.gone[id]
	s.mu.RUnlock()
	if e != nil || gone || s.index == nil {
		return e, nil
	}
	row, err := s.index.row(id, verified)
	if err != nil || row == nil {
		return nil, err
	}
	return &entry{row: *row, flushed: row.Frames}, nil
}

func (s *state) byName(n name) (uuid.UUID, error) {
	s.mu.RLock()
	id, ok := s.over.names[n]
	s.mu.RUnlock()
	if ok || s.index == nil {
		return id, nil
	}
	return s.index.byName(n)
}

func (s *state) link(k linkKey) (link, error) {
	s.mu.RLock()
	l, ok := s.over.links[k]
	s.mu.RUnlock()
	if ok || s.index == nil {
		return l, nil
	}
	return s.index.link(k)
}

// children lists a session's children in id order.
func (s *state) children(parent uuid.UUID) ([]uuid.UUID, error) { return s.linked(parent, false) }

// linked lists a session's children, or the sessions with copies of its events.
func (s *state) linked(parent uuid.UUID, copies bool) ([]uuid.UUID, error) {
	set := map[uuid.UUID]bool{}
	s.mu.RLock()
	for k := range s.over.links {
		if k.parent == parent && k.copies == copies {
			set[k.child] = true
		}
	}
	s.mu.RUnlock()
	if s.index != nil {
		if err := s.index.linked(parent, copies, func(child uuid.UUID) { set[child] = true }); err != nil {
			return nil, err
		}
	}
	return sortedIDs(set), nil
}

// frames returns up to limit frame positions of the entry, from the frame
// that holds seq on.
func (s *state) frames(e *entry, seq uint64, limit int) ([]framePos, error) {
	var out []framePos
	if e.flushed > 0 && (len(e.pending) == 0 || seq < e.pending[0].first) {
		if s.index == nil {
			return nil, &CorruptError{Session: e.row.Session, Reason: "index rows without an index"}
		}
		var err error
		if out, err = s.index.frames(e.row.Session, e.flushed, seq, limit); err != nil {
			return nil, err
		}
	}
	for i, p := range e.pending {
		if len(out) >= limit {
			break
		}
		if i+1 < len(e.pending) && e.pending[i+1].first <= seq {
			continue
		}
		out = append(out, p)
	}
	return out, nil
}

// grow begins what a group adds to the tree. Only the one writer calls it.
func (s *state) grow() *treeGrowth { return &treeGrowth{edge: s.tree.clone()} }

// apply publishes a durable group; tree has a leaf more for each of its
// positions, and is nil in a fold that needs no tree.
func (s *state) apply(c *changes, tree *treeGrowth, next, bytes uint64, totals Totals) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over.absorb(c)
	if tree != nil {
		s.tree = tree.edge
		maps.Copy(s.nodes, tree.nodes)
	}
	s.next = next
	s.bytes += bytes
	s.totals = totals
}

func (s *state) lag() (frames, bytes uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.next - s.covered, s.bytes
}

// durable is the position after the last durable frame.
func (s *state) durable() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.next
}
