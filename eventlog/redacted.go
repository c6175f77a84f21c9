package eventlog

import (
	"fmt"
	"sync"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
)

// eachMarker calls fn with the content/redacted events of a session, newest
// first, until it returns false. Each names the one before, as policy events
// do: what a row or an index lost hides none.
func eachMarker(e *entry, src source, fn func(*marker) bool) error {
	for seq := e.row.Redacted; seq != 0; {
		events, err := readSeqs(e, src, seq, seq)
		if err != nil {
			return err
		}
		ev := &events[0].Event
		if ev.Type != TypeContentRedacted {
			return &CorruptError{Session: ev.Session, Seq: seq, Type: ev.Type, Reason: "want " + TypeContentRedacted + " here"}
		}
		m, err := parseMarker(ev)
		if err != nil {
			return err
		}
		if !fn(&m) {
			return nil
		}
		seq = m.prev
	}
	return nil
}

// explain says of events whose contents are missing which of them were erased
// on record. What no marker accounts for keeps its error.
func explain(missing []*Event, e *entry, src source) error {
	want := make(map[uint64]*Event, len(missing))
	for _, ev := range missing {
		want[ev.Seq] = ev
	}
	return eachMarker(e, src, func(m *marker) bool {
		for _, r := range m.events {
			ev := want[r.seq]
			if ev == nil || r.commitment != ev.Commitment || r.length != ev.ContentLen {
				continue // a marker speaks of the content that the event committed to, or of none
			}
			by := m.Redaction
			by.Commitment, by.Length = r.commitment, r.length
			ev.Redacted, ev.ContentErr = &by, nil
			delete(want, r.seq)
		}
		return len(want) > 0
	})
}

// markers keeps what the markers of the session that was read last say, so that
// whoever pages through a log that was redacted at large reads each marker once.
// Memory: about 150 bytes for each erased content of that one session.
type markers struct {
	mu      sync.Mutex
	session uuid.UUID
	last    uint64 // seq of the newest marker that was read
	by      map[uint64]Redaction
}

// explain is explain, from what is kept and the markers that came since.
func (k *markers) explain(missing []*Event, e *entry, src source) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session != e.row.Session {
		k.session, k.last, k.by = e.row.Session, 0, map[uint64]Redaction{}
	}
	if e.row.Redacted > k.last {
		if err := eachMarker(e, src, func(m *marker) bool {
			for _, r := range m.events {
				by := m.Redaction
				by.Commitment, by.Length = r.commitment, r.length
				k.by[r.seq] = by
			}
			return m.prev > k.last
		}); err != nil {
			k.session = uuid.Nil // half of it is no answer
			return err
		}
		k.last = e.row.Redacted
	}
	for _, ev := range missing {
		if by, ok := k.by[ev.Seq]; ok && by.Commitment == ev.Commitment && by.Length == ev.ContentLen {
			ev.Redacted, ev.ContentErr = &by, nil
		}
	}
	return nil
}

// explainMissing is explain for the events of a page. bbolt shows a commit to
// readers a moment before the state does: a content that is gone may be that of
// a commit which is about to be published, and that one is waited for. A page of
// a session that was purged meanwhile is ErrPurged.
func (s *Store) explainMissing(session uuid.UUID, page *Page) error {
	var missing []*Event
	for i := range page.Events {
		if page.Events[i].missing {
			missing = append(missing, &page.Events[i])
		}
	}
	if len(missing) == 0 && len(page.Holes) == 0 {
		return nil
	}
	s.erasing.RLock()
	e, err := s.st.lookup(session)
	s.erasing.RUnlock()
	if err != nil {
		return err
	}
	if e == nil {
		return s.st.absent(session)
	}
	if len(missing) == 0 {
		return nil
	}
	err = s.journal.view(func(tx *bolt.Tx) error { return s.markers.explain(missing, e, txSource{s.st, tx}) })
	for _, ev := range missing { // damage of the markers is told at the events that need them
		if err != nil && ev.ContentErr != nil {
			ev.ContentErr = fmt.Errorf("%w; whether it was erased can't be told: %w", ev.ContentErr, err)
		}
	}
	return nil
}

// freshSeed refuses a child whose seed was read before a content in it was
// erased: the copy would bring back what was to be gone. from is the session
// that the seed was copied from. captured is its head at the capture; nobody
// says when an adopted one was read, and then it is 0: a copy that has what was
// ever erased is too old, since a later one has no content there. Of a log of
// another store nothing is erased here, whatever it says.
func (st *stage) freshSeed(events []pending, from *entry, captured uint64) error {
	if from.row.Redacted <= captured || from.row.Imported {
		return nil // what was erased by then could not be read
	}
	copied := map[uint64]bool{}
	for i := range events {
		if p := &events[i]; p.inherited != nil && p.media != MediaNone {
			copied[p.inherited.Seq] = true
		}
	}
	var stale error
	err := eachMarker(from, st, func(m *marker) bool {
		for _, r := range m.events {
			if copied[r.seq] {
				stale = fmt.Errorf("%w: seq %d of session %s was redacted at seq %d, after the seed was read", ErrStaleCapture, r.seq, from.row.Session, m.Seq)
				return false
			}
		}
		return m.prev > captured
	})
	if err != nil {
		return err
	}
	return stale
}
