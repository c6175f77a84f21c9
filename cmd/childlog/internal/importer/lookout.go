package importer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/files"
	"childlog/eventlog"
)

// ErrChanged: the store has another line at this place.
var ErrChanged = errors.New("changed")

// ErrSkip says that a file was reported and takes no further part.
var ErrSkip = errors.New("skipped")

// Lookout compares the events of lines with what the store has of them.
type Lookout struct {
	cursor  *Cursor
	session uuid.UUID
	stored  bool // there may be more
	head    uint64
}

// NewLookout begins at the session's first event, if it has one.
func NewLookout(s *eventlog.Store, session uuid.UUID) (*Lookout, error) {
	_, err := s.Row(session)
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return nil, err
	}
	return &Lookout{cursor: NewCursor(s, session), session: session, stored: err == nil}, nil
}

// Seq returns the seq of the event of that id: the store's if it is there,
// else the one that it will get. ErrChanged: the store has another event there.
func (l *Lookout) Seq(ctx context.Context, id uuid.UUID) (seq uint64, there bool, err error) {
	if l.stored {
		ev, err := l.cursor.Next(ctx)
		if err != nil {
			return 0, false, err
		}
		if ev != nil {
			if ev.ID != id {
				return ev.Seq, true, ErrChanged
			}
			return ev.Seq, true, nil
		}
		l.stored, l.head = false, l.cursor.Head
	}
	l.head++
	return l.head, false, nil
}

// Peek returns the id of the next event that the store has, uuid.Nil if it has
// no more: for events that an earlier run may have written or not.
func (l *Lookout) Peek(ctx context.Context) (uuid.UUID, error) {
	if !l.stored {
		return uuid.Nil, nil
	}
	return l.cursor.peek(ctx)
}

// Head is the seq behind which the next event goes, once Seq said that one is
// not there.
func (l *Lookout) Head() uint64 { return l.cursor.Head }

// Rest counts the events that stand for lines beyond those that were asked
// for, and returns the session's head and how many lines its last
// import/source speaks of.
func (l *Lookout) Rest(ctx context.Context) (beyond int, head, source uint64, err error) {
	for l.stored {
		ev, err := l.cursor.Next(ctx)
		if err != nil {
			return 0, 0, 0, err
		}
		if ev == nil {
			break
		}
		beyond++
	}
	return beyond, l.cursor.Head, l.cursor.Source, nil
}

// Sidecar is the SHA-256 of the sidecar that was kept last, known when Rest
// returned.
func (l *Lookout) Sidecar() eventlog.Hash { return l.cursor.Sidecar }

// Ended reports how reading a file came to its end, and whether that was
// anything but its end.
func (l *LineReader) Ended(err error, report func(code string, line int64, detail string)) (broken bool) {
	at := l.Prefix()
	switch {
	case err != io.EOF:
		report(CodeUnreadableFile, at.Lines+1, fmt.Sprintf("reading stopped at byte offset %d: %v; the lines before it are whole", at.Bytes, err))
		return true
	case l.Torn() > 0:
		report(CodeTorn, at.Lines+1, tornText(l.Torn(), at.Bytes))
	}
	return false
}

// FirstLine reads a file's first line. Errors: ErrSkip, and then find was told;
// the end of ctx.
func FirstLine(ctx context.Context, from files.Files, path string, find func(Finding)) ([]byte, error) {
	skip := func(code, detail string) ([]byte, error) {
		find(Finding{Code: code, File: path, Line: 1, Detail: detail})
		return nil, ErrSkip
	}
	in, err := OpenInput(from, path)
	if err != nil {
		return skip(CodeUnreadableFile, err.Error())
	}
	defer in.Close() // nothing was written through it
	lines, err := in.Lines(ctx, nil)
	if err != nil {
		return skip(CodeUnreadableFile, err.Error())
	}
	line, err := lines.Next()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && lines.Torn() > 0:
		return skip(CodeTorn, fmt.Sprintf("%d bytes without a newline: no whole line yet", lines.Torn()))
	case err != nil:
		return skip(CodeNoHeader, "no line in it")
	}
	return bytes.Clone(line.Bytes), nil // nil if it is too long: no format has such a header
}
