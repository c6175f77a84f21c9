package codex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// pass reads a rollout once: it maps every line, compares those that were
// imported before with the store, and appends the rest. What was rewritten is
// found before anything is appended, since the lines that the store has come
// first.
type pass struct {
	r      *run
	f      *file
	look   *importer.Lookout
	mapper *mapper
	notes  *notes
	sink   *importer.Sink  // nil: nothing is appended
	copied importer.Prefix // of an earlier copy in this run

	prefix  importer.Prefix
	known   int64 // lines that the store has
	beyond  int   // events that it has beyond the file's end
	changed bool
	events  int64 // that are appended, or would be in a dry run
	guessed int
	scratch []eventlog.NewEvent
	last    time.Time
}

func newPass(ctx context.Context, r *run, f *file) (*pass, error) {
	report := func(code string, line int64, detail string) { r.find(f, code, line, detail) }
	p := &pass{r: r, f: f, mapper: newMapper(&f.h, report), notes: newNotes()}
	turns, err := r.turnsOf(ctx, f)
	if err != nil {
		return nil, err
	}
	p.mapper.zone = newZone(&f.h, turns)
	if f.watched {
		p.notes.keepTurns, p.notes.turns = true, map[string]bool{}
	}
	if out := r.done[f.Session]; out != nil {
		p.copied = out.prefix
	}
	return p, nil
}

// run reads the file. What it appends is durable when the run's writer says so.
// Errors are the store's or ctx's; what is wrong with the file is a finding.
func (p *pass) run(ctx context.Context, in *importer.Input) (err error) {
	if p.look, err = importer.NewLookout(p.r.S, p.f.Session); err != nil {
		return err
	}
	lines, err := in.Lines(ctx, func(n int) { p.r.Progress(int64(n)) })
	if err != nil {
		p.r.find(p.f, importer.CodeUnreadableFile, 0, err.Error())
		return importer.ErrSkip
	}
	for {
		line, err := lines.Next()
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			lines.Ended(err, p.mapper.find)
			return p.end(ctx, in, lines, err == io.EOF)
		}
		if p.r.O.DryRun && line.Number == p.copied.Lines && lines.Prefix() != p.copied { // a copy that was not stored can't be compared line by line
			p.changed = true
			p.r.find(p.f, importer.CodeChanged, line.Number, "up to this line the file is not the copy that was read before it; nothing of it would be added")
			return nil
		}
		if err = p.line(ctx, line); errors.Is(err, importer.ErrChanged) {
			p.changed = true
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// line maps one line, and compares or appends its events.
func (p *pass) line(ctx context.Context, line importer.Line) error {
	if line.Number == 1 {
		return p.header(ctx, line)
	}
	out := p.mapper.next(line)
	for i := range out.parts {
		part := &out.parts[i]
		part.event.ID = importer.EventID(p.f.Session, line.Number, part.part, line.Sum)
	}
	seq, err := p.place(ctx, line, out.parts)
	if err != nil {
		return err
	}
	for i := range out.parts {
		if p.notes.bears(&out.parts[i].event) && !out.inherited {
			p.notes.event(p.f.Session, &out.parts[i].event, seq+uint64(i), line.Number)
		}
	}
	p.notes.line(&out, seq)
	if t := out.parts[0].event.Time; out.rec.doc != nil {
		p.last = t
	}
	if line.Number <= p.known || p.r.O.DryRun {
		return nil
	}
	if ev := &out.parts[0].event; ev.Type == eventlog.TypeHistoryCompacted {
		ev.Facts = importer.Facts("from", 1, "to", seq-1)
	}
	if out.inherited {
		ref, found, err := p.r.seeds.of(ctx, p.r.flush, p.f, &out, line)
		if err != nil {
			return err
		}
		if !found {
			p.guessed++
		}
		out.parts[0].event.Inherited = ref
	}
	return p.add(ctx, out.parts)
}

// place finds the seq of a line's first event: the store's if the line is
// there, else the one that it will get.
func (p *pass) place(ctx context.Context, line importer.Line, parts []part) (first uint64, err error) {
	for i := range parts {
		seq, there, err := p.look.Seq(ctx, parts[i].event.ID)
		if errors.Is(err, importer.ErrChanged) {
			p.r.find(p.f, importer.CodeChanged, line.Number, fmt.Sprintf("this line is not the one that was imported as seq %d; the file was rewritten, and nothing of it is added", seq))
		}
		if err != nil {
			return 0, err
		}
		if there {
			p.known = line.Number
		} else if line.Number > p.copied.Lines {
			p.events++
		}
		if i == 0 {
			first = seq
		}
	}
	return first, nil
}

// add appends the events of a line.
func (p *pass) add(ctx context.Context, parts []part) error {
	if p.sink == nil {
		p.sink = p.r.w.Sink(p.f.Session, p.look.Head(), p.f.Admit)
	}
	p.scratch = p.scratch[:0]
	for i := range parts {
		p.scratch = append(p.scratch, parts[i].event)
	}
	return p.sink.Add(ctx, p.scratch...)
}

// header writes the first events of a thread: session/created, the line itself,
// and the policy under which its parent delegated it, if that is known. A log
// that was imported without its parent's never gets the latter.
func (p *pass) header(ctx context.Context, line importer.Line) error {
	var c *call
	if parent := p.r.done[p.f.Parent]; parent != nil {
		c = parent.notes.callOf(&p.f.h)
	}
	created := p.f.Created(0)
	if c != nil && p.f.Parent != uuid.Nil {
		created.ParentSeq = c.seq
	}
	created.WorkspaceRoot, created.PathStyle = p.f.h.workspace, p.f.h.style
	if p.f.Child && eventlog.IsCode(p.f.h.origin) {
		created.Provider = eventlog.Provider{Name: p.f.h.origin} // where it runs is not recorded
	}
	first, err := p.f.CreatedEvent(created, p.f.label, p.f.h.cwd, p.f.h.created)
	if err != nil {
		return err
	}
	header := importer.Keep(importer.LineHeader, eventlog.MediaJSON, line.Bytes)
	header.Facts = importer.Facts("original", "session_meta", "line", importer.LineHeader)
	header.ID, header.Time = importer.EventID(p.f.Session, 1, importer.PartLine, line.Sum), p.f.h.created
	parts := []part{{importer.PartCreated, first}, {importer.PartLine, header}}
	seq, err := p.place(ctx, line, parts)
	if err != nil {
		return err
	}
	p.notes.event(p.f.Session, &first, seq, 1)
	if p.known == 1 {
		return p.knownBorn(ctx, line)
	}
	born := p.born(c, line)
	for i := range born {
		seq, err := p.place(ctx, line, born[i:i+1])
		if err != nil {
			return err
		}
		p.notes.event(p.f.Session, &born[i].event, seq, 1)
	}
	if p.r.O.DryRun {
		return nil
	}
	return p.add(ctx, append(parts, born...))
}

// knownBorn passes over the policy of the delegation, if the run that wrote the
// header knew it, and takes it from there: the parent's log may not be in this
// run.
func (p *pass) knownBorn(ctx context.Context, line importer.Line) error {
	stored, err := storedNotes(ctx, p.r.S, p.f.Session)
	if err != nil {
		return err
	}
	p.notes.parentSeq = stored.parentSeq
	for _, n := range []byte{partSandbox, partApprovals} {
		id := importer.EventID(p.f.Session, 1, n, line.Sum)
		if next, err := p.look.Peek(ctx); err != nil || next != id {
			if err != nil {
				return err
			}
			continue
		}
		if _, _, err := p.look.Seq(ctx, id); err != nil {
			return err
		}
		for i := range stored.policy {
			if ev := &stored.policy[i]; ev.ID == id {
				p.notes.take(ev, 1)
			}
		}
	}
	return nil
}

// born are the policy events of a child's delegation.
func (p *pass) born(c *call, line importer.Line) (out []part) {
	if c == nil || !p.f.Child {
		return nil
	}
	add := func(n byte, typ string, facts eventlog.Facts) {
		out = append(out, part{n, eventlog.NewEvent{ID: importer.EventID(p.f.Session, 1, n, line.Sum), Type: typ, Facts: facts, Time: p.f.h.created}})
	}
	if c.sandbox != nil {
		add(partSandbox, eventlog.TypeSandboxMode, eventlog.ImportedSandboxFacts(c.sandbox.value, eventlog.ClaimedInferred))
	}
	if c.approvals != nil {
		add(partApprovals, eventlog.TypeApprovalPolicy, eventlog.ImportedApprovalFacts(approvalOf(c.approvals), eventlog.ClaimedInferred))
	}
	return out
}

// end writes the run's last word, if there is something for it to say.
func (p *pass) end(ctx context.Context, in *importer.Input, lines *importer.LineReader, whole bool) error {
	p.prefix = lines.Prefix()
	if p.prefix.Lines == 0 {
		return nil
	}
	p.mapper.ended(p.prefix.Lines)
	beyond, head, source, err := p.look.Rest(ctx)
	if err != nil {
		return err
	}
	if p.beyond = beyond; beyond > 0 {
		p.r.find(p.f, importer.CodeShorter, p.prefix.Lines, fmt.Sprintf("the file ends here; %d more events were imported before and are kept", beyond))
	}
	if p.guessed > 0 {
		p.r.find(p.f, codeUnlinked, 0, fmt.Sprintf("of %d inherited lines the ancestor's log in the store has no copy; their place in it is a guess", p.guessed))
	}
	if p.prefix.Lines == p.known && (beyond > 0 || source >= uint64(p.known)) {
		return nil
	}
	if p.prefix.Lines > p.copied.Lines {
		p.events++
	}
	if p.r.O.DryRun {
		return nil
	}
	if p.sink == nil { // an earlier run ended between its lines and its last word
		p.sink = p.r.w.Sink(p.f.Session, head, p.f.Admit)
	}
	var more []any
	if n := p.mapper.zone.lines; n > 0 {
		more = []any{"inherited", n}
	}
	ev := p.f.SourceEvent(in, p.f.path, p.prefix, in.Packed() && whole, p.last, p.f.h.created, more...)
	return p.sink.AddApart(ctx, ev)
}
