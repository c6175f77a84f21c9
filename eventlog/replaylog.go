package eventlog

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"
)

// A replay reads pages of this size: small enough to stay in a processor's
// cache until they are used, large enough that what a page costs is not felt.
const (
	replayEnough = 256 << 10 // bytes of facts and contents; a frame is not cut for it
	replayBytes  = 16 << 20  // one frame may bring more
	replayEvents = 4096
	replayFrames = 1024 // positions looked up at a time
)

// Replay calls fn with every event from seq 1 to the head in order, verifying
// checksums, the chain and, with contents, their commitments on the way, and
// stops at the first damage: an error after n calls means that n events are
// sound. A content that can't be read is no end of the log: its event has
// ContentErr. The event is fn's own. No transaction is open while fn runs.
func (s *Store) Replay(ctx context.Context, session uuid.UUID, contents bool, fn func(*Event) error) error {
	return s.replay(ctx, session, contents, false, fn)
}

// ReplayBorrowed is Replay for a caller that only looks: the event, its facts
// and its content belong to fn until it returns and are overwritten after.
// What fn keeps it must Clone. It takes no memory per event.
func (s *Store) ReplayBorrowed(ctx context.Context, session uuid.UUID, contents bool, fn func(*Event) error) error {
	return s.replay(ctx, session, contents, true, fn)
}

func (s *Store) replay(ctx context.Context, session uuid.UUID, contents, borrowed bool, fn func(*Event) error) error {
	e, err := s.lookup(session)
	if err != nil {
		return err
	}
	if err := s.st.loss(&e.row); err != nil {
		return err
	}
	r := logReader{s: s, e: e, reuse: borrowed, lookup: replayFrames, ahead: s.journal.readAhead(), contents: contentReader{ahead: s.journal.readAhead()}}
	hash := Genesis(session)
	for seq := uint64(1); seq != 0; {
		page, err := r.page(ctx, ReadOptions{From: seq, MaxEvents: replayEvents, MaxBytes: replayBytes, Contents: contents, enough: replayEnough})
		if err != nil {
			return err
		}
		for i := range page.Events {
			ev := &page.Events[i]
			if len(page.Holes) > 0 && ev.Seq > page.Holes[0].From {
				break
			}
			if ev.prev != hash {
				return &CorruptError{Session: session, Seq: ev.Seq, Position: ev.Position, HasPosition: true, Reason: "chain: previous hash differs"}
			}
			hash = ev.Hash
			if err := fn(ev); err != nil {
				return err
			}
		}
		if len(page.Holes) > 0 {
			h := page.Holes[0]
			return &CorruptError{Session: session, Seq: h.From, Reason: fmt.Sprintf("seq %d to %d: %v", h.From, h.To, h.Err)}
		}
		seq = page.Next
	}
	return nil
}

// Clone returns an event that shares no memory with ev.
func (ev *Event) Clone() *Event {
	c := *ev
	c.Facts, c.Content = bytes.Clone(ev.Facts), bytes.Clone(ev.Content)
	if ev.Inherited != nil {
		ref := *ev.Inherited
		c.Inherited = &ref
	}
	return &c
}
