package replay

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// Explanation says why a field has its value.
type Explanation struct {
	Session   uuid.UUID
	Seq       uint64
	Field     string
	Value     string
	By        policy.Cause // the one event that decided it
	DecidedBy policy.Rule  // the one rule; "" where the kind of the event says it all
	Rule      string       // in words
	Chain     []Step       // from the root down to this session
	Change    string       // what would have to happen for another value
	Effective *Limit       // where another part of the policy leaves less than Value; nil: it is effective
}

// Step is what one session on the way down held when it handed down.
type Step struct {
	Session   uuid.UUID
	Label     string
	Seq       uint64 // as of which it was captured; for the last, the explained seq
	Value     string
	Delegable string // what it could hand on, where that is another value; "" otherwise
	By        policy.Cause
	Note      string
}

// Explain tells which event gave a field its value, what each ancestor held
// when it delegated, and what would change it. Errors: ErrInvalid for an
// unknown field (with the list), and those of Policy.
func Explain(ctx context.Context, s *eventlog.Store, session uuid.UUID, field string, at uint64) (Explanation, error) {
	e, err := policyUnder(ctx, s, session, at)
	if err != nil {
		return Explanation{}, err
	}
	h, err := fieldOf(&e, field)
	if err != nil {
		return Explanation{}, err
	}
	x := explained(&e, field, h)
	if x.Effective, err = limitOf(&e, field); err != nil {
		return Explanation{}, err
	}
	x.Chain, err = chain(ctx, s, &e, field, nil)
	return x, err
}

// ExplainAll explains every field, in the order of [Fields], without the chains.
// Errors: those of Policy.
func ExplainAll(ctx context.Context, s *eventlog.Store, session uuid.UUID, at uint64) ([]Explanation, error) {
	e, err := policyUnder(ctx, s, session, at)
	if err != nil {
		return nil, err
	}
	out := make([]Explanation, len(Fields))
	for i, field := range Fields {
		h, err := fieldOf(&e, field)
		if err != nil {
			return nil, err
		}
		out[i] = explained(&e, field, h)
		if out[i].Effective, err = limitOf(&e, field); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func explained(e *Effective, field string, h held) Explanation {
	return Explanation{Session: e.Session, Seq: e.Seq, Field: field, Value: h.value, By: h.by, DecidedBy: h.rule, Rule: rule(e, field, h), Change: change(e, field, h)}
}

// policyUnder is Policy with what a root takes from its store: the operator
// rules, as they were at the seq. Errors: those of Policy; ErrPolicyUnreadable
// for rules that can't be read.
func policyUnder(ctx context.Context, s *eventlog.Store, session uuid.UUID, at uint64) (Effective, error) {
	e, err := Policy(ctx, s, session, at)
	if err != nil || e.Kind == eventlog.KindChild || e.Evidence {
		return e, err
	}
	var rules policy.OperatorRules
	if at == 0 {
		rules, err = Rules(ctx, s)
	} else {
		var ev eventlog.Event
		if ev, err = eventAt(ctx, s, session, at, false); err == nil {
			rules, err = rulesBefore(ctx, s, ev.Position)
		}
	}
	if err != nil || rules.Len() == 0 {
		return e, err
	}
	before := e.Authority.Own
	e.Authority = e.Authority.Under(rules)
	first := rules.Entries()[0].Origin
	network, tests, raw := e.Authority.Own.Profile.Denied.Effects()
	for _, cut := range policy.Changes(before, e.Authority.Own, policy.RuleOperatorDeny) {
		origin := first
		switch {
		case cut.Field == policy.FieldNetwork || cut.Field == policy.FieldGrantNetwork:
			origin = originElse(network, first)
		case cut.Field == policy.FieldShell:
			origin = originElse(tests, first)
		case cut.Field == policy.FieldGrantShell:
			origin = originElse(raw, originElse(tests, first))
		}
		e.Causes[cut.Field] = policy.FieldCause{Rule: cut.Rule, Origin: policy.RuleOrigin{Kind: policy.OriginOperator, At: origin}}
	}
	return e, nil
}

func originElse(entry *policy.DenyEntry, otherwise policy.Origin) policy.Origin {
	if entry == nil {
		return otherwise
	}
	return entry.Origin
}

// eventAt reads one event. Errors: ErrNotFound, ErrCorrupt.
func eventAt(ctx context.Context, s *eventlog.Store, session uuid.UUID, seq uint64, contents bool) (eventlog.Event, error) {
	page, err := s.Read(ctx, session, eventlog.ReadOptions{From: seq, To: seq, Contents: contents})
	switch {
	case err != nil:
		return eventlog.Event{}, err
	case len(page.Holes) > 0:
		return eventlog.Event{}, unread(session, page.Holes[0])
	case seq == 0 || len(page.Events) != 1:
		return eventlog.Event{}, noSeq(session, seq, page.Head)
	}
	return page.Events[0], nil
}

// unread is the error of a part of a log that can't be read. A hole between frames
// says no more than that events are missing.
func unread(session uuid.UUID, h eventlog.Hole) error {
	if errors.Is(h.Err, eventlog.ErrCorrupt) {
		return h.Err
	}
	return &eventlog.CorruptError{Session: session, Seq: h.From, Reason: h.Err.Error()}
}

// chain walks to the root and shows what each ancestor held at its delegation.
// An ancestor that can't be read ends the walk with a note: the child's own
// value does not depend on it. Visit, if not nil, sees every policy on the way,
// the session's own first.
func chain(ctx context.Context, s *eventlog.Store, e *Effective, field string, visit func(e *Effective)) ([]Step, error) {
	var steps []Step
	cur, at := *e, e.Seq
	for {
		h, err := fieldOf(&cur, field)
		if err != nil {
			return nil, err
		}
		if visit != nil {
			visit(&cur)
		}
		step := Step{Session: cur.Session, Seq: at, Value: h.value, By: h.by}
		if h.delegable != h.value {
			step.Delegable = h.delegable
		}
		if row, err := s.Row(cur.Session); err == nil {
			step.Label = row.Label
		}
		steps = append([]Step{step}, steps...)
		if cur.Parent == uuid.Nil || len(steps) > 1+maxChain {
			return steps, nil
		}
		parent, seq := cur.Parent, cur.ParentSeq
		if cur, err = policyUnder(ctx, s, parent, seq); err != nil {
			if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				return nil, err
			}
			return append([]Step{{Session: parent, Seq: seq, Note: err.Error()}}, steps...), nil
		}
		at = seq
	}
}

// maxChain is the hard ceiling of depth; a longer chain can't exist.
const maxChain = 8
