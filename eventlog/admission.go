package eventlog

import (
	"bytes"
	"fmt"

	"github.com/google/uuid"

	"childlog/policy"
)

// This file is the writer's own judgement of what an entry point brings. The
// packages that use Transact check the same and more, with better words; a
// unit that gets past them, by a mistake or on purpose, must still not leave a
// log that lies about its authority or that nobody can read any more.

// authorize refuses a unit that its entry point may not write, in whatever
// order its batches stand. before holds each session as the unit found it, nil
// if it is new. Errors: ErrUnauthorized, ErrInvalid, ErrDepth, ErrExists,
// ErrWidening, ErrPolicyUnreadable.
func (st *stage) authorize(via Entry, batches []Batch, events [][]pending, before []*entry) error {
	if via == EntryDelegation {
		return st.authorizeDelegation(batches, events, before)
	}
	taken := map[Hash]uuid.UUID{}
	for i := range batches {
		id := batches[i].Session
		var err error
		switch via {
		case EntryCreate:
			err = st.authorizeRoot(id, events[i], before[i], taken)
		case EntryImport:
			err = st.authorizeImport(id, events[i], before[i], taken)
		case EntryOperator, EntryRuntime:
			err = st.authorizeChange(id, events[i], before[i])
		case EntryStore:
			err = authorizeStore(id, events[i], before[i])
		case EntryErase:
			err = authorizeErase(id, events[i], before[i])
		case entryForeign:
			if batches[i].foreign == nil {
				err = authorizeStore(id, events[i], before[i])
			} else {
				err = st.authorizeForeign(id, events[i], before[i], taken)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func unauthorizedf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnauthorized, fmt.Sprintf(format, args...))
}

// own passes over seed copies, which say nothing of the session itself.
func own(p *pending, typ string) bool { return p.typ == typ && p.inherited == nil }

// authorizeRoot: a creation makes a root or a stub, and touches no log that
// exists: what may change there later goes through a switch.
func (st *stage) authorizeRoot(id uuid.UUID, events []pending, before *entry, taken map[Hash]uuid.UUID) error {
	if before != nil {
		return unauthorizedf("session %s exists; a creation writes new logs only", id)
	}
	f := events[0].facts
	kind, root, depth := f.Str("kind"), f.UUID("root"), f.Uint("depth")
	switch {
	case kind != KindRoot && kind != KindStub:
		return unauthorizedf("kind: got %q, want %s or %s", kind, KindRoot, KindStub)
	case f.Bool("evidence"):
		return unauthorizedf("session %s: evidence is written by importers", id)
	case f.UUID("parent") != uuid.Nil:
		return unauthorizedf("a %s has no parent, got %s", kind, f.UUID("parent"))
	case root != id || depth != 0:
		return unauthorizedf("a %s is its own root at depth 0, got root %s and depth %d, want %s", kind, root, depth, id)
	case f.Uint("max_depth") > policy.HardMaxDepth:
		return fmt.Errorf("%w: max depth: got %d, want at most %d", ErrDepth, f.Uint("max_depth"), policy.HardMaxDepth)
	}
	holder, err := st.externalHolder(id, &events[0], taken)
	if err != nil {
		return err
	}
	if holder != uuid.Nil {
		return fmt.Errorf("%w: the external id is session %s", ErrExists, holder)
	}
	b, err := foldBounds(nil, id, events, 0)
	if err != nil {
		return err
	}
	return b.begins()
}

// authorizeImport: an importer creates evidence, and takes no name away from a
// native session: whoever asks for that name would be led to the foreign log.
// (A key can't be taken: an imported receipt names none, see relations.)
func (st *stage) authorizeImport(id uuid.UUID, events []pending, before *entry, taken map[Hash]uuid.UUID) error {
	if before != nil {
		return nil // it is evidence, or admit would have refused
	}
	if !events[0].facts.Bool("evidence") {
		return unauthorizedf("an importer creates evidence only, got session %s without it", id)
	}
	holder, err := st.externalHolder(id, &events[0], taken)
	if err != nil || holder == uuid.Nil {
		return err
	}
	e, err := st.lookup(holder)
	if err == nil && e != nil && !e.row.Evidence {
		err = unauthorizedf("the external id is held by session %s, which is native; an import can't take it", holder)
	}
	return err
}

// externalHolder is another session that the external id of a creation stands
// for, uuid.Nil if none does.
func (st *stage) externalHolder(id uuid.UUID, created *pending, taken map[Hash]uuid.UUID) (uuid.UUID, error) {
	c, err := ParseCreated(created.event(id, 1, 0, 0))
	if err != nil {
		return uuid.Nil, badFacts(err)
	}
	if c.External == nil {
		return uuid.Nil, nil
	}
	holder, err := st.byName(name{nameExternal, c.External.IDHash})
	if holder == uuid.Nil && err == nil {
		holder = taken[c.External.IDHash]
	}
	taken[c.External.IDHash] = id
	if holder == id {
		holder = uuid.Nil
	}
	return holder, err
}

// authorizeChange: an operator or a harness changes a policy within its bound.
// A wider switch would be stored and then found out by every reader, for whom
// the log can't be read any more. Nothing else needs the policy to be read.
func (st *stage) authorizeChange(id uuid.UUID, events []pending, before *entry) error {
	switches := false
	for i := range events {
		p := &events[i]
		switch p.typ {
		case TypeSandboxMode, TypeApprovalPolicy:
			switches = true
		case TypePolicyNarrowed:
			if err := checkSpelling(p.event(id, before.row.Head+uint64(i)+1, 0, 0)); err != nil {
				return err
			}
		}
	}
	if !switches {
		return nil
	}
	stored, err := policyChain(before, st)
	if err != nil {
		return err
	}
	_, err = foldBounds(stored, id, events, before.row.Head)
	return err
}

// authorizeStore: the store's own session begins with its creation and holds
// rules. One event that no reader understands would deny every root everything
// and stop every delegation, for good.
func authorizeStore(id uuid.UUID, events []pending, before *entry) error {
	head := uint64(0)
	if before != nil {
		head = before.row.Head
	}
	for i := range events {
		ev := events[i].event(id, head+uint64(i)+1, 0, 0)
		switch {
		case ev.Inherited != nil:
			return unauthorizedf("event %d of the store's own session: got a seed copy", ev.Seq)
		case ev.Type == TypeStoreRules:
			if err := checkSpelling(ev); err != nil {
				return err
			}
		case ev.Type == TypeStoreImported: // of ImportLogs; no other entry point writes it
		case ev.Type == TypeStoreRollbackAccepted:
		case ev.Seq != 1 || !bytes.Equal(ev.Facts, StoreCreated().Facts): // of type session/created, or admit would have refused
			return unauthorizedf("event %d of the store's own session: got %s, want %s or %s behind the one creation", ev.Seq, ev.Type, TypeStoreRules, TypeStoreRollbackAccepted)
		}
	}
	return nil
}
