package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"childlog/eventlog"
	"childlog/policy"
)

// question is one that was recorded and waits for its decision.
type question struct {
	asked   eventlog.Asked
	seq     uint64 // of approval/asked
	sandbox policy.Sandbox
}

func (q *question) shown(r *AskRequest) Question {
	return Question{Session: r.Session, Ask: q.asked.Ask, Call: r.Call, Tool: r.Tool, Args: r.Args, Text: r.Question, Sandbox: q.sandbox, Escalation: r.Escalation}
}

// Pose records a question that another process may answer with [Respond], and
// returns at once. Where a rule decides, as listed at [Ask], the decision is
// recorded with it in one unit; else the ruling waits, without an outcome.
//
// It is safe to repeat: the same question under its ask id gets the ruling that
// stands in the log, or waits on. An allowance is then held against the call as
// [Once] does, so that Allowed never says more than what holds now. Errors: those
// of Ask.
func Pose(ctx context.Context, s *eventlog.Store, r AskRequest) (Ruling, error) {
	_, ruling, err := r.pose(ctx, s, true)
	return ruling, err
}

// pose writes the question, and in the same unit the decision where no answerer
// is needed.
func (r *AskRequest) pose(ctx context.Context, s *eventlog.Store, answerable bool) (question, Ruling, error) {
	if err := r.check(); err != nil {
		return question{}, Ruling{}, err
	}
	var err error
	if r.Args, err = exactArgs(r.Args); err != nil {
		return question{}, Ruling{}, err
	}
	ended := ctx.Err()
	var q question
	var ruling Ruling
	_, err = s.Transact(context.WithoutCancel(ctx), eventlog.EntryRuntime, func(v *eventlog.View) ([]eventlog.Batch, error) {
		row, e, err := View(v, r.Session)
		if err != nil {
			return nil, err
		}
		if was, found, err := r.again(v); found || err != nil {
			ruling = was
			return nil, err
		}
		if err := r.checkEscalation(&e); err != nil {
			return nil, err
		}
		asked, err := r.asked(v, &row, &e)
		if err != nil {
			return nil, err
		}
		q = question{asked: asked.Asked, seq: row.Head + 1, sandbox: e.Sandbox.Value}
		ruling = Ruling{Decided: eventlog.Decided{Ask: asked.Ask}, Seq: q.seq}
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

// again finds the question under its id and what became of it. Errors:
// ErrConflict (the id stands for another question, or for one that was redacted
// and can't be compared).
func (r *AskRequest) again(v *eventlog.View) (Ruling, bool, error) {
	if r.Ask == "" {
		return Ruling{}, false, nil
	}
	ev, answer, err := v.AskOf(r.Session, r.Ask)
	if errors.Is(err, eventlog.ErrNotFound) { // not the session: its policy was read
		return Ruling{}, false, nil
	}
	var asked eventlog.Asked
	if err == nil {
		asked, err = eventlog.ParseAsked(&ev)
	}
	if err == nil && !r.same(&asked, &ev) {
		err = fmt.Errorf("%w: session %s: ask %s stands for another question, of seq %d", eventlog.ErrConflict, r.Session, r.Ask, ev.Seq)
	}
	if err != nil {
		return Ruling{}, false, err
	}
	ruling, err := rulingOf(&ev, &answer)
	if err != nil {
		return Ruling{}, false, err
	}
	if ruling.Existing = true; ruling.Outcome == eventlog.AskAllowedOnce {
		_, err := OnceIn(v, Use{Session: r.Session, Epoch: r.Epoch, Ask: r.Ask, Call: r.Call, Tool: r.Tool, Args: r.Args})
		if void := (*VoidError)(nil); errors.As(err, &void) {
			ruling.Void = void
		} else if err != nil {
			return Ruling{}, false, err
		}
	}
	return ruling, true, nil
}

// same reports whether a recorded question is this one, word for word.
func (r *AskRequest) same(asked *eventlog.Asked, ev *eventlog.Event) bool {
	var texts questionContent
	salt, whole := askedSalt(ev)
	if !whole || json.Unmarshal(ev.Content, &texts) != nil {
		return false
	}
	if asked.Tool != r.Tool || asked.Call != r.Call || asked.Elsewhere != r.Elsewhere || asked.Args != eventlog.CommitArgs(salt, r.Args) || texts.Question != r.Question {
		return false
	}
	if r.Escalation == nil || asked.Escalation == nil {
		return r.Escalation == nil && asked.Escalation == nil
	}
	return asked.Escalation.Equal(r.Escalation.Sandbox) && texts.Justification == r.Escalation.Justification
}

// rulingOf reads what came of a question; answer without a seq: nothing yet.
func rulingOf(asked, answer *eventlog.Event) (Ruling, error) {
	out := Ruling{Decided: eventlog.Decided{Ask: asked.Facts.Str("ask")}, Seq: asked.Seq, DecidedSeq: answer.Seq}
	if answer.Seq == 0 {
		return out, nil
	}
	var err error
	out.Decided, err = eventlog.ParseDecided(answer)
	return out, err
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
		InTurn: row.TurnSeq != 0, Turn: row.Turn, Epoch: r.Epoch, Elsewhere: r.Elsewhere}
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
	case !q.asked.InTurn:
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
