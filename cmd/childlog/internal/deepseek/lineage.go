package deepseek

import (
	"fmt"
	"path/filepath"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
)

// link finds the parent of a file. A session that is in the store already
// keeps the parent it has.
func (p *plan) link(f *file) error {
	done, err := p.tree.Stored(&f.Place, f.h.parentPlaceholder())
	if err != nil {
		return err
	}
	if done {
		if !f.New {
			return p.missing(f)
		}
		return nil
	}
	if !f.h.isChild() {
		return nil
	}
	if f.h.parent == "" {
		p.note(f, importer.CodeParentMissing, "the header says that this session was delegated and not by whom")
		return nil
	}
	parent, mark := uuid.Nil, importer.Inferred
	if f.h.parentPlaceholder() {
		parent = p.linkInferred(f)
	} else if parent, err = p.linkRecorded(f); err != nil {
		return err
	} else {
		mark = importer.Recorded
	}
	if parent == uuid.Nil {
		return nil
	}
	if closes, err := p.tree.Link(&f.Place, parent, mark); err != nil || closes {
		if closes {
			p.note(f, importer.CodeParentCycle, fmt.Sprintf("the parent %.80q descends from this session, or its line is endless; it is not linked", f.h.parent))
		}
		return err
	}
	return p.missing(f)
}

func (p *plan) note(f *file, code, detail string) {
	p.find(importer.Finding{Code: code, File: f.path, Line: 1, Session: f.Session, Detail: detail})
}

// linkInferred finds the parent among placeholders: the one file of the same
// folder and placeholder that lies one delegation above.
func (p *plan) linkInferred(f *file) uuid.UUID {
	var found *file
	for _, c := range p.byID[f.h.parent] {
		if c.Session == f.Session || filepath.Dir(c.path) != filepath.Dir(f.path) || !c.h.placeholder() || max(c.h.depth, 0) != f.h.depth-1 {
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
		return uuid.Nil
	}
	p.note(f, importer.CodeParentInferred, fmt.Sprintf("the parent %.80q is a placeholder; %s beside this file is the only one that can be it", f.h.parent, filepath.Base(found.path)))
	return found.Session
}

// linkRecorded finds the parent that the header names.
func (p *plan) linkRecorded(f *file) (uuid.UUID, error) {
	sessions := func(near bool) map[uuid.UUID]bool {
		set := map[uuid.UUID]bool{}
		for _, c := range p.byID[f.h.parent] {
			if !c.h.placeholder() && (!near || filepath.Dir(c.path) == filepath.Dir(f.path)) {
				set[c.Session] = true
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
			return id, nil
		}
	}
	if first := p.tree.ByKey(f.h.parent); first != nil && len(set) > 1 {
		p.note(f, codeParentUnclear, fmt.Sprintf("%d sessions have the id %.80q; the first, %s, is taken for the parent", len(set), f.h.parent, p.pathOf(first)))
		return first.Session, nil
	}
	id, native, err := p.tree.Resolve(f.h.parent)
	if err != nil {
		return uuid.Nil, err
	}
	if native {
		p.note(f, importer.CodeNativeParent, fmt.Sprintf("the id %.80q leads to the native session %s; an imported child is never attached to one", f.h.parent, id))
		return uuid.Nil, nil
	}
	return id, nil
}

func (p *plan) pathOf(place *importer.Place) string {
	for _, f := range p.files {
		if &f.Place == place {
			return f.path
		}
	}
	return ""
}

// missing reports a parent that is neither in this run nor in the store.
func (p *plan) missing(f *file) error {
	if f.Parent == uuid.Nil {
		return nil
	}
	known, err := p.tree.Known(f.Parent)
	if err == nil && !known {
		p.note(f, importer.CodeParentMissing, importer.MissingText(f.h.parent, f.Parent))
	}
	return err
}
