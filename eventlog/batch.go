package eventlog

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Expect is the head seq that an append requires. The zero value expects an
// empty log, so that a forgotten expectation refuses and never overwrites.
type Expect struct {
	any bool
	seq uint64
}

// Any appends at the head, whatever it is.
func Any() Expect { return Expect{any: true} }

// At requires the head to be seq.
func At(seq uint64) Expect { return Expect{seq: seq} }

// Batch is what one append brings: events of one session, all or nothing. The
// caller must not change it, or what it points to, until the append returned.
type Batch struct {
	Session uuid.UUID
	Expect  Expect
	Epoch   uint64 // of the caller's activation; 0: none
	Events  []NewEvent

	// Key makes a retry safe without ids: the events have theirs from it, see
	// [KeyedID], and a batch under a key that is there gets its original result.
	// It names one batch of its session, for ever. Only for [Store.Append]; ""
	// is none.
	Key string

	erase   []contentRef // with EntryErase: contents that go with the event that says so
	condemn []uuid.UUID  // with EntryErase: sessions whose purge it records
	foreign []pending    // of another store's log, in place of Events; see ImportLogs
}

// Result says where a batch stands.
type Result struct {
	Session           uuid.UUID
	FirstSeq, LastSeq uint64
	Hash              Hash // chain hash after LastSeq
	Position          uint64
	Replayed          bool // the batch was there already: a retry found its original
}

// Plan decides, inside the commit, what an atomic unit writes. It sees the
// state that all earlier units left, runs alone, and must be a pure function
// of its view: no I/O, no locks. It runs again if a commit fails on which its
// view rested, so each run sets anew what it leaves in variables of its caller.
// Each session may be named once. Returning no batch commits nothing and
// succeeds. An error refuses the unit, unchanged.
type Plan func(v *View) ([]Batch, error)

// View is the state of the store inside a commit. It is valid during the call
// of its plan only.
type View struct {
	st   *stage
	now  time.Time
	boot uuid.UUID
}

// Now is the store's clock: a claim, never used for order.
func (v *View) Now() time.Time { return v.now }

// Boot is the id of this writing process's hold of the store.
func (v *View) Boot() uuid.UUID { return v.boot }

// NewID makes an event or message id. The store's randomness is the only one
// that plans may use.
func (v *View) NewID() (uuid.UUID, error) { return uuid.NewV7() }

// NewSalt makes a salt for a commitment in facts.
func (v *View) NewSalt() (Salt, error) {
	id, err := uuid.NewRandom() // 122 random bits, more than anybody can try
	return Salt(id), err
}

// NewSessionID makes a session id. It is random and not ordered by time, so
// that a short prefix names a session.
func (v *View) NewSessionID() (uuid.UUID, error) { return uuid.NewRandom() }

// Row returns the session's small state. Errors: ErrNotFound,
// ErrPurged.
func (v *View) Row(session uuid.UUID) (Row, error) {
	e, err := v.st.lookup(session)
	if err != nil {
		return Row{}, err
	}
	if e == nil {
		return Row{}, v.st.absent(session)
	}
	return e.row, nil
}

// Policy returns the session's policy-bearing events in order, read from the
// log by its links and not from any derived state. Errors: ErrNotFound,
// ErrPolicyUnreadable.
func (v *View) Policy(session uuid.UUID) ([]Event, error) {
	e, err := v.st.lookup(session)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, v.st.absent(session)
	}
	return policyChain(e, v.st)
}

// Whole reports whether every frame of the journal could be attributed to a
// session. If not, that a name is absent proves nothing. Errors: ErrCorrupt.
func (v *View) Whole() error { return v.st.s.st.whole() }

// ByExternal finds the session of another system's id, or uuid.Nil.
func (v *View) ByExternal(hash Hash) (uuid.UUID, error) { return v.st.byName(name{nameExternal, hash}) }

// ByKey finds the child made under an idempotency key, or uuid.Nil.
func (v *View) ByKey(hash Hash) (uuid.UUID, error) { return v.st.byName(name{nameKey, hash}) }

// Consumed is the settled seq of the last notice of child that parent
// consumed, 0 if none.
func (v *View) Consumed(parent, child uuid.UUID) (uint64, error) {
	l, err := v.st.link(linkKey{parent: parent, child: child})
	return l.Consumed, err
}

// Sessions lists every session of the store in id order, those of this group
// included: as many as there are, so it is for rare orders to all of them.
func (v *View) Sessions() ([]uuid.UUID, error) {
	set := map[uuid.UUID]bool{}
	v.st.layers(func(c *changes) bool {
		for id := range c.rows {
			set[id] = true
		}
		return false
	})
	for from := uuid.Nil; ; {
		page, next, err := v.st.s.rowPage(from)
		if err != nil {
			return nil, err
		}
		for _, row := range page {
			set[row.Session] = true
		}
		if from = next; from == uuid.Nil {
			break
		}
	}
	v.st.layers(func(c *changes) bool {
		for id := range c.gone {
			delete(set, id)
		}
		return false
	})
	return sortedIDs(set), nil
}

// Children lists the session's children, those of this group included.
func (v *View) Children(parent uuid.UUID) ([]uuid.UUID, error) { return v.st.children(parent) }

// Descendants lists the session's whole subtree without itself, parents
// before children, those that were purged included. Imported logs may name each
// other as parents in a circle, so no session is visited twice: the committer
// would never come back.
func (v *View) Descendants(session uuid.UUID) ([]uuid.UUID, error) {
	var out []uuid.UUID
	seen := map[uuid.UUID]bool{session: true}
	for todo := []uuid.UUID{session}; len(todo) > 0; todo = todo[1:] {
		children, err := v.Children(todo[0])
		if err != nil {
			return nil, err
		}
		for _, id := range children {
			if !seen[id] {
				seen[id] = true
				out, todo = append(out, id), append(todo, id)
			}
		}
	}
	return out, nil
}

// Event reads one event with its content. Errors: ErrNotFound, ErrPurged,
// ErrCorrupt.
func (v *View) Event(session uuid.UUID, seq uint64) (Event, error) {
	e, err := v.st.lookup(session)
	if err != nil {
		return Event{}, err
	}
	if e == nil {
		return Event{}, v.st.absent(session)
	}
	if seq == 0 || seq > e.row.Head {
		return Event{}, fmt.Errorf("%w: session %s has no seq %d, its head is %d", ErrNotFound, session, seq, e.row.Head)
	}
	events, err := readSeqs(e, v.st, seq, seq)
	if err != nil {
		return Event{}, err
	}
	ev := events[0].Event
	v.st.content(&ev, events[0].index)
	if ev.missing {
		err = explain([]*Event{&ev}, e, v.st)
	}
	return ev, err
}

func sortedIDs[V any](set map[uuid.UUID]V) []uuid.UUID {
	out := make([]uuid.UUID, 0, len(set))
	for id := range set {
		out = append(out, id)
	}
	slices.SortFunc(out, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return out
}
