package replay

import (
	"context"
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
