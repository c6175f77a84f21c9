package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"childlog/policy"
)

// Purged is session/purged in the store's own session: what is kept of a
// session that was removed. Its frames are gone; each left its leaf of the tree
// as a tombstone at its position, so the head hash here and the tombstones are
// what a copy of the log kept elsewhere can be held against.
type Purged struct {
	Session  uuid.UUID
	Top      uuid.UUID // that the purge named: the session itself or an ancestor
	Kind     string
	Parent   uuid.UUID // uuid.Nil for roots
	Root     uuid.UUID
	Evidence bool
	Head     uint64 // events that it had
	Hash     Hash   // chain hash after the last one
	Frames   uint64
	Created  time.Time // to the millisecond, claims like all times
	Last     time.Time // last activity
	Receipt  Hash      // digest; zero: it had none
	Key      Hash      // of the idempotency key it was created under; zero: none. The key is not used again
	External *External

	// Relied are the explicit grants that its receipt cites. What a purged
	// session used up stays used up.
	Relied []policy.ExplicitGrant

	Code, Basis, By string
	At              time.Time // of the purge
	Seq             uint64    // of the event, in the store's own session
}

func (p *Purged) facts() map[string]any {
	m := map[string]any{"session": p.Session, "top": p.Top, "kind": p.Kind, "root": p.Root, "head": p.Head, "hash": p.Hash, "frames": p.Frames,
		"created": p.Created.UnixMilli(), "last": p.Last.UnixMilli()}
	if p.Parent != uuid.Nil {
		m["parent"] = p.Parent
	}
	if p.Evidence {
		m["evidence"] = true
	}
	if !p.Receipt.IsZero() {
		m["receipt"] = p.Receipt
	}
	if !p.Key.IsZero() {
		m["key"] = p.Key
	}
	if p.External != nil {
		m["external"] = map[string]any{"system": p.External.System, "id": p.External.IDHash}
	}
	if len(p.Relied) > 0 {
		m["relied"] = explicitFact(p.Relied)
	}
	return m
}

// ParsePurged reads session/purged. Errors: ErrCorrupt with the field.
func ParsePurged(ev *Event) (Purged, error) {
	r, err := readFacts(ev)
	if err != nil {
		return Purged{}, err
	}
	p := Purged{Session: r.id("session", true), Top: r.id("top", true), Kind: r.code("kind"), Parent: r.id("parent", false), Root: r.id("root", true),
		Evidence: r.bool("evidence", false), Head: r.uint("head"), Hash: r.hash("hash"), Frames: r.uint("frames"),
		Created: time.UnixMilli(int64(r.uint("created"))).UTC(), Last: time.UnixMilli(int64(r.uint("last"))).UTC(),
		Receipt: r.hash("receipt"), Key: r.hash("key"), Relied: r.explicit("relied"), Code: r.code("code"), Basis: r.str("basis"), By: r.code("by"), At: ev.Time, Seq: ev.Seq}
	if x := r.sub("external", false); x != nil {
		p.External = &External{System: x.code("system"), IDHash: x.hash("id")}
		r.adopt(x)
	}
	return p, r.err
}

// PurgedError says that there was such a session. Seq is that of the
// session/purged in the store's own session, which says when, by whom and why.
type PurgedError struct {
	Session uuid.UUID
	Seq     uint64
}

func (e *PurgedError) Error() string {
	return fmt.Sprintf("purged: session %s was removed; seq %d of the store's own session says when and why", e.Session, e.Seq)
}

func (e *PurgedError) Unwrap() error { return ErrPurged }

// absentFrom says why a session has no state: there never was one, or it was
// purged.
func absentFrom(session uuid.UUID, byName func(name) (uuid.UUID, error)) error {
	at, err := byName(purgedName(session))
	switch {
	case err != nil:
		return err
	case at != uuid.Nil:
		return &PurgedError{Session: session, Seq: seqIn(at)}
	}
	return notFound(session)
}

func (s *state) absent(session uuid.UUID) error  { return absentFrom(session, s.byName) }
func (st *stage) absent(session uuid.UUID) error { return absentFrom(session, st.byName) }

// Purged returns what is kept of a purged session. Errors: ErrNotFound (it was
// not purged), ErrCorrupt.
func (s *Store) Purged(ctx context.Context, session uuid.UUID) (Purged, error) {
	if err := s.usable(); err != nil {
		return Purged{}, err
	}
	at, err := s.st.byName(purgedName(session))
	if err != nil || at == uuid.Nil {
		return Purged{}, orNotPurged(session, err)
	}
	seq := seqIn(at)
	page, err := s.Read(ctx, StoreSession, ReadOptions{From: seq, To: seq})
	switch {
	case err != nil:
		return Purged{}, err
	case len(page.Holes) > 0:
		return Purged{}, page.Holes[0].Err
	}
	return recordOf(session, &page.Events[0])
}

// EachPurged calls fn with what is kept of every purged session, in the order of
// the purges, until fn returns an error. Errors: those of fn, ErrCorrupt.
func (s *Store) EachPurged(ctx context.Context, fn func(*Purged) error) error {
	err := s.Replay(ctx, StoreSession, false, func(ev *Event) error {
		if ev.Type != TypeSessionPurged {
			return nil
		}
		p, err := ParsePurged(ev)
		if err != nil {
			return err
		}
		return fn(&p)
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Purged is what is kept of a purged session. Errors: ErrNotFound (it was not
// purged), ErrCorrupt.
func (v *View) Purged(session uuid.UUID) (Purged, error) {
	at, err := v.st.byName(purgedName(session))
	if err != nil || at == uuid.Nil {
		return Purged{}, orNotPurged(session, err)
	}
	ev, err := v.Event(StoreSession, seqIn(at))
	if err != nil {
		return Purged{}, err
	}
	return recordOf(session, &ev)
}

func orNotPurged(session uuid.UUID, err error) error {
	if err == nil {
		err = fmt.Errorf("%w: session %s was not purged", ErrNotFound, session)
	}
	return err
}

func recordOf(session uuid.UUID, ev *Event) (Purged, error) {
	p, err := ParsePurged(ev)
	if err == nil && (ev.Type != TypeSessionPurged || p.Session != session) {
		err = &CorruptError{Session: StoreSession, Seq: ev.Seq, Type: ev.Type, Reason: fmt.Sprintf("the purge of session %s is not recorded here", session)}
	}
	return p, err
}

// dropPurged takes the sessions that frames of the store's own session say were
// purged out of the unit's state, before the events are folded.
func (st *stage) dropPurged(drafts []*draft) error {
	var events []Event
	for _, d := range drafts {
		for i, p := range d.events {
			if p.typ == TypeSessionPurged {
				events = append(events, *p.event(StoreSession, d.first+uint64(i), 0, 0))
			}
		}
	}
	gone, err := purgedBy(events, st.lookup)
	st.unit.drop(gone)
	return err
}
