package ops

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/manifest"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// AskOptions say how a question is put.
type AskOptions struct {
	Epoch    uint64 // of the activation that asks
	Question string // for whoever answers
}

// Ask puts the question whether a call may be made, under the ask id of the call,
// "" for a new one. A classifier's verdict is for the decision on the call and is
// no part of the question. A question whose allowance would be worth nothing is
// not put: ErrUnauthorized, with the escalation that it takes.
func Ask(ctx context.Context, s *eventlog.Store, session uuid.UUID, m *manifest.Call, o AskOptions) (replay.Ruling, error) {
	row, err := s.Row(session)
	if err != nil {
		return replay.Ruling{}, err
	}
	call, err := m.Policy(row.WorkspaceRoot)
	if err != nil {
		return replay.Ruling{}, err
	}
	if err := worthAsking(ctx, s, &row, call, m.Ask, o.Epoch); err != nil {
		return replay.Ruling{}, err
	}
	return replay.Pose(ctx, s, replay.AskRequest{Session: session, Epoch: o.Epoch, Ask: m.Ask, Call: m.ID, Tool: m.Tool, Args: m.ArgsJSON,
		Escalation: call.Escalation, Question: o.Question})
}

// worthAsking refuses a new question about a call that stays denied whatever is
// answered: an allowance lifts the sandbox as far as its escalation goes, and
// nothing else. What a rule answers (a child, approvals never, no open turn, beyond
// the bound) is left to it, and so is what makes no question at all.
func worthAsking(ctx context.Context, s *eventlog.Store, row *eventlog.Row, call policy.Call, ask string, epoch uint64) error {
	if ask != "" {
		if _, _, err := s.AskSeqs(row.Session, ask); !errors.Is(err, eventlog.ErrNotFound) {
			return err // it was put before, and is answered as recorded
		}
	}
	if row.Kind == eventlog.KindChild || row.TurnSeq == 0 {
		return nil
	}
	a := replay.NewAuthorizer(s, row.Session)
	j, err := a.Decide(ctx, replay.CallRequest{Call: call, Epoch: epoch})
	if err != nil || j.Verdict != policy.VerdictDeny || j.Subject.Approvals.Effective() != policy.Ask || j.Rule == policy.RuleSandboxBound {
		return err
	}
	switch j.Code {
	case policy.CodeMalformed, policy.CodeEvidence, policy.CodeFenced, policy.CodePolicyUnreadable, policy.CodeClosed:
		return nil
	}
	refused := fmt.Errorf("%w: session %s: an allowance of call %s would be worth nothing: %s", eventlog.ErrUnauthorized, row.Session, call.ID, j.Reason())
	mode, network, err := enough(ctx, a, row, &j, call, epoch)
	switch {
	case err != nil:
		return err
	case mode == "":
		return failure.WithHint(fmt.Errorf("%w; no approval lifts that", refused), "what would change it: "+j.Change(&j.Subject))
	case network:
		mode += `","network":true`
	default:
		mode += `"`
	}
	return failure.WithHint(fmt.Errorf(`%w; it takes the escalation {"sandbox":{"mode":"%s}}`, refused, mode), "put the escalation into the call's document, with a justification for whoever is asked")
}

// enough is the narrowest sandbox, in the order in which a person would give it,
// that a call could be approved under; "" if none is.
func enough(ctx context.Context, a *replay.Authorizer, row *eventlog.Row, j *replay.Judgement, call policy.Call, epoch uint64) (mode string, network bool, err error) {
	for _, m := range []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite, policy.DangerFullAccess} {
		for _, network := range []bool{false, true} {
			set := policy.Setting{Mode: m}
			if network {
				set.Network = &network
			}
			sandbox, err := set.Resolve(row.WorkspaceRoot)
			if err != nil {
				continue // a workspace that is no place for files
			}
			call.Escalation = &policy.Escalation{Sandbox: sandbox, Justification: "to find out"}
			if call.Escalation.Check(j.Subject.Sandbox.Value) != nil {
				continue
			}
			d, err := a.Decide(ctx, replay.CallRequest{Call: call, Epoch: epoch})
			if err != nil || d.Verdict == policy.VerdictNeedsApproval {
				return string(m), network, err
			}
		}
	}
	return "", false, nil
}

// Asks lists the questions that wait in a session, or with uuid.Nil in all of
// them, by session and then by age.
func Asks(ctx context.Context, s *eventlog.Store, session uuid.UUID) ([]replay.Waiting, error) {
	if session != uuid.Nil {
		return replay.Asks(ctx, s, session)
	}
	var asking []uuid.UUID
	err := s.EachRow(ctx, func(row *eventlog.Row) (bool, error) {
		if len(row.OpenAsks) > 0 && !row.Evidence { // of another system's questions nobody here decides
			asking = append(asking, row.Session)
		}
		return true, nil
	})
	var out []replay.Waiting
	for _, id := range asking {
		if err != nil {
			break
		}
		var list []replay.Waiting
		list, err = replay.Asks(ctx, s, id)
		out = append(out, list...)
	}
	return out, err
}
