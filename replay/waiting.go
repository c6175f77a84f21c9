package replay

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// Waiting is a question that has no decision yet, as whoever may answer it is
// shown it.
type Waiting struct {
	Question
	Seq       uint64    // of approval/asked
	Time      time.Time // when it was put, a claim of the store's clock
	Evaluated uint64    // the policy-bearing seq that was in force; Sandbox is that of it
	Turn      uint64    // an answer after its end is too late
	Epoch     uint64    // of the activation that asked, 0 if none; likewise
	Elsewhere string    // the harness that puts it to its own person; "": it is answered here
	Gone      error     // why the texts and arguments can't be read, if so
}

// Asks lists the questions of a session that wait for an answer, oldest first.
// Errors: ErrNotFound, ErrPolicyUnreadable, ErrCorrupt, ErrEvidence.
func Asks(ctx context.Context, s *eventlog.Store, session uuid.UUID) ([]Waiting, error) {
	row, err := s.Row(session)
	if err != nil || len(row.OpenAsks) == 0 {
		return nil, err
	}
	var out []Waiting
	for _, open := range row.OpenAsks {
		ev, err := eventAt(ctx, s, session, open.Seq, true)
		if err != nil {
			return nil, err
		}
		asked, err := eventlog.ParseAsked(&ev)
		if err != nil {
			return nil, err
		}
		e, err := Policy(ctx, s, session, ev.Seq)
		if err != nil {
			return nil, err
		}
		w := Waiting{Question: Question{Session: session, Ask: asked.Ask, Call: asked.Call, Tool: asked.Tool, Sandbox: e.Sandbox.Value},
			Seq: ev.Seq, Time: ev.Time, Evaluated: asked.Evaluated, Turn: asked.Turn, Epoch: asked.Epoch, Elsewhere: asked.Elsewhere, Gone: ev.ContentErr}
		if asked.Escalation != nil {
			w.Escalation = &policy.Escalation{Sandbox: *asked.Escalation}
		}
		var texts questionContent
		if w.Gone == nil {
			w.Gone = json.Unmarshal(ev.Content, &texts)
		}
		w.Text, w.Args = texts.Question, texts.Args
		if w.Escalation != nil {
			w.Escalation.Justification = texts.Justification
		}
		out = append(out, w)
	}
	return out, nil
}

// RulingOf reads what came of a question. It says what is recorded; whether an
// allowance still covers its call is for [Pose], [Once] and the record of the
// call to say. Errors: ErrNotFound, ErrCorrupt.
func RulingOf(ctx context.Context, s *eventlog.Store, session uuid.UUID, ask string) (Ruling, error) {
	seq, decidedSeq, err := s.AskSeqs(session, ask)
	if err != nil {
		return Ruling{}, err
	}
	asked, err := eventAt(ctx, s, session, seq, false)
	if err != nil {
		return Ruling{}, err
	}
	var answer eventlog.Event
	if decidedSeq != 0 {
		if answer, err = eventAt(ctx, s, session, decidedSeq, false); err != nil {
			return Ruling{}, err
		}
	}
	return rulingOf(&asked, &answer)
}
