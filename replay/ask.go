package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	RuleInterrupted    = "interrupted"     // a crash came before the answer
)

// Ruling is what came of a question, as recorded. The zero value grants
// nothing.
type Ruling struct {
	eventlog.Decided
	Seq        uint64 // of approval/asked
	DecidedSeq uint64 // of approval/decided
	Failure    error  // why an answerer failed or was left; not recorded
}

// Allowed reports whether the call may be made, once; see [Once] for how long.
func (r *Ruling) Allowed() bool { return r.Outcome == eventlog.AskAllowedOnce }

// Ask records a question, gets it decided and records the decision. It is
// decided by the first of these that applies:
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
// ctx bounds the wait for answers; what is recorded is recorded even if it
// ended. On an error there is no decision to act on: a ruling that could not
// be recorded is none.
//
// Errors: ErrInvalid (the request; an escalation that is not strictly wider
// than a root's sandbox or gives no reason), ErrConflict (the ask id was used; or
// somebody else decided the question, such as a later activation), ErrNotFound,
// ErrEvidence, ErrPolicyUnreadable, ErrFenced, ErrSessionClosed, and those of
// Append.
func Ask(ctx context.Context, s *eventlog.Store, r AskRequest, answerers ...Answerer) (Ruling, error) {
	if err := r.check(answerers); err != nil {
		return Ruling{}, err
	}
	var err error
	if r.Args, err = exactArgs(r.Args); err != nil {
		return Ruling{}, err
	}
	// A question that is in the log must get its decision, so the commits don't
	// end with the caller's patience.
	commit := context.WithoutCancel(ctx)
	q, ruling, err := r.record(commit, s, ctx.Err(), len(answerers) > 0)
	if err != nil || ruling.DecidedSeq != 0 {
		return ruling, err
	}
	d, failure := consult(ctx, q.shown(&r), answerers)
	return q.decide(commit, s, &r, d, failure)
}

func (r *AskRequest) check(answerers []Answerer) error {
	if r.Call == "" {
		return fmt.Errorf("%w: a question names the call that it is about", eventlog.ErrInvalid)
	}
	if err := policy.CheckToolName(r.Tool); err != nil {
		return err
	}
	for i, a := range answerers {
		if a.answer == nil || !a.kind.Answers() {
			return fmt.Errorf("%w: answerer %d: want one made by Human or Host with a function", eventlog.ErrInvalid, i+1)
		}
	}
	return nil
}

// question is one that was recorded and waits for its decision.
type question struct {
	asked   eventlog.Asked
	seq     uint64 // of approval/asked
	turnSeq uint64 // of the open turn's start
	sandbox policy.Sandbox
}

func (q *question) shown(r *AskRequest) Question {
	return Question{Session: r.Session, Ask: q.asked.Ask, Call: r.Call, Tool: r.Tool, Args: r.Args, Text: r.Question, Sandbox: q.sandbox, Escalation: r.Escalation}
}

// record writes the question, and in the same unit the decision where no
// answerer is needed.
func (r *AskRequest) record(ctx context.Context, s *eventlog.Store, ended error, answerable bool) (question, Ruling, error) {
	var q question
	var ruling Ruling
	_, err := s.Transact(ctx, eventlog.EntryRuntime, func(v *eventlog.View) ([]eventlog.Batch, error) {
		row, e, err := View(v, r.Session)
		if err != nil {
			return nil, err
		}
		if err := r.checkEscalation(&e); err != nil {
			return nil, err
		}
		asked, err := r.asked(v, &row, &e)
		if err != nil {
			return nil, err
		}
		q = question{asked: asked.Asked, seq: row.Head + 1, turnSeq: row.TurnSeq, sandbox: e.Sandbox.Value}
		ruling = Ruling{Seq: q.seq}
		events := []eventlog.NewEvent{{Type: eventlog.TypeApprovalAsked, Facts: asked.Facts(), Media: eventlog.MediaJSON, Content: asked.content}}
		if d, ok := r.rule(&q, &e, ended != nil, answerable); ok {
			ruling.Decided, ruling.DecidedSeq, ruling.Failure = d, q.seq+1, ended
			events = append(events, decidedEvent(d))
		}
		return []eventlog.Batch{{Session: r.Session, Expect: eventlog.At(row.Head), Epoch: r.Epoch, Events: events}}, nil
	})
	if err != nil {
		return question{}, Ruling{}, err
	}
	return q, ruling, nil
}

// checkEscalation refuses one that nobody could answer. A child that asks gets
// its rejection recorded whatever it asks for: with danger-full-access there is
// nothing wider, and that it asked is worth knowing.
func (r *AskRequest) checkEscalation(e *Effective) error {
	switch {
	case r.Escalation == nil:
		return nil
	case e.Kind == eventlog.KindChild:
		return r.Escalation.Sandbox.Validate()
	}
	return r.Escalation.Check(e.Sandbox.Value)
}

// askedEvent is a question on its way into the log.
type askedEvent struct {
	eventlog.Asked
	content []byte
}

func (r *AskRequest) asked(v *eventlog.View, row *eventlog.Row, e *Effective) (askedEvent, error) {
	ask := r.Ask
	if ask == "" {
		id, err := v.NewID()
		if err != nil {
			return askedEvent{}, err
		}
		ask = id.String()
	}
	salt, err := v.NewSalt()
	if err != nil {
		return askedEvent{}, err
	}
	content, err := encodeQuestion(salt, r)
	if err != nil {
		return askedEvent{}, err
	}
	a := eventlog.Asked{Ask: ask, Tool: r.Tool, Call: r.Call, Args: eventlog.CommitArgs(salt, r.Args), Evaluated: e.policySeq(),
		InTurn: row.TurnSeq != 0, Turn: row.Turn, Epoch: r.Epoch}
	if r.Escalation != nil {
		a.Escalation = &r.Escalation.Sandbox
	}
	return askedEvent{a, content}, nil
}

// policySeq is the seq of the policy that was folded: of its last event.
func (e *Effective) policySeq() uint64 { return e.events[len(e.events)-1].Seq }

// rule decides what needs no answerer. Nothing below a line can give what the
// line refuses, so the order decides only which reason is recorded.
func (r *AskRequest) rule(q *question, e *Effective, ended, answerable bool) (eventlog.Decided, bool) {
	d := eventlog.Decided{Ask: q.asked.Ask, Outcome: eventlog.AskRejected, Decider: eventlog.DeciderRule}
	switch by, beyond := r.beyond(e); {
	case ended:
		return withdrawn(d.Ask), true
	case e.Kind == eventlog.KindChild:
		d.Decider, d.Rule, d.Origin = eventlog.DeciderPin, RulePinned, ruleOrigin(e.ApprovalBy)
	case e.Approvals != policy.Ask:
		d.Rule, d.Origin = RuleNever, ruleOrigin(e.ApprovalBy)
	case q.turnSeq == 0:
		d.Rule = RuleNoOpenTurn
	case beyond:
		d.Rule, d.Origin = RuleBeyondBound, ruleOrigin(by)
	case !answerable:
		return unanswered(d.Ask, RuleNoAnswerer), true
	default:
		return eventlog.Decided{}, false
	}
	return d, true
}

// beyond reports whether the escalation goes beyond what the session may ever
// be given again, and the event that says so. One call is no exception: a
// narrowing is never undone.
func (r *AskRequest) beyond(e *Effective) (policy.Cause, bool) {
	if r.Escalation == nil {
		return policy.Cause{}, false
	}
	ledger := e.ledger // a copy: only to be asked
	var widening *policy.WideningError
	if !errors.As(ledger.Switch(r.Escalation.Sandbox, policy.Cause{}), &widening) {
		return policy.Cause{}, false
	}
	return widening.BoundBy, true
}

// ruleOrigin says where the approvals that decide were stated.
func ruleOrigin(by policy.Cause) policy.RuleOrigin {
	kind := policy.OriginSession
	switch by.Source {
	case policy.SourcePin:
		kind = policy.OriginPin
	case policy.SourceDefault:
		kind = policy.OriginDefault
	case policy.SourceNarrowing:
		kind = policy.OriginNarrowing
	}
	return policy.RuleOrigin{Kind: kind, At: by.Origin}
}

// decidedEvent sets the source that belongs to the decider.
func decidedEvent(d eventlog.Decided) eventlog.NewEvent {
	ev := eventlog.NewEvent{Type: eventlog.TypeApprovalDecided, Facts: d.Facts()}
	if !d.Decider.Answers() {
		ev.Source = eventlog.SourceStore
	}
	return ev
}

// decide records what came of a question that was put to the answerers. It
// looks at the session anew: the answer may have come too late.
func (q *question) decide(ctx context.Context, s *eventlog.Store, r *AskRequest, d eventlog.Decided, failure error) (Ruling, error) {
	ruling := Ruling{Seq: q.seq, Failure: failure}
	_, err := s.Transact(ctx, eventlog.EntryRuntime, func(v *eventlog.View) ([]eventlog.Batch, error) {
		row, e, err := View(v, r.Session)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(row.OpenAsks, func(a eventlog.OpenAsk) bool { return a.Ask == q.asked.Ask && a.Seq == q.seq }) {
			return nil, fmt.Errorf("%w: session %s: ask %s was decided meanwhile; this answer is dropped", eventlog.ErrConflict, r.Session, q.asked.Ask)
		}
		ruling.Decided, ruling.DecidedSeq = q.timely(d, &row, &e), row.Head+1
		return []eventlog.Batch{{Session: r.Session, Expect: eventlog.At(row.Head), Epoch: r.Epoch, Events: []eventlog.NewEvent{decidedEvent(ruling.Decided)}}}, nil
	})
	if err != nil {
		return Ruling{}, err
	}
	return ruling, nil
}

// timely replaces an answer that came too late. A rejection counts whatever
// the policy is by now; an allowance was for the policy that was shown.
func (q *question) timely(d eventlog.Decided, row *eventlog.Row, e *Effective) eventlog.Decided {
	late := eventlog.Decided{Ask: d.Ask, Outcome: eventlog.AskCancelled, Decider: eventlog.DeciderRule}
	switch {
	case d.Outcome != eventlog.AskAllowedOnce && d.Outcome != eventlog.AskRejected:
		return d
	case row.TurnSeq != q.turnSeq:
		late.Rule = RuleTurnEnded
	case d.Outcome == eventlog.AskAllowedOnce && e.policySeq() != q.asked.Evaluated:
		late.Rule, late.Origin = RulePolicyMoved, policy.RuleOrigin{Kind: policy.OriginSession, At: policy.Origin{Session: row.Session, Seq: e.policySeq()}}
	default:
		return d
	}
	return late
}
