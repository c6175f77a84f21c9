package importer

import (
	"context"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// TypeSource is written once by each run that added lines: how far the file
// was read, and the SHA-256 of that part. It stands for no line, so whoever
// counts lines passes it over. Its name is reserved: a foreign line of that
// type is kept as import/other.
const TypeSource = "import/source"

// TypeSidecar keeps a file that lies beside a log and says more about it, as
// it was when a run read it; a later run adds another if it has changed. Like
// TypeSource it stands for no line, and its name is reserved.
const TypeSidecar = "import/sidecar"

// Cursor reads the events of an imported session that stand for lines, in
// order and a page at a time, without their contents. What others than
// importers wrote there, such as the marker of a redaction, stands for none.
type Cursor struct {
	s       *eventlog.Store
	session uuid.UUID
	page    []eventlog.Event
	next    uint64
	ended   bool
	ahead   *eventlog.Event // found by peek

	Head    uint64        // of the session, as of the last page
	Source  uint64        // lines, by the last import/source passed
	Sidecar eventlog.Hash // SHA-256 of the last import/sidecar passed
}

// cursorPage is how many events one read transaction visits.
const cursorPage = 1024

// NewCursor begins at the session's first event. A session that does not
// exist has none.
func NewCursor(s *eventlog.Store, session uuid.UUID) *Cursor {
	return &Cursor{s: s, session: session, next: 1}
}

// Next returns the next event, nil at the end. A hole in the log is an error.
func (c *Cursor) Next(ctx context.Context) (*eventlog.Event, error) {
	if ev := c.ahead; ev != nil {
		c.ahead = nil
		return ev, nil
	}
	for {
		for len(c.page) > 0 {
			ev := &c.page[0]
			c.page = c.page[1:]
			switch {
			case ev.Source != eventlog.SourceImport:
			case ev.Type == TypeSource:
				c.Source = ev.Facts.Uint("lines")
			case ev.Type == TypeSidecar:
				c.Sidecar = sidecarSum(ev)
			default:
				return ev, nil
			}
		}
		if c.ended || c.next == 0 {
			return nil, nil
		}
		page, err := c.s.Read(ctx, c.session, eventlog.ReadOptions{From: c.next, MaxEvents: cursorPage})
		if err != nil {
			return nil, err
		}
		if len(page.Holes) > 0 {
			h := page.Holes[0]
			return nil, &eventlog.CorruptError{Session: c.session, Seq: h.From, Reason: h.Err.Error()}
		}
		c.page, c.next, c.Head = page.Events, page.Next, page.Head
		c.ended = page.Next == 0
	}
}

// peek is the id of the event that Next will return, uuid.Nil at the end.
func (c *Cursor) peek(ctx context.Context) (uuid.UUID, error) {
	ev, err := c.Next(ctx)
	if ev == nil || err != nil {
		return uuid.Nil, err
	}
	c.ahead = ev
	return ev.ID, nil
}

// sidecarSum is the digest that an import/sidecar states, zero if it states
// none.
func sidecarSum(ev *eventlog.Event) (sum eventlog.Hash) {
	if facts, err := ev.Facts.Map(); err == nil {
		b, _ := facts["sha256"].([]byte)
		copy(sum[:], b)
	}
	return sum
}
