package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// Send queues a follow-up message for a child, also while it runs or after it
// settled: a running one is told by Claim, a settled continuable one by its
// next activation. Errors: ErrUnauthorized, ErrSessionClosed, ErrEvidence, and
// those of Append.
func Send(ctx context.Context, s *eventlog.Store, session uuid.UUID, by Caller, text string) (eventlog.Result, uuid.UUID, error) {
	var id uuid.UUID
	if text == "" {
		return eventlog.Result{}, id, fmt.Errorf("%w: a message needs a text", eventlog.ErrInvalid)
	}
	results, err := s.Transact(ctx, eventlog.EntryRuntime, func(v *eventlog.View) ([]eventlog.Batch, error) {
		row, err := v.Row(session)
		if err != nil {
			return nil, err
		}
		if err := by.allow(&row); err != nil {
			return nil, err
		}
		if id, err = v.NewID(); err != nil {
			return nil, err
		}
		pairs := []any{"message", id}
		if by.Parent != uuid.Nil {
			pairs = append(pairs, "from", by.Parent)
		}
		return []eventlog.Batch{{Session: session, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{
			Type: eventlog.TypeInboxQueued, Facts: facts(pairs...), Media: eventlog.MediaText, Content: []byte(text)}}}}, nil
	})
	if err != nil { // the plan may be at work on the id
		return eventlog.Result{}, uuid.Nil, err
	}
	return first(results), id, nil
}

// Claim takes the pending messages for a running activation. No message is
// claimed twice. Errors: ErrFenced if epoch is not the open one.
func Claim(ctx context.Context, s *eventlog.Store, session uuid.UUID, epoch uint64) ([]eventlog.Message, error) {
	var out []eventlog.Message
	_, err := s.Transact(ctx, eventlog.EntryRuntime, func(v *eventlog.View) ([]eventlog.Batch, error) {
		row, err := v.Row(session)
		if err != nil {
			return nil, err
		}
		if epoch == 0 || !row.Open || epoch != row.Epoch {
			return nil, &eventlog.FencedError{Session: session, Got: epoch, Open: row.Epoch}
		}
		if out = slices.Clone(row.Inbox); len(out) == 0 {
			return nil, nil
		}
		return []eventlog.Batch{{Session: session, Expect: eventlog.Any(), Epoch: epoch, Events: claimed(out, epoch)}}, nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// maxClaim is how many messages one inbox/claimed names. All in one event
// would pass the limit of facts at some 3,600 messages, sooner where a store
// lowers it, and a child that was sent more could never be activated again.
const maxClaim = 64

func claimed(messages []eventlog.Message, epoch uint64) []eventlog.NewEvent {
	var events []eventlog.NewEvent
	for part := range slices.Chunk(messages, maxClaim) {
		ids := make([]any, len(part))
		for i, m := range part {
			ids[i] = m.ID
		}
		events = append(events, eventlog.NewEvent{Type: eventlog.TypeInboxClaimed, Facts: facts("messages", ids, "epoch", epoch)})
	}
	return events
}

// Interrupt asks whatever runs the session to stop its turn. Pending messages
// are dropped unless keepInbox. It is a request in the log: the harness that
// follows the log obeys. Errors: those of Send.
func Interrupt(ctx context.Context, s *eventlog.Store, session uuid.UUID, by Caller, keepInbox bool) (eventlog.Result, error) {
	results, err := s.Transact(ctx, eventlog.EntryRuntime, func(v *eventlog.View) ([]eventlog.Batch, error) {
		row, err := v.Row(session)
		if err != nil {
			return nil, err
		}
		if err := by.allow(&row); err != nil {
			return nil, err
		}
		return []eventlog.Batch{{Session: session, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{
			Type: eventlog.TypeControlInterrupt, Facts: facts("by", by.String(), "keep_inbox", keepInbox)}}}}, nil
	})
	return first(results), err
}
