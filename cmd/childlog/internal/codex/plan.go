package codex

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
)

// file is one rollout of the run.
type file struct {
	importer.Place
	path string
	h    header

	label   string
	watched bool // some thread of the run may replay this one, or was spawned by it
}

// plan names all files and links them before the first of them is imported. It
// reads first lines only.
func (r *run) plan(ctx context.Context, paths []string) error {
	r.tree = importer.NewTree(r.S, System)
	for _, path := range paths {
		f := &file{path: path}
		line, err := importer.FirstLine(ctx, r.O.Files, path, r.Findings.Add)
		if err == nil {
			if f.h, err = parseHeader(line); err != nil {
				r.Findings.Add(importer.Finding{Code: importer.CodeNoHeader, File: path, Line: 1, Detail: err.Error()})
				err = importer.ErrSkip
			}
		}
		if err == nil {
			f.Sum, f.Child = f.h.sum, f.h.isChild()
			err = r.name(ctx, f)
		}
		switch {
		case errors.Is(err, importer.ErrSkip):
			r.Report.Skipped++
		case err != nil:
			return err
		default:
			r.files = append(r.files, f)
		}
	}
	for _, f := range r.files {
		if err := r.link(f); err != nil {
			return err
		}
	}
	for _, f := range r.files {
		if err := r.tree.Settle(&f.Place, f.h.depth); err != nil {
			return err
		}
	}
	r.files = importer.ParentsFirst(r.tree, r.files, func(f *file) *importer.Place { return &f.Place })
	r.watch()
	return nil
}

// name decides under which external id a file is kept.
func (r *run) name(ctx context.Context, f *file) error {
	key := f.h.id
	ok, why, detail, err := r.tree.Take(ctx, &f.Place, key)
	if err != nil {
		return err
	}
	if why != "" {
		r.find(f, why, 1, detail)
	}
	if !ok {
		return importer.ErrSkip
	}
	for _, problem := range f.h.problems {
		r.find(f, codeHeader, 1, problem)
	}
	return nil
}

// link finds the parent of a file. A session that is in the store already
// keeps the parent it has.
func (r *run) link(f *file) error {
	done, err := r.tree.Stored(&f.Place, false)
	if err != nil || done && (f.Parent == uuid.Nil || !f.New) {
		if err == nil && f.Parent != uuid.Nil {
			err = r.missing(f)
		}
		return err
	}
	switch {
	case done || !f.Child:
		return nil
	case f.h.parent == "":
		r.find(f, importer.CodeParentMissing, 1, "the header says that this thread was delegated and not by which")
		return nil
	}
	parent, native := uuid.Nil, false
	if place := r.tree.ByKey(f.h.parent); place != nil {
		parent = place.Session
	} else if parent, native, err = r.tree.Resolve(f.h.parent); err != nil {
		return err
	}
	if native {
		r.find(f, importer.CodeNativeParent, 1, fmt.Sprintf("the id %.80q leads to the native session %s; an imported child is never attached to one", f.h.parent, parent))
		return nil
	}
	if closes, err := r.tree.Link(&f.Place, parent, importer.Recorded); err != nil || closes {
		if closes {
			r.find(f, importer.CodeParentCycle, 1, fmt.Sprintf("the parent %.80q descends from this thread, or its line is endless; it is not linked", f.h.parent))
		}
		return err
	}
	return r.missing(f)
}

// missing reports a parent that is neither in this run nor in the store.
func (r *run) missing(f *file) error {
	known, err := r.tree.Known(f.Parent)
	if err == nil && !known {
		r.find(f, importer.CodeParentMissing, 1, importer.MissingText(f.h.parent, f.Parent))
	}
	return err
}

// watch marks the files of which others of the run need to know more.
func (r *run) watch() {
	bySession := map[uuid.UUID][]*file{}
	for _, f := range r.files {
		bySession[f.Session] = append(bySession[f.Session], f)
	}
	for _, f := range r.files {
		for _, parent := range bySession[f.Parent] {
			parent.watched = true
		}
		if place := r.tree.ByKey(f.h.forked); place != nil {
			for _, other := range bySession[place.Session] {
				other.watched = true
			}
		}
	}
}
