package command

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"childlog/cmd/childlog/internal/review"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
)

func periodText(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := wire.Time(t)
	return &s
}

// reportTable prints a report for people.
func (a *app) reportTable(r *review.Report, short ids) {
	t := &r.Totals
	period := "the whole time"
	if t.Since != nil || t.Until != nil {
		period = "from " + orBeginning(t.Since) + " until " + orNow(t.Until)
	}
	incomplete := term.Good("none")
	if t.Incomplete > 0 || t.Findings > 0 {
		incomplete = term.Bad(fmt.Sprintf("%s, and %s of the check", plural(int(t.Incomplete), "session"), plural(int(t.Findings), "finding")))
	}
	passed := ""
	if t.Elsewhere > 0 {
		passed = fmt.Sprintf(", %s allowed in a harness by its own word", grouped(t.Elsewhere))
	}
	a.out.Rows(
		term.Row{Name: "period", Value: term.Plain(period)},
		term.Row{Name: "sessions", Value: term.Plain(fmt.Sprintf("%s: %s, %s; %s imported", grouped(t.Sessions), plural(int(t.Roots), "root"), children(t.Children), grouped(t.Evidence)))},
		term.Row{Name: "incomplete", Value: incomplete},
		term.Row{Name: "delegations", Value: term.Plain(grouped(t.Delegations))},
		term.Row{Name: "calls", Value: term.Plain(fmt.Sprintf("%s, %s with a decision, %s with a result", grouped(t.Calls), grouped(t.Decided), grouped(t.Results)))},
		term.Row{Name: "decisions", Value: term.Plain(fmt.Sprintf("%s: %s allowed, %s denied, %s need an approval; %s asked%s", grouped(t.Decisions), grouped(t.Allowed), grouped(t.Denied), grouped(t.Needed), plural(int(t.Asks), "question"), passed))},
	)
	rows := []term.Row{}
	for i, d := range t.Denials {
		rows = append(rows, term.Row{Name: first(i, "denials"), Value: term.Plain(fmt.Sprintf("%s %s", grouped(d.Count), d.Code))})
	}
	if len(rows) == 0 {
		rows = append(rows, term.Row{Name: "denials", Value: term.Plain("none")})
	}
	a.out.Rows(append(rows, term.Row{Name: "usage", Value: usageText(&t.Usage)})...)
	a.out.Println()
	cells := make([][]term.Text, len(t.Exceptions))
	for i, x := range t.Exceptions {
		code, n := term.Plain(x.Code), term.Dim("none")
		if x.Count > 0 {
			code, n = term.Warn(x.Code), term.Bold(grouped(x.Count))
		}
		unrun := term.Text(nil)
		if x.Unrun > 0 {
			unrun = term.Dim(plural(int(x.Unrun), "session"))
		}
		cells[i] = []term.Text{code, n, term.Plain(grouped(x.Sessions)), unrun, term.Dim(review.Title(x.Code))}
	}
	a.out.Table([]term.Column{{Title: "EXCEPTION"}, {Title: "FOUND", Right: true}, {Title: "SESSIONS", Right: true}, {Title: "NOT LOOKED FOR"}, {Title: "WHAT IT IS", Min: 40, Drop: 1}}, cells)
	if t.List == review.ListTotals {
		return
	}
	a.out.Println()
	text := fmt.Sprintf("%s of %s", grouped(t.Shown), plural(int(t.Listed), strings.TrimSuffix(t.List, "s")))
	if t.Sample > 0 {
		text += fmt.Sprintf(", picked by the seed %q", t.Seed)
	}
	a.out.Println(term.Accent(strings.ToUpper(t.List)), term.Dim("  ", text))
	a.items(r.Items, short)
}

func children(n uint64) string {
	if n == 1 {
		return "1 child"
	}
	return grouped(n) + " children"
}

func orBeginning(s *string) string {
	if s == nil {
		return "the beginning"
	}
	return secondsOf(*s)
}

func orNow(s *string) string {
	if s == nil {
		return "now"
	}
	return secondsOf(*s) + " (excluded)"
}

func (a *app) items(items []review.Item, short ids) {
	if len(items) == 0 {
		a.out.Println(term.Plain("none"))
		return
	}
	rows := make([][]term.Text, len(items))
	text := func(s *string) term.Text {
		if s == nil {
			return nil
		}
		return term.Plain(*s)
	}
	for i := range items {
		it := &items[i]
		seq := strconv.FormatUint(it.Seq, 10)
		switch {
		case it.Seq == 0:
			seq = ""
		case it.Until > it.Seq:
			seq = seqRange(it.Seq, it.Until)
		}
		when := term.Text(nil)
		if it.Time != nil {
			when = term.Dim(secondsOf(*it.Time))
		}
		rows[i] = []term.Text{term.Plain(it.Kind), term.Bold(it.Session[:int(short)]), term.Plain(it.Label), term.Plain(seq), when, text(it.Tool), text(it.Call), text(it.Verdict), text(it.Code), text(it.Decider), text(it.Detail)}
	}
	a.out.Table([]term.Column{{Title: "KIND"}, {Title: "SESSION"}, {Title: "LABEL", Min: 8, Drop: 3}, {Title: "SEQ", Right: true}, {Title: "TIME", Drop: 4}, {Title: "TOOL", Min: 8, Drop: 1},
		{Title: "CALL", Min: 6, Drop: 2}, {Title: "VERDICT", Drop: 5}, {Title: "CODE", Min: 10}, {Title: "DECIDER", Drop: 6}, {Title: "DETAIL", Min: 20}}, rows)
}

// reportJSON prints one item a line, and the totals last: a sample is complete
// only once everything was counted.
func (a *app) reportJSON(r *review.Report) error {
	for i := range r.Items {
		if err := a.emit(&r.Items[i]); err != nil {
			return err
		}
	}
	return a.emit(struct {
		Totals *review.Totals `json:"totals"`
	}{&r.Totals})
}

// reportCSV prints the list, or the totals if nothing is listed.
func (a *app) reportCSV(r *review.Report) error {
	w := csv.NewWriter(a.stdout)
	write := func(cells ...string) {
		for i := range cells {
			cells[i] = inert(cells[i])
		}
		_ = w.Write(cells) // the error sticks, see below
	}
	if r.Totals.List == review.ListTotals {
		write("what", "code", "count")
		for _, c := range totalsOf(&r.Totals) {
			write(c.what, c.code, strconv.FormatUint(c.n, 10))
		}
	} else {
		write("kind", "session", "label", "seq", "until", "time", "parent", "call", "tool", "verdict", "code", "rule", "decider", "detail")
		number := func(n uint64) string {
			if n == 0 {
				return ""
			}
			return strconv.FormatUint(n, 10)
		}
		for i := range r.Items {
			it := &r.Items[i]
			cells := []string{it.Kind, it.Session, it.Label, number(it.Seq), number(it.Until)}
			for _, s := range []*string{it.Time, it.Parent, it.Call, it.Tool, it.Verdict, it.Code, it.Rule, it.Decider, it.Detail} {
				if s == nil {
					s = new(string)
				}
				cells = append(cells, *s)
			}
			write(cells...)
		}
	}
	w.Flush()
	return w.Error()
}

type total struct {
	what, code string
	n          uint64
}

func totalsOf(t *review.Totals) []total {
	out := []total{{"sessions", "", t.Sessions}, {"roots", "", t.Roots}, {"children", "", t.Children}, {"evidence", "", t.Evidence}, {"incomplete", "", t.Incomplete},
		{"policy_unreadable", "", t.Unreadable}, {"findings", "", t.Findings}, {"delegations", "", t.Delegations}, {"calls", "", t.Calls}, {"decided", "", t.Decided}, {"results", "", t.Results}, {"decisions", "", t.Decisions},
		{"allowed", "", t.Allowed}, {"denied", "", t.Denied}, {"needed_approval", "", t.Needed}, {"asks", "", t.Asks}, {"allowed_elsewhere", "", t.Elsewhere}}
	for _, d := range t.Denials {
		out = append(out, total{"denial", d.Code, d.Count})
	}
	for _, x := range t.Exceptions {
		out = append(out, total{"exception", x.Code, x.Count})
	}
	return out
}

// inert makes a cell that no spreadsheet takes for a formula, and that steers
// nothing: control characters and direction overrides are escaped as on a
// terminal, and what would begin a formula gets a ' in front (OWASP, CSV
// Injection).
func inert(cell string) string {
	cell = term.Escape(cell)
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(cell, " \"'"))
	if strings.ContainsRune("=+-@＝＋－＠", r) && cell != "" && r != utf8.RuneError {
		return "'" + cell
	}
	return cell
}
