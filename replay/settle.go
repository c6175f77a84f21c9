package replay

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// maxCount is the largest number a fact may hold, 2^53. A harness whose usage
// adds up to more gets this number: it must be able to settle all the same.
const maxCount = 1 << 53

// Settle records how a run of a session ended: a short code, the denials by
// code and the usage, both counted by the fold. An open activation ends with
// it; a one-shot session is closed. Epoch is the harness's activation, 0 for
// an operator. The notice to the parent is pending from then on.
//
// Errors: ErrConflict if it is settled already, ErrFenced, ErrSessionClosed,
// ErrEvidence, ErrInvalid.
func Settle(ctx context.Context, s *eventlog.Store, session uuid.UUID, epoch uint64, outcome string) (eventlog.Result, error) {
	via := eventlog.EntryOperator
	if epoch != 0 {
		via = eventlog.EntryRuntime
	}
	results, err := s.Transact(ctx, via, func(v *eventlog.View) ([]eventlog.Batch, error) {
		row, err := v.Row(session)
		if err != nil {
			return nil, err
		}
		if row.Evidence {
			return nil, fmt.Errorf("%w: session %s was imported", eventlog.ErrEvidence, session)
		}
		if row.SettledSeq != 0 && row.ClosedSeq == 0 {
			return nil, fmt.Errorf("%w: session %s was settled at seq %d (%s)", eventlog.ErrConflict, session, row.SettledSeq, row.Outcome)
		}
		denials := map[string]any{}
		for _, d := range row.Denials {
			denials[d.Code] = d.N
		}
		u, capped := row.Usage, func(n uint64) uint64 { return min(n, maxCount) }
		settled := facts("outcome", outcome, "denials", denials, "usage", map[string]any{"input": capped(u.Input), "output": capped(u.Output),
			"cache_read": capped(u.CacheRead), "cache_write": capped(u.CacheWrite), "cost_micros": capped(u.CostMicros)})
		var events []eventlog.NewEvent
		if row.Open {
			events = append(events, eventlog.NewEvent{Type: eventlog.TypeActivationEnded, Facts: facts("epoch", row.Epoch, "reason", "settled")})
		}
		events = append(events, eventlog.NewEvent{Type: eventlog.TypeSessionSettled, Facts: settled})
		if row.Mode == eventlog.ModeOneShot && row.Kind == eventlog.KindChild {
			events = append(events, eventlog.NewEvent{Type: eventlog.TypeSessionClosed, Facts: facts("by", "settle")})
		}
		return []eventlog.Batch{{Session: session, Expect: eventlog.Any(), Epoch: epoch, Events: events}}, nil
	})
	return first(results), err
}

// Close ends a session for good: nothing is appended after it. Errors:
// ErrSessionClosed if it is closed already, ErrEvidence.
func Close(ctx context.Context, s *eventlog.Store, session uuid.UUID) (eventlog.Result, error) {
	results, err := s.Transact(ctx, eventlog.EntryOperator, func(v *eventlog.View) ([]eventlog.Batch, error) {
		row, err := v.Row(session)
		if err != nil {
			return nil, err
		}
		var events []eventlog.NewEvent
		if row.Open {
			events = append(events, eventlog.NewEvent{Type: eventlog.TypeActivationEnded, Facts: facts("epoch", row.Epoch, "reason", "closed")})
		}
		events = append(events, eventlog.NewEvent{Type: eventlog.TypeSessionClosed, Facts: facts("by", "operator")})
		return []eventlog.Batch{{Session: session, Expect: eventlog.Any(), Events: events}}, nil
	})
	return first(results), err
}
