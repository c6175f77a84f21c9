package claudecode

import (
	"context"
	"errors"
	"fmt"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// reader maps the lines of a file, conversation by conversation. Both passes
// over a file use it, and make the same events of the same lines.
type reader struct {
	shared  *shared
	router  *router
	mappers []*mapper
	find    func(code string, line int64, detail string)
}

func newReader(f *file, find func(code string, line int64, detail string)) *reader {
	r := &reader{shared: newShared(), router: newRouter(f.h.agent == ""), find: find}
	r.mappers = []*mapper{newMapper(r.shared, find)}
	return r
}

// next maps a line, and tells which conversation it belongs to.
func (r *reader) next(line importer.Line) (i int, out mapped) {
	o := r.shared.kept.Object(line, r.find)
	var e *entry
	if o.Doc != nil {
		parsed := parseEntry(o.Doc)
		if e = &parsed; e.typ == "" {
			e = nil
			r.shared.kept.Untyped++
			o.Event = importer.Keep(importer.LineUntyped, eventlog.MediaJSON, line.Bytes)
		}
	}
	i = r.router.of(line.Number, e, r.mappers[mainConv])
	if i == len(r.mappers) {
		r.mappers = append(r.mappers, newMapper(r.shared, r.find))
	}
	return i, r.mappers[i].next(line, &o, e)
}

// scan is the first pass over a file: it compares the lines that were imported
// before with the store, and collects what the reports need. It writes
// nothing, so that a file can be refused as a whole.
type scan struct {
	f       *file
	prefix  importer.Prefix
	convs   []*conv
	kept    importer.Kept
	bad     int64 // unreadable lines
	changed bool
	refs    *origins
}

// scanFile reads a file whole. Errors are the store's or ctx's; what is wrong
// with the file is a finding.
func (r *run) scanFile(ctx context.Context, f *file, in *importer.Input, read func(int)) (*scan, error) {
	sc := &scan{f: f, refs: r.origins(f)}
	report := func(code string, line int64, detail string) { r.find(f, code, line, detail) }
	lines, err := in.Lines(ctx, read)
	if err != nil {
		report(importer.CodeUnreadableFile, 0, err.Error())
		return nil, importer.ErrSkip
	}
	main, err := r.conv(f, &f.Place)
	if err != nil {
		return nil, err
	}
	if r.plan.copied[f.Session] {
		main.notes.uuids = map[key]uint64{}
	}
	sc.convs = []*conv{main}
	rd := newReader(f, report)
	var seqs []uint64
	for {
		line, err := lines.Next()
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if lines.Ended(err, report) {
				sc.bad++
			}
			break
		}
		i, out := rd.next(line)
		if i == len(sc.convs) {
			c, err := r.sidechain(ctx, f, &out, line)
			if err != nil {
				return nil, err
			}
			sc.convs = append(sc.convs, c)
		}
		if seqs, err = sc.line(ctx, sc.convs[i], line, &out, seqs); err != nil {
			if ce := (changedError{}); errors.As(err, &ce) {
				sc.changed = true
				report(importer.CodeChanged, line.Number, ce.Error())
				return sc, nil
			}
			return nil, err
		}
	}
	sc.prefix, sc.kept = lines.Prefix(), rd.shared.kept
	if n := sc.refs.guessed; n > 0 {
		report(codeUnlocated, 0, fmt.Sprintf("%d lines say that they are copies of lines that neither this run nor the store has; their places there are made up", n))
	}
	for _, c := range sc.convs {
		if err := c.rest(ctx); err != nil {
			return nil, err
		}
		if c.beyond > 0 && sc.prefix.Lines > 0 {
			report(importer.CodeShorter, sc.prefix.Lines, fmt.Sprintf("the file ends here; %d more events of %s were imported before and are kept", c.beyond, c.place.Key))
		}
	}
	return sc, nil
}

// line takes a mapped line into account.
func (sc *scan) line(ctx context.Context, c *conv, line importer.Line, out *mapped, seqs []uint64) ([]uint64, error) {
	if out.bad {
		sc.bad++
	}
	seqs, err := c.compare(ctx, line, out, seqs)
	if err != nil {
		return nil, err
	}
	ref, err := sc.refs.of(ctx, out.e, line.Number)
	if err != nil {
		return nil, err
	}
	if ref != nil {
		c.inherited++
		return seqs, nil
	}
	c.notes.line(out, line, seqs)
	return seqs, nil
}

// conv begins a conversation.
func (r *run) conv(f *file, place *importer.Place) (*conv, error) {
	look, err := importer.NewLookout(r.S, place.Session)
	report := func(code string, line int64, seq uint64, detail string) {
		r.Findings.Add(importer.Finding{Code: code, File: f.path, Line: line, Session: place.Session, Seq: seq, Detail: detail})
	}
	return &conv{f: f, place: place, agent: f.h.agent, look: look, notes: newNotes(place, report), callMark: importer.Absent, born: importer.Fact{Mark: importer.Absent}}, err
}

// sidechain begins the conversation of a sidechain that a session's file holds.
func (r *run) sidechain(ctx context.Context, f *file, out *mapped, line importer.Line) (*conv, error) {
	place := &importer.Place{Sum: line.Sum, Child: true}
	key := f.Key + "/" + chainName(out.e)
	ok, why, detail, err := r.plan.tree.Take(ctx, place, key)
	if err != nil {
		return nil, err
	}
	if !ok {
		r.find(f, why, line.Number, "a sidechain: "+detail+", nor of the file that holds it")
		return nil, importer.ErrSkip
	}
	if done, err := r.plan.tree.Stored(place, false); err != nil {
		return nil, err
	} else if !done {
		if err := r.plan.attach(f.path, place, f.Key, importer.Recorded); err != nil {
			return nil, err
		}
	}
	if err := r.plan.tree.Settle(place, -1); err != nil {
		return nil, err
	}
	c, err := r.conv(f, place)
	if err != nil {
		return nil, err
	}
	c.chain, c.agent = true, importer.Bounded(str(out.e.agent))
	return c, nil
}
