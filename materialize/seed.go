package materialize

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/snapshot"
)

// seed is the conversation that a forked child begins with.
type seed struct {
	events []eventlog.NewEvent
	digest eventlog.Hash
}

// notConversation are the open families that a seed leaves out: what was used is
// counted where it was used, and importers' notes are about files.
func notConversation(family string) bool {
	switch family {
	case "usage", "import":
		return true
	}
	return false
}

// seedOf reads the seed that a request asks for: from the parent's log as it was
// at the capture, or from evidence that is adopted. What evidence brings is
// conversation alone; rights come from the capture, whatever the evidence says.
//
// Errors: those of readSeed; ErrNotFound, and ErrInvalid if what is to be
// adopted is native.
func seedOf(ctx context.Context, s *eventlog.Store, c *snapshot.Capture, r *Request) (seed, error) {
	if r.Adopt == uuid.Nil {
		head, _ := c.Head()
		if r.Fork > head {
			return seed{}, fmt.Errorf("%w: fork at seq %d: the parent's head was %d at the capture", eventlog.ErrInvalid, r.Fork, head)
		}
		return readSeed(ctx, s, c.Parent(), r.Fork)
	}
	row, err := s.Row(r.Adopt)
	switch {
	case err != nil:
		return seed{}, err
	case !row.Evidence:
		return seed{}, fmt.Errorf("%w: session %s is native; only evidence is adopted, a native session delegates", eventlog.ErrInvalid, r.Adopt)
	case len(row.Damage) > 0:
		return seed{}, &eventlog.CorruptError{Session: r.Adopt, Seq: row.Damage[0].From, Reason: row.Damage[0].Reason + "; a seed is not copied from it"}
	case r.Fork > row.Head:
		return seed{}, fmt.Errorf("%w: fork at seq %d: the head of session %s is %d", eventlog.ErrInvalid, r.Fork, r.Adopt, row.Head)
	}
	fork := r.Fork
	if fork == 0 {
		fork = row.Head
	}
	out, err := readSeed(ctx, s, r.Adopt, fork)
	if err == nil && len(out.events) == 0 {
		err = fmt.Errorf("%w: session %s holds no conversation up to seq %d", eventlog.ErrInvalid, r.Adopt, fork)
	}
	return out, err
}

// readSeed copies a session's conversation up to a seq of its log: the open
// families except usage and what importers note, with new ids and with where
// they came from. What is copied is history, so it can be read before the
// commit. A cut inside an open turn is refused: the child would answer half a
// question. Of a content that was erased a copy without content is made.
//
// Errors: ErrOpenTurn, ErrTooLarge, ErrCorrupt, ErrWithheld.
func readSeed(ctx context.Context, s *eventlog.Store, from uuid.UUID, fork uint64) (seed, error) {
	var out seed
	if fork == 0 {
		return out, nil
	}
	var digests [][]byte
	openTurn, size := uint64(0), 0
	for next := uint64(1); next != 0 && next <= fork; {
		page, err := s.Read(ctx, from, eventlog.ReadOptions{From: next, To: fork, Contents: true})
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
			if eventlog.IsClosed(ev.Type) || notConversation(eventlog.Family(ev.Type)) {
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
		next = page.Next
	}
	if openTurn != 0 {
		return out, fmt.Errorf("%w: fork at seq %d lies inside the turn that began at seq %d", eventlog.ErrOpenTurn, fork, openTurn)
	}
	out.digest = eventlog.Digest(digests...)
	return out, nil
}
