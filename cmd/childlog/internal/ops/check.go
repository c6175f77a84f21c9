package ops

import (
	"context"
	"errors"

	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/wire"
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
	r := replay.CallRequest{Call: call, Args: m.ArgsJSON, Epoch: o.Epoch, Ask: m.Ask, Advisory: o.Advisory, Found: m.Found}
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

// OfOneCall reports whether an error of [Check] is about its call alone, so that
// the others of a batch are decided all the same. At is that of the options.
func OfOneCall(err error, at uint64) bool {
	return errors.Is(err, eventlog.ErrConflict) || errors.Is(err, eventlog.ErrInvalid) && at == 0
}

// Undecided answers in the place of a call that was not decided.
func Undecided(err error) wire.FailureBody {
	f := failure.Of(err)
	hint := "mend the call as the message says, and send it again"
	switch {
	case errors.As(err, new(*replay.CallError)):
		hint = TakenHint
	case f.Exit != failure.ExitUsage:
		hint = f.API
	}
	return wire.FailureBody{Code: f.Code, Message: err.Error(), Hint: hint}
}

// TakenHint says what can be done about a call whose id stands for another one.
const TakenHint = "a call id names one call of its session: repeat the call as it was, or give another one an id of its own"
