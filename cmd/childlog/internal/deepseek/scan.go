package deepseek

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// scan is the first pass over a file: it maps every line, compares the ones
// that were imported before with the store, and collects what the reports
// need. It writes nothing, so that a file can be refused as a whole.
type scan struct {
	prefix importer.Prefix
	head   uint64 // of the session in the store, 0 if there is none
	known  int64  // lines that the store has
	source uint64 // lines, by the store's last import/source
	bad    int64  // unreadable lines
	beyond int    // lines that the store has beyond the file's end

	changed   bool
	inherited int64
	mapper    *mapper // as it stands behind the known lines
	kept      importer.Kept
	notes     *notes
}

// scanFile reads a file whole. Errors are the store's or ctx's; what is wrong
// with the file is a finding.
func scanFile(ctx context.Context, s *eventlog.Store, f *file, in *importer.Input, read func(int), find func(importer.Finding)) (*scan, error) {
	sc := &scan{notes: newNotes(f)}
	look, err := importer.NewLookout(s, f.Session)
	if err != nil {
		return nil, err
	}
	report := func(code string, line int64, detail string) {
		find(importer.Finding{Code: code, File: f.path, Line: line, Session: f.Session, Detail: detail})
	}
	m := newMapper(&f.h, report)
	lines, err := in.Lines(ctx, read)
	if err != nil {
		report(importer.CodeUnreadableFile, 0, err.Error())
		return nil, importer.ErrSkip
	}
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
		seq, there, err := sc.line(ctx, look, m, line)
		if errors.Is(err, importer.ErrChanged) {
			sc.changed = true
			report(importer.CodeChanged, line.Number, fmt.Sprintf("this line is not the one that was imported as seq %d; the file was rewritten, and nothing of it is added", seq))
			return sc, nil
		}
		if err != nil {
			return nil, err
		}
		if there {
			sc.known = line.Number
		}
	}
	sc.prefix = lines.Prefix()
	sc.kept = m.kept
	if sc.mapper == nil {
		sc.mapper = m.clone()
	}
	return sc, sc.rest(ctx, look, report)
}

// line compares and maps one line.
func (sc *scan) line(ctx context.Context, look *importer.Lookout, m *mapper, line importer.Line) (seq uint64, there bool, err error) {
	id := func(part byte) uuid.UUID { return importer.EventID(sc.notes.f.Session, line.Number, part, line.Sum) }
	if line.Number == 1 {
		if seq, there, err = look.Seq(ctx, id(importer.PartCreated)); err == nil {
			sc.notes.created(seq)
			seq, there, err = look.Seq(ctx, id(importer.PartLine))
		}
		return seq, there, err
	}
	if seq, there, err = look.Seq(ctx, id(importer.PartLine)); err != nil {
		return seq, there, err
	}
	if !there && sc.mapper == nil {
		sc.mapper = m.clone()
	}
	out := m.next(line)
	if out.bad {
		sc.bad++
	}
	if out.inherited {
		sc.inherited++
	}
	sc.notes.line(&out, line, seq)
	return seq, there, nil
}

// rest looks at what the store has beyond the file, and at the seed's end.
func (sc *scan) rest(ctx context.Context, look *importer.Lookout, report func(string, int64, string)) (err error) {
	if sc.beyond, sc.head, sc.source, err = look.Rest(ctx); err != nil {
		return err
	}
	if sc.beyond > 0 && sc.prefix.Lines > 0 {
		report(importer.CodeShorter, sc.prefix.Lines, fmt.Sprintf("the file ends here; %d more lines were imported before and are kept", sc.beyond))
	}
	h := sc.notes.f.h
	if end := sc.notes.ordinal; h.seedState == stated && end < h.seed {
		report(codeSeedBoundary, sc.prefix.Lines, fmt.Sprintf("the file ends inside its seed, after %d of %d events: all of it counts as the parent's", end, h.seed))
	}
	return nil
}
