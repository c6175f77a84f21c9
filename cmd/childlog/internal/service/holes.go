package service

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/filter"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// streamed is one thing to be sent: an event, a hole, or the error that ends
// the stream.
type streamed struct {
	event wire.Followed
	hole  *hole
	err   error
}

// hole is a part of the logs that can't be read. From and To are seqs of the
// session; where the session is not known they are missing, and the frame at
// the position is meant.
type hole struct {
	Cursor   string  `json:"cursor"`
	Session  *string `json:"session"`
	Position *uint64 `json:"position"`
	From     uint64  `json:"from,omitzero"`
	To       uint64  `json:"to,omitzero"`
	Error    string  `json:"error"`
}

// followPast yields the events of a follow and, where holes are asked for, goes
// on behind what can't be read, which it yields as a hole. Without that the
// damage ends the follow: a reader that knows nothing of holes misses nothing
// without noticing.
//
// The store is borrowed for a turn at a time, so that what needs it alone is not
// kept waiting by whoever waits for events. Types are picked here and not by the
// harness, which lets the cursor go on over what is not picked.
func (s *Service) followPast(ctx context.Context, q followRequest, give func(streamed) bool) {
	picked := filter.Filter{Types: q.Types}
	if err := picked.Compile(s.now()); err != nil {
		give(streamed{err: ops.FilterError(err)})
		return
	}
	q.Types = nil
	for more := true; more; {
		err := s.with(ctx, func(store *eventlog.Store, h harness.Harness) error {
			more = s.turn(ctx, store, h, &q, picked.Events(), give)
			return nil
		})
		if err != nil {
			if ctx.Err() == nil {
				give(streamed{err: err})
			}
			return
		}
	}
}

// turn follows for a while and reports whether to go on. q is moved along.
func (s *Service) turn(ctx context.Context, store *eventlog.Store, h harness.Harness, q *followRequest, picked *filter.Events, give func(streamed) bool) bool {
	until, cancel := context.WithTimeout(ctx, s.limits.Turn)
	defer cancel()
	for v, err := range h.Follow(until, q.FollowRequest) {
		if err == nil {
			q.After = v.Cursor
			if picked.Picks(&eventlog.Event{Type: v.Event.Type}) && !give(streamed{event: v}) {
				return false
			}
			if until.Err() != nil {
				break
			}
			continue
		}
		if until.Err() != nil {
			break
		}
		hole := behind(ctx, store, *q, err)
		if hole == nil {
			give(streamed{err: err})
			return false
		}
		q.After = hole.Cursor
		return give(streamed{hole: hole})
	}
	return until.Err() != nil && ctx.Err() == nil
}

// behind is the hole that ended a follow, nil if it was none or none is wanted.
// Its cursor lies behind it, so that a follow from there on advances.
func behind(ctx context.Context, store *eventlog.Store, q followRequest, err error) *hole {
	ce := (*eventlog.CorruptError)(nil)
	if !q.holes || !errors.As(err, &ce) {
		return nil
	}
	h := &hole{Session: wire.ID(ce.Session), Error: ce.Error()}
	if q.Session == "" {
		if !ce.HasPosition {
			return nil
		}
		h.Position, h.Cursor = &ce.Position, fmt.Sprintf("%d.0", ce.Position+1)
		h.From, h.To = ce.Seq, ce.Seq
		return h
	}
	if ce.Seq == 0 {
		return nil
	}
	h.From, h.To = ce.Seq, ce.Seq
	page, err := store.Read(ctx, ce.Session, eventlog.ReadOptions{From: ce.Seq})
	if err != nil {
		return nil
	}
	if len(page.Holes) > 0 && page.Holes[0].From == ce.Seq {
		h.To = page.Holes[0].To
	}
	h.Cursor = strconv.FormatUint(h.To, 10)
	return h
}

// followRequest is the query of a stream.
type followRequest struct {
	harness.FollowRequest
	holes bool // go on behind damage
}
