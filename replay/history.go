package replay

import (
	"context"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// Moved is one policy-bearing event of a session's life and what it changed.
type Moved struct {
	Event   eventlog.Event // without its content
	What    string         // in words
	Born    bool           // of the creation: what it gave is no change
	Changes []FieldChange
}

// History lists how a session's policy came to be what it is: its policy-bearing
// events in order, each with the fields that it changed. At most the last most
// events are compared and listed (0: all); left says how many came before them.
// A root is compared without the operator rules of the store, which move by
// events of another log.
//
// Each listed event is folded with those before it, so the cost is that of most
// times their number. Errors: those of Policy.
func History(ctx context.Context, s *eventlog.Store, session uuid.UUID, most int) (list []Moved, left int, err error) {
	events, row, err := s.Policy(ctx, session, 0)
	if err != nil {
		return nil, 0, err
	}
	now, err := foldRow(events, &row, 0)
	if err != nil {
		return nil, 0, err
	}
	if most > 0 {
		left = max(0, len(events)-most)
	}
	var before Effective
	list = make([]Moved, 0, len(events)-left)
	for i := left; i < len(events); i++ {
		ev := &events[i]
		m := Moved{Event: *ev, What: eventWords(ev), Born: ev.Seq <= now.WholeSeq, Changes: []FieldChange{}}
		if !m.Born {
			if before.Session == uuid.Nil {
				if before, err = Fold(events[:i]); err != nil {
					return nil, 0, err
				}
			}
			after, err := Fold(events[:i+1])
			if err != nil {
				return nil, 0, err
			}
			if m.Changes, err = fieldChanges(&before, &after); err != nil {
				return nil, 0, err
			}
			before = after
		}
		list = append(list, m)
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
	}
	return list, left, nil
}
