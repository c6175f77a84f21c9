package deepseek

import (
	"context"
	"errors"
	"fmt"
	"io"

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

// lookout compares lines with what the store has of them.
type lookout struct {
	cursor  *importer.Cursor
	session uuid.UUID
	stored  bool // there may be more
	head    uint64
}

// errChanged: the store has another line at this place.
var errChanged = errors.New("changed")

// seq returns the seq of a line's event: the store's if the line is there,
// else the one it will get.
func (l *lookout) seq(ctx context.Context, line int64, part byte, sum [32]byte) (seq uint64, there bool, err error) {
	if l.stored {
		ev, err := l.cursor.Next(ctx)
		if err != nil {
			return 0, false, err
		}
		if ev != nil {
			if ev.ID != importer.EventID(l.session, line, part, sum) {
				return ev.Seq, true, errChanged
			}
			return ev.Seq, true, nil
		}
		l.stored, l.head = false, l.cursor.Head
	}
	l.head++
	return l.head, false, nil
}

// scanFile reads a file whole. Errors are the store's or ctx's; what is wrong
// with the file is a finding.
func scanFile(ctx context.Context, s *eventlog.Store, f *file, in *importer.Input, read func(int), find func(importer.Finding)) (*scan, error) {
	sc := &scan{notes: newNotes(f)}
	_, err := s.Row(f.session)
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return nil, err
	}
	look := &lookout{cursor: importer.NewCursor(s, f.session), session: f.session, stored: err == nil}
	report := func(code string, line int64, detail string) {
		find(importer.Finding{Code: code, File: f.path, Line: line, Session: f.session, Detail: detail})
	}
	m := newMapper(&f.h, report)
	lines, err := in.Lines(ctx, read)
	if err != nil {
		report(importer.CodeUnreadableFile, 0, err.Error())
		return nil, errSkip
	}
	for {
		line, err := lines.Next()
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			sc.ended(lines, err, report)
			break
		}
		seq, there, err := sc.line(ctx, look, m, line)
		if errors.Is(err, errChanged) {
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
func (sc *scan) line(ctx context.Context, look *lookout, m *mapper, line importer.Line) (seq uint64, there bool, err error) {
	if line.Number == 1 {
		if seq, there, err = look.seq(ctx, 1, partCreated, line.Sum); err == nil {
			sc.notes.created(seq)
			seq, there, err = look.seq(ctx, 1, partHeader, line.Sum)
		}
		return seq, there, err
	}
	if seq, there, err = look.seq(ctx, line.Number, partHeader, line.Sum); err != nil {
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

// ended notes how reading came to its end.
func (sc *scan) ended(lines *importer.LineReader, err error, report func(string, int64, string)) {
	at := lines.Prefix()
	switch {
	case err != io.EOF:
		sc.bad++
		report(importer.CodeUnreadableFile, at.Lines+1, fmt.Sprintf("reading stopped at byte offset %d: %v; the lines before it are whole", at.Bytes, err))
	case lines.Torn() > 0:
		report(importer.CodeTorn, at.Lines+1, fmt.Sprintf("%d bytes at byte offset %d have no newline yet and are left for a later run", lines.Torn(), at.Bytes))
	}
}

// rest looks at what the store has beyond the file, and at the seed's end.
func (sc *scan) rest(ctx context.Context, look *lookout, report func(string, int64, string)) error {
	for look.stored {
		ev, err := look.cursor.Next(ctx)
		if err != nil {
			return err
		}
		if ev == nil {
			break
		}
		sc.beyond++
	}
	sc.head, sc.source = look.cursor.Head, look.cursor.Source
	if sc.beyond > 0 && sc.prefix.Lines > 0 {
		report(importer.CodeShorter, sc.prefix.Lines, fmt.Sprintf("the file ends here; %d more lines were imported before and are kept", sc.beyond))
	}
	h := sc.notes.f.h
	if end := sc.notes.ordinal; h.seedState == stated && end < h.seed {
		report(codeSeedBoundary, sc.prefix.Lines, fmt.Sprintf("the file ends inside its seed, after %d of %d events: all of it counts as the parent's", end, h.seed))
	}
	return nil
}
