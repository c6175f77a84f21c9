package deepseek

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"

	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// file is one log of the run.
type file struct {
	importer.Place
	path string
	h    header
}

// plan is what is known of all files before the first of them is imported:
// who is who, and whose child. It reads first lines only.
type plan struct {
	s       *eventlog.Store
	files   []*file
	tree    *importer.Tree
	byID    map[string][]*file // by the id in the header
	find    func(importer.Finding)
	skipped int
}

func makePlan(ctx context.Context, from files.Files, s *eventlog.Store, paths []string, find func(importer.Finding)) (*plan, error) {
	p := &plan{s: s, tree: importer.NewTree(s, System), byID: map[string][]*file{}, find: find}
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := readHeader(ctx, from, path, find)
		if errors.Is(err, importer.ErrSkip) {
			p.skipped++
			continue
		}
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, &file{path: path, h: h, Place: importer.Place{Sum: h.sum, Child: h.isChild()}})
	}
	named, err := importer.Taken(p.files, func(f *file) error { return p.name(ctx, f) })
	if err != nil {
		return nil, err
	}
	p.skipped += len(p.files) - len(named)
	p.files = named
	for _, f := range p.files {
		if err := p.link(f); err != nil {
			return nil, err
		}
	}
	for _, f := range p.files {
		if err := p.tree.Settle(&f.Place, f.h.depth); err != nil {
			return nil, err
		}
	}
	p.files = importer.ParentsFirst(p.tree, p.files, func(f *file) *importer.Place { return &f.Place })
	return p, nil
}

// readHeader reads a file's first line.
func readHeader(ctx context.Context, from files.Files, path string, find func(importer.Finding)) (header, error) {
	line, err := importer.FirstLine(ctx, from, path, find)
	if err != nil {
		return header{}, err
	}
	h, err := parseHeader(line)
	if err != nil {
		find(importer.Finding{Code: importer.CodeNoHeader, File: path, Line: 1, Detail: err.Error()})
		return header{}, importer.ErrSkip
	}
	return h, nil
}

// name decides under which external id a file is kept.
func (p *plan) name(ctx context.Context, f *file) error {
	key := f.h.id
	if f.h.placeholder() {
		dir, name := filepath.Split(f.path)
		sum := sha256.Sum256(fmt.Appendf(nil, "%x\x00%s\x00%s", f.h.sum, filepath.Base(dir), name))
		key = f.h.id + "#" + importer.Short(sum)
	}
	ok, why, detail, err := p.tree.Take(ctx, &f.Place, key)
	if err != nil {
		return err
	}
	if why != "" {
		p.note(f, why, detail)
	}
	if !ok {
		return importer.ErrSkip
	}
	p.byID[f.h.id] = append(p.byID[f.h.id], f)
	for _, problem := range f.h.problems {
		p.note(f, codeHeader, problem)
	}
	if f.h.placeholder() {
		p.note(f, codePlaceholder, fmt.Sprintf("the id %.80q names no session; the file is kept as %s, by its header, its folder's name and its own", f.h.id, f.Key))
	}
	return nil
}
