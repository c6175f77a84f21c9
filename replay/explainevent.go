package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// EventExplanation says what one event did.
type EventExplanation struct {
	Event eventlog.Event
	What  string // in words

	// Policy is the one in force after the event; nil where it was not whole yet
	// or can't be read, and then Note says why.
	Policy *Effective
	Note   string

	// Changes is what an event that bears policy changed. For one of the
	// creation it is what the session has by that event, and From is empty.
	Changes []FieldChange
	Born    bool // it is of the creation

	Decision *RecordedExplanation // of a tool/decision
}

// RecordedExplanation is a decision as it was recorded, explained by the policy
// that it was made on.
type RecordedExplanation struct {
	Recorded
	CallSeq uint64 // of its tool/call, 0 if it is not there
	Origin  string // of the deciding rule, in words
	Reason  string
	Change  string // what would have had to change; "" if it was allowed, or the policy can't be read
	Field   string // that decided, as Explain takes it; "" for none
	Chain   []Step // of that field
}

// copiedFrom names the log that an event of a seed was copied from.
func copiedFrom(s *eventlog.Store, ev *eventlog.Event) string {
	from := ev.Inherited.Session
	switch row, err := s.Row(ev.Session); {
	case err != nil || from == row.Parent:
		return "the parent's log"
	case row.Evidence:
		return "the log of " + from.String()
	}
	return "the log of " + from.String() + ", evidence that was adopted"
}

// ExplainEvent tells what the event at a seq is and did: the decision on a call
// as it was recorded, the fields that a policy-bearing event set or changed, of
// any other what it is; and the policy that was in force after it. Errors:
// ErrNotFound, ErrCorrupt, a canceled context.
func ExplainEvent(ctx context.Context, s *eventlog.Store, session uuid.UUID, seq uint64) (EventExplanation, error) {
	ev, err := eventAt(ctx, s, session, seq, true)
	if err != nil {
		return EventExplanation{}, err
	}
	x := EventExplanation{Event: ev, What: eventWords(&ev), Changes: []FieldChange{}}
	if ev.Inherited != nil {
		x.What += ", copied from " + copiedFrom(s, &ev) + ": it bears no policy here"
	}
	if by := ev.Redacted; by != nil {
		x.What += fmt.Sprintf("; its content was redacted at seq %d, for %s", by.Seq, by.Code)
	}
	ev.Content, x.Event.Content = nil, nil
	after, err := policyUnder(ctx, s, session, seq)
	whole := after
	switch {
	case err == nil:
		x.Policy = &after
	case ctx.Err() != nil:
		return EventExplanation{}, err
	case errors.Is(err, eventlog.ErrInvalid): // inside the delegation
		x.Note = err.Error()
		if head, err := Policy(ctx, s, session, 0); err == nil {
			whole, err = Policy(ctx, s, session, head.BornSeq)
			if err != nil {
				return EventExplanation{}, err
			}
		}
	default:
		x.Note = err.Error()
	}
	switch {
	case ev.Type == eventlog.TypeToolDecision && ev.Inherited == nil:
		x.Decision, err = explainRecorded(ctx, s, session, seq)
		return x, err
	case !ev.PolicyBearing || whole.Session == uuid.Nil || whole.Evidence:
		return x, nil
	case seq <= whole.WholeSeq:
		x.Born = true
		x.Changes, err = setBy(&whole, policy.Origin{Session: session, Seq: seq})
		return x, err
	}
	before, err := policyUnder(ctx, s, session, seq-1)
	if err != nil {
		return EventExplanation{}, err
	}
	x.Changes, err = fieldChanges(&before, &after)
	return x, err
}

// setBy lists the fields that have their value by an event.
func setBy(e *Effective, at policy.Origin) ([]FieldChange, error) {
	out := []FieldChange{}
	for _, field := range Fields {
		h, err := fieldOf(e, field)
		if err != nil {
			return nil, err
		}
		if h.by.Origin == at {
			out = append(out, FieldChange{Field: field, To: h.value, By: h.by})
		}
	}
	return out, nil
}

// explainRecorded explains a record. What it says is taken from it; the policy
// that it names is read for what would have had to change.
func explainRecorded(ctx context.Context, s *eventlog.Store, session uuid.UUID, seq uint64) (*RecordedExplanation, error) {
	r, err := ReadDecision(ctx, s, session, seq)
	if err != nil {
		return nil, err
	}
	d := r.Decided()
	x := &RecordedExplanation{Recorded: r, Origin: OriginText(ctx, s, session, r.Decision.Origin), Reason: d.Reason()}
	if seq > 1 {
		if call, err := eventAt(ctx, s, session, seq-1, false); err == nil && call.Type == eventlog.TypeToolCall && call.Facts.Str("call") == r.Call {
			x.CallSeq = call.Seq
		}
	}
	e, err := policyUnder(ctx, s, session, seq)
	if ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		return x, nil // the record stands, whatever can be read of its policy
	}
	sub, err := subject(&e, policy.OperatorRules{}, s.Places()) // it has its rules already
	if err != nil {
		return x, nil
	}
	x.Change = d.Change(&sub)
	j := Judgement{Decision: d, Subject: sub}
	if x.Field = j.Field(); x.Field != "" {
		x.Chain, err = chain(ctx, s, &e, x.Field, nil)
	}
	return x, err
}
