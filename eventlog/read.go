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

func (t txSource) doubt(row *Row) error { return t.st.doubt(row) }

func (s *Store) lookup(session uuid.UUID) (*entry, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	e, err := s.st.lookup(session)
	if err == nil && e == nil {
		err = s.st.absent(session)
	}
	return e, err
}

// Row returns a session's small state. Errors: ErrNotFound, ErrPurged, ErrCorrupt.
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

// Children lists a session's children in id order, those that were purged
// included: their Row is ErrPurged.
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
	l, err := s.st.link(linkKey{parent: parent, child: child})
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
		bare.st.apply(group, nil, position+1, 0, Totals{})
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
