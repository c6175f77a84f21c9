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
	DriftOperatorRules   = "operator-rules"   // the store's rules are others than those captured
)

// DriftOf compares what a session holds with what its parent and the store hold
// now, as Resume does, and answers for any native session: one-shot and closed
// ones too. An imported log has no drift of this kind. Errors: a canceled
// context, and those of reading the parent's policy other than that it can't be
// read, which is a drift.
func DriftOf(ctx context.Context, s *eventlog.Store, e *Effective) ([]Drift, error) {
	if e.Evidence {
		return nil, nil
	}
	return drift(ctx, s, e, nil)
}

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
	ruled, err := rulesDrift(ctx, s, e)
	if err != nil {
		return nil, err
	}
	out = append(out, ruled...)
	parent, err := Policy(ctx, s, e.Parent, 0)
	if errors.Is(err, eventlog.ErrPolicyUnreadable) || errors.Is(err, eventlog.ErrNotFound) || errors.Is(err, eventlog.ErrPurged) {
		return append(out, Drift{DriftParentTightened, "sandbox", e.Sandbox.Value.String(), "unreadable", "the parent's present policy can't be read: " + err.Error()}), nil
	}
	if err != nil {
		return nil, err
	}
	if mine, its := e.Sandbox.Value, parent.Sandbox.Value; !mine.Within(its) {
		out = append(out, Drift{DriftParentTightened, "sandbox", mine.String(), its.String(),
			fmt.Sprintf("the parent has since tightened (%s); a delegated policy changes only by narrow", parent.Sandbox.Cause())})
	}
	if own, its := e.Authority.Own, parent.Authority.Delegable; !own.Within(its) {
		for _, c := range policy.Changes(own, own.Meet(its), policy.RuleParent) {
			out = append(out, Drift{DriftParentTightened, c.Field, c.From, c.To, "the parent can hand on less by now; a delegated authority changes only by narrow"})
		}
	}
	return out, nil
}

// rulesDrift compares a child's captured operator rules with the store's
// present ones. What is new there does not bind the child, and what is gone
// still does.
func rulesDrift(ctx context.Context, s *eventlog.Store, e *Effective) ([]Drift, error) {
	present, err := Rules(ctx, s)
	if errors.Is(err, eventlog.ErrPolicyUnreadable) {
		return []Drift{{DriftOperatorRules, "operator", ruleCount(e.Authority.Operator), "unreadable", "the store's present rules can't be read: " + err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	captured := e.Authority.Operator
	if captured.Covers(present) && present.Covers(captured) {
		return nil, nil
	}
	detail := "rules that the store has dropped still bind this session"
	if !captured.Covers(present) {
		detail = "rules set after the delegation do not bind this session; narrow with the rules applies them"
	}
	return []Drift{{DriftOperatorRules, "operator", ruleCount(captured), ruleCount(present), detail}}, nil
}

func ruleCount(r policy.OperatorRules) string {
	digest := r.Digest()
	return fmt.Sprintf("%d rules, digest %x", r.Len(), digest[:6])
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
	if own := e.Authority.Own; own.Grant.Network && own.Profile.Permissions.NetworkInEffect(v) {
		network = "with network"
	}
	scope := fmt.Sprintf("sandbox %s, %s", v.Mode, network)
	if e.Kind != eventlog.KindChild {
		if e.Approvals == policy.Never {
			return fmt.Sprintf("This session runs under %s. Operations that need approval are rejected automatically.", scope)
		}
		return fmt.Sprintf("This session runs under %s. Operations that need approval are put to a person.", scope)
	}
	grant := e.Authority.Own.Grant
	scope += fmt.Sprintf("; files %s, shell %s", grant.Files, grant.Shell)
	return fmt.Sprintf("You are a delegated agent. Your permissions were fixed when you were created (%s) and can't be widened from here. "+
		"Nobody is asked: an operation that needs approval is rejected automatically. If the task needs more, report the limitation instead of retrying.", scope)
}
