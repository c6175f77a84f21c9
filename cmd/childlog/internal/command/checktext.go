package command

import (
	"cmp"
	"fmt"
	"strings"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/policy"
	"childlog/replay"
)

// verdictText colours a verdict.
func verdictText(v policy.Verdict) term.Text {
	switch v {
	case policy.VerdictAllow:
		return term.Good("allow")
	case policy.VerdictNeedsApproval:
		return term.Warn("needs approval")
	}
	return term.Bad("deny")
}

// afterVerdict is a reason without the verdict that it begins with.
func afterVerdict(reason string) string {
	_, rest, _ := strings.Cut(reason, ":")
	return ":" + rest
}

func recordedText(r *wire.RecordedAt) string {
	if r == nil {
		return ""
	}
	if r.Existing {
		return fmt.Sprintf("; already recorded at seq %d and %d", r.CallSeq, r.DecisionSeq)
	}
	return fmt.Sprintf("; recorded at seq %d and %d", r.CallSeq, r.DecisionSeq)
}

// judged prints the answer to one call.
func (a *app) judged(j *replay.Judgement, v *wire.Judgement, origins []string) {
	a.verdictLine(j.Verdict, &v.Decision)
	rows := []term.Row{{Name: "call", Value: term.Plain(v.Call)}}
	rows = append(rows, decisionRows(&v.Decision, origins, v.Change)...)
	if j.Failure != nil {
		rows = append(rows, term.Row{Name: "policy", Value: term.Bad(j.Failure.Error())})
	}
	rows = append(rows, term.Row{Name: "decided", Value: term.Plain(fmt.Sprintf("by %s, under the policy of seq %d", v.Decider.Kind, v.EvaluatedSeq))})
	if v.Recorded != nil {
		value := term.Plain(fmt.Sprintf("the call at seq %d, the decision at seq %d", v.Recorded.CallSeq, v.Recorded.DecisionSeq))
		if v.Recorded.Existing {
			value = term.Cat(value, term.Warn(", before; nothing was written"))
		}
		rows = append(rows, term.Row{Name: "recorded", Value: value})
	}
	a.out.Rows(rows...)
	if j.Code == policy.CodeApprovalNever {
		a.neverLegend(string(policy.Never))
	}
}

// verdictLine is the answer in one line.
func (a *app) verdictLine(verdict policy.Verdict, d *wire.Decision) {
	if verdict == policy.VerdictAllow && d.Code == string(policy.CodeAllowed) { // the verdict says it
		a.out.Println(verdictText(verdict), term.Plain(": ", toolText(&d.Tool)))
		return
	}
	a.out.Println(verdictText(verdict), term.Plain(": "), term.Bold(d.Code), term.Plain(", ", toolText(&d.Tool)))
}

func toolText(t *wire.Tool) string {
	text := "tool " + t.Given
	if t.Canonical != t.Given && t.Canonical != "" {
		text += " (" + t.Canonical + ")"
	}
	if text += " of class " + t.Class; !t.Known {
		text += ", which nobody declared"
	}
	return text
}

// decisionRows are the reasons of a decision; origins in words, of the first
// reason and then of the further ones.
func decisionRows(d *wire.Decision, origins []string, change *string) []term.Row {
	var rows []term.Row
	if d.Rule != nil {
		rows = append(rows, term.Row{Name: "rule", Value: term.Plain(*d.Rule)})
	}
	if len(origins) > 0 && d.Code != string(policy.CodeAllowed) {
		rows = append(rows, term.Row{Name: "stated by", Value: term.Plain(origins[0])})
	}
	for i, o := range d.Outside {
		rows = append(rows, term.Row{Name: first(i, "outside"), Value: term.Plain(o.Path, ": want ", o.Want)})
	}
	for i, also := range d.AlsoDeniedBy {
		text := also.Code
		if also.Rule != nil && *also.Rule != also.Code {
			text += " by " + *also.Rule
		}
		if i+1 < len(origins) {
			text += ": " + origins[i+1]
		}
		rows = append(rows, term.Row{Name: first(i, "also"), Value: term.Plain(text)})
	}
	if c := d.Classified; c != nil {
		text := c.Need + ", by " + c.By
		if why := cmp.Or(c.Text, c.Why); why != nil {
			text += ": " + *why
		}
		rows = append(rows, term.Row{Name: "classified", Value: term.Plain(text)})
	}
	if change != nil {
		rows = append(rows, term.Row{Name: "to change", Value: term.Plain(*change)})
	}
	for i, t := range d.Targets {
		if i == shownTargets {
			rows = append(rows, term.Row{Value: term.Dim(fmt.Sprintf("and %d more", len(d.Targets)-i))})
			break
		}
		rows = append(rows, term.Row{Name: first(i, "would touch"), Value: term.Plain(t)})
	}
	return rows
}

// shownTargets is how many targets are listed for people.
const shownTargets = 20

// first names the first of several rows.
func first(i int, name string) string {
	if i > 0 {
		return ""
	}
	return name
}
