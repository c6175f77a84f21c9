package ops

import (
	"context"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/eventlog"
	"childlog/replay"
)

// AskOptions say how a question is put.
type AskOptions struct {
	Epoch    uint64 // of the activation that asks
	Question string // for whoever answers
}

// Ask puts the question whether a call may be made, under the ask id of the call,
// "" for a new one. A classifier's verdict is for the decision on the call and is
// no part of the question.
func Ask(ctx context.Context, s *eventlog.Store, session uuid.UUID, m *manifest.Call, o AskOptions) (replay.Ruling, error) {
	row, err := s.Row(session)
	if err != nil {
		return replay.Ruling{}, err
	}
	call, err := m.Policy(row.WorkspaceRoot)
	if err != nil {
		return replay.Ruling{}, err
	}
	return replay.Pose(ctx, s, replay.AskRequest{Session: session, Epoch: o.Epoch, Ask: m.Ask, Call: m.ID, Tool: m.Tool, Args: m.ArgsJSON,
		Escalation: call.Escalation, Question: o.Question})
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
