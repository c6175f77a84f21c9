package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// Change is a runtime switch: what a session sets for itself.
type Change struct {
	Sandbox   *policy.Setting // nil: unchanged
	Approvals policy.Approval // "": unchanged
	Epoch     uint64          // of the harness's activation; 0: an operator switches
}

// Switch records a session's own sandbox or approvals. Within the bound it is
// reversible; beyond it it is refused inside the commit, and only a new
// delegation gives more. A parent's switch never reaches children that exist.
//
// Errors: ErrWidening (a *policy.WideningError names the bound), ErrInvalid,
// ErrFenced, and those of Append.
func Switch(ctx context.Context, s *eventlog.Store, session uuid.UUID, c Change) (eventlog.Result, Effective, error) {
	via := eventlog.EntryOperator
	if c.Epoch != 0 {
		via = eventlog.EntryRuntime
	}
	results, err := s.Transact(ctx, via, func(v *eventlog.View) ([]eventlog.Batch, error) {
		row, e, err := View(v, session)
		if err != nil {
			return nil, err
		}
		var events []eventlog.NewEvent
		next := row.Head
		if c.Sandbox != nil {
			value, err := c.Sandbox.Resolve(e.WorkspaceRoot)
			if err != nil {
				return nil, err
			}
			next++
			if err := e.ledger.Switch(value, cause(policy.SourceSwitch, session, next)); err != nil {
				return nil, err
			}
			events = append(events, eventlog.NewEvent{Type: eventlog.TypeSandboxMode, Facts: eventlog.SandboxFacts(value)})
		}
		if c.Approvals != "" {
			next++
			if err := e.approvals.Switch(c.Approvals, cause(policy.SourceSwitch, session, next)); err != nil {
				return nil, err
			}
			events = append(events, eventlog.NewEvent{Type: eventlog.TypeApprovalPolicy, Facts: eventlog.ApprovalFacts(c.Approvals)})
		}
		if len(events) == 0 {
			return nil, fmt.Errorf("%w: a switch names a sandbox, approvals or both", eventlog.ErrInvalid)
		}
		return []eventlog.Batch{{Session: session, Expect: eventlog.Any(), Epoch: c.Epoch, Events: events}}, nil
	})
	if err != nil {
		return eventlog.Result{}, Effective{}, err
	}
	after, err := Policy(ctx, s, session, 0)
	if err != nil {
		err = fmt.Errorf("%w: the switch is durable, reading it back failed: %w", eventlog.ErrOutcomeUnknown, err)
	}
	return first(results), after, err
}

func cause(src policy.Source, session uuid.UUID, seq uint64) policy.Cause {
	return policy.Cause{Source: src, Origin: policy.Origin{Session: session, Seq: seq}}
}

// Narrowing is an order to hold less, for ever.
type Narrowing struct {
	Session uuid.UUID
	Ceiling policy.Setting // its roots, if it names any, stand instead of the workspace
	Reason  string         // free text; content
	Subtree bool           // every descendant too, those created meanwhile included
}

// Narrowed is what a narrowing did to one session. Skipped says why nothing
// was written there; such a session holds no more than the ceiling, or nothing
// at all can be done in its name.
type Narrowed struct {
	Session uuid.UUID
	Seq     uint64
	Before  policy.Sandbox
	After   policy.Sandbox
	Skipped string
	Unread  bool // written without reading the policy, which holds a type of a newer version; Before and After are unknown
}

// Reasons for which a narrowing skips a session.
const (
	SkipNarrower   = "already narrower"
	SkipClosed     = "closed"
	SkipUnreadable = "policy unreadable: every call is denied"
	SkipEvidence   = "imported: evidence is never authority"
)

// Narrow meets a ceiling into the bound of a session and, on request, of its
// whole subtree, in one unit: all of it or nothing. Descendants are enumerated
// inside the commit, so a child that is created at the same time is either
// born narrow or enumerated.
//
// Errors: ErrNotFound, ErrEvidence, ErrPolicyUnreadable (of the session
// itself), ErrInvalid, ErrTooLarge (a subtree of more than 10,000 to narrow).
func Narrow(ctx context.Context, s *eventlog.Store, n Narrowing) ([]Narrowed, error) {
	if n.Reason == "" {
		return nil, fmt.Errorf("%w: a narrowing needs a reason", eventlog.ErrInvalid)
	}
	var out []Narrowed
	_, err := s.Transact(ctx, eventlog.EntryOperator, func(v *eventlog.View) ([]eventlog.Batch, error) {
		out = nil
		_, e, err := View(v, n.Session)
		if err != nil {
			return nil, err
		}
		workspace := e.WorkspaceRoot
		if len(n.Ceiling.WritableRoots) > 0 {
			workspace = "" // named roots are the ceiling, not an addition to the workspace
		}
		ceiling, err := n.Ceiling.Resolve(workspace)
		if err != nil {
			return nil, err
		}
		targets := []uuid.UUID{n.Session}
		if n.Subtree {
			below, err := v.Descendants(n.Session)
			if err != nil {
				return nil, err
			}
			targets = append(targets, below...)
		}
		var batches []eventlog.Batch
		for _, id := range targets {
			row, e, err := View(v, id)
			// One member that can't be read must not keep the others wide. A
			// type of a newer version makes the policy unreadable here only: the
			// version that knows it would go on from a log without the ceiling,
			// so it is written blind, which a meet allows.
			unread := errors.Is(err, eventlog.ErrUnknownType)
			switch {
			case unread:
			case errors.Is(err, eventlog.ErrEvidence):
				out = append(out, Narrowed{Session: id, Skipped: SkipEvidence})
				continue
			case errors.Is(err, eventlog.ErrPolicyUnreadable), errors.Is(err, eventlog.ErrCorrupt), errors.Is(err, eventlog.ErrNotFound):
				// A child that its parent's log names and whose own log is gone.
				out = append(out, Narrowed{Session: id, Skipped: SkipUnreadable})
				continue
			case err != nil:
				return nil, err
			}
			done := Narrowed{Session: id, Seq: row.Head + 1, Before: e.Sandbox.Value, Unread: unread}
			switch ledger := e.ledger; {
			case row.ClosedSeq != 0:
				done.Skipped, done.Seq, done.After = SkipClosed, row.Head, done.Before
			case !unread && !ledger.Narrow(ceiling, cause(policy.SourceNarrowing, id, done.Seq)):
				done.Skipped, done.Seq, done.After = SkipNarrower, row.Head, done.Before
			default:
				done.After = ledger.Effective().Value
				batches = append(batches, eventlog.Batch{Session: id, Expect: eventlog.At(row.Head), Events: []eventlog.NewEvent{{
					Type: eventlog.TypePolicyNarrowed, Facts: eventlog.NarrowedFacts(ceiling, "operator"), Media: eventlog.MediaText, Content: []byte(n.Reason)}}})
			}
			out = append(out, done)
		}
		return batches, nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
