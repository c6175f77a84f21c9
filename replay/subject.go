package replay

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// Subject is what a session's calls are decided on: its policy, and for a root
// the operator rules that the store has now. A child has those of its capture,
// whatever the store has. Errors: ErrPolicyUnreadable: the store's rules can't
// be read, which denies a root everything.
func Subject(ctx context.Context, s *eventlog.Store, e *Effective) (policy.Subject, error) {
	if e.keepsRules() {
		return subject(e, policy.OperatorRules{}, s.Places())
	}
	rules, err := Rules(ctx, s)
	if err != nil {
		return policy.Subject{}, err
	}
	return subject(e, rules, s.Places())
}

// keepsRules reports whether the store's present rules mean nothing to the
// session: it has its own, and goes on where the store's can't be read.
func (e *Effective) keepsRules() bool { return e.Kind == eventlog.KindChild || e.Evidence }

func subject(e *Effective, rules policy.OperatorRules, places []string) (policy.Subject, error) {
	workspace, err := policy.NewWorkspace(e.WorkspaceRoot, e.PathStyle)
	if err != nil {
		return policy.Subject{}, fmt.Errorf("%w: session %s: workspace: %w", eventlog.ErrPolicyUnreadable, e.Session, err)
	}
	return policy.Subject{Session: e.Session, Child: e.Kind == eventlog.KindChild, Evidence: e.Evidence, Authority: e.Authority.Under(rules),
		Sandbox: e.Sandbox, Bound: e.Bound.Value, Approvals: e.Approvals, ApprovalBy: e.ApprovalBy, Workspace: workspace, Palette: e.Palette,
		Lockdown: e.Lockdown, Causes: e.Causes, Protected: places}, nil
}

// PolicyDigest identifies what a decision was made on: everything of a subject
// but the causes, so two sessions that may do the same have the same digest.
func PolicyDigest(s *policy.Subject) eventlog.Hash {
	grant := policy.FingerprintOf("", s.Authority).Sum
	rules, palette := s.Authority.Operator.Digest(), s.Palette.Digest()
	return eventlog.Digest(grant[:], rules[:], palette[:], eventlog.SandboxFacts(s.Sandbox.Value), eventlog.SandboxFacts(s.Bound), []byte(s.Approvals),
		[]byte(s.Workspace.String()), []byte(strings.Join(s.Lockdown, "\n")))
}

// unreadableSubject denies every call of a session, and says why.
func unreadableSubject(session uuid.UUID) policy.Subject {
	return policy.Subject{Session: session, Unreadable: true}
}
