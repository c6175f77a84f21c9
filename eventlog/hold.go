package eventlog

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// Hold is a legal hold on a session: while it stands nothing of the session is
// redacted or purged, whoever asks and however old it is.
//
// A hold with Subtree covers every descendant, those that are created later
// included: it is found by walking up from the session that is about to lose
// something, so nobody has to remember it at a delegation.
type Hold struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused
	ID       string
	Seq      uint64 // of the session/held that set it
	Code     string
	By       string
	Subtree  bool
}

// HeldError says which hold stands in the way.
type HeldError struct {
	Session uuid.UUID // that was to lose something
	At      uuid.UUID // that the hold is on: the session or an ancestor
	Hold    Hold
}

func (e *HeldError) Error() string {
	where := ""
	if e.At != e.Session {
		where = fmt.Sprintf(", set on %s with its subtree", e.At)
	}
	return fmt.Sprintf("under legal hold: session %s: hold %s (%s)%s", e.Session, e.Hold.ID, e.Hold.Code, where)
}

func (e *HeldError) Unwrap() error { return ErrHeld }

const (
	heldState     = "held"
	releasedState = "released"
)

// applyHeld folds session/held.
func (r *Row) applyHeld(ev *Event) {
	f := ev.Facts
	id := f.Str("hold")
	holds := slices.DeleteFunc(slices.Clone(r.Holds), func(h Hold) bool { return h.ID == id })
	if f.Str("state") != releasedState { // whatever else it says protects
		holds = append(holds, Hold{ID: id, Seq: ev.Seq, Code: f.Str("code"), By: f.Str("by"), Subtree: f.Bool("subtree")})
	}
	r.Holds = holds
}

// maxHolds bounds the holds that stand on one session at a time.
const maxHolds = 64

// HoldRequest is an order to keep a session as it is.
type HoldRequest struct {
	Order
	Session uuid.UUID
	Subtree bool   // its descendants too, also those to come
	ID      string // of the hold, a code; "": one is made
}

// Hold sets a legal hold and records it in the session's own log. A session that
// an importer wrote and a closed one can be held too: what is kept is the record.
// The store's own session is never erased and takes none. A log of another store
// takes no event of this one, so it can't be held; a hold that it came with
// protects it until a later part of that log brings its release.
//
// Errors: ErrNotFound, ErrPurged, ErrEvidence (a log of another store), ErrConflict (a hold of that id stands
// already, with other terms), ErrInvalid, ErrTooLarge (more than 64 holds) and
// those of a commit.
func (s *Store) Hold(ctx context.Context, r HoldRequest) (Hold, error) {
	if err := r.check(); err != nil {
		return Hold{}, err
	}
	if r.ID == "" {
		id, err := uuid.NewRandom()
		if err != nil {
			return Hold{}, err
		}
		r.ID = "hold-" + id.String()[:8]
	}
	if !isCode(r.ID) {
		return Hold{}, invalidf("hold: want an id of 1 to 256 letters, digits or _.:/@+#=-, got %.40q", r.ID)
	}
	var out Hold
	_, err := s.erase(ctx, func(v *View) ([]Batch, error) {
		row, err := erasable(v, r.Session)
		if err != nil {
			return nil, err
		}
		out = Hold{ID: r.ID, Seq: row.Head + 1, Code: r.Code, By: r.By, Subtree: r.Subtree}
		if i := slices.IndexFunc(row.Holds, func(h Hold) bool { return h.ID == r.ID }); i >= 0 {
			if have := row.Holds[i]; have.Code != r.Code || have.Subtree != r.Subtree {
				return nil, fmt.Errorf("%w: hold %s stands on session %s since seq %d with other terms", ErrConflict, r.ID, r.Session, have.Seq)
			}
			out = row.Holds[i]
			return nil, nil // asked for twice
		}
		if err := checkLimit("holds on one session", len(row.Holds)+1, maxHolds); err != nil {
			return nil, err
		}
		facts := map[string]any{"hold": r.ID, "state": heldState}
		if r.Subtree {
			facts["subtree"] = true
		}
		return r.batch(row, TypeSessionHeld, facts)
	})
	return out, err
}

// ReleaseRequest is an order to end a hold.
type ReleaseRequest struct {
	Order
	Session uuid.UUID
	ID      string // of the hold
}

// Release ends a hold on the session that it was set on, and records it. It
// returns the seq of the record. Errors: ErrNotFound (no such hold there),
// ErrPurged, ErrInvalid and those of a commit.
func (s *Store) Release(ctx context.Context, r ReleaseRequest) (uint64, error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	results, err := s.erase(ctx, func(v *View) ([]Batch, error) {
		row, err := erasable(v, r.Session)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(row.Holds, func(h Hold) bool { return h.ID == r.ID }) {
			return nil, fmt.Errorf("%w: no hold %s stands on session %s", ErrNotFound, r.ID, r.Session)
		}
		return r.batch(row, TypeSessionHeld, map[string]any{"hold": r.ID, "state": releasedState})
	})
	if err != nil {
		return 0, err
	}
	return results[0].LastSeq, nil
}

// batch is one event of the order at a session's head.
func (o *Order) batch(row Row, typ string, facts map[string]any) ([]Batch, error) {
	ev, err := o.event(typ, facts)
	return []Batch{{Session: row.Session, Expect: At(row.Head), Events: []NewEvent{ev}}}, err
}

// erasable is the row of a session of which something may be erased, or which
// may be held.
func erasable(v *View, session uuid.UUID) (Row, error) {
	if session == StoreSession {
		return Row{}, invalidf("the store's own session is never erased")
	}
	row, err := v.Row(session)
	if err == nil && row.Imported {
		err = fmt.Errorf("%w: session %s came from another store and takes no hold here: what held it there holds it here", ErrEvidence, session)
	}
	return row, err
}

// heldBy is the hold that stands over a session, its own or one of an
// ancestor's with a subtree; nil if there is none. An ancestor that lost events
// may have lost a hold: then nothing is erased below it.
func (v *View) heldBy(session uuid.UUID) (*HeldError, error) {
	seen := map[uuid.UUID]bool{} // imported logs may name each other in a circle
	evidence := false
	for at := session; at != uuid.Nil && !seen[at]; {
		e, err := v.st.lookup(at)
		switch {
		case err != nil:
			return nil, err
		case e == nil && evidence:
			return nil, nil // the parent of an import may never have been here
		case e == nil:
			return nil, &CorruptError{Session: at, Reason: "its log is gone, and with it any hold on what lies below"}
		case len(e.row.Damage) > 0:
			d := e.row.Damage[0]
			return nil, &CorruptError{Session: at, Seq: d.From, Reason: d.Reason + "; a hold may be lost there"}
		}
		if err := v.st.doubt(&e.row); err != nil {
			return nil, err
		}
		for _, h := range e.row.Holds {
			if at == session || h.Subtree {
				return &HeldError{Session: session, At: at, Hold: h}, nil
			}
		}
		seen[at], evidence, at = true, e.row.Evidence, e.row.Parent
	}
	return nil, nil
}
