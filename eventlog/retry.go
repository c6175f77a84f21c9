package eventlog

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/google/uuid"
)

// retryWindow is how many of a session's last events are searched for the id
// of an append that names no place (Any). With an expected seq the place is
// known and there is no such bound.
const retryWindow = 256

// retried recognizes an append that was committed before: the same ids, types,
// facts and contents at their place. Time and salt are ignored, since a retry
// has others, and a content that was redacted is taken for the one given. It comes before every other check, so that a fenced writer's
// retry of what it had committed still gets its result.
func (st *stage) retried(e *entry, b *Batch, events []pending) (res Result, found bool, err error) {
	first, named := b.Expect.seq+1, false
	for i := range b.Events {
		named = named || b.Events[i].ID != uuid.Nil
	}
	if !named {
		return res, false, nil
	}
	if keyed, err := st.findKeyed(b.Session, events); err != nil {
		return res, false, err
	} else if keyed != 0 { // whatever head the caller expects: it was there
		first = keyed
	} else if b.Expect.any || b.Expect.seq >= e.row.Head {
		i, seq, err := st.findID(e, events)
		if err != nil || seq == 0 {
			return res, false, err
		}
		if !b.Expect.any { // the place is behind the head, the event is not
			return res, false, &DuplicateError{Session: b.Session, ID: events[i].id, Seq: seq, Field: "place"}
		}
		first = seq - min(seq-1, uint64(i))
	}
	last := first + uint64(len(events)) - 1
	until := last
	if isKeyed(events[0].id, 0) {
		until++ // to see whether the stored batch goes on
	}
	stored, err := readSeqs(e, st, first, min(until, e.row.Head))
	if err != nil {
		return res, false, err
	}
	if len(stored) > len(events) {
		if next := &stored[len(events)]; longer(events, next) {
			return res, false, &DuplicateError{Session: b.Session, ID: next.ID, Seq: next.Seq, Field: "number of events"}
		}
		stored = stored[:len(events)]
	}
	for i := range events {
		p := &events[i]
		if i >= len(stored) {
			return res, false, partial(b, events, stored)
		}
		if field := st.differs(p, &stored[i]); field == "id" {
			return res, false, partial(b, events, stored)
		} else if field != "" {
			return res, false, &DuplicateError{Session: b.Session, ID: p.id, Seq: stored[i].Seq, Field: field}
		}
	}
	tail := &stored[len(events)-1]
	hash, position, err := hashAfter(e, st, tail.Seq)
	if err != nil {
		return res, false, err
	}
	return Result{Session: b.Session, FirstSeq: first, LastSeq: last, Hash: hash, Position: position, Replayed: true}, true, nil
}

// partial decides about a batch that is not there as a whole: if one of its
// ids is, that id is taken; else it is an ordinary conflict, left to admit.
func partial(b *Batch, events []pending, stored []seqEvent) error {
	for i := range events {
		for j := range stored {
			if stored[j].ID == events[i].id {
				return &DuplicateError{Session: b.Session, ID: events[i].id, Seq: stored[j].Seq, Field: "place"}
			}
		}
	}
	return nil
}

// differs names the first part in which a stored event is not the one given.
func (st *stage) differs(p *pending, stored *seqEvent) string {
	facts := p.facts
	if len(facts) == 0 {
		facts = emptyFacts
	}
	switch {
	case stored.ID != p.id:
		return "id"
	case stored.Type != p.typ:
		return "type"
	case !bytes.Equal(stored.Facts, facts):
		return "facts"
	case stored.HasContent != (p.media != MediaNone) || stored.Media != p.media || stored.ContentLen != uint64(len(p.content)):
		return "content"
	case !stored.HasContent:
		return ""
	}
	salt, err := st.salt(&stored.Event, stored.index)
	if errors.Is(err, errContentMissing) && st.erased(&stored.Event) {
		return "" // it was there once, and nothing can be compared with it any more
	}
	if err != nil || commit(salt, p.content) != stored.Commitment {
		return "content"
	}
	return ""
}

// erased reports whether a content is missing because it was redacted.
func (st *stage) erased(ev *Event) bool {
	e, err := st.lookup(ev.Session)
	if err != nil || e == nil {
		return false
	}
	own := *ev
	return explain([]*Event{&own}, e, st) == nil && own.Redacted != nil
}

// findID returns the first of the batch's events whose id is stored within the
// retry window, and its seq, 0 if none is.
func (st *stage) findID(e *entry, events []pending) (int, uint64, error) {
	window, err := st.s.recentIDs(e, st)
	if err != nil {
		return 0, 0, err
	}
	staged := st.stagedIDs(e)
	for i := range events {
		id := events[i].id
		if seq := max(window[id], staged[id]); seq != 0 {
			return i, seq, nil
		}
	}
	return 0, 0, nil
}

// stagedIDs are the ids of a session whose frames are not durable yet, kept for
// those sessions whose callers name ids.
type stagedIDs struct {
	next uint64 // positions below were looked at
	seqs map[uuid.UUID]uint64
}

func (st *stage) stagedIDs(e *entry) map[uuid.UUID]uint64 {
	staged := st.ids[e.row.Session]
	if staged == nil {
		staged = &stagedIDs{next: st.group.first, seqs: map[uuid.UUID]uint64{}}
		if st.flight != nil {
			staged.next = st.flight.first
		}
		st.ids[e.row.Session] = staged
	}
	from, _ := slices.BinarySearchFunc(e.pending, staged.next, func(p framePos, next uint64) int { return cmp.Compare(p.pos, next) })
	for _, p := range e.pending[from:] {
		if d := st.draft(p.pos); d != nil {
			for i, ev := range d.events {
				staged.seqs[ev.id] = d.first + uint64(i)
			}
		}
	}
	staged.next = st.next
	return staged.seqs
}
