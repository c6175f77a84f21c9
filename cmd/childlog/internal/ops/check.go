package ops

import (
	"context"
	"errors"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// CheckOptions say how a call is decided.
type CheckOptions struct {
	Record   bool   // append the call and its decision, in one commit
	Epoch    uint64 // the activation that makes the call
	Advisory bool   // the harness records the decision and does not obey it
	At       uint64 // as of this seq; 0: now
}

// Check decides a call of the authorizer's session. A denial that could not be
// recorded although that was asked for comes with the reason.
func Check(ctx context.Context, s *eventlog.Store, a *replay.Authorizer, row *eventlog.Row, m *manifest.Call, o CheckOptions) (j replay.Judgement, unwanted, err error) {
	call, err := m.Policy(row.WorkspaceRoot)
	if err != nil {
		return j, nil, err
	}
	r := replay.CallRequest{Call: call, Args: m.ArgsJSON, Epoch: o.Epoch, Ask: m.Ask, Advisory: o.Advisory}
	switch {
	case o.At != 0:
		j, err = replay.DecideAt(ctx, s, row.Session, o.At, call)
	case !o.Record:
		j, err = a.Decide(ctx, r)
	default:
		j, err = a.Record(ctx, r)
		if err != nil && j.Verdict == policy.VerdictDeny && j.Rule != policy.RuleUnrecorded && refusesRecords(err) {
			return j, err, nil
		}
	}
	return j, nil, err
}

// refusesRecords reports whether a session takes no decisions any more, which is
// itself a reason to deny.
func refusesRecords(err error) bool {
	for _, is := range []error{eventlog.ErrSessionClosed, eventlog.ErrFenced, eventlog.ErrEvidence, eventlog.ErrPolicyUnreadable} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}
