package eventlog

import (
	"context"

	"github.com/google/uuid"
)

// Changed returns a channel that is closed by the next commit that becomes
// durable, of whatever session, or when the store closes. Who asks for it before
// reading misses nothing. On a store opened for reading nothing new can come.
func (s *Store) Changed() <-chan struct{} { return s.changed.wait() }

// Tail calls fn with every event of a session from seq on, and then with each
// new one after it became durable, until ctx ends (the result is then
// ctx.Err), fn returns an error, or the store closes (ErrStoreClosed). It
// reads pages and holds nothing in between, so a slow fn delays nobody. At a
// hole it stops with an error. On a store opened for reading nothing new can come; Tail
// returns nil at the head.
func (s *Store) Tail(ctx context.Context, session uuid.UUID, from uint64, fn func(*Event) error) error {
	for seq := max(from, 1); ; {
		changed := s.changed.wait() // before reading, so that nothing falls between
		if err := s.usable(); err != nil {
			return err
		}
		page, err := s.Read(ctx, session, ReadOptions{From: seq, Contents: true})
		if err != nil {
			return err
		}
		for i := range page.Events {
			if len(page.Holes) > 0 && page.Events[i].Seq > page.Holes[0].From {
				break
			}
			if err := fn(&page.Events[i]); err != nil {
				return err
			}
			seq = page.Events[i].Seq + 1
		}
		if len(page.Holes) > 0 {
			h := page.Holes[0]
			return &CorruptError{Session: session, Seq: h.From, Reason: h.Err.Error()}
		}
		if page.Next != 0 || len(page.Events) > 0 {
			continue
		}
		if s.opts.ReadOnly {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
