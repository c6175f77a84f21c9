package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// Answer is what an answerer says to a question. The zero value is no answer:
// the next answerer is asked.
type Answer uint8

// The answers.
const (
	NoAnswer  Answer = iota // this answerer has no say in it
	AllowOnce               // this very call, once
	Reject
)

// Question is what an answerer is shown. It is the answerer's own copy.
type Question struct {
	Session    uuid.UUID
	Ask, Call  string
	Tool       string
	Args       []byte // JSON as the harness gave it, nil if it gave none
	Text       string // for a person; the harness's words
	Sandbox    policy.Sandbox
	Escalation *policy.Escalation // what is wanted beyond Sandbox; nil: nothing
}

func (q Question) clone() Question {
	q.Args = bytes.Clone(q.Args)
	if q.Escalation != nil {
		escalation := *q.Escalation
		q.Escalation = &escalation
	}
	return q
}

// AnswerFunc answers a question. It may take as long as it wants until ctx
// ends; what it says afterwards is dropped. An error, a panic or an unknown
// answer makes the outcome unavailable: nobody after it is asked, since it
// might have rejected. It is called from a goroutine of its own, which goes on
// if it does not return when ctx ends.
type AnswerFunc func(ctx context.Context, q Question) (Answer, error)

// Answerer decides questions. Its kind is fixed where it is made and recorded
// as the decider; no answer can claim another. The zero value is refused.
type Answerer struct {
	kind   eventlog.Decider
	answer AnswerFunc
}

// Human registers an answerer through which a person decides.
func Human(f AnswerFunc) Answerer { return Answerer{kind: eventlog.DeciderHuman, answer: f} }

// Host registers a program that decides for the deployment.
func Host(f AnswerFunc) Answerer { return Answerer{kind: eventlog.DeciderHost, answer: f} }

// consult asks the answerers in order until one decides. The error says why an
// answerer failed, for the harness's own log: it is free text and not recorded.
func consult(ctx context.Context, q Question, answerers []Answerer) (eventlog.Decided, error) {
	d := eventlog.Decided{Ask: q.Ask}
	for _, a := range answerers {
		answer, err := a.ask(ctx, q.clone())
		switch {
		case ctx.Err() != nil: // also if both came at once: an answer to nobody grants nothing
			return withdrawn(q.Ask), ctx.Err()
		case err == nil && answer == NoAnswer:
			continue
		case err == nil && answer == AllowOnce:
			d.Outcome, d.Decider = eventlog.AskAllowedOnce, a.kind
		case err == nil && answer == Reject:
			d.Outcome, d.Decider = eventlog.AskRejected, a.kind
		default:
			if err == nil {
				err = fmt.Errorf("answer: want no answer, allow once or reject, got %d", answer)
			}
			d.Outcome, d.Decider, d.Rule = eventlog.AskUnavailable, eventlog.DeciderRule, RuleAnswererFailed
		}
		return d, err
	}
	return unanswered(q.Ask, RuleNoAnswerer), nil
}

// ask runs the answerer and waits for it as long as ctx does.
func (a Answerer) ask(ctx context.Context, q Question) (Answer, error) {
	type said struct {
		answer Answer
		err    error
	}
	done := make(chan said, 1) // whoever answers late finds room and nobody
	go func() {
		out := said{err: errors.New("the answerer ended without returning")} // as runtime.Goexit does
		defer func() {
			if p := recover(); p != nil {
				out = said{err: fmt.Errorf("the answerer panicked: %v", p)}
			}
			done <- out
		}()
		out.answer, out.err = a.answer(ctx, q)
	}()
	select {
	case out := <-done:
		return out.answer, out.err
	case <-ctx.Done():
		return NoAnswer, ctx.Err()
	}
}

// withdrawn is the decision that the harness no longer wants an answer.
func withdrawn(ask string) eventlog.Decided {
	return eventlog.Decided{Ask: ask, Outcome: eventlog.AskCancelled, Decider: eventlog.DeciderHost, Rule: RuleWithdrawn}
}

// unanswered is the decision that there is none.
func unanswered(ask, rule string) eventlog.Decided {
	return eventlog.Decided{Ask: ask, Outcome: eventlog.AskUnavailable, Decider: eventlog.DeciderRule, Rule: rule}
}
