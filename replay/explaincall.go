package replay

import (
	"context"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// CallExplanation says why a call is decided as it is, and where on the way
// down from the root the right to it was lost.
type CallExplanation struct {
	Judgement
	At     uint64 // as of this seq
	Origin string // of the deciding rule, in words
	Reason string // the decision in one line
	Change string // what would have to change; "" for an allowed call

	// Field is the part of the policy that decided, as Explain takes it; "" where
	// no part did, but the call itself or the state of the session.
	Field string
	Chain []Step // of that field, from the root down; empty without one

	// LostAt is the place in Chain of the session in which the reason stands
	// first: those above could hand the right on. -1 if nothing was lost.
	LostAt int
}

// ExplainCall decides a call as [Authorizer.Decide] does at the head, or as
// [DecideAt] as of a seq, and explains it. It records nothing. Errors: those of
// the two.
func ExplainCall(ctx context.Context, s *eventlog.Store, session uuid.UUID, call policy.Call, at uint64) (CallExplanation, error) {
	var j Judgement
	var err error
	if at == 0 {
		j, err = NewAuthorizer(s, session).Decide(ctx, CallRequest{Call: call})
	} else {
		j, err = DecideAt(ctx, s, session, at, call)
	}
	if err != nil {
		return CallExplanation{}, err
	}
	x := CallExplanation{Judgement: j, At: at, LostAt: -1, Reason: j.Decision.Reason(), Change: j.Decision.Change(&j.Subject), Field: j.Field()}
	x.Origin = OriginText(ctx, s, session, j.Decision.Origin)
	if row, err := s.Row(session); err == nil && at == 0 {
		x.At = row.Head
	}
	if x.Field == "" || j.Failure != nil || j.Subject.Evidence {
		x.Field = ""
		return x, nil
	}
	e, err := policyUnder(ctx, s, session, at)
	if err != nil {
		return CallExplanation{}, err
	}
	var lacks []bool // from the session upwards
	x.Chain, err = chain(ctx, s, &e, x.Field, func(held *Effective) {
		lacks = append(lacks, refusedAbove(held, &j, &call, s.Places(), len(lacks) == 0))
	})
	if err != nil {
		return CallExplanation{}, err
	}
	// A right that was lost stays lost, so it was lost at the uppermost of the
	// sessions that follow each other without it.
	for i := 0; i < len(lacks) && lacks[i]; i++ {
		x.LostAt = len(x.Chain) - 1 - i
	}
	return x, nil
}

// refusedAbove reports whether the reason that decided stands already in what a
// session could hand on; for the session itself, in what it may do. The call is
// held against the workspace that it names its files in.
func refusedAbove(e *Effective, j *Judgement, call *policy.Call, places []string, itself bool) bool {
	if j.Allowed() {
		return false
	}
	if itself {
		return true
	}
	above, err := subject(e, policy.OperatorRules{}, places) // it has its rules already
	if err != nil {
		return false
	}
	above.Authority.Own, above.Workspace, above.Palette = above.Authority.Delegable, j.Subject.Workspace, j.Subject.Palette
	d := policy.Authorize(above, *call, policy.Moment{NowMS: j.Moment.NowMS, LastMS: j.Moment.LastMS, Steps: j.Moment.Steps, Admitted: j.Moment.Admitted})
	if d.Code == j.Code {
		return true
	}
	for _, also := range d.AlsoDeniedBy {
		if also.Code == j.Code {
			return true
		}
	}
	return false
}

// Field is the part of the policy behind the reason of a decision, as [Explain]
// takes it; "" if it is none.
func (j *Judgement) Field() string {
	own := j.Subject.Authority.Own.Canonical().Grant
	switch j.Code {
	case policy.CodeExpired:
		return policy.FieldDeadline
	case policy.CodeStepsExhausted:
		return policy.FieldMaxSteps
	case policy.CodeLockdown:
		return policy.FieldLockdown
	case policy.CodeOperatorDeny:
		return fieldOperator
	case policy.CodeDenyList:
		return policy.FieldDenied
	case policy.CodeToolScope:
		return policy.FieldTools
	case policy.CodeWriteScopeViolation:
		return policy.FieldScope
	case policy.CodePathUnknown:
		if j.Rule == policy.RulePathUnknown {
			return ""
		}
		return policy.FieldScope
	case policy.CodeFiles:
		return policy.FieldFiles
	case policy.CodeShell:
		return policy.FieldGrantShell
	case policy.CodeNetwork:
		if j.Rule == policy.RuleSandboxNetwork {
			return "sandbox.network"
		}
		return policy.FieldGrantNetwork
	case policy.CodeSpawn:
		if own.Spawn {
			return policy.FieldMaxChildren
		}
		return policy.FieldSpawn
	case policy.CodeOpaque: // the first limit in the order in which they are asked
		switch {
		case own.Files != policy.FilesWrite:
			return policy.FieldFiles
		case own.Shell != policy.GrantFull:
			return policy.FieldGrantShell
		case !own.Network:
			return policy.FieldGrantNetwork
		case !j.Subject.Sandbox.Value.Canonical().Network:
			return "sandbox.network"
		}
		return "sandbox.mode"
	case policy.CodeSandbox:
		switch j.Rule {
		case policy.RuleSandboxRoots:
			return "sandbox.writable_roots"
		case policy.RuleSandboxBound:
			return fieldBound
		case policy.RuleSandbox:
			return "sandbox.mode"
		}
		return "" // a path that no sandbox admits
	case policy.CodeApprovalNever, policy.CodeNeedsApproval:
		return fieldApprovals
	}
	return ""
}
