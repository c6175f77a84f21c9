package replay

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// Learned is what a harness says became of a question that it put to its own
// person; see [AskRequest]'s Elsewhere.
type Learned struct {
	Session uuid.UUID
	Ask     string
	Outcome eventlog.AskOutcome // AskAllowedElsewhere, AskRejected or AskCancelled
	Decider eventlog.Decider    // human where the harness showed it to a person, else host; its word either way
	Rule    string              // why it was cancelled, a code; "" for an answer
}

// Learn records what became of a question that was put elsewhere, as its harness
// tells it. The record says by whose word (the decider's ref is the harness) and
// grants nothing: no call may rest on it.
//
// It is held to what holds for every answer, see [Respond]: one question has one
// decision, and what is told after the turn's end, or of an allowance after the
// policy changed, is recorded as cancelled. Told again, it is the ruling that is
// recorded, marked Existing.
//
// Errors: ErrInvalid (another outcome, or a question that is answered here),
// ErrNotFound, ErrConflict (it was decided otherwise), ErrEvidence,
// ErrPolicyUnreadable, ErrSessionClosed, and those of Append.
func Learn(ctx context.Context, s *eventlog.Store, l Learned) (Ruling, error) {
	switch l.Outcome {
	case eventlog.AskAllowedElsewhere, eventlog.AskRejected, eventlog.AskCancelled:
	default:
		return Ruling{}, fmt.Errorf("%w: outcome %q is none that a harness can tell of", eventlog.ErrInvalid, l.Outcome)
	}
	if !l.Decider.Answers() {
		return Ruling{}, fmt.Errorf("%w: decider %q answers nothing: want human or host", eventlog.ErrInvalid, l.Decider)
	}
	d := eventlog.Decided{Ask: l.Ask, Outcome: l.Outcome, Decider: l.Decider, Rule: l.Rule}
	return answered(ctx, s, l.Session, d, func(asked *eventlog.Asked, d *eventlog.Decided) error {
		if asked.Elsewhere == "" {
			return fmt.Errorf("%w: session %s: ask %s is answered here, not by the word of a harness", eventlog.ErrInvalid, l.Session, l.Ask)
		}
		d.Ref = asked.Elsewhere
		return nil
	})
}
