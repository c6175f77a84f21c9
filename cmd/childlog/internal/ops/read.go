package ops

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/replay"
)

// LargestShown is how many of the largest sessions stats names.
const LargestShown = 5

// Show is everything small about one session. A policy that can't be read is
// told in the answer.
func Show(ctx context.Context, s *eventlog.Store, id uuid.UUID) (v wire.Detail, row eventlog.Row, e replay.Effective, err error) {
	if row, err = s.Row(id); err != nil {
		return v, row, e, err
	}
	v = wire.DetailOf(&row, s.Boot())
	children, err := s.Children(id)
	if err != nil {
		return v, row, e, err
	}
	for _, c := range children {
		v.Children = append(v.Children, c.String())
		if _, err := s.Row(c); errors.Is(err, eventlog.ErrPurged) {
			v.Purged = append(v.Purged, c.String())
		}
	}
	if v.SeedFrom, err = seedFrom(ctx, s, &row); err != nil {
		return v, row, e, err
	}
	if v.Inbox, err = Messages(ctx, s, id, row.Inbox); err != nil {
		return v, row, e, err
	}
	if id == eventlog.StoreSession {
		return v, row, e, nil // it holds none
	}
	var policyErr error
	if e, policyErr = replay.Policy(ctx, s, id, 0); policyErr != nil {
		text := policyErr.Error()
		v.PolicyError = &text
		return v, row, e, ctx.Err()
	}
	p := wire.PolicyOf(&e)
	v.Policy = &p
	return v, row, e, nil
}

// seedFrom is the session whose conversation a session begins with, nil without
// a seed, and if its first copy can't be read: what is wrong is shown elsewhere.
func seedFrom(ctx context.Context, s *eventlog.Store, row *eventlog.Row) (*string, error) {
	if row.SeedLen == 0 || len(row.Damage) > 0 {
		return nil, nil
	}
	page, err := s.Read(ctx, row.Session, eventlog.ReadOptions{From: 2, To: 2})
	if err != nil || len(page.Events) == 0 || page.Events[0].Inherited == nil {
		return nil, err
	}
	return wire.ID(page.Events[0].Inherited.Session), nil
}

// LostBehind is damage of a log, that of a lost frame included which may have held
// the session's newest events: what is left gives no hint of it.
func LostBehind(ctx context.Context, s *eventlog.Store, row *eventlog.Row) []eventlog.Damage {
	if len(row.Damage) > 0 {
		return row.Damage
	}
	_, _, err := s.Policy(ctx, row.Session, 0)
	ce := (*eventlog.CorruptError)(nil)
	if !errors.As(err, &ce) || ce.Seq != 0 || !ce.HasPosition {
		return nil
	}
	return []eventlog.Damage{{From: row.Head + 1, To: row.Head + 1, Reason: ce.Error()}}
}
