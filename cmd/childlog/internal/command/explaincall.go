package command

import (
	"context"
	"fmt"
	"strings"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// explainCall explains how a call is decided.
func (a *app) explainCall(ctx context.Context, session, name string, at uint64) error {
	doc, err := a.document(ctx, name, manifest.MaxCall)
	if err != nil {
		return err
	}
	call, err := parseCall(doc)
	if err != nil {
		return err
	}
	var x replay.CallExplanation
	var origins []string
	err = a.read(ctx, func(s *eventlog.Store) error {
		id, err := resolve(ctx, s, session)
		if err != nil {
			return err
		}
		if x, err = ops.ExplainCall(ctx, s, id, call, at); err != nil {
			return err
		}
		origins = []string{x.Origin}
		for _, also := range x.AlsoDeniedBy {
			origins = append(origins, replay.OriginText(ctx, s, id, also.Origin))
		}
		return nil
	})
	if err != nil {
		return err
	}
	v := wire.CallExplanationOf(&x, call.ID)
	return a.show(v, func() {
		a.judged(&x.Judgement, &v.Judgement, origins)
		a.deciding(x.Field, x.Chain, x.LostAt)
	})
}

// deciding prints the part of the policy that decided, from the root down.
func (a *app) deciding(field string, chain []replay.Step, lost int) {
	if field == "" {
		return
	}
	a.out.Println()
	value := ""
	if n := len(chain); n > 0 {
		value = chain[n-1].Value
	}
	a.out.Println(term.Plain("decided by "), term.Bold(field), term.Plain(", which is "), term.Bold(value), term.Plain(" here"))
	a.chain(chain, lost)
	switch {
	case len(chain) < 2:
	case lost == 0:
		a.out.Wrap(0, term.Plain("The root itself could hand on no right to this call."))
	case lost == len(chain)-1:
		a.out.Wrap(0, term.Plain("Every session above could hand the right on; this one has it no more."))
	}
}

// explainEvent explains what is at a seq.
func (a *app) explainEvent(ctx context.Context, session string, seq uint64) error {
	var x replay.EventExplanation
	var origins []string
	err := a.read(ctx, func(s *eventlog.Store) error {
		id, err := resolve(ctx, s, session)
		if err != nil {
			return err
		}
		if x, err = replay.ExplainEvent(ctx, s, id, seq); err != nil || x.Decision == nil {
			return err
		}
		origins = []string{x.Decision.Origin}
		for _, also := range x.Decision.Also {
			origins = append(origins, replay.OriginText(ctx, s, id, also.Origin))
		}
		return nil
	})
	if err != nil {
		return err
	}
	v := wire.EventExplanationOf(&x)
	return a.show(v, func() { a.event(&x, &v, origins) })
}

func (a *app) event(x *replay.EventExplanation, v *wire.EventExplanation, origins []string) {
	a.out.Println(term.Bold(fmt.Sprintf("seq %d", v.Seq)), term.Plain(" of "), term.Bold(v.Session), term.Plain(": ", v.What))
	a.out.Rows(
		term.Row{Name: "type", Value: term.Plain(v.Type)},
		term.Row{Name: "source", Value: term.Plain(v.Source)},
		term.Row{Name: "time", Value: term.Plain(v.Time)},
	)
	a.out.Println()
	switch {
	case v.Decision != nil:
		a.recordedDecision(v.Decision, origins, x.Decision.Chain)
	case len(x.Changes) > 0:
		what := "it changed:"
		if x.Born {
			what = "a part of the session's creation, which gave it:"
		}
		a.out.Println(term.Dim(what))
		a.changes(x)
	case v.PolicyBearing:
		a.out.Println(term.Plain("It bears on the policy and changed no field."))
	default:
		a.out.Println(term.Plain("It has no effect on the policy."))
	}
	a.out.Println()
	if x.Policy == nil {
		note := strings.TrimPrefix(x.Note, eventlog.ErrInvalid.Error()+": ") // the question was none of it
		a.out.Wrap(0, term.Dim("policy after it: "), term.Warn(note))
		return
	}
	a.out.Println(term.Dim("the policy after it:"))
	a.policyRows(x.Policy, term.Row{})
}

func (a *app) changes(x *replay.EventExplanation) {
	columns := []term.Column{{Title: "FIELD"}, {Title: "FROM", Min: 12}, {Title: "TO", Min: 12}}
	if x.Born {
		columns = []term.Column{{Title: "FIELD"}, {Title: "VALUE", Min: 16}}
	}
	var rows [][]term.Text
	for _, c := range x.Changes {
		row := []term.Text{term.Plain(c.Field)}
		if !x.Born {
			row = append(row, term.Plain(c.From))
		}
		rows = append(rows, append(row, term.Bold(c.To)))
	}
	a.out.Table(columns, rows)
}

// recordedDecision prints a decision as it was recorded.
func (a *app) recordedDecision(d *wire.ExplainedDecision, origins []string, chain []replay.Step) {
	a.verdictLine(policy.Verdict(d.Verdict), &d.Decision)
	call := d.Call
	if d.CallSeq != 0 {
		call += fmt.Sprintf(", recorded at seq %d", d.CallSeq)
	}
	rows := append([]term.Row{{Name: "call", Value: term.Plain(call)}}, decisionRows(&d.Decision, origins, d.Change)...)
	if d.TextsGone {
		rows = append(rows, term.Row{Name: "texts", Value: term.Warn("redacted: the tool as given and the paths can't be read any more")})
	}
	decider := d.Decider.Kind
	if d.Decider.Ref != nil {
		decider += " " + *d.Decider.Ref
	}
	rows = append(rows,
		term.Row{Name: "decided", Value: term.Plain(fmt.Sprintf("by %s, under the policy of seq %d, at %s", decider, d.EvaluatedSeq, d.Evaluated))},
		term.Row{Name: "enforced", Value: term.Plain(d.Enforcement)},
	)
	a.out.Rows(rows...)
	if d.Field != nil {
		a.deciding(*d.Field, chain, -1)
	}
}
