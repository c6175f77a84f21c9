package service

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"childlog/cmd/childlog/harness"
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
func (s *Service) followPast(ctx context.Context, q followRequest, give func(streamed) bool) {
	for {
		again := false
		for v, err := range s.harness.Follow(ctx, q.FollowRequest) {
			if err == nil {
				q.After = v.Cursor
				if !give(streamed{event: v}) {
					return
				}
				continue
			}
			h := s.behind(ctx, q, err)
			if h == nil {
				give(streamed{err: err})
				return
			}
			q.After, again = h.Cursor, true
			if !give(streamed{hole: h}) {
				return
			}
			break
		}
		if !again {
			return
		}
	}
}

// behind is the hole that ended a follow, nil if it was none or none is wanted.
// Its cursor lies behind it, so that a follow from there on advances.
func (s *Service) behind(ctx context.Context, q followRequest, err error) *hole {
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
	page, err := s.store.Read(ctx, ce.Session, eventlog.ReadOptions{From: ce.Seq})
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
