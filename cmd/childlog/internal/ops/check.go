package ops

import (
	"context"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/eventlog"
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
		if j.Denies(err) {
			return j, err, nil
		}
	}
	return j, nil, err
}
