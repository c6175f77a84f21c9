package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// Activation is one residency of a session in a process. Appends carry its
// epoch; a later activation fences them off.
type Activation struct {
	Session uuid.UUID
	Epoch   uint64
	Seq     uint64             // of activation/started
	Head    uint64             // after everything the activation wrote
	Closed  []Closed           // what a crash had left open
	Inbox   []eventlog.Message // claimed by this activation
	Policy  Effective          // as of Head
}

// Closed is something that an earlier activation left open.
type Closed struct {
	Kind    string // ask, call, step, turn
	ID      string // of the call or ask; the step's or turn's number
	Outcome string
}

// Outcomes recorded, with source store, for what a crash left open.
const (
	OutcomeUnknown    = "outcome-unknown" // a call that was made and has no result
	OutcomeNotStarted = "not-started"     // a call that was asked about and never made
	OutcomeUnavail    = "unavailable"     // an ask that nobody decided
	ReasonInterrupted = "interrupted"     // a step or turn that did not end
)

// Activate begins a new activation, superseding one that is open, and in the
// same unit closes what a crash left open and claims the pending messages. A
// session with nothing left open closes nothing, so doing it twice closes
// everything once.
//
// Errors: ErrNotFound, ErrEvidence, ErrSessionClosed, ErrPolicyUnreadable,
// ErrUnauthorized.
func Activate(ctx context.Context, s *eventlog.Store, session uuid.UUID, by Caller) (Activation, error) {
	var out Activation
	results, err := s.Transact(ctx, eventlog.EntryRuntime, func(v *eventlog.View) ([]eventlog.Batch, error) {
		row, policy, err := View(v, session)
		if err != nil {
			return nil, err
		}
		if row.Kind == eventlog.KindChild {
			if err := by.allow(&row); err != nil {
				return nil, err
			}
		}
		if row.ClosedSeq != 0 {
			return nil, fmt.Errorf("%w: session %s was closed at seq %d", eventlog.ErrSessionClosed, session, row.ClosedSeq)
		}
		out = Activation{Session: session, Epoch: row.Epoch + 1, Inbox: slices.Clone(row.Inbox), Policy: policy}
		events := []eventlog.NewEvent{{Type: eventlog.TypeActivationStarted, Facts: facts("epoch", out.Epoch, "boot", v.Boot())}}
		events = append(events, out.closeLeftOpen(&row)...)
		events = append(events, claimed(row.Inbox, out.Epoch)...)
		return []eventlog.Batch{{Session: session, Expect: eventlog.Any(), Events: events}}, nil
	})
	if err != nil {
		return Activation{}, err
	}
	out.Seq, out.Head = results[0].FirstSeq, results[0].LastSeq
	out.Policy.Seq = out.Head
	return out, nil
}

func (a *Activation) closeLeftOpen(row *eventlog.Row) []eventlog.NewEvent {
	var events []eventlog.NewEvent
	add := func(kind, id, outcome, typ string, f eventlog.Facts) {
		a.Closed = append(a.Closed, Closed{Kind: kind, ID: id, Outcome: outcome})
		events = append(events, eventlog.NewEvent{Type: typ, Facts: f, Source: eventlog.SourceStore})
	}
	for _, ask := range row.OpenAsks {
		add("ask", ask.Ask, OutcomeUnavail, eventlog.TypeApprovalDecided, unanswered(ask.Ask, RuleInterrupted).Facts())
	}
	for _, call := range row.OpenCalls {
		outcome := OutcomeNotStarted
		if call.Started {
			outcome = OutcomeUnknown
		}
		add("call", call.Call, outcome, eventlog.TypeToolResult, facts("call", call.Call, "outcome", outcome))
	}
	if row.StepSeq != 0 {
		add("step", fmt.Sprint(row.Step), ReasonInterrupted, eventlog.TypeStepEnd, facts("turn", row.Turn, "step", row.Step, "reason", ReasonInterrupted))
	}
	if row.TurnSeq != 0 {
		add("turn", fmt.Sprint(row.Turn), ReasonInterrupted, eventlog.TypeTurnEnd, facts("turn", row.Turn, "reason", ReasonInterrupted))
	}
	return events
}

// End ends an activation without settling: the process lets go of a session
// that it, or another, will go on with. Errors: ErrFenced if epoch is not the
// open one, and those of Append.
func End(ctx context.Context, s *eventlog.Store, session uuid.UUID, epoch uint64, reason string) (eventlog.Result, error) {
	results, err := s.Transact(ctx, eventlog.EntryRuntime, func(v *eventlog.View) ([]eventlog.Batch, error) {
		if epoch == 0 {
			return nil, fmt.Errorf("%w: ending an activation needs its epoch", eventlog.ErrInvalid)
		}
		return []eventlog.Batch{{Session: session, Expect: eventlog.Any(), Epoch: epoch, Events: []eventlog.NewEvent{
			{Type: eventlog.TypeActivationEnded, Facts: facts("epoch", epoch, "reason", reason)}}}}, nil
	})
	return first(results), err
}

// View reads a session inside a commit: its row and its effective policy.
// Errors: ErrNotFound, ErrEvidence, ErrPolicyUnreadable.
func View(v *eventlog.View, session uuid.UUID) (eventlog.Row, Effective, error) {
	row, err := v.Row(session)
	if err != nil {
		return row, Effective{}, err
	}
	if row.Evidence {
		return row, Effective{}, fmt.Errorf("%w: session %s was imported", eventlog.ErrEvidence, session)
	}
	events, err := v.Policy(session)
	if err != nil {
		return row, Effective{}, err
	}
	e, err := foldRow(events, &row, 0)
	if err != nil {
		return row, e, err
	}
	if e.overrule(&row); e.Evidence {
		return row, Effective{}, fmt.Errorf("%w: session %s was imported", eventlog.ErrEvidence, session)
	}
	return row, e, nil
}

// overrule puts what the log itself says of the session's identity into a row
// of the derived index. Who may resume a session, and whether it is authority
// at all, must not rest on a row that could be wrong.
func (e *Effective) overrule(row *eventlog.Row) {
	row.Kind, row.Evidence, row.Parent, row.Root, row.Depth, row.MaxDepth = e.Kind, e.Evidence, e.Parent, e.Root, e.Depth, e.MaxDepth
	row.Mode, row.Provider, row.InProcess, row.WorkspaceRoot = e.Mode, e.Provider.Name, e.Provider.InProcess, e.WorkspaceRoot
}

// facts builds a map from pairs of name and value.
func facts(pairs ...any) eventlog.Facts {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	f, err := eventlog.MakeFacts(m)
	if err != nil {
		return nil // an empty map is refused by the type's schema
	}
	return f
}

func first(results []eventlog.Result) eventlog.Result {
	if len(results) == 0 {
		return eventlog.Result{}
	}
	return results[0]
}
