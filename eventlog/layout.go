package eventlog

import (
	"github.com/google/uuid"
)

// draft is a frame on its way to its position.
type draft struct {
	frame
	events []*pending
	seqs   []uint64 // prev_policy links of policy-bearing events, by event
	hashes []Hash   // chain hash after each event
	raw    []byte   // encoded, once the unit was admitted

	one struct { // of the usual frame
		event [1]*pending
		seq   [1]uint64
		hash  [1]Hash
	}
}

func newDraft(f frame) *draft {
	d := &draft{frame: f}
	d.events, d.seqs, d.hashes = d.one.event[:0], d.one.seq[:0], d.one.hash[:0]
	return d
}

// layOut assigns seqs, links and hashes and cuts the batch into frames:
// policy-bearing events in frames of their own, none over maxFrame.
func (st *stage) layOut(e *entry, events []pending) ([]*draft, error) {
	var drafts []*draft
	var d *draft
	var start int // of its headers in those of the unit
	header, scratch := st.header, st.scratch
	defer func() { st.header, st.scratch = header, scratch }()
	seq, hash, lastPolicy := e.row.Head, e.row.hashBefore(e.row.Session), e.row.LastPolicy
	for i := range events {
		p := &events[i]
		seq++
		if header = header[:0]; p.foreign != nil {
			header = append(header, p.foreign.header...)
		} else {
			header = appendHeader(header, p, seq, lastPolicy)
		}
		if len(header) > maxFrame-256 {
			return nil, &TooLargeError{What: "event header in bytes", Limit: maxFrame - 256, Size: uint64(len(header))}
		}
		if d == nil || len(d.headers)+len(header) > maxFrame-256 || d.count == MaxBatchEvents || p.policy != events[i-1].policy {
			d = newDraft(frame{imported: p.foreign != nil, session: e.row.Session, first: seq, prev: hash, lastPolicy: lastPolicy})
			drafts, start = append(drafts, d), len(st.headers)
		}
		st.headers = append(appendUvarint(st.headers, uint64(len(header))), header...)
		d.headers = st.headers[start:len(st.headers):len(st.headers)]
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
	if e.row.Session == StoreSession {
		if err := st.dropPurged(drafts); err != nil {
			return nil, err
		}
	}
	// Fold now, so that a later batch of the unit sees this one; positions follow.
	position := st.next
	for _, d := range drafts {
		e.row.applyFrame(&d.frame, position)
		e.pending = append(e.pending, framePos{pos: position, first: d.first})
		for i, p := range d.events {
			p.fill(&st.event, e.row.Session, d.first+uint64(i), d.seqs[i], position)
			e.row.apply(&st.event, d.hashes[i])
			st.relate(&st.event)
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
		if ev.Inherited.Session != ev.Session { // an order to erase looks there; nothing else rests on it
			linked(linkKey{parent: ev.Inherited.Session, child: ev.Session, copies: true}, link{})
		}
		return
	}
	if ev.Imported && ev.Type != TypeSessionCreated {
		return // what a log from elsewhere says of others binds nobody here
	}
	ev.codes(named)
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
			linked(linkKey{parent: c.Parent, child: ev.Session}, link{})
		}
	case TypeDelegationStarted:
		// The child's log says the same. Both count, so that a child whose
		// first frame was lost still leads to its own descendants.
		if ev.Source == SourceDelegation {
			linked(linkKey{parent: ev.Session, child: ev.Facts.UUID("child")}, link{})
		}
	case TypeDelegationGranted:
		// An imported receipt names no key: a caller that retries under it would
		// be led to the foreign log and take its policy for the child's.
		if g, err := ParseGranted(ev); err == nil && ev.Source == SourceDelegation && !g.Key.IsZero() && g.Child == ev.Session {
			named(name{nameKey, g.Key}, ev.Session)
		}
	case TypeSessionPurged:
		p, err := ParsePurged(ev)
		if err != nil || ev.Session != StoreSession {
			return
		}
		named(purgedName(p.Session), asSeq(ev.Seq))
		if !p.Key.IsZero() {
			named(name{nameKey, p.Key}, p.Session)
		}
		if p.External != nil {
			named(name{nameExternal, p.External.IDHash}, p.Session)
		}
		if p.Parent != uuid.Nil {
			linked(linkKey{parent: p.Parent, child: p.Session}, link{})
		}
	case TypeNoticeConsumed:
		linked(linkKey{parent: ev.Session, child: ev.Facts.UUID("child")}, link{Consumed: ev.Facts.Uint("settled_seq")})
	}
}
