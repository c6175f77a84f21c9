package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
)

// stage checks units one after the other against what the earlier ones left,
// durable or not: the unit itself, the group being staged, the group that the
// writer has in hand, the store. A unit that is refused leaves nothing. What is
// staged becomes visible, to readers and to the state, only after the
// transaction that holds it was synced.
//
// A stage belongs to the committer. It writes nothing: while one group is being
// synced the next one is staged on top of it.
type stage struct {
	s      *Store
	flight *group // handed to the writer, its outcome not known yet; nil: none
	group  *group
	unit   *changes // nil between units
	spare  *changes // an emptied unit, used again
	next   uint64   // position of the next frame

	ids map[uuid.UUID]*stagedIDs

	event                    Event // the one being folded
	header, headers, scratch []byte
}

func newStage(s *Store, flight *group) *stage {
	st := &stage{s: s, spare: newChanges()}
	st.begin(flight)
	return st
}

// begin starts a group on top of flight, nil if nothing is in flight.
func (st *stage) begin(flight *group) {
	st.flight, st.ids = flight, map[uuid.UUID]*stagedIDs{}
	if flight != nil {
		st.group = newGroup(flight.next, flight.totals, &treeGrowth{edge: flight.tree.edge.clone()})
	} else {
		st.s.st.mu.RLock()
		st.group = newGroup(st.s.st.next, st.s.st.totals, st.s.st.grow())
		st.s.st.mu.RUnlock()
	}
	st.next = st.group.first
}

// layers calls fn with what earlier units left that is not durable yet, newest
// first, until it returns true.
func (st *stage) layers(fn func(*changes) bool) bool {
	return fn(st.group.changes) || st.flight != nil && fn(st.flight.changes)
}

func (st *stage) lookup(id uuid.UUID) (e *entry, err error) {
	if st.unit != nil {
		if e := st.unit.rows[id]; e != nil {
			return e, nil
		}
	}
	if st.layers(func(c *changes) bool {
		_, gone := c.gone[id]
		e = c.rows[id]
		return e != nil || gone
	}) {
		return e, nil
	}
	return st.s.st.lookup(id)
}

func (st *stage) byName(n name) (id uuid.UUID, err error) {
	if st.layers(func(c *changes) (ok bool) { id, ok = c.names[n]; return ok }) {
		return id, nil
	}
	return st.s.st.byName(n)
}

func (st *stage) link(k linkKey) (l link, err error) {
	if st.layers(func(c *changes) (ok bool) { l, ok = c.links[k]; return ok }) {
		return l, nil
	}
	return st.s.st.link(k)
}

func (st *stage) children(parent uuid.UUID) ([]uuid.UUID, error) { return st.linked(parent, false) }

func (st *stage) linked(parent uuid.UUID, copies bool) ([]uuid.UUID, error) {
	list, err := st.s.st.linked(parent, copies)
	if err != nil {
		return nil, err
	}
	set := map[uuid.UUID]bool{}
	for _, id := range list {
		set[id] = true
	}
	st.layers(func(c *changes) bool {
		for k := range c.links {
			if k.parent == parent && k.copies == copies {
				set[k.child] = true
			}
		}
		return false
	})
	return sortedIDs(set), nil
}

func (st *stage) frames(e *entry, seq uint64, limit int) ([]framePos, error) {
	return st.s.st.frames(e, seq, limit)
}

// draft returns the staged frame at a position, nil if it is durable or absent.
func (st *stage) draft(position uint64) *draft {
	if d := st.group.draft(position); d != nil || st.flight == nil {
		return d
	}
	return st.flight.draft(position)
}

// frame returns a frame, those of earlier units included.
func (st *stage) frame(position uint64) ([]byte, error) {
	if d := st.draft(position); d != nil {
		return d.raw, nil
	}
	var raw []byte
	err := st.s.journal.view(func(tx *bolt.Tx) (err error) {
		raw, err = txSource{st.s.st, tx}.frame(position)
		return err
	})
	return raw, err
}

func (st *stage) peek(position uint64, fn func(raw []byte) error) error {
	raw, err := st.frame(position)
	if err != nil {
		return err
	}
	return fn(raw)
}

func (st *stage) doubt(row *Row) error { return st.s.st.doubt(row) }

func (st *stage) content(ev *Event, index uint32) {
	if d := st.draft(ev.Position); d != nil {
		if !ev.HasContent {
			return
		}
		chunks := d.events[index].chunks // not the caller's bytes, which may be the caller's again
		content, _, err := readContent(ev, index, func(key []byte) []byte {
			if i := binary.BigEndian.Uint32(key[12:]); int(i) < len(chunks) {
				return chunks[i]
			}
			return nil // a foreign content that was withheld
		})
		if ev.Content = content; err != nil {
			ev.ContentErr = err
		}
		return
	}
	if err := st.s.journal.view(func(tx *bolt.Tx) error { loadContent(tx, ev, index); return nil }); err != nil {
		ev.ContentErr = err
	}
}

func (st *stage) salt(ev *Event, index uint32) (salt Salt, err error) {
	if d := st.draft(ev.Position); d != nil {
		return d.events[index].salt, nil
	}
	err = st.s.journal.view(func(tx *bolt.Tx) (err error) { salt, err = storedSalt(tx, ev, index); return err })
	return salt, err
}

// add stages one unit and returns its results. On an error nothing of the
// unit is staged.
func (st *stage) add(via Entry, batches []Batch, prepared [][]pending) ([]Result, error) {
	st.unit = st.spare
	staged, next := false, st.next
	defer func() {
		if st.unit, st.headers = nil, st.headers[:0]; cap(st.headers) > maxFrame {
			st.headers = nil
		}
		st.spare.clear()
		if !staged {
			st.next = next
		}
	}()
	results := make([]Result, len(batches))
	var before []*entry // what authorize compares with
	if via != entryHarness {
		before = make([]*entry, len(batches))
	}
	var drafts []*draft
	for i := range batches {
		b := &batches[i]
		if st.unit.rows[b.Session] != nil {
			return nil, invalidf("session %s is named twice in one unit", b.Session)
		}
		e, err := st.lookup(b.Session)
		if err != nil {
			return nil, err
		}
		if e != nil {
			if res, found, err := st.retried(e, b, prepared[i]); found || err != nil {
				if err == nil && len(batches) > 1 {
					err = &ConflictError{Session: b.Session, Expected: b.Expect.seq, Actual: e.row.Head}
				}
				return []Result{res}, err
			}
		}
		if before != nil {
			before[i] = e
		}
		if e, err = st.admit(via, e, b, prepared[i]); err != nil {
			return nil, err
		}
		results[i] = Result{Session: b.Session, FirstSeq: e.row.Head + 1}
		more, err := st.layOut(e, prepared[i])
		if err != nil {
			return nil, err
		}
		drafts = append(drafts, more...)
	}
	if err := st.authorize(via, batches, prepared, before); err != nil {
		return nil, err
	}
	if err := checkLimit("frames of an atomic unit", len(drafts), st.s.limits.UnitFrames); err != nil {
		return nil, err
	}
	if err := st.checkRoom(via, prepared, drafts); err != nil {
		return nil, err
	}
	st.group.put(drafts, st.next)
	for i := range batches {
		st.group.erasing.contents = append(st.group.erasing.contents, batches[i].erase...)
		st.group.erasing.condemn = append(st.group.erasing.condemn, batches[i].condemn...)
	}
	for _, counted := range st.unit.gone {
		st.group.totals.less(counted)
	}
	for i := range results {
		row := &st.unit.rows[results[i].Session].row
		results[i].LastSeq, results[i].Hash, results[i].Position = row.Head, row.Hash, row.LastPos
	}
	st.group.absorb(st.unit)
	staged = true
	return results, nil
}

// admit checks a batch against its session, in the order of the contract:
// closed, fenced, expected seq, asks. (A retry was recognized before; what the
// entry point may not write, a widening among it, is refused after, see
// authorize.) It returns a copy to fold into.
func (st *stage) admit(via Entry, e *entry, b *Batch, events []pending) (*entry, error) {
	if (via == EntryStore || via == entryForeign && b.foreign == nil) != (b.Session == StoreSession) && via != EntryErase {
		return nil, fmt.Errorf("%w: session %s: the store's own session is written by its own calls, and they write no other", ErrUnauthorized, b.Session)
	}
	if e == nil {
		if gone := st.absent(b.Session); events[0].typ != TypeSessionCreated {
			return nil, gone
		} else if errors.Is(gone, ErrPurged) {
			return nil, fmt.Errorf("%w: %w; its id is not used again", ErrExists, gone)
		} else if !errors.Is(gone, ErrNotFound) {
			return nil, gone
		}
		e = &entry{row: Row{Session: b.Session}}
	} else {
		row := &e.row
		switch {
		case events[0].typ == TypeSessionCreated:
			return nil, fmt.Errorf("%w: session %s", ErrExists, b.Session)
		case row.Imported != (b.foreign != nil):
			return nil, notForeign(row, via)
		case len(row.Damage) > 0 && via != EntryImport:
			return nil, &CorruptError{Session: b.Session, Seq: row.Damage[0].From, Reason: row.Damage[0].Reason + "; the session is read only"}
		case via == EntryErase: // of what is closed or imported too: it is for those who keep the records
		case b.foreign != nil: // it ends where it ended in the other store
		case row.Evidence != (via == EntryImport):
			if row.Evidence {
				return nil, fmt.Errorf("%w: session %s was imported", ErrEvidence, b.Session)
			}
			return nil, fmt.Errorf("%w: session %s is native and takes no imported events", ErrUnauthorized, b.Session)
		case row.ClosedSeq != 0 && !onlyNotices(events):
			return nil, fmt.Errorf("%w: session %s was closed at seq %d", ErrSessionClosed, b.Session, row.ClosedSeq)
		}
		// A frame that was lost may have been this session's newest. Going on
		// from the one before would bury it, and with it perhaps a narrowing.
		if err := st.doubt(row); err != nil {
			return nil, err
		}
		if err := fence(via, row, b, events); err != nil {
			return nil, err
		}
	}
	if i := slices.IndexFunc(events[1:], func(p pending) bool { return p.typ == TypeSessionCreated && p.inherited == nil }); i >= 0 {
		return nil, invalidf("event %d: %s is the first event of a session", i+2, TypeSessionCreated)
	}
	if !b.Expect.any && b.Expect.seq != e.row.Head {
		return nil, &ConflictError{Session: b.Session, Expected: b.Expect.seq, Actual: e.row.Head}
	}
	if b.foreign != nil {
		if err := follows(&e.row, events); err != nil {
			return nil, err
		}
	} else if via != EntryImport {
		if err := st.checkAsks(&e.row, events); err != nil {
			return nil, err
		}
	}
	clone := *e
	return &clone, nil
}

// onlyNotices lets a closed parent still consume what its children left.
func onlyNotices(events []pending) bool {
	return !slices.ContainsFunc(events, func(p pending) bool { return p.typ != TypeNoticeConsumed })
}

// fence refuses an append whose epoch is not the open activation's. Operator
// events, queued messages and interrupts are exempt: they come from outside
// the activation. So is a delegation that names no epoch, for the same reason.
func fence(via Entry, row *Row, b *Batch, events []pending) error {
	if b.Epoch != 0 && (b.Epoch != row.Epoch || !row.Open) {
		return &FencedError{Session: b.Session, Got: b.Epoch, Open: row.Epoch}
	}
	if !row.Open || b.Epoch != 0 || via == EntryOperator || via == EntryDelegation || via == EntryImport || via == EntryErase || via == entryForeign {
		return nil
	}
	for i := range events {
		switch events[i].typ {
		case TypeInboxQueued, TypeControlInterrupt, TypeActivationStarted, TypeNoticeConsumed:
		default:
			if events[0].typ == TypeActivationStarted {
				continue // a new activation supersedes and closes what the old one left
			}
			return &FencedError{Session: b.Session, Open: row.Epoch}
		}
	}
	return nil
}

func notFound(session uuid.UUID) error {
	return fmt.Errorf("%w: session %s", ErrNotFound, session)
}
