package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// Drift is a difference between what a session holds and what its reader or
// its parent holds now. It is reported and has no effect.
type Drift struct {
	Kind     string // see the constants
	Field    string
	Recorded string
	Present  string
	Detail   string
}

// Kinds of drift.
const (
	DriftDefault         = "default"          // the reader's deployment default is another
	DriftParentTightened = "parent-tightened" // the parent holds less than it handed down
)

// drift compares the session with the reader's default and with the parent.
func drift(ctx context.Context, s *eventlog.Store, e *Effective, present *policy.Defaults) ([]Drift, error) {
	var out []Drift
	if present != nil {
		if a, b := e.Defaults.Sandbox, present.Sandbox; !a.Equal(b) {
			out = append(out, Drift{DriftDefault, "defaults.sandbox", a.String(), b.String(), "the default recorded at creation counts"})
		}
		if a, b := e.Defaults.Approvals, present.Approvals; a.Effective() != b.Effective() {
			out = append(out, Drift{DriftDefault, "defaults.approvals", string(a), string(b), "the default recorded at creation counts"})
		}
	}
	if e.Parent == uuid.Nil {
		return out, nil
	}
	parent, err := Policy(ctx, s, e.Parent, 0)
	if errors.Is(err, eventlog.ErrPolicyUnreadable) || errors.Is(err, eventlog.ErrNotFound) {
		return append(out, Drift{DriftParentTightened, "sandbox", e.Sandbox.Value.String(), "unreadable", "the parent's present policy can't be read: " + err.Error()}), nil
	}
	if err != nil {
		return nil, err
	}
	if mine, its := e.Sandbox.Value, parent.Sandbox.Value; !mine.Within(its) {
		out = append(out, Drift{DriftParentTightened, "sandbox", mine.String(), its.String(),
			fmt.Sprintf("the parent has since tightened (%s); a delegated policy changes only by narrow", parent.Sandbox.Cause())})
	}
	return out, nil
}

// unreadable marks an error as one on which nothing may be granted.
func unreadable(err error) error {
	for _, passed := range []error{eventlog.ErrPolicyUnreadable, eventlog.ErrUnknownType, eventlog.ErrStoreClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, passed) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", eventlog.ErrPolicyUnreadable, err)
}

// RuntimeContext is the sentence that tells the model its bounds. It is a
// function of the policy alone, so that a resumed child is told the same as a
// new one. Paths are left out: they are not the model's business to widen.
func RuntimeContext(e *Effective) string {
	v := e.Sandbox.Value.Canonical()
	network := "without network"
	if v.Network {
		network = "with network"
	}
	scope := fmt.Sprintf("sandbox %s, %s", v.Mode, network)
	if e.Kind != eventlog.KindChild {
		if e.Approvals == policy.Never {
			return fmt.Sprintf("This session runs under %s. Operations that need approval are rejected automatically.", scope)
		}
		return fmt.Sprintf("This session runs under %s. Operations that need approval are put to a person.", scope)
	}
	return fmt.Sprintf("You are a delegated agent. Your permissions were fixed when you were created (%s) and can't be widened from here. "+
		"Nobody is asked: an operation that needs approval is rejected automatically. If the task needs more, report the limitation instead of retrying.", scope)
}
