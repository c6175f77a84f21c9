package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// This file keeps, of a call that needs an approval, the question and what became
// of it. The question is the harness's: its person answers there, and no hook says
// what. What hooks do say (see doc.go for the sources):
//
//	PermissionRequest of the same call     a question was shown
//	PostToolUse, PostToolUseFailure        the call ran, so it was let pass
//	PermissionDenied                       the harness's own classifier rejected it
//	the turn goes on or ends without       rejected or stopped, nobody says which
//
// So the record is the harness's word. An allowance is allowed-elsewhere, which
// grants nothing in childlog; its decider is human only if a question was seen to
// be shown, since a harness may also let a call pass by its mode, and has done so.

// tagAsk is 16 bytes, and never changes: a call has one question, however often
// its hook comes.
const tagAsk = "childlog/asked/1"

func (g *Guard) askID(row *eventlog.Row, call string) string {
	return derived(tagAsk, row.Session, call).String()
}

// put records the question about a call that needs an approval, and leaves it to
// the harness's person. A call belongs to a turn; where no hook told of one (a
// background task woke the model, another Stop hook kept it going) it begins here.
// Where nobody can be asked, as in Codex, question and decision are one unit.
func (g *Guard) put(ctx context.Context, s *eventlog.Store, row eventlog.Row, ev *Event, e *policy.Escalation, o Outcome) (Outcome, error) {
	if g.Observe { // nobody is asked, everything passes
		return o, nil
	}
	r := replay.AskRequest{Session: row.Session, Ask: g.askID(&row, ev.Call), Call: ev.Call, Tool: ev.Tool, Args: ev.ArgsJSON, Escalation: e, Question: o.Reason}
	if row.Open {
		r.Epoch = row.Epoch
	}
	if g.Harness != ClaudeCode {
		_, err := replay.Ask(ctx, s, r)
		return o, err
	}
	if err := g.inTurn(ctx, s, row, ev); err != nil {
		return Outcome{}, err
	}
	r.Elsewhere = string(g.Harness)
	ruling, err := replay.Pose(ctx, s, r)
	if err != nil || ruling.Waits() {
		return o, err
	}
	why := ruling.Rule
	if why == "" {
		why = string(ruling.Outcome)
	}
	o.Verb, o.Reason = Deny, fmt.Sprintf("childlog: denied: the question about this call was decided at seq %d (%s), and a call is asked about once. Make another call, if it is still needed.", ruling.DecidedSeq, why)
	return o, nil
}

// inTurn begins a turn if none is open, and once: of calls that are made side by
// side each would else end the turn, and the question, of the others.
func (g *Guard) inTurn(ctx context.Context, s *eventlog.Store, row eventlog.Row, ev *Event) error {
	for row.TurnSeq == 0 {
		b := eventlog.Batch{Session: row.Session, Expect: eventlog.At(row.Head), Events: turnStart(&row, ev)}
		if row.Open {
			b.Epoch = row.Epoch
		}
		_, err := s.Append(ctx, b)
		if err == nil || !errors.Is(err, eventlog.ErrConflict) && !errors.Is(err, eventlog.ErrFenced) {
			return err
		}
		if row, err = s.Row(row.Session); err != nil || ctx.Err() != nil { // somebody wrote meanwhile: look again
			return errors.Join(err, ctx.Err())
		}
	}
	return nil
}

// ran records, before its result, that a call was let pass which needed an
// approval. What is known of it by now stands: a result that comes late changes
// nothing, and a call that nobody asked about stays one without an approval.
func (g *Guard) ran(ctx context.Context, s *eventlog.Store, row *eventlog.Row, ev *Event) error {
	ask, ok := g.open(row, ev.Call)
	if !ok {
		return nil
	}
	shown, err := shownAsks(ctx, s, row, ask.Seq)
	if err != nil {
		return err
	}
	decider := eventlog.DeciderHost
	if shown[ask.Ask] {
		decider = eventlog.DeciderHuman
	}
	return g.learn(ctx, s, row, ask, eventlog.AskAllowedElsewhere, decider, "")
}

// refused records that the harness itself rejected a call.
func (g *Guard) refused(ctx context.Context, s *eventlog.Store, row *eventlog.Row, ev *Event) error {
	if ask, ok := g.open(row, ev.Call); ok {
		return g.learn(ctx, s, row, ask, eventlog.AskRejected, eventlog.DeciderHost, "")
	}
	return nil
}

// leave closes the questions that the harness left behind: it goes on, or ends.
// It returns the row as it is then.
func (g *Guard) leave(ctx context.Context, s *eventlog.Store, row eventlog.Row) (eventlog.Row, error) {
	left := false
	for _, ask := range row.OpenAsks {
		if ask.Ask != g.askID(&row, ask.Call) { // somebody else's, who may still answer
			continue
		}
		left = true
		if err := g.learn(ctx, s, &row, ask, eventlog.AskCancelled, eventlog.DeciderHost, replay.RuleNoResult); err != nil {
			return row, err
		}
	}
	if !left {
		return row, nil
	}
	return s.Row(row.Session)
}

func (g *Guard) open(row *eventlog.Row, call string) (eventlog.OpenAsk, bool) {
	id := g.askID(row, call)
	for _, ask := range row.OpenAsks {
		if call != "" && ask.Ask == id {
			return ask, true
		}
	}
	return eventlog.OpenAsk{}, false
}

func (g *Guard) learn(ctx context.Context, s *eventlog.Store, row *eventlog.Row, ask eventlog.OpenAsk, outcome eventlog.AskOutcome, decider eventlog.Decider, rule string) error {
	_, err := replay.Learn(ctx, s, replay.Learned{Session: row.Session, Ask: ask.Ask, Outcome: outcome, Decider: decider, Rule: rule})
	if errors.Is(err, eventlog.ErrConflict) { // another hook was first
		return nil
	}
	return err
}

// shown finds the open question that a PermissionRequest shows: it names no call,
// so it is the oldest of the same tool and arguments that was not shown yet. ""
// where the harness asks about a call that childlog allowed.
func (g *Guard) shown(ctx context.Context, s *eventlog.Store, row *eventlog.Row, ev *Event) (string, error) {
	waiting, err := replay.Asks(ctx, s, row.Session)
	if err != nil || len(waiting) == 0 {
		return "", err
	}
	before, err := shownAsks(ctx, s, row, waiting[0].Seq)
	if err != nil {
		return "", err
	}
	args := canonical(ev.ArgsJSON)
	for i := range waiting {
		w := &waiting[i]
		if w.Ask == g.askID(row, w.Call) && !before[w.Ask] && w.Tool == ev.Tool && bytes.Equal(canonical(w.Args), args) {
			return w.Ask, nil
		}
	}
	return "", nil
}

func canonical(args []byte) []byte {
	v := jsontext.Value(args).Clone()
	if v.Canonicalize() != nil { // as numbers that no float holds
		return args
	}
	return v
}

// shownAsks reads which questions were shown, from a seq on.
func shownAsks(ctx context.Context, s *eventlog.Store, row *eventlog.Row, from uint64) (map[string]bool, error) {
	shown := map[string]bool{}
	for from != 0 && from <= row.Head {
		page, err := s.Read(ctx, row.Session, eventlog.ReadOptions{From: from, To: row.Head, MaxEvents: 1024})
		if err != nil {
			return nil, err
		}
		for i := range page.Events {
			if ev := &page.Events[i]; ev.Type == typeNote && ev.Inherited == nil {
				if ask := ev.Facts.Str("ask"); ask != "" {
					shown[ask] = true
				}
			}
		}
		from = page.Next
	}
	return shown, nil
}
