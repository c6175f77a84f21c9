// Package logwalk goes through the log of one session from its first event to
// its last, past whatever can't be read, and tells of it.
package logwalk

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// Gap is a place of a log that is not as it should be. Readable: the events are
// there and are walked, but what stands before them is not what they name.
type Gap struct {
	eventlog.Hole
	Readable bool
}

// pageEvents is how many events are read at a time behind the first damage.
const pageEvents = 1024

// Each calls event with every event of a session in order, and gap with every
// place that can't be read, in between. As far as the log is sound it is read
// with its checksums and its chain verified; behind the first damage each event
// stands for itself. The event is event's own until it returns: what is kept of
// it must be cloned. Memory does not grow with the log.
//
// A log whose end is known to be lost ends with a gap behind its head.
//
// Errors: ErrNotFound, those of event and gap, a canceled context.
func Each(ctx context.Context, s *eventlog.Store, session uuid.UUID, contents bool, event func(*eventlog.Event) error, gap func(Gap) error) error {
	row, err := s.Row(session)
	if err != nil {
		return err
	}
	w := walk{row: &row, next: 1, event: event, gap: gap}
	err = s.ReplayBorrowed(ctx, session, contents, w.one)
	switch {
	case w.stop != nil:
		return w.stop
	case err != nil && !errors.Is(err, eventlog.ErrCorrupt):
		return err
	case err != nil:
		if err := w.behind(ctx, s, contents, err); err != nil {
			return err
		}
	}
	return w.lost(ctx, s)
}

// walk is where a walk stands.
type walk struct {
	row   *eventlog.Row
	next  uint64
	gaps  int
	stop  error // what the caller's functions returned
	event func(*eventlog.Event) error
	gap   func(Gap) error
}

func (w *walk) one(ev *eventlog.Event) error {
	w.stop = w.event(ev)
	w.next = ev.Seq + 1
	return w.stop
}

func (w *walk) hole(g Gap) error {
	w.gaps++
	w.stop = w.gap(g)
	return w.stop
}

// behind goes on page by page from the first damage, which why names.
func (w *walk) behind(ctx context.Context, s *eventlog.Store, contents bool, why error) error {
	for from := w.next; from != 0 && from <= w.row.Head; {
		page, err := s.Read(ctx, w.row.Session, eventlog.ReadOptions{From: from, To: w.row.Head, MaxEvents: pageEvents, Contents: contents})
		if err != nil {
			return err
		}
		holes := page.Holes
		if why != nil && (len(holes) == 0 || holes[0].From > from) { // the damage is in how events hang together
			if err := w.hole(Gap{eventlog.Hole{From: from, To: from, Err: why}, true}); err != nil {
				return err
			}
		}
		why = nil
		for i := range page.Events {
			for len(holes) > 0 && holes[0].From < page.Events[i].Seq {
				if err := w.hole(Gap{Hole: holes[0]}); err != nil {
					return err
				}
				holes = holes[1:]
			}
			if err := w.one(&page.Events[i]); err != nil {
				return err
			}
		}
		for _, h := range holes {
			if err := w.hole(Gap{Hole: h}); err != nil {
				return err
			}
		}
		from = page.Next
	}
	return nil
}

// lost tells of what is gone behind the head: a frame that the session's row
// knows of, or one that nobody can say whose it was.
func (w *walk) lost(ctx context.Context, s *eventlog.Store) error {
	for _, d := range w.row.Damage {
		if d.From > w.row.Head {
			return w.hole(Gap{Hole: eventlog.Hole{From: d.From, To: d.To, Err: errors.New(d.Reason)}})
		}
	}
	if w.gaps > 0 {
		return nil
	}
	_, _, err := s.Policy(ctx, w.row.Session, 0)
	ce := (*eventlog.CorruptError)(nil)
	if errors.As(err, &ce) && ce.Seq == 0 && ce.HasPosition {
		return w.hole(Gap{Hole: eventlog.Hole{From: w.row.Head + 1, To: w.row.Head + 1, Err: ce}})
	}
	return nil
}
