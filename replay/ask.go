package replay

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// AskRequest asks whether one call may be made, once.
type AskRequest struct {
	Session uuid.UUID
	Epoch   uint64 // of the harness's activation; 0: none is open
	Ask     string // a code, new in the session; "": the store makes one
	Call    string // a code; the call that the answer is for
	Tool    string // as the harness sends it
	Args    []byte // the final arguments, JSON; nil: none. Content, never a fact

	// Escalation asks for more than the present sandbox for this call; nil asks
	// for a call within it. Its justification is content.
	Escalation *policy.Escalation
	Question   string // what to show a person; content, may be ""

	// Elsewhere is the harness, a code, that puts the question to its own person;
	// nobody here answers it, and what became of it comes by [Learn]. "": it is
	// answered here.
	Elsewhere string
}

// Rules that decide a question without an answer, recorded in approval/decided.
const (
	RulePinned         = "approval_pin"    // a child's approvals are never
	RuleNever          = "approval_never"  // a root's are
	RuleNoOpenTurn     = "no_open_turn"    // there is no turn that the answer could last for
	RuleBeyondBound    = "beyond_bound"    // a narrowing forbids what is wanted, for ever
	RuleNoAnswerer     = "no_answerer"     // there was none, or none had a say in it
	RuleAnswererFailed = "answerer_failed" // it might have rejected, so nobody else was asked
	RuleWithdrawn      = "withdrawn"       // the harness stopped waiting
	RuleTurnEnded      = "turn_ended"      // before the answer
	RulePolicyMoved    = "policy_moved"    // before the answer, which was about the policy before
	RuleOtherHolder    = "activation_over" // that asked, before the answer
	RuleInterrupted    = "interrupted"     // a crash came before the answer
	RuleNoResult       = "no_result"       // put elsewhere, and its harness went on without a result: rejected there, or stopped
)

// Ruling is what came of a question, as recorded. The zero value grants
// nothing.
type Ruling struct {
	eventlog.Decided
	Seq        uint64 // of approval/asked
	DecidedSeq uint64 // of approval/decided; 0: it waits for its answer
	Existing   bool   // it was recorded before: this answers a retry
	Void       error  // a *VoidError: it was allowed, and covers the call no more
	Failure    error  // why an answerer failed or was left; not recorded
}

// Allowed reports whether the call may be made, once; see [Once] for how long.
func (r *Ruling) Allowed() bool { return r.Outcome == eventlog.AskAllowedOnce && r.Void == nil }

// Waits reports whether the question was put and not decided.
func (r *Ruling) Waits() bool { return r.Seq != 0 && r.DecidedSeq == 0 }

// Ask poses a question, gets it decided in this process and records the decision.
// It is [Pose] and [Respond] with answerers in between; the first of these that
// applies decides:
//
//	ctx has ended                     cancelled, decider host
//	the session is a child            rejected, decider pin
//	a root's approvals are never      rejected, decider rule
//	no turn is open                   rejected, decider rule
//	beyond the bound of a narrowing   rejected, decider rule
//	there is no answerer              unavailable, decider rule
//	the first answerer with a say     allowed-once or rejected, decider human or host
//
// All but the last record question and decision in one unit, within this call;
// no answerer is called and nothing waits. The answerers are asked in order.
// When ctx ends first the outcome is cancelled. An answer that comes after
// that, after the turn ended, or an allowance after the policy changed is
// dropped, and the outcome is cancelled. A crash before the decision leaves
// the question in Row.OpenAsks, and the next activation records it as
// unavailable.
//
// A question that was asked before, word for word under its ask id, gets its
// ruling and nobody is asked again.
//
// ctx bounds the wait for answers; what is recorded is recorded even if it
// ended. On an error there is no decision to act on: a ruling that could not
// be recorded is none.
//
// Errors: ErrInvalid (the request; an escalation that is not strictly wider
// than a root's sandbox or gives no reason), ErrConflict (the ask id stands for
// another question, or for one that waits for its answer elsewhere; or somebody
// else decided this one, such as a later activation), ErrNotFound, ErrEvidence,
// ErrPolicyUnreadable, ErrFenced, ErrSessionClosed, and those of Append.
func Ask(ctx context.Context, s *eventlog.Store, r AskRequest, answerers ...Answerer) (Ruling, error) {
	if err := checkAnswerers(answerers); err != nil {
		return Ruling{}, err
	}
	if r.Elsewhere != "" {
		return Ruling{}, fmt.Errorf("%w: a question that is put in %s has no answerers here", eventlog.ErrInvalid, r.Elsewhere)
	}
	q, ruling, err := r.pose(ctx, s, len(answerers) > 0)
	switch {
	case err != nil || ruling.DecidedSeq != 0:
		return ruling, err
	case ruling.Existing:
		return Ruling{}, fmt.Errorf("%w: session %s: ask %s was put at seq %d and waits for its answer", eventlog.ErrConflict, r.Session, r.Ask, ruling.Seq)
	}
	d, failure := consult(ctx, q.shown(&r), answerers)
	// A question that is in the log must get its decision, so the commit does
	// not end with the caller's patience.
	ruling, err = q.decide(context.WithoutCancel(ctx), s, &r, d)
	if err == nil {
		ruling.Failure = failure
	}
	return ruling, err
}

func checkAnswerers(answerers []Answerer) error {
	for i, a := range answerers {
		if a.answer == nil || !a.kind.Answers() {
			return fmt.Errorf("%w: answerer %d: want one made by Human or Host with a function", eventlog.ErrInvalid, i+1)
		}
	}
	return nil
}

func (r *AskRequest) check() error {
	if r.Call == "" {
		return fmt.Errorf("%w: a question names the call that it is about", eventlog.ErrInvalid)
	}
	return policy.CheckToolName(r.Tool)
}
