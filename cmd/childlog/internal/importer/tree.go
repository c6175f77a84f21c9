package importer

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// maxChain bounds the walk from a session to its root. A harness stops after
// a few delegations; a chain of thousands is made up.
const maxChain = 4096

// Place is where an imported session stands: which it is, and whose child.
type Place struct {
	System  string
	Key     string    // external id
	Sum     [32]byte  // of the first line, by which the session is known again
	Session uuid.UUID // set by Tree.Take
	New     bool      // the store has no such session yet
	Child   bool      // somebody delegated it

	Parent     uuid.UUID // uuid.Nil: none that can be named
	ParentMark string
	Root       uuid.UUID
	Depth      int
}

// Tree is what is known of the sessions of a run before the first of them is
// written: who is who, and whose child. Whatever the order of the files, no
// circle is closed and nothing is attached to a native session.
type Tree struct {
	s       *eventlog.Store
	system  string
	byKey   map[string]*Place    // the first of the run
	bySess  map[uuid.UUID]*Place // likewise
	parents map[uuid.UUID]uuid.UUID
}

// NewTree makes an empty one over what the store has.
func NewTree(s *eventlog.Store, system string) *Tree {
	return &Tree{s: s, system: system, byKey: map[string]*Place{}, bySess: map[uuid.UUID]*Place{}, parents: map[uuid.UUID]uuid.UUID{}}
}

// Of is the first place of the run that stands for a session, nil if none does.
func (t *Tree) Of(session uuid.UUID) *Place { return t.bySess[session] }

// ByKey is the first place of the run with an external id, nil if none has it.
func (t *Tree) ByKey(key string) *Place { return t.byKey[key] }

// Take claims an external id for a session whose Sum is set. If the id is
// another's, as take says, a digest of the first line makes the key this
// session's own, and why tells what was in the way.
//
// An id that stands for a purged session is not taken (CodePurged), nor is
// another in its place: the file may be what was removed. Only a session that
// had such a key of its own before goes on.
//
// not ok: nothing of the file may be taken. why is the code of the finding, and
// detail its text.
func (t *Tree) Take(ctx context.Context, p *Place, key string) (ok bool, why, detail string, err error) {
	ok, why, err = t.take(ctx, p, key)
	if ok || err != nil {
		return ok, "", "", err
	}
	own := key + "#" + Short(p.Sum)
	if why == CodePurged {
		if _, err := t.s.ByExternal(t.system, own); errors.Is(err, eventlog.ErrNotFound) {
			return false, why, purgedText(key), nil
		} else if err != nil {
			return false, "", "", err
		}
	}
	ok, last, err := t.take(ctx, p, own)
	switch {
	case err != nil:
		return false, "", "", err
	case ok:
		return true, why, fmt.Sprintf("the id %.80q is another session's; this one is kept as %s", key, own), nil
	case last == CodePurged:
		return false, last, purgedText(own), nil
	}
	return false, why, fmt.Sprintf("the id %.80q is another session's, and no other is left; nothing of it is taken", key), nil
}

func purgedText(key string) string {
	return fmt.Sprintf("the session of the id %.80q was purged from this store; nothing of it is taken", key)
}

// take claims an id, unless it stands for another session: one of another first
// line (CodeCollision), a native one (CodeNativeID), one that was purged
// (CodePurged).
func (t *Tree) take(ctx context.Context, p *Place, key string) (ok bool, why string, err error) {
	id, err := t.s.ByExternal(t.system, key)
	switch {
	case errors.Is(err, eventlog.ErrNotFound):
	case err != nil:
		return false, "", err
	default:
		row, err := t.s.Row(id)
		if errors.Is(err, eventlog.ErrPurged) {
			return false, CodePurged, nil
		}
		if err != nil {
			return false, "", err
		}
		if !row.Evidence {
			return false, CodeNativeID, nil
		}
		page, err := t.s.Read(ctx, id, eventlog.ReadOptions{From: 2, To: 2})
		if err != nil {
			return false, "", err
		}
		if len(page.Events) == 1 && page.Events[0].ID != EventID(id, 1, PartLine, p.Sum) {
			return false, CodeCollision, nil
		}
		t.claim(p, key, id)
		return true, "", nil
	}
	if first := t.byKey[key]; first != nil {
		if first.Sum != p.Sum {
			return false, CodeCollision, nil
		}
		t.claim(p, key, first.Session)
		p.New = true
		return true, "", nil
	}
	id = SessionID(t.system, key)
	if _, err := t.s.Row(id); errors.Is(err, eventlog.ErrPurged) {
		return false, CodePurged, nil
	} else if err == nil {
		// Somebody made a session of just this id. It is not ours, and is left alone.
		if id, err = uuid.NewRandom(); err != nil {
			return false, "", err
		}
	} else if !errors.Is(err, eventlog.ErrNotFound) {
		return false, "", err
	}
	t.claim(p, key, id)
	p.New = true
	return true, "", nil
}

func (t *Tree) claim(p *Place, key string, id uuid.UUID) {
	p.System, p.Key, p.Session = t.system, key, id
	if t.byKey[key] == nil {
		t.byKey[key], t.bySess[id] = p, p
	}
}

// Stored gives a place the parent that it has already: the one in the store,
// inferred if the log's own word for it is a placeholder, or that of an
// earlier copy in the run. done is false if the parent is still to be found.
func (t *Tree) Stored(p *Place, inferred bool) (done bool, err error) {
	if !p.New {
		row, err := t.s.Row(p.Session)
		if err != nil {
			return false, err
		}
		p.Parent, p.ParentMark = row.Parent, Absent
		if p.Parent != uuid.Nil {
			p.ParentMark = Recorded
			if inferred {
				p.ParentMark = Inferred
			}
			t.parents[p.Session] = p.Parent
		}
		return true, nil
	}
	if first := t.bySess[p.Session]; first != p { // a copy of a file of this run
		p.Parent, p.ParentMark = first.Parent, first.ParentMark
		return true, nil
	}
	p.ParentMark = Absent
	return false, nil
}

// Resolve returns the session that an external id stands for, in the store or
// as it will be. native: it is a native one, and nothing may be attached to it.
func (t *Tree) Resolve(key string) (id uuid.UUID, native bool, err error) {
	id, err = t.s.ByExternal(t.system, key)
	if errors.Is(err, eventlog.ErrNotFound) {
		id, err = SessionID(t.system, key), nil
	}
	if err != nil {
		return uuid.Nil, false, err
	}
	_, evidence, there, err := t.parentOf(id)
	return id, there && !evidence, err
}

// Gone reports whether an error says that there is no such session, or none any
// more.
func Gone(err error) bool {
	return errors.Is(err, eventlog.ErrNotFound) || errors.Is(err, eventlog.ErrPurged)
}

// parentOf is the parent of a session that the store has, or had before it was
// purged: what is linked to it stays where it was.
func (t *Tree) parentOf(id uuid.UUID) (parent uuid.UUID, evidence, there bool, err error) {
	row, err := t.s.Row(id)
	switch {
	case errors.Is(err, eventlog.ErrNotFound):
		return uuid.Nil, false, false, nil
	case errors.Is(err, eventlog.ErrPurged):
		gone, err := t.s.Purged(context.Background(), id) // one event
		return gone.Parent, gone.Evidence, err == nil, err
	case err != nil:
		return uuid.Nil, false, false, err
	}
	return row.Parent, row.Evidence, true, nil
}

// Link gives a place its parent, unless that would close a circle.
func (t *Tree) Link(p *Place, parent uuid.UUID, mark string) (closes bool, err error) {
	p.Parent, p.ParentMark = parent, mark
	if closes, err = t.closesCircle(p); err != nil || closes {
		if closes {
			p.Parent, p.ParentMark = uuid.Nil, Absent
		}
		return closes, err
	}
	t.parents[p.Session] = p.Parent
	return false, nil
}

// Known reports whether a session is in this run or in the store, or was purged
// from it.
func (t *Tree) Known(session uuid.UUID) (bool, error) {
	if t.bySess[session] != nil {
		return true, nil
	}
	_, _, there, err := t.parentOf(session)
	return there, err
}

// above is a session's parent, by this run's links or the store's.
func (t *Tree) above(id uuid.UUID) (uuid.UUID, error) {
	if parent, ok := t.parents[id]; ok {
		return parent, nil
	}
	parent, _, _, err := t.parentOf(id)
	return parent, err
}

// closesCircle walks up from the parent that was found. The last link of a
// circle is always the one under test, so no circle is ever stored, and a walk
// over stored links ends.
func (t *Tree) closesCircle(p *Place) (bool, error) {
	cur := p.Parent
	for range maxChain {
		if cur == p.Session {
			return true, nil
		}
		if cur == uuid.Nil {
			return false, nil
		}
		var err error
		if cur, err = t.above(cur); err != nil {
			return false, err
		}
	}
	return true, nil
}

// Settle finds the root of a place's tree, as far up as links lead, and how
// deep it lies: by its own word, else (stated < 0) by counting.
func (t *Tree) Settle(p *Place, stated int) error {
	steps, cur := 0, p.Session
	p.Root = p.Session
	for cur = p.Parent; cur != uuid.Nil && steps <= maxChain; steps++ {
		p.Root = cur
		next, err := t.above(cur)
		if err != nil {
			return err
		}
		cur = next
	}
	if p.Depth = stated; p.Depth < 0 {
		p.Depth = steps
	}
	if p.Child {
		p.Depth = max(1, p.Depth)
	}
	return nil
}

// ParentsFirst orders files so that parents come before their children, whose
// seeds and calls are then found in the parent's log; else their order stays.
func ParentsFirst[F comparable](t *Tree, files []F, place func(F) *Place) []F {
	first := map[*Place]F{}
	for _, f := range files {
		first[place(f)] = f
	}
	done := map[F]bool{}
	out := make([]F, 0, len(files))
	for _, f := range files {
		var chain []F
		for cur := f; !done[cur]; {
			done[cur] = true
			chain = append(chain, cur)
			parent := place(cur).Parent
			if parent == uuid.Nil || t.bySess[parent] == nil {
				break
			}
			cur = first[t.bySess[parent]]
		}
		for i := len(chain) - 1; i >= 0; i-- {
			out = append(out, chain[i])
		}
	}
	return out
}

// MissingText is the detail of CodeParentMissing for a parent that is named
// and is neither in the run nor in the store.
func MissingText(external string, id uuid.UUID) string {
	return fmt.Sprintf("the parent's log %.80q was not imported; the link points to the id that it will have, %s", external, id)
}
