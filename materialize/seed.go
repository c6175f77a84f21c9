package materialize

import (
	"context"
	"fmt"

	"childlog/eventlog"
	"childlog/snapshot"
)

// seed is the conversation that a forked child begins with.
type seed struct {
	events []eventlog.NewEvent
	digest eventlog.Hash
}

// readSeed copies the parent's conversation up to a seq of its log: the open
// families except usage, with new ids and with where they came from. What is
// copied is history, so it can be read before the commit. A cut inside an open
// turn is refused: the child would answer half a question. Of a content that was
// erased a copy without content is made.
//
// Errors: ErrInvalid, ErrOpenTurn, ErrTooLarge, ErrCorrupt.
func readSeed(ctx context.Context, s *eventlog.Store, c *snapshot.Capture, fork uint64) (seed, error) {
	var out seed
	if fork == 0 {
		return out, nil
	}
	if head, _ := c.Head(); fork > head {
		return out, fmt.Errorf("%w: fork at seq %d: the parent's head was %d at the capture", eventlog.ErrInvalid, fork, head)
	}
	var digests [][]byte
	openTurn, size := uint64(0), 0
	for from := uint64(1); from != 0 && from <= fork; {
		page, err := s.Read(ctx, c.Parent(), eventlog.ReadOptions{From: from, To: fork, Contents: true})
		if err != nil {
			return out, err
		}
		if len(page.Holes) > 0 {
			return out, page.Holes[0].Err
		}
		for i := range page.Events {
			ev := &page.Events[i]
			switch ev.Type {
			case eventlog.TypeTurnStart:
				openTurn = ev.Seq
			case eventlog.TypeTurnEnd:
				openTurn = 0
			}
			if eventlog.IsClosed(ev.Type) || eventlog.Family(ev.Type) == "usage" {
				continue
			}
			if ev.ContentErr != nil {
				return out, fmt.Errorf("fork: seq %d: %w", ev.Seq, ev.ContentErr)
			}
			if size += len(ev.Content); size > eventlog.MaxBatchContent {
				return out, &eventlog.TooLargeError{What: "content of a seed in bytes", Limit: eventlog.MaxBatchContent, Size: uint64(size)}
			}
			media := ev.Media
			if ev.Redacted != nil {
				media = eventlog.MediaNone // the copy says where it is from, and there the log says why
			}
			out.events = append(out.events, eventlog.NewEvent{Type: ev.Type, Facts: ev.Facts, Media: media, Content: ev.Content,
				Ignorable: ev.Ignorable, Time: ev.Time, Source: ev.Source, Inherited: &eventlog.Ref{Session: ev.Session, Seq: ev.Seq}})
			digests = append(digests, ev.ID[:], ev.Facts, ev.Commitment[:])
		}
		from = page.Next
	}
	if openTurn != 0 {
		return out, fmt.Errorf("%w: fork at seq %d lies inside the turn that began at seq %d", eventlog.ErrOpenTurn, fork, openTurn)
	}
	out.digest = eventlog.Digest(digests...)
	return out, nil
}
