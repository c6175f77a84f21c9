package deepseek

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// seed finds, for the lines that a child inherited, the events of the parent
// that they are copies of. Both logs count the same events of the harness, so
// the parent's event is the one that holds the same ordinal, however either
// log packs its lines.
type seed struct {
	parent  uuid.UUID
	cursor  *importer.Cursor // nil: the parent is not there
	at      *eventlog.Event
	ordinal uint64 // of the first event that at holds
	span    uint64
	passed  int
	guessed int
}

func newSeed(s *eventlog.Store, f *file) *seed {
	sd := &seed{parent: f.Parent}
	if sd.parent == uuid.Nil {
		// The copies come from somewhere, and not from this session.
		sd.parent = importer.SessionID(System, "parent of "+f.Key)
	}
	if row, err := s.Row(sd.parent); err == nil && row.Evidence {
		sd.cursor = importer.NewCursor(s, sd.parent)
	}
	return sd
}

// of names the original of an inherited line. If the parent's log is not there,
// or ends before, it is where an import of the same lines would put it.
func (sd *seed) of(ctx context.Context, out *mapped, line int64) (*eventlog.Ref, error) {
	for sd.cursor != nil && (sd.at == nil || sd.ordinal+sd.span <= out.ordinal) {
		ev, err := sd.cursor.Next(ctx)
		if ce := (*eventlog.CorruptError)(nil); ev == nil && err == nil || errors.As(err, &ce) {
			sd.cursor = nil // the parent's own damage is not this session's
			break
		}
		if err != nil {
			return nil, err
		}
		if sd.passed++; sd.passed <= 2 {
			continue // session/created and the header hold no event of the harness
		}
		sd.ordinal += sd.span
		sd.at, sd.span = ev, storedSpan(ev)
	}
	if sd.cursor == nil || sd.at == nil {
		sd.guessed++
		return &eventlog.Ref{Session: sd.parent, Seq: uint64(line) + 1}, nil
	}
	return &eventlog.Ref{Session: sd.parent, Seq: sd.at.Seq}, nil
}

// storedSpan is how many events of the harness a stored line holds.
func storedSpan(ev *eventlog.Event) uint64 {
	if ev.Type != eventlog.TypeImportOther {
		return 1
	}
	if packed(ev.Facts.Str("original")) != "" {
		return ev.Facts.Uint("events")
	}
	if ev.Facts.Str("line") == importer.LineBlank {
		return 0
	}
	return 1
}
