package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"childlog/eventlog"
)

// follow answers with server-sent events (the HTML standard, section 9.2): one
// for each event of a log, with its cursor as the id, and a comment as a
// heartbeat where there is none for a while. What is sent is durable.
//
// Nothing is kept for a slow reader: the next event is read when the one before
// it was written, and a piece that is not taken within the time for it ends the
// stream. Whoever comes back with the last id it got goes on behind it.
//
// A stream ends with an event of type error where a log is damaged or the
// service stops. With holes=true damage is an event of type hole, its cursor
// being behind it, and the stream goes on.
func (s *Service) follow(w *record, r *http.Request, c caller) error {
	q, err := followQuery(r)
	if err != nil {
		return err
	}
	if !may(c.role, q.Level()) {
		s.metrics.refuse("role")
		return wrongRole("following events needs the role %s, the token's is %s", q.Level(), c.role)
	}
	if err := s.takeStream(c); err != nil {
		return err
	}
	defer s.giveStream(c)
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a stream has no end; a test's recorder has no deadline

	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	items := make(chan streamed) // without a buffer: one event is at hand, however large
	done := make(chan struct{})
	defer func() {
		cancel(nil)
		<-done
	}()
	go func() {
		defer close(done)
		s.followPast(ctx, q, func(it streamed) bool {
			select {
			case items <- it:
				return true
			case <-ctx.Done():
				return false
			}
		})
		close(items)
	}()
	return s.stream(ctx, &sse{w: w, control: http.NewResponseController(w), patience: s.limits.WriteTime}, items, c)
}

var (
	errTokenGone = errors.New("the token was revoked or has expired")
	errStopping  = fmt.Errorf("%w: the service is stopping", eventlog.ErrStoreClosed)
)

// stream writes events until one side ends it.
func (s *Service) stream(ctx context.Context, out *sse, items <-chan streamed, c caller) error {
	// A follow that is refused is answered like any request, so the header waits
	// for the first event, or for a moment in which no refusal came.
	var first streamed
	began := false
	open := true
	begin := time.NewTimer(s.limits.Recheck)
	defer begin.Stop()
	select {
	case first, open = <-items:
		if began = open; open && first.err != nil {
			return first.err
		}
	case <-begin.C:
	case <-s.stopping:
		return errStopping
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := out.begin(); err != nil {
		return nil
	}
	if began && out.item(&first) != nil {
		return nil
	}
	if !open {
		return out.fail(errStopping)
	}
	beat := time.NewTicker(s.limits.Heartbeat)
	defer beat.Stop()
	check := time.NewTicker(s.limits.Recheck)
	defer check.Stop()
	for {
		var err error
		select {
		case it, more := <-items:
			if !more {
				return out.fail(errStopping)
			}
			if it.err != nil {
				return out.fail(it.err)
			}
			err = out.item(&it)
		case <-beat.C:
			err = out.comment()
		case <-check.C:
			if !s.still(c) {
				return out.fail(refuse(http.StatusUnauthorized, "unauthorized", "unauthorized: "+errTokenGone.Error(), "follow with a new token from the last id on"))
			}
		case <-s.stopping:
			return out.fail(errStopping)
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return nil // the reader is gone or too slow; the log line tells how much it took
		}
	}
}

// takeStream counts a stream against the limits.
func (s *Service) takeStream(c caller) error {
	s.streamMu.Lock()
	defer s.streamMu.Unlock()
	if s.streams[c.token] >= s.limits.CallerStreams || !s.metrics.streams.take(s.limits.Streams) {
		s.metrics.refuse("streams")
		return &refusal{status: http.StatusTooManyRequests, code: "rate_limited", message: "more streams of events than may be open", hint: "end one, or follow the whole store with a single one", again: 5 * time.Second}
	}
	s.streams[c.token]++
	return nil
}

func (s *Service) giveStream(c caller) {
	s.streamMu.Lock()
	defer s.streamMu.Unlock()
	if s.streams[c.token]--; s.streams[c.token] == 0 {
		delete(s.streams, c.token)
	}
	s.metrics.streams.give()
}
