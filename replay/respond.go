package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// AnswerRequest answers a question that waits, from any process.
type AnswerRequest struct {
	Session uuid.UUID
	Ask     string
	Answer  Answer           // AllowOnce or Reject
	Decider eventlog.Decider // human or host; whoever calls vouches for it
	Ref     string           // an opaque reference of whoever answers, a code; "": none
}

// Respond records the answer to a question. One that comes too late is recorded
// as cancelled, and the ruling says by which rule: the turn or the activation of
// the question is over, or, for an allowance, the policy is another one than that
// which was asked under.
//
// One question has one decision: of two answers the first counts. The same answer
// again gets the ruling that is recorded, marked Existing; another one is a
// conflict. No epoch is needed, since an answer comes from outside of the
// activation that asked.
//
// Errors: ErrInvalid, ErrNotFound (no such session or ask), ErrConflict (it was
// decided otherwise), ErrUnauthorized (a harness put it to its own person: no
// answer from here reaches it), ErrEvidence, ErrPolicyUnreadable,
// ErrSessionClosed, and those of Append.
func Respond(ctx context.Context, s *eventlog.Store, r AnswerRequest) (Ruling, error) {
	d := eventlog.Decided{Ask: r.Ask, Decider: r.Decider, Ref: r.Ref}
	switch r.Answer {
	case AllowOnce:
		d.Outcome = eventlog.AskAllowedOnce
	case Reject:
		d.Outcome = eventlog.AskRejected
	default:
		return Ruling{}, fmt.Errorf("%w: answer: want allow once or reject, got %d", eventlog.ErrInvalid, r.Answer)
	}
	if !r.Decider.Answers() {
		return Ruling{}, fmt.Errorf("%w: decider %q answers nothing: want human or host", eventlog.ErrInvalid, r.Decider)
	}
	return answered(ctx, s, r.Session, d, func(asked *eventlog.Asked, _ *eventlog.Decided) error {
		if asked.Elsewhere != "" {
			return fmt.Errorf("%w: session %s: ask %s is put by %s to its own person: answer it there", eventlog.ErrUnauthorized, r.Session, r.Ask, asked.Elsewhere)
		}
		return nil
	})
}

// answered records what a question was answered, if it may be answered so and in
// time.
func answered(ctx context.Context, s *eventlog.Store, session uuid.UUID, d eventlog.Decided, may func(*eventlog.Asked, *eventlog.Decided) error) (Ruling, error) {
	var ruling Ruling
	_, err := s.Transact(ctx, eventlog.EntryRuntime, func(v *eventlog.View) ([]eventlog.Batch, error) {
		row, e, err := View(v, session)
		if err != nil {
			return nil, err
		}
		ev, answer, err := v.AskOf(session, d.Ask)
		if err != nil {
			return nil, err
		}
		q := question{seq: ev.Seq}
		if q.asked, err = eventlog.ParseAsked(&ev); err != nil {
			return nil, err
		}
		if err := may(&q.asked, &d); err != nil {
			return nil, err
		}
		if ruling, err = rulingOf(&ev, &answer); err != nil {
			return nil, err
		}
		if ruling.DecidedSeq != 0 {
			ruling.Existing = true
			return nil, ruling.answers(&d, session)
		}
		epoch := uint64(0)
		if row.Open { // in whose name the harness waits
			epoch = row.Epoch
		}
		batch := q.batch(&ruling, d, &row, &e)
		batch.Epoch = epoch
		return []eventlog.Batch{batch}, nil
	})
	if err != nil {
		return Ruling{}, err
	}
	return ruling, nil
}

// answers reports, as an error, that a question was decided otherwise than d says.
// An answer that came too late is recorded by the rule that it fell under, and its
// retry is told the same.
func (r *Ruling) answers(d *eventlog.Decided, session uuid.UUID) error {
	late := r.Outcome == eventlog.AskCancelled && slices.Contains([]string{RuleTurnEnded, RulePolicyMoved, RuleOtherHolder}, r.Rule)
	if late || r.Outcome == d.Outcome && r.Decider == d.Decider && r.Ref == d.Ref {
		return nil
	}
	return fmt.Errorf("%w: session %s: ask %s was decided at seq %d: %s by %s", eventlog.ErrConflict, session, d.Ask, r.DecidedSeq, r.Outcome, r.Decider)
}

// batch is the decision as it is recorded: the answer, if it comes in time.
func (q *question) batch(ruling *Ruling, d eventlog.Decided, row *eventlog.Row, e *Effective) eventlog.Batch {
	ruling.Decided, ruling.DecidedSeq = q.timely(d, row, e), row.Head+1
	return eventlog.Batch{Session: row.Session, Expect: eventlog.At(row.Head), Events: []eventlog.NewEvent{decidedEvent(ruling.Decided)}}
}

// decide records what the answerers of this process said. It looks at the session
// anew: the answer may have come too late.
func (q *question) decide(ctx context.Context, s *eventlog.Store, r *AskRequest, d eventlog.Decided) (Ruling, error) {
	ruling := Ruling{Seq: q.seq}
	_, err := s.Transact(ctx, eventlog.EntryRuntime, func(v *eventlog.View) ([]eventlog.Batch, error) {
		row, e, err := View(v, r.Session)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(row.OpenAsks, func(a eventlog.OpenAsk) bool { return a.Ask == q.asked.Ask && a.Seq == q.seq }) {
			return nil, fmt.Errorf("%w: session %s: ask %s was decided meanwhile; this answer is dropped", eventlog.ErrConflict, r.Session, q.asked.Ask)
		}
		batch := q.batch(&ruling, d, &row, &e)
		batch.Epoch = r.Epoch
		return []eventlog.Batch{batch}, nil
	})
	if err != nil {
		return Ruling{}, err
	}
	return ruling, nil
}

// timely replaces an answer that came too late. A rejection counts whatever
// the policy is by now; an allowance was for the policy that was shown.
func (q *question) timely(d eventlog.Decided, row *eventlog.Row, e *Effective) eventlog.Decided {
	allowed := d.Outcome == eventlog.AskAllowedOnce || d.Outcome == eventlog.AskAllowedElsewhere
	late := eventlog.Decided{Ask: d.Ask, Outcome: eventlog.AskCancelled, Decider: eventlog.DeciderRule}
	switch {
	case !allowed && d.Outcome != eventlog.AskRejected:
		return d
	case row.TurnSeq == 0 || row.TurnSeq > q.seq:
		late.Rule = RuleTurnEnded
	case q.asked.Epoch != 0 && (!row.Open || row.Epoch != q.asked.Epoch):
		late.Rule = RuleOtherHolder
	case allowed && e.policySeq() != q.asked.Evaluated:
		late.Rule, late.Origin = RulePolicyMoved, policy.RuleOrigin{Kind: policy.OriginSession, At: policy.Origin{Session: row.Session, Seq: e.policySeq()}}
	default:
		return d
	}
	return late
}
