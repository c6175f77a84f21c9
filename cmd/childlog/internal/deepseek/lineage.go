package deepseek

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// maxChain bounds the walk from a session to its root. A harness stops after
// a few delegations; a chain of thousands is made up.
const maxChain = 4096

// link finds the parent of a file. A session that is in the store already
// keeps the parent it has.
func (p *plan) link(f *file) error {
	if !f.isNew {
		row, err := p.s.Row(f.session)
		if err != nil {
			return err
		}
		f.parent, f.parentMark = row.Parent, importer.Absent
		if f.parent != uuid.Nil {
			f.parentMark = importer.Recorded
			if f.h.parentPlaceholder() {
				f.parentMark = importer.Inferred
			}
			p.parents[f.session] = f.parent
			return p.missing(f)
		}
		return nil
	}
	if first := p.bySess[f.session]; first != f { // a copy of a file of this run
		f.parent, f.parentMark = first.parent, first.parentMark
		return nil
	}
	f.parentMark = importer.Absent
	if !f.h.isChild() {
		return nil
	}
	if f.h.parent == "" {
		p.note(f, importer.CodeParentMissing, "the header says that this session was delegated and not by whom")
		return nil
	}
	var err error
	if f.h.parentPlaceholder() {
		p.linkInferred(f)
	} else if err = p.linkRecorded(f); err != nil {
		return err
	}
	if f.parent == uuid.Nil {
		return nil
	}
	if closed, err := p.closesCircle(f); err != nil || closed {
		if closed {
			p.note(f, importer.CodeParentCycle, fmt.Sprintf("the parent %.80q descends from this session, or its line is endless; it is not linked", f.h.parent))
			f.parent, f.parentMark = uuid.Nil, importer.Absent
		}
		return err
	}
	p.parents[f.session] = f.parent
	return p.missing(f)
}

func (p *plan) note(f *file, code, detail string) {
	p.find(importer.Finding{Code: code, File: f.path, Line: 1, Session: f.session, Detail: detail})
}

// linkInferred finds the parent among placeholders: the one file of the same
// folder and placeholder that lies one delegation above.
func (p *plan) linkInferred(f *file) {
	var found *file
	for _, c := range p.byID[f.h.parent] {
		if c.session == f.session || filepath.Dir(c.path) != filepath.Dir(f.path) || !c.h.placeholder() || max(c.h.depth, 0) != f.h.depth-1 {
			continue
		}
		if found != nil {
			found = nil
			break
		}
		found = c
	}
	if found == nil {
		p.note(f, importer.CodeParentMissing, fmt.Sprintf("the parent %.80q is a placeholder, and no single file beside this one can be it", f.h.parent))
		return
	}
	f.parent, f.parentMark = found.session, importer.Inferred
	p.note(f, importer.CodeParentInferred, fmt.Sprintf("the parent %.80q is a placeholder; %s beside this file is the only one that can be it", f.h.parent, filepath.Base(found.path)))
}

// linkRecorded finds the parent that the header names.
func (p *plan) linkRecorded(f *file) error {
	sessions := func(near bool) map[uuid.UUID]bool {
		set := map[uuid.UUID]bool{}
		for _, c := range p.byID[f.h.parent] {
			if !c.h.placeholder() && (!near || filepath.Dir(c.path) == filepath.Dir(f.path)) {
				set[c.session] = true
			}
		}
		return set
	}
	set := sessions(true)
	if len(set) != 1 {
		set = sessions(false)
	}
	if len(set) == 1 {
		for id := range set {
			f.parent, f.parentMark = id, importer.Recorded
		}
		return nil
	}
	if first := p.owner[f.h.parent]; first != nil && len(set) > 1 {
		f.parent, f.parentMark = first.session, importer.Recorded
		p.note(f, codeParentUnclear, fmt.Sprintf("%d sessions have the id %.80q; the first, %s, is taken for the parent", len(set), f.h.parent, first.path))
		return nil
	}
	id, err := p.s.ByExternal(System, f.h.parent)
	if errors.Is(err, eventlog.ErrNotFound) {
		id, err = importer.SessionID(System, f.h.parent), nil // the id it will have
	}
	if err != nil {
		return err
	}
	row, err := p.s.Row(id)
	switch {
	case err == nil && !row.Evidence:
		p.note(f, importer.CodeNativeParent, fmt.Sprintf("the id %.80q leads to the native session %s; an imported child is never attached to one", f.h.parent, id))
		return nil
	case err != nil && !errors.Is(err, eventlog.ErrNotFound):
		return err
	}
	f.parent, f.parentMark = id, importer.Recorded
	return nil
}

// missing reports a parent that is neither in this run nor in the store.
func (p *plan) missing(f *file) error {
	if p.bySess[f.parent] != nil {
		return nil
	}
	_, err := p.s.Row(f.parent)
	if errors.Is(err, eventlog.ErrNotFound) {
		p.note(f, importer.CodeParentMissing, fmt.Sprintf("the parent's log %.80q was not imported; the link points to the id that it will have, %s", f.h.parent, f.parent))
		return nil
	}
	return err
}

// above is a session's parent, by this run's links or the store's.
func (p *plan) above(id uuid.UUID) (parent uuid.UUID, depth int, known bool, err error) {
	if parent, ok := p.parents[id]; ok {
		return parent, 0, true, nil
	}
	row, err := p.s.Row(id)
	if errors.Is(err, eventlog.ErrNotFound) {
		return uuid.Nil, 0, false, nil
	}
	return row.Parent, row.Depth, err == nil, err
}

// closesCircle walks up from the parent that was found. The last link of a
// circle is always the one under test, so no circle is ever stored, and a walk
// over stored links ends.
func (p *plan) closesCircle(f *file) (bool, error) {
	cur := f.parent
	for range maxChain {
		if cur == f.session {
			return true, nil
		}
		if cur == uuid.Nil {
			return false, nil
		}
		var err error
		if cur, _, _, err = p.above(cur); err != nil {
			return false, err
		}
	}
	return true, nil
}

// place finds the root of a file's tree, as far up as links lead, and how deep
// it lies: by its own word, else by counting.
func (p *plan) place(f *file) error {
	steps, cur := 0, f.session
	f.root = f.session
	for cur = f.parent; cur != uuid.Nil && steps <= maxChain; steps++ {
		f.root = cur
		next, _, _, err := p.above(cur)
		if err != nil {
			return err
		}
		cur = next
	}
	if f.depth = f.h.depth; f.depth < 0 {
		f.depth = steps
	}
	if f.h.isChild() {
		f.depth = max(1, f.depth)
	}
	return nil
}
