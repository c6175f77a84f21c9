package claudecode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// file is one file of the run. Its Place is that of its main conversation.
type file struct {
	importer.Place
	path    string
	h       head
	sources []uuid.UUID // sessions that lines of it may be copies of, the likeliest first
}

// plan is what is known of all files before the first of them is imported:
// who is who, whose child, and whose copy. It reads the files' beginnings only.
type plan struct {
	s       *eventlog.Store
	files   []*file
	tree    *importer.Tree
	find    func(importer.Finding)
	copied  map[uuid.UUID]bool // sessions that others may be copies of
	agents  map[string]int     // agents of a session by type, see typeKey
	family  map[string][]*file // by session id
	skipped int
}

func makePlan(ctx context.Context, from files.Files, s *eventlog.Store, paths []string, find func(importer.Finding)) (*plan, error) {
	p := &plan{s: s, tree: importer.NewTree(s, System), find: find, copied: map[uuid.UUID]bool{}, agents: map[string]int{}, family: map[string][]*file{}}
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := readHead(ctx, from, path, find)
		if errors.Is(err, importer.ErrSkip) {
			p.skipped++
			continue
		}
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, &file{path: path, h: h, Place: importer.Place{Sum: h.sum, Child: h.agent != ""}})
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
		p.family[f.h.session] = append(p.family[f.h.session], f)
		if f.h.delegated() && p.tree.Of(f.Session) == &f.Place {
			p.agents[typeKey(f.h.session, f.h.side.agentType)]++
		}
	}
	if err := p.forks(); err != nil {
		return nil, err
	}
	for _, f := range p.files {
		if err := p.tree.Settle(&f.Place, f.h.side.depth); err != nil {
			return nil, err
		}
	}
	p.order()
	return p, nil
}

func (p *plan) note(f *file, code, detail string) {
	p.find(importer.Finding{Code: code, File: f.path, Line: 1, Session: f.Session, Detail: detail})
}

// typeKey counts the agents of one type in one session.
func typeKey(session, agentType string) string { return session + "\x00" + agentType }

// name decides under which external id a file's main conversation is kept.
func (p *plan) name(ctx context.Context, f *file) error {
	key := f.h.key()
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
	for _, problem := range f.h.problems {
		p.note(f, codeOtherAgent, problem)
	}
	if f.h.side.problem != "" {
		p.note(f, codeSidecar, f.h.side.problem)
	}
	return nil
}

// link finds the parent of an agent: the agent that its sidecar names, else
// its session. A call in a log that was not read yet may know better; see
// run.relink.
func (p *plan) link(f *file) error {
	mark := importer.Inferred // by the folder alone
	if f.h.named == f.h.session || f.h.side.parent != "" {
		mark = importer.Recorded
	}
	done, err := p.tree.Stored(&f.Place, mark == importer.Inferred)
	if err != nil || done || f.h.agent == "" {
		return err
	}
	if f.h.session == "" {
		p.note(f, importer.CodeParentMissing, "neither the folder nor a line names the session of this agent")
		return nil
	}
	key := f.h.session
	if f.h.side.parent != "" {
		key = agentKey(f.h.session, importer.Bounded(f.h.side.parent))
	}
	return p.attach(f.path, &f.Place, key, mark)
}

// attach links a conversation to the one of an external id.
func (p *plan) attach(path string, place *importer.Place, key, mark string) error {
	note := func(code, detail string) {
		p.find(importer.Finding{Code: code, File: path, Line: 1, Session: place.Session, Detail: detail})
	}
	parent := uuid.Nil
	if in := p.tree.ByKey(key); in != nil {
		parent = in.Session
	} else {
		id, native, err := p.tree.Resolve(key)
		if err != nil {
			return err
		}
		if native {
			note(importer.CodeNativeParent, fmt.Sprintf("the id %.80q leads to the native session %s; an imported child is never attached to one", key, id))
			return nil
		}
		parent = id
	}
	closes, err := p.tree.Link(place, parent, mark)
	if err != nil {
		return err
	}
	if closes {
		note(importer.CodeParentCycle, fmt.Sprintf("the parent %.80q descends from this one, or its line is endless; it is not linked", key))
		return nil
	}
	known, err := p.tree.Known(parent)
	if err == nil && !known {
		note(importer.CodeParentMissing, importer.MissingText(key, parent))
	}
	return err
}

// forks finds sessions that begin with copies of another's lines. Some copies
// say so on each line; others only share uuids and times, and then the one that
// began first is taken for the original.
func (p *plan) forks() error {
	groups := map[string][]*file{}
	for _, f := range p.files {
		switch {
		case f.h.compact && f.Parent != uuid.Nil:
			f.sources = append(f.sources, f.Parent) // what it was given to summarize
		case f.h.agent != "":
		case f.h.forked != "" && f.h.forked != f.h.session:
			id, native, err := p.tree.Resolve(f.h.forked)
			if err != nil {
				return err
			}
			if !native {
				f.sources = append(f.sources, id)
			}
		case f.h.firstUUID != "":
			key := f.h.firstUUID + "\x00" + f.h.firstTime
			groups[key] = append(groups[key], f)
		}
	}
	for _, group := range groups {
		slices.SortStableFunc(group, func(a, b *file) int {
			return cmp.Or(a.h.created.Compare(b.h.created), a.h.before.Compare(b.h.before), cmp.Compare(a.path, b.path))
		})
		for i, f := range group {
			for _, source := range group[:i] {
				if source.Session != f.Session && !slices.Contains(f.sources, source.Session) {
					f.sources = append(f.sources, source.Session)
				}
			}
			if len(f.sources) > 0 {
				p.note(f, codeForkInferred, fmt.Sprintf("it begins with the same line as %s, which began earlier as far as their lines tell; lines that both hold count there alone", group[0].Key))
			}
		}
	}
	for _, f := range p.files {
		if named := f.h.named; f.h.agent == "" && named != f.h.session && p.tree.ByKey(named) != nil && len(f.sources) == 0 {
			f.sources = append(f.sources, p.tree.ByKey(named).Session) // copied with the original's session id
		}
		for _, id := range f.sources {
			p.copied[id] = true
		}
	}
	return nil
}

// order puts what others refer to before them: parents before their agents,
// originals before their copies. The files of a session stay together, the
// agents that it made before those that agents made, so that a call is known
// when its agent is linked.
func (p *plan) order() {
	begins := map[string]int{}
	for i, f := range p.files {
		if p.family[f.h.session][0] == f {
			begins[f.h.session] = i
		}
	}
	level := func(f *file) int {
		if f.h.agent == "" {
			return -1
		}
		return max(f.h.side.depth, 0)
	}
	slices.SortStableFunc(p.files, func(a, b *file) int {
		return cmp.Or(cmp.Compare(begins[a.h.session], begins[b.h.session]), cmp.Compare(level(a), level(b)))
	})
	first := map[uuid.UUID]*file{}
	for i := len(p.files) - 1; i >= 0; i-- {
		first[p.files[i].Session] = p.files[i]
	}
	out := make([]*file, 0, len(p.files))
	state := map[*file]int{} // 1: waits for those before it; 2: done
	for _, f := range p.files {
		stack := []*file{f}
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			if state[at] == 0 {
				state[at] = 1
				for _, id := range append([]uuid.UUID{at.Parent}, at.sources...) {
					if before := first[id]; before != nil && state[before] == 0 {
						stack = append(stack, before)
					}
				}
				if stack[len(stack)-1] != at {
					continue
				}
			}
			stack = stack[:len(stack)-1]
			if state[at] != 2 {
				state[at] = 2
				out = append(out, at)
			}
		}
	}
	p.files = out
}
