package deepseek

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// file is one log of the run.
type file struct {
	path    string
	h       header
	key     string // external id
	session uuid.UUID
	isNew   bool // the store has no such session yet

	parent     uuid.UUID // uuid.Nil: none that can be named
	parentMark string
	root       uuid.UUID
	depth      int
}

// plan is what is known of all files before the first of them is imported:
// who is who, and whose child. It reads first lines only.
type plan struct {
	s       *eventlog.Store
	files   []*file
	byID    map[string][]*file  // by the id in the header
	owner   map[string]*file    // by external id, the first of the run
	bySess  map[uuid.UUID]*file // likewise
	parents map[uuid.UUID]uuid.UUID
	find    func(importer.Finding)
	skipped int
}

func makePlan(ctx context.Context, s *eventlog.Store, paths []string, find func(importer.Finding)) (*plan, error) {
	p := &plan{s: s, byID: map[string][]*file{}, owner: map[string]*file{}, bySess: map[uuid.UUID]*file{}, parents: map[uuid.UUID]uuid.UUID{}, find: find}
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := readHeader(ctx, path, find)
		if errors.Is(err, errSkip) {
			p.skipped++
			continue
		}
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, &file{path: path, h: h})
	}
	kept := p.files[:0]
	for _, f := range p.files {
		err := p.name(ctx, f)
		if errors.Is(err, errSkip) {
			p.skipped++
			continue
		}
		if err != nil {
			return nil, err
		}
		kept = append(kept, f)
	}
	p.files = kept
	for _, f := range p.files {
		if err := p.link(f); err != nil {
			return nil, err
		}
	}
	for _, f := range p.files {
		if err := p.place(f); err != nil {
			return nil, err
		}
	}
	p.sort()
	return p, nil
}

// errSkip says that a file was reported and takes no further part.
var errSkip = errors.New("skipped")

// readHeader reads a file's first line.
func readHeader(ctx context.Context, path string, find func(importer.Finding)) (header, error) {
	skip := func(code, detail string) (header, error) {
		find(importer.Finding{Code: code, File: path, Line: 1, Detail: detail})
		return header{}, errSkip
	}
	in, err := importer.OpenInput(path)
	if err != nil {
		return skip(importer.CodeUnreadableFile, err.Error())
	}
	defer in.Close()
	lines, err := in.Lines(ctx, nil)
	if err != nil {
		return skip(importer.CodeUnreadableFile, err.Error())
	}
	line, err := lines.Next()
	if ctx.Err() != nil {
		return header{}, ctx.Err()
	}
	if err != nil {
		if lines.Torn() > 0 {
			return skip(importer.CodeTorn, fmt.Sprintf("%d bytes without a newline: no whole line yet", lines.Torn()))
		}
		return skip(importer.CodeNoHeader, "no line in it")
	}
	if line.TooLong {
		return skip(importer.CodeNoHeader, errNoHeader.Error())
	}
	h, err := parseHeader(line.Bytes)
	if err != nil {
		return skip(importer.CodeNoHeader, err.Error())
	}
	return h, nil
}

// headerEvent is the id of the event that keeps a header: by it a session is
// known to be of this very header.
func headerEvent(session uuid.UUID, h *header) uuid.UUID {
	return importer.EventID(session, 1, partHeader, h.sum)
}

// Parts of the first line, which gives rise to two events, and of a run's end.
const (
	partHeader  = 0
	partCreated = 1
	partSource  = 2
)

// name decides under which external id a file is kept.
func (p *plan) name(ctx context.Context, f *file) error {
	key := f.h.id
	if f.h.placeholder() {
		dir, name := filepath.Split(f.path)
		sum := sha256.Sum256(fmt.Appendf(nil, "%x\x00%s\x00%s", f.h.sum, filepath.Base(dir), name))
		key = f.h.id + "#" + importer.Short(sum)
	}
	ok, why, err := p.take(ctx, f, key)
	if err == nil && !ok { // another's: a digest of the header makes the key this session's own
		ok, _, err = p.take(ctx, f, key+"#"+importer.Short(f.h.sum))
	}
	if err != nil {
		return err
	}
	if !ok {
		p.note(f, why, fmt.Sprintf("the id %.80q is another session's, and no other is left", key))
		return errSkip
	}
	for _, problem := range f.h.problems {
		p.note(f, codeHeader, problem)
	}
	if f.h.placeholder() {
		p.note(f, codePlaceholder, fmt.Sprintf("the id %.80q names no session; the file is kept as %s, by its header, its folder's name and its own", f.h.id, f.key))
	}
	if why != "" {
		p.note(f, why, fmt.Sprintf("the id %.80q is another session's; this one is kept as %s", key, f.key))
	}
	return nil
}

// take claims a key for a file, unless it stands for another session: one of
// another header, or a native one.
func (p *plan) take(ctx context.Context, f *file, key string) (ok bool, why string, err error) {
	id, err := p.s.ByExternal(System, key)
	switch {
	case errors.Is(err, eventlog.ErrNotFound):
	case err != nil:
		return false, "", err
	default:
		row, err := p.s.Row(id)
		if err != nil {
			return false, "", err
		}
		if !row.Evidence {
			return false, importer.CodeNativeID, nil
		}
		page, err := p.s.Read(ctx, id, eventlog.ReadOptions{From: 2, To: 2})
		if err != nil {
			return false, "", err
		}
		if len(page.Events) == 1 && page.Events[0].ID != headerEvent(id, &f.h) {
			return false, codeCollision, nil
		}
		p.claim(f, key, id)
		return true, "", nil
	}
	if first := p.owner[key]; first != nil {
		if first.h.sum != f.h.sum {
			return false, codeCollision, nil
		}
		p.claim(f, key, first.session)
		f.isNew = true
		return true, "", nil
	}
	id = importer.SessionID(System, key)
	if _, err := p.s.Row(id); err == nil {
		// Somebody made a session of just this id. It is not ours, and is left alone.
		if id, err = uuid.NewRandom(); err != nil {
			return false, "", err
		}
	} else if !errors.Is(err, eventlog.ErrNotFound) {
		return false, "", err
	}
	p.claim(f, key, id)
	f.isNew = true
	return true, "", nil
}

func (p *plan) claim(f *file, key string, id uuid.UUID) {
	f.key, f.session = key, id
	p.byID[f.h.id] = append(p.byID[f.h.id], f)
	if p.owner[key] == nil {
		p.owner[key], p.bySess[id] = f, f
	}
}

// sort puts parents before their children, so that a child's seed and its call
// can be found in the parent's log; else the order of the files stays.
func (p *plan) sort() {
	done := map[*file]bool{}
	out := make([]*file, 0, len(p.files))
	for _, f := range p.files {
		var chain []*file
		for cur := f; cur != nil && !done[cur]; cur = p.bySess[cur.parent] {
			done[cur] = true
			chain = append(chain, cur)
			if cur.parent == uuid.Nil {
				break
			}
		}
		for i := len(chain) - 1; i >= 0; i-- {
			out = append(out, chain[i])
		}
	}
	p.files = out
}
