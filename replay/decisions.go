package replay

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// Recorded is a decision as it stands in a log, with the texts beside it.
type Recorded struct {
	eventlog.Decision
	Seq     uint64
	Targets []string // nil if the texts are gone
	Outside []policy.OutsidePath
	Given   string // the tool's name as given
}

// ReadDecision reads the decision at a seq. Errors: ErrNotFound: there is no
// decision; ErrCorrupt.
func ReadDecision(ctx context.Context, s *eventlog.Store, session uuid.UUID, seq uint64) (Recorded, error) {
	ev, err := eventAt(ctx, s, session, seq, true)
	if err != nil {
		return Recorded{}, err
	}
	if ev.Type != eventlog.TypeToolDecision || ev.Inherited != nil {
		return Recorded{}, fmt.Errorf("%w: seq %d of session %s is no decision of its own", eventlog.ErrNotFound, seq, session)
	}
	return recorded(&ev)
}

func recorded(ev *eventlog.Event) (Recorded, error) {
	d, err := eventlog.ParseDecision(ev)
	if err != nil {
		return Recorded{}, err
	}
	out := Recorded{Decision: d, Seq: ev.Seq, Given: d.Tool.Given}
	var texts decisionTexts
	if ev.ContentErr == nil && json.Unmarshal(ev.Content, &texts) == nil {
		out.Targets, out.Given, out.Classified.Text = texts.Targets, texts.Tool, texts.Found
		for _, o := range texts.Outside {
			out.Outside = append(out.Outside, policy.OutsidePath(o))
		}
	}
	return out, nil
}

// Decided returns a record in the form in which it was decided. Paths are those
// beside the facts, none if they were redacted.
func (r *Recorded) Decided() policy.Decision {
	tool := r.Tool
	tool.Given = r.Given
	return policy.Decision{Verdict: r.Verdict, Code: r.Code, Rule: r.Rule, Origin: r.Decision.Origin, Tool: tool, Targets: r.Targets, Outside: r.Outside, AlsoDeniedBy: r.Also,
		Classified: r.Classified}
}

// DecisionFilter picks decisions; what is zero picks any.
type DecisionFilter struct {
	Decider eventlog.Decider
	Verdict policy.Verdict
	Code    policy.Code
	Call    string
	From    uint64 // first seq
}

// Decisions calls fn for each recorded decision of a session that the filter
// picks, in order, until it returns an error, which is then returned. Copies in
// a seed are not the session's own and are passed over. Errors: ErrNotFound,
// and ErrCorrupt for a part of the log that can't be read, after what came
// before it.
func Decisions(ctx context.Context, s *eventlog.Store, session uuid.UUID, f DecisionFilter, fn func(Recorded) error) error {
	row, err := s.Row(session)
	if err != nil {
		return err
	}
	for from := max(f.From, 1); from != 0 && from <= row.Head; {
		page, err := s.Read(ctx, session, eventlog.ReadOptions{From: from, To: row.Head, Contents: true})
		if err != nil {
			return err
		}
		for i := range page.Events {
			ev := &page.Events[i]
			if len(page.Holes) > 0 && page.Holes[0].From < ev.Seq {
				return unread(session, page.Holes[0])
			}
			if ev.Type != eventlog.TypeToolDecision || ev.Inherited != nil {
				continue
			}
			r, err := recorded(ev)
			if err != nil {
				return err
			}
			if f.picks(&r) {
				if err := fn(r); err != nil {
					return err
				}
			}
		}
		if len(page.Holes) > 0 {
			return unread(session, page.Holes[0])
		}
		from = page.Next
	}
	return nil
}

func (f *DecisionFilter) picks(r *Recorded) bool {
	return (f.Decider == "" || f.Decider == r.Decider) && (f.Verdict == "" || f.Verdict == r.Verdict) && (f.Code == "" || f.Code == r.Code) && (f.Call == "" || f.Call == r.Call)
}
