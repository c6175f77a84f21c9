package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
)

// txSource reads frames through a short read transaction.
type txSource struct {
	st *state
	tx *bolt.Tx
}

func (t txSource) frames(e *entry, seq uint64, limit int) ([]framePos, error) {
	return t.st.frames(e, seq, limit)
}

func (t txSource) frame(position uint64) ([]byte, error) {
	return getCopy(t.tx.Bucket(bucketJournal), positionKey(position))
}

func (t txSource) peek(position uint64, fn func(raw []byte) error) error {
	return protect("store.db", func() error { return fn(t.tx.Bucket(bucketJournal).Get(positionKey(position))) })
}

func (t txSource) content(ev *Event, index uint32) { loadContent(t.tx, ev, index) }

func (t txSource) salt(ev *Event, index uint32) (Salt, error) { return storedSalt(t.tx, ev, index) }

func (t txSource) doubt(row *Row) error { return t.st.doubt(row) }

func (s *Store) lookup(session uuid.UUID) (*entry, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	e, err := s.st.lookup(session)
	if err == nil && e == nil {
		err = notFound(session)
	}
	return e, err
}

// Row returns a session's small state. Errors: ErrNotFound, ErrCorrupt.
func (s *Store) Row(session uuid.UUID) (Row, error) {
	e, err := s.lookup(session)
	if err != nil {
		return Row{}, err
	}
	return e.row, nil
}

// ByExternal finds the session of another system's id. Errors: ErrNotFound.
func (s *Store) ByExternal(system, id string) (uuid.UUID, error) {
	if err := s.usable(); err != nil {
		return uuid.Nil, err
	}
	found, err := s.st.byName(name{nameExternal, ExternalHash(system, id)})
	if err == nil && found == uuid.Nil {
		err = fmt.Errorf("%w: %s:%s", ErrNotFound, system, id)
	}
	return found, err
}

// ByKey finds the child that parent made under an idempotency key. Errors:
// ErrNotFound.
func (s *Store) ByKey(parent uuid.UUID, key string) (uuid.UUID, error) {
	if err := s.usable(); err != nil {
		return uuid.Nil, err
	}
	found, err := s.st.byName(name{nameKey, KeyHash(parent, key)})
	if err == nil && found == uuid.Nil {
		err = fmt.Errorf("%w: no child of %s under this key", ErrNotFound, parent)
	}
	return found, err
}

// Children lists a session's children in id order.
func (s *Store) Children(parent uuid.UUID) ([]uuid.UUID, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	return s.st.children(parent)
}

// Consumed is the settled seq of the last notice of child that parent
// consumed, 0 if none.
func (s *Store) Consumed(parent, child uuid.UUID) (uint64, error) {
	if err := s.usable(); err != nil {
		return 0, err
	}
	l, err := s.st.link(linkKey{parent, child})
	return l.Consumed, err
}

// Whole reports whether every frame of the journal could be attributed to a
// session. If not, that a session is absent proves nothing. Errors: ErrCorrupt.
func (s *Store) Whole() error { return s.st.whole() }

// Policy returns a session's policy-bearing events up to and including seq at
// (0: the head), in order, read from the log by its links. Its cost grows
// with the number of those events, not with the log. A frame that the index
// lost is found by scanning the journal.
//
// Errors: ErrNotFound, ErrPolicyUnreadable: then nothing may be granted.
func (s *Store) Policy(ctx context.Context, session uuid.UUID, at uint64) ([]Event, Row, error) {
	var events []Event
	read := func(e *entry) error {
		return s.journal.view(func(tx *bolt.Tx) (err error) {
			events, err = policyChain(e, txSource{s.st, tx})
			return err
		})
	}
	e, err := s.lookup(session)
	if err == nil {
		err = read(e)
	}
	if errors.Is(err, ErrCorrupt) {
		scanned, scanErr := s.scanSession(ctx, session)
		switch {
		case scanErr != nil:
			err = errors.Join(err, scanErr)
		case e == nil || len(scanned.row.Damage) == 0 && scanned.row.Head >= e.row.Head:
			e = scanned
			err = read(e)
		}
	}
	if err != nil && e == nil {
		e = new(entry)
	}
	if err != nil {
		if errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrPolicyUnreadable) {
			err = fmt.Errorf("%w: session %s: %w", ErrPolicyUnreadable, session, err)
		}
		return nil, e.row, err
	}
	if at > e.row.Head {
		return nil, e.row, fmt.Errorf("%w: session %s has no seq %d, its head is %d", ErrNotFound, session, at, e.row.Head)
	}
	if at > 0 {
		n := len(events)
		for n > 0 && events[n-1].Seq > at {
			n--
		}
		events = events[:n]
	}
	return events, e.row, nil
}

// scanSession folds one session from the journal alone, without the index.
func (s *Store) scanSession(ctx context.Context, session uuid.UUID) (*entry, error) {
	bare := &Store{st: &state{over: newChanges()}, journal: s.journal, opts: Options{ReadOnly: true}}
	err := s.eachFrame(ctx, 0, s.st.durable(), func(tx *bolt.Tx, position uint64, raw []byte) error {
		if f, ok := guessFrame(raw); ok && f.session != session {
			return nil
		}
		group := newChanges()
		if err := bare.foldPosition(tx, group, position, raw, new(Totals)); err != nil {
			return err
		}
		bare.st.apply(group, position+1, 0, Totals{})
		return nil
	})
	if err != nil {
		return nil, err
	}
	e, err := bare.st.lookup(session)
	if err == nil && e == nil {
		return nil, notFound(session)
	}
	if err == nil {
		err = bare.st.doubt(&e.row)
	}
	return e, err
}

// Hole is a range of seqs that a read could not return.
type Hole struct {
	From, To uint64
	Err      error
}

// ReadOptions bounds one page.
type ReadOptions struct {
	From      uint64 // first seq; 0 is 1
	To        uint64 // last seq; 0 is the head
	MaxEvents int    // holes included; 0: 256
	MaxBytes  int    // of contents and facts; 0: 4 MiB. One event always fits
	Contents  bool   // load contents
}

// Page is a part of a log. Next is the seq to go on from, 0 at the end.
type Page struct {
	Events []Event
	Holes  []Hole
	Next   uint64
	Head   uint64
}

// Read returns one page of a session's log and always advances: a range that
// can't be read becomes a hole and the read goes on behind it. No transaction
// outlives the call. Errors: ErrNotFound, ErrCorrupt (the index).
func (s *Store) Read(ctx context.Context, session uuid.UUID, o ReadOptions) (Page, error) {
	e, err := s.lookup(session)
	if err != nil {
		return Page{}, err
	}
	return s.readEntry(ctx, e, o)
}

func (s *Store) readEntry(ctx context.Context, e *entry, o ReadOptions) (Page, error) {
	o.From = max(o.From, 1)
	toHead := o.To == 0 || o.To > e.row.Head
	if toHead {
		o.To = e.row.Head
	}
	if o.MaxEvents <= 0 {
		o.MaxEvents = 256
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 4 << 20
	}
	page := Page{Head: e.row.Head}
	if err := ctx.Err(); err != nil {
		return page, err
	}
	seq, bytes := o.From, 0
	hole := func(to uint64, err error) {
		page.Holes = append(page.Holes, Hole{seq, to, err})
		seq = to + 1
	}
	full := func() bool { return len(page.Events)+len(page.Holes) >= o.MaxEvents }
	err := s.journal.view(func(tx *bolt.Tx) error {
		src := txSource{s.st, tx}
		for seq <= o.To {
			list, err := src.frames(e, seq, framesPage+1)
			if err != nil {
				return err
			}
			before := seq
			for i, p := range list {
				if i == framesPage || seq > o.To {
					break
				}
				if p.first > seq {
					if hole(min(p.first-1, o.To), errMissing); seq > o.To {
						break
					}
				}
				end := e.row.Head // of the frame, as far as the next one tells
				if i+1 < len(list) {
					end = list[i+1].first - 1
				}
				if full() {
					page.Next = seq
					return nil
				}
				events, err := readFrame(src, e.row.Session, p)
				if err != nil {
					hole(min(end, o.To), err)
					continue
				}
				for k := range events {
					ev := &events[k]
					if ev.Seq < seq || ev.Seq > o.To {
						continue
					}
					size := len(ev.Facts)
					if o.Contents {
						size += int(ev.ContentLen)
					}
					if full() || len(page.Events) > 0 && bytes+size > o.MaxBytes {
						page.Next = seq
						return nil
					}
					if o.Contents {
						loadContent(tx, &ev.Event, ev.index)
					}
					page.Events = append(page.Events, ev.Event)
					bytes += size
					seq = ev.Seq + 1
				}
			}
			if seq == before { // no frame holds it, nor begins behind it
				hole(o.To, errMissing)
			}
		}
		return nil
	})
	if d, ok := e.row.cutOff(); ok && toHead && err == nil && page.Next == 0 {
		page.Holes = append(page.Holes, Hole{d.From, d.To, &CorruptError{Session: e.row.Session, Seq: d.From, Reason: d.Reason}})
	}
	return page, err
}

// framesPage is how many frame positions a read looks up at a time.
const framesPage = 64

var errMissing = errors.New("missing events")

// Replay calls fn with every event from seq 1 to the head in order, verifying
// checksums and the chain on the way, and stops at the first damage: an error
// after n calls means that n events are sound. The event is fn's own.
func (s *Store) Replay(ctx context.Context, session uuid.UUID, contents bool, fn func(*Event) error) error {
	e, err := s.lookup(session)
	if err != nil {
		return err
	}
	if err := s.st.doubt(&e.row); err != nil {
		return err
	}
	hash := Genesis(session)
	for seq := uint64(1); seq != 0; {
		page, err := s.readEntry(ctx, e, ReadOptions{From: seq, MaxEvents: 4096, MaxBytes: 16 << 20, Contents: contents})
		if err != nil {
			return err
		}
		for i := range page.Events {
			ev := &page.Events[i]
			if len(page.Holes) > 0 && ev.Seq > page.Holes[0].From {
				break
			}
			if ev.prev != hash {
				return &CorruptError{Session: session, Seq: ev.Seq, Position: ev.Position, HasPosition: true, Reason: "chain: previous hash differs"}
			}
			hash = ev.Hash
			if err := fn(ev); err != nil {
				return err
			}
		}
		if len(page.Holes) > 0 {
			h := page.Holes[0]
			return &CorruptError{Session: session, Seq: h.From, Reason: fmt.Sprintf("seq %d to %d: %v", h.From, h.To, h.Err)}
		}
		seq = page.Next
	}
	return nil
}
