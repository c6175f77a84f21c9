package eventlog

import (
	"fmt"
	"slices"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
)

// stage is a group of units on its way into one transaction. Units are
// checked one after the other against what the earlier ones left; a unit that
// is refused leaves nothing. What is staged becomes visible, to readers and
// to the state, only after the transaction was synced.
type stage struct {
	s      *Store
	tx     *bolt.Tx
	group  *changes
	unit   *changes // nil between units
	next   uint64   // position of the next frame
	bytes  uint64   // of the transaction
	lag    uint64   // bytes of its frames alone, which an open may have to fold
	totals Totals
	ids    map[uuid.UUID]*stagedIDs // ids staged in this group
}

// storedID locates an event id for the recognition of retries.
type storedID struct {
	id  uuid.UUID
	seq uint64
}

func newStage(s *Store, tx *bolt.Tx) *stage {
	s.st.mu.RLock()
	defer s.st.mu.RUnlock()
	for _, b := range [][]byte{bucketJournal, bucketContents} {
		tx.Bucket(b).FillPercent = 1 // keys only ever grow at the end
	}
	return &stage{s: s, tx: tx, group: newChanges(), next: s.st.next, totals: s.st.totals, ids: map[uuid.UUID]*stagedIDs{}}
}

func (st *stage) lookup(id uuid.UUID) (*entry, error) {
	if st.unit != nil {
		if e := st.unit.rows[id]; e != nil {
			return e, nil
		}
	}
	if e := st.group.rows[id]; e != nil {
		return e, nil
	}
	return st.s.st.lookup(id)
}

func (st *stage) byName(n name) (uuid.UUID, error) {
	if id, ok := st.group.names[n]; ok {
		return id, nil
	}
	return st.s.st.byName(n)
}

func (st *stage) link(k linkKey) (link, error) {
	if l, ok := st.group.links[k]; ok {
		return l, nil
	}
	return st.s.st.link(k)
}

func (st *stage) children(parent uuid.UUID) ([]uuid.UUID, error) {
	list, err := st.s.st.children(parent)
	if err != nil {
		return nil, err
	}
	set := map[uuid.UUID]bool{}
	for _, id := range list {
		set[id] = true
	}
	for k := range st.group.links {
		if k.parent == parent {
			set[k.child] = true
		}
	}
	return sortedIDs(set), nil
}

func (st *stage) frames(e *entry, seq uint64, limit int) ([]framePos, error) {
	return st.s.st.frames(e, seq, limit)
}

// frame returns a copy of a stored frame, those of earlier units included.
func (st *stage) frame(position uint64) ([]byte, error) {
	return getCopy(st.tx.Bucket(bucketJournal), positionKey(position))
}

func (st *stage) doubt(row *Row) error { return st.s.st.doubt(row) }

func (st *stage) loadContent(ev *Event, index uint32) {
	loadContent(st.tx, ev, index)
}

// draft is a frame without a position.
type draft struct {
	frame
	events []*pending
	seqs   []uint64 // prev_policy links of policy-bearing events, by event
	hashes []Hash   // chain hash after each event
}

// add stages one unit and returns its results. On an error nothing of the
// unit is staged.
func (st *stage) add(via Entry, batches []Batch, prepared [][]pending) ([]Result, error) {
	st.unit = newChanges()
	staged, next := false, st.next
	defer func() {
		st.unit = nil
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
	if err := st.put(drafts); err != nil {
		return nil, &putError{err}
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
	if (via == EntryStore) != (b.Session == StoreSession) {
		return nil, fmt.Errorf("%w: session %s: the store's own session is written by its own calls, and they write no other", ErrUnauthorized, b.Session)
	}
	if e == nil {
		if events[0].typ != TypeSessionCreated {
			return nil, notFound(b.Session)
		}
		e = &entry{row: Row{Session: b.Session}}
	} else {
		row := &e.row
		switch {
		case events[0].typ == TypeSessionCreated:
			return nil, fmt.Errorf("%w: session %s", ErrExists, b.Session)
		case len(row.Damage) > 0 && via != EntryImport:
			return nil, &CorruptError{Session: b.Session, Seq: row.Damage[0].From, Reason: row.Damage[0].Reason + "; the session is read only"}
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
	if via != EntryImport {
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
	if !row.Open || b.Epoch != 0 || via == EntryOperator || via == EntryDelegation || via == EntryImport {
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

// layOut assigns seqs, links and hashes and cuts the batch into frames:
// policy-bearing events in frames of their own, none over maxFrame.
func (st *stage) layOut(e *entry, events []pending) ([]*draft, error) {
	var drafts []*draft
	var d *draft
	var header, scratch []byte
	seq, hash, lastPolicy := e.row.Head, e.row.hashBefore(e.row.Session), e.row.LastPolicy
	for i := range events {
		p := &events[i]
		seq++
		header = appendHeader(header[:0], p, seq, lastPolicy)
		if len(header) > maxFrame-256 {
			return nil, &TooLargeError{What: "event header in bytes", Limit: maxFrame - 256, Size: uint64(len(header))}
		}
		if d == nil || len(d.headers)+len(header) > maxFrame-256 || d.count == MaxBatchEvents || p.policy != events[i-1].policy {
			d = &draft{frame: frame{session: e.row.Session, first: seq, prev: hash, lastPolicy: lastPolicy}}
			drafts = append(drafts, d)
		}
		d.headers = append(appendUvarint(d.headers, uint64(len(header))), header...)
		d.count++
		d.events = append(d.events, p)
		d.seqs = append(d.seqs, lastPolicy)
		hash, scratch = chainNext(hash, header, scratch)
		d.hashes = append(d.hashes, hash)
		if p.policy {
			lastPolicy = seq
			d.lastPolicy = seq
		}
	}
	// Fold now, so that a later batch of the unit sees this one; positions follow.
	position := st.next
	for _, d := range drafts {
		e.row.applyFrame(&d.frame, position)
		e.pending = append(e.pending, framePos{pos: position, first: d.first})
		for i, p := range d.events {
			ev := p.event(e.row.Session, d.first+uint64(i), d.seqs[i], position)
			e.row.apply(ev, d.hashes[i])
			st.relate(ev)
		}
		position++
	}
	st.next = position
	st.unit.rows[e.row.Session] = e
	return drafts, nil
}

// relate stages what an event says about names and links.
func (st *stage) relate(ev *Event) {
	relations(ev, func(n name, id uuid.UUID) { st.unit.names[n] = id }, func(k linkKey, l link) { st.unit.links[k] = l })
}

// relations derives names and links from an event; the index is rebuilt
// through the same function.
func relations(ev *Event, named func(name, uuid.UUID), linked func(linkKey, link)) {
	if ev.Inherited != nil {
		return
	}
	switch ev.Type {
	case TypeSessionCreated:
		c, err := ParseCreated(ev)
		if err != nil {
			return
		}
		if c.External != nil {
			named(name{nameExternal, c.External.IDHash}, ev.Session)
		}
		if c.Parent != uuid.Nil {
			linked(linkKey{c.Parent, ev.Session}, link{})
		}
	case TypeDelegationStarted:
		// The child's log says the same. Both count, so that a child whose
		// first frame was lost still leads to its own descendants.
		if ev.Source == SourceDelegation {
			linked(linkKey{ev.Session, ev.Facts.UUID("child")}, link{})
		}
	case TypeDelegationGranted:
		// An imported receipt names no key: a caller that retries under it would
		// be led to the foreign log and take its policy for the child's.
		if g, err := ParseGranted(ev); err == nil && ev.Source == SourceDelegation && !g.Key.IsZero() && g.Child == ev.Session {
			named(name{nameKey, g.Key}, ev.Session)
		}
	case TypeApprovalAsked:
		if ev.Source != SourceImport { // a foreign log may ask twice
			named(name{nameAsk, askHash(ev.Session, ev.Facts.Str("ask"))}, ev.Session)
		}
	case TypeNoticeConsumed:
		linked(linkKey{ev.Session, ev.Facts.UUID("child")}, link{Consumed: ev.Facts.Uint("settled_seq")})
	}
}

// put encodes the unit's frames and writes them into the transaction.
func (st *stage) put(drafts []*draft) error {
	journal, contents := st.tx.Bucket(bucketJournal), st.tx.Bucket(bucketContents)
	first := st.next - uint64(len(drafts))
	for i, d := range drafts {
		ids := st.ids[d.session]
		if ids == nil {
			ids = new(stagedIDs)
			st.ids[d.session] = ids
		}
		d.continues, d.framesLeft = i > 0, uint64(len(drafts)-1-i)
		position := first + uint64(i)
		raw := appendFrame(make([]byte, 0, len(d.headers)+256), &d.frame)
		if err := journal.Put(positionKey(position), raw); err != nil {
			return err
		}
		st.bytes += uint64(len(raw))
		st.lag += uint64(len(raw))
		for index, p := range d.events {
			for chunk, value := range p.chunks {
				if err := contents.Put(contentKey(position, uint32(index), uint32(chunk)), value); err != nil {
					return err
				}
				st.bytes += uint64(len(value))
			}
			if d.first == 1 && index == 0 {
				st.totals.Sessions++
			}
			ids.list = append(ids.list, storedID{p.id, d.first + uint64(index)})
		}
		st.totals.Events += d.count
		st.totals.Frames++
	}
	return nil
}

// finish sets the sequence that guards the journal's length.
func (st *stage) finish() error {
	return st.tx.Bucket(bucketJournal).SetSequence(st.next)
}

func notFound(session uuid.UUID) error {
	return fmt.Errorf("%w: session %s", ErrNotFound, session)
}
