package command

import (
	"fmt"
	"strings"
	"time"

	"childlog/cmd/childlog/internal/review"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/policy"
)

// What of a list people are shown; JSON has more.
const (
	shownPlaces   = 5
	shownFindings = 5
	shownPolicies = 8
	shownMarkers  = 5
)

// review prints a review for people, in the order of its fields.
func (a *app) review(r *review.Review) {
	a.out.Wrap(0, term.Bold(r.Sentence.Text))
	a.out.Println()
	a.trust(r)
	a.exceptions(r)
	a.receipt(r)
	a.policyHistory(&r.Policy)
	a.denials(r.Denials)
	a.timeline(&r.Timeline)
	a.section("usage")
	a.usage(&r.Usage)
	a.redactions(&r.Redactions)
	a.chainUp(r.Chain, r.Sentence.Principal)
}

func (a *app) section(name string, notes ...string) {
	a.out.Println()
	title := term.Accent(strings.ToUpper(name))
	if len(notes) > 0 {
		title = term.Cat(title, term.Dim("  ", strings.Join(notes, "")))
	}
	a.out.Wrap(0, title)
}

// trust prints the banner: how far the log can be believed.
func (a *app) trust(r *review.Review) {
	t := &r.Trust
	state := term.Good(t.State)
	switch t.State {
	case review.StateIncomplete:
		state = term.Bad(t.State)
	case review.StateClaimed, review.StateRedacted:
		state = term.Warn(t.State)
	}
	if t.Unproven() {
		state = term.Cat(state, term.Plain(", ", review.Unproven))
	}
	policing := term.Good(t.Policing.Kind)
	if t.Policing.Kind != review.Enforced {
		policing = term.Warn(t.Policing.Kind)
	}
	because := "every check of this log passed"
	if len(t.Reasons) > 0 {
		because = strings.Join(t.Reasons, "; ")
	}
	rows := []term.Row{
		{Name: "session", Value: term.Plain(r.Session.Session, ", ", r.Session.Kind, ", ", r.Session.Status, fmt.Sprintf(", as of seq %d", r.AsOf.Seq))},
		{Name: "trust", Value: term.Cat(state, term.Plain(": ", because))},
		{Name: "anchored", Value: term.Plain(t.Anchor.Statement)},
		{Name: "calls", Value: term.Cat(policing, term.Plain(": ", t.Policing.Detail))},
	}
	for i, f := range t.Findings {
		if i == shownFindings {
			rows = append(rows, term.Row{Value: term.Bad(fmt.Sprintf("and %s more", grouped(uint64(len(t.Findings)-i)+t.More)))})
			break
		}
		place := ""
		if f.Seq > 0 {
			place = fmt.Sprintf(" at seq %d", f.Seq)
		}
		rows = append(rows, term.Row{Name: first(i, "found"), Value: term.Cat(term.Bad(f.Kind), term.Plain(place, ": ", f.Detail))})
	}
	a.out.Rows(rows...)
}

func (a *app) exceptions(r *review.Review) {
	a.section("exceptions")
	ran, unrun := 0, map[string][]string{}
	var reasons []string
	for _, c := range r.Checks {
		if c.Run {
			ran++
			continue
		}
		if unrun[c.Why] == nil {
			reasons = append(reasons, c.Why)
		}
		unrun[c.Why] = append(unrun[c.Why], c.Code)
	}
	for _, x := range r.Exceptions {
		a.out.Wrap(0, term.Warn(x.Code), term.Plain(": ", x.Text))
		for i, p := range x.Places {
			if i == shownPlaces {
				a.out.Println(term.Plain(fmt.Sprintf("  and %s more", grouped(uint64(len(x.Places)-i)+x.More))))
				break
			}
			a.out.Wrap(2, placeText(&p))
		}
	}
	c := &r.Coverage
	coverage := fmt.Sprintf("%s run; %s of %s with a decision", plural(ran, "check"), grouped(c.Decided), plural(int(c.Calls), "call"))
	if c.Elsewhere > 0 {
		coverage += fmt.Sprintf("; %s allowed in the harness by its own word, and not by childlog", plural(int(c.Elsewhere), "call"))
	}
	if c.Unread > 0 {
		coverage += fmt.Sprintf("; %s can't be read, and what they hold was not looked at", plural(int(c.Unread), "event"))
	}
	if len(r.Exceptions) == 0 {
		a.out.Wrap(0, term.Good("none found"), term.Plain(": ", coverage))
		var names []string
		for _, k := range r.Checks {
			if k.Run {
				names = append(names, k.Code)
			}
		}
		a.out.Wrap(2, term.Dim("looked for ", strings.Join(names, ", ")))
	} else {
		a.out.Wrap(0, term.Dim(coverage))
	}
	for _, why := range reasons {
		a.out.Wrap(2, term.Dim("not looked for: ", strings.Join(unrun[why], ", "), " (", why, ")"))
	}
}

func placeText(p *review.Place) term.Text {
	where := "no event"
	if p.Seq > 0 {
		where = fmt.Sprintf("seq %d", p.Seq)
	}
	if p.Until > 0 && p.Until != p.Seq {
		where += fmt.Sprintf(" to %d", p.Until)
	}
	if p.Tool != nil {
		where += ", " + *p.Tool
	}
	if p.Call != nil {
		where += " " + *p.Call
	}
	return term.Cat(term.Plain(where), term.Dim("  ", p.Detail))
}

// alwaysShown reports whether a field of a receipt is one that a reader looks for.
func alwaysShown(field string) bool {
	switch field {
	case policy.FieldFiles, policy.FieldGrantShell, policy.FieldGrantNetwork, policy.FieldScope, policy.FieldTools:
		return true
	}
	return false
}

func (a *app) receipt(of *review.Review) {
	r := of.Receipt
	if r == nil {
		a.section("receipt")
		why := "nobody delegated to a root"
		switch {
		case of.Policy.Error != nil:
			why = "the policy can't be read"
		case of.Session.Evidence:
			why = "an imported log holds no receipt"
		}
		a.out.Println(term.Plain("none: ", why))
		return
	}
	a.section("receipt", fmt.Sprintf("seq %d, made at seq %d of %s, digest %s", r.Seq, r.ParentSeq, r.Parent[:8], r.Digest[:16]))
	var rows [][]term.Text
	as := 0
	row := func(name string, f *review.ReceiptField) {
		granted := term.Plain(f.Granted)
		if f.Cut() {
			granted = term.Warn(f.Granted)
		}
		rows = append(rows, []term.Text{term.Plain(name), term.Plain(f.Ceiling), term.Plain(f.Requested), granted, term.Dim(strings.Join(f.Rules, ", "))})
	}
	deadline := "no deadline"
	for i := range r.Fields {
		f := &r.Fields[i]
		if f.Field == policy.FieldDeadline { // three times are wider than a terminal
			deadline = fmt.Sprintf("deadline %s (asked for: %s; ceiling: %s)", secondsOf(f.Granted), secondsOf(f.Requested), secondsOf(f.Ceiling))
			continue
		}
		if !f.Cut() && f.Granted == f.Requested && f.Granted == f.Ceiling && !alwaysShown(f.Field) {
			as++
			continue
		}
		row(f.Field, f)
	}
	for i := range r.Handed {
		row("hands on "+r.Handed[i].Field, &r.Handed[i])
	}
	a.out.Table([]term.Column{{Title: "FIELD"}, {Title: "CEILING", Min: 8}, {Title: "REQUESTED", Min: 9}, {Title: "GRANTED", Min: 8}, {Title: "CUT BY"}}, rows)
	text := deadline + "; captured sandbox: none, the recorded default counts"
	if r.Sandbox != nil {
		text = deadline + "; captured sandbox: " + r.Sandbox.Mode
	}
	text += "; approvals " + r.Approvals
	if as > 0 {
		text += fmt.Sprintf("; %s as could be handed on", plural(as, "further field"))
	}
	for _, g := range r.Relied {
		text += "; relied on the explicit grant " + g.ID
	}
	a.out.Wrap(0, term.Dim(text))
}

func (a *app) policyHistory(h *review.PolicyHistory) {
	a.section("policy over time")
	if h.Error != nil {
		a.out.Wrap(0, term.Bad("unreadable, nothing may be granted: "), term.Plain(*h.Error))
		return
	}
	left, events := h.LeftOut, h.Events
	if n := len(events); n > shownPolicies {
		left += uint64(n - shownPolicies)
		events = events[n-shownPolicies:]
	}
	if left > 0 {
		a.out.Println(term.Dim(fmt.Sprintf("%s before these", plural(int(left), "event"))))
	}
	var rows []term.Row
	for i := 0; i < len(events); i++ {
		e := &events[i]
		if e.Creation { // all of it is one moment, and the receipt has its parts
			last := i
			for last+1 < len(events) && events[last+1].Creation {
				last++
			}
			rows = append(rows, term.Row{Name: "seq " + seqRange(e.Seq, events[last].Seq), Value: term.Cat(term.Plain("the creation"), term.Dim("  ", secondsOf(e.Time), ", ", e.Source))})
			i = last
			continue
		}
		rows = append(rows, term.Row{Name: fmt.Sprintf("seq %d", e.Seq), Value: term.Cat(term.Plain(e.What), term.Dim("  ", secondsOf(e.Time), ", ", e.Source))})
		for _, c := range e.Changes {
			rows = append(rows, term.Row{Value: term.Cat(term.Plain(c.Field, ": ", c.From, " -> "), term.Bold(c.To))})
		}
		if len(e.Changes) == 0 {
			rows = append(rows, term.Row{Value: term.Dim("changed nothing")})
		}
	}
	a.out.Rows(rows...)
}

func (a *app) denials(list []review.Denied) {
	a.section("denials by code")
	if len(list) == 0 {
		a.out.Println(term.Plain("none"))
		return
	}
	rows := make([][]term.Text, len(list))
	for i, d := range list {
		rows[i] = []term.Text{term.Bad(d.Code), term.Plain(grouped(d.Count)), term.Plain(strings.Join(d.Rules, ", ")), term.Plain(strings.Join(d.Tools, ", ")), term.Dim(seqsText(d.Seqs, d.Count))}
	}
	a.out.Table([]term.Column{{Title: "CODE"}, {Title: "DENIED", Right: true}, {Title: "RULE", Min: 8}, {Title: "TOOLS", Min: 8}, {Title: "SEQS", Min: 8, Drop: 1}}, rows)
}

// seqsText lists seqs, the first of so many.
func seqsText(seqs []uint64, of uint64) string {
	shown := seqs[:min(len(seqs), 2*shownPlaces)]
	parts := make([]string, len(shown))
	for i, n := range shown {
		parts[i] = fmt.Sprint(n)
	}
	text := strings.Join(parts, ", ")
	if more := of - uint64(len(shown)); more > 0 {
		text += fmt.Sprintf(" and %s more", grouped(more))
	}
	return text
}

func (a *app) timeline(t *review.Timeline) {
	a.section("timeline")
	tones := map[string]func(...string) term.Text{"good": term.Good, "warn": term.Warn, "bad": term.Bad, "": term.Plain}
	var rows [][]term.Text
	for i := range t.Entries {
		m := &t.Entries[i]
		if m.Gap > 0 {
			rows = append(rows, []term.Text{nil, nil, nil, term.Dim(fmt.Sprintf("%s more between these", grouped(m.Gap)))})
		}
		rows = append(rows, []term.Text{term.Plain(fmt.Sprint(m.Seq)), term.Dim(secondsOf(m.Time)), term.Dim(m.Source), tones[m.Tone](m.Text)})
	}
	if len(rows) > 0 {
		a.out.Table([]term.Column{{Title: "SEQ", Right: true}, {Title: "TIME", Drop: 1}, {Title: "SOURCE", Drop: 2}, {Title: "WHAT", Min: 50}}, rows)
	}
	for i, h := range t.Holes {
		if i == shownFindings {
			a.out.Println(term.Bad(fmt.Sprintf("and %d more holes", len(t.Holes)-i)))
			break
		}
		a.out.Wrap(0, term.Bad("hole: seq ", seqRange(h.From, h.To)), term.Plain(": ", h.Error))
	}
	if len(t.LeftOut) > 0 {
		parts := make([]string, 0, len(t.LeftOut))
		for i, c := range t.LeftOut {
			if i == manyNames {
				parts = append(parts, fmt.Sprintf("and %s", plural(len(t.LeftOut)-i, "further type")))
				break
			}
			parts = append(parts, fmt.Sprintf("%s %s", grouped(c.Count), c.Type))
		}
		a.out.Wrap(0, term.Dim("not listed: ", strings.Join(parts, ", ")))
	}
}

func (a *app) usage(u *review.Usage) {
	rows := []term.Row{{Name: "itself", Value: usageText(&u.Own)}}
	if u.Sessions > 1 {
		rows = append(rows, term.Row{Name: "subtree", Value: term.Cat(usageText(&u.Subtree), term.Dim(fmt.Sprintf("  of %s", plural(int(u.Sessions), "session"))))})
	}
	a.out.Rows(rows...)
}

func usageText(u *wire.Usage) term.Text {
	if u.Records == 0 {
		return term.Plain("nothing recorded")
	}
	text := fmt.Sprintf("%s in, %s out, %s cost micros in %s", grouped(u.Input), grouped(u.Output), grouped(u.CostMicros), plural(int(u.Records), "record"))
	if u.CacheRead+u.CacheWrite > 0 {
		text += fmt.Sprintf("; cache %s read, %s written", grouped(u.CacheRead), grouped(u.CacheWrite))
	}
	return term.Plain(text)
}

func (a *app) redactions(r *review.Redactions) {
	a.section("redactions")
	if len(r.Markers)+len(r.Purged)+len(r.Holds) == 0 {
		a.out.Println(term.Plain("none"))
		return
	}
	for i, m := range r.Markers {
		if i == shownMarkers {
			a.out.Println(term.Plain(fmt.Sprintf("and %s more", plural(len(r.Markers)-i, "marker"))))
			break
		}
		a.out.Wrap(0, term.Warn(fmt.Sprintf("seq %d", m.Seq)), term.Plain(fmt.Sprintf(": contents of seq %s erased by %s, %s, %s", seqsText(m.Seqs, m.Count), m.By, codeText(m.Code, m.Basis), secondsOf(m.Time))))
	}
	for i, p := range r.Purged {
		if i == shownMarkers {
			a.out.Println(term.Plain(fmt.Sprintf("and %s more", plural(len(r.Purged)-i, "removed session"))))
			break
		}
		a.out.Wrap(0, term.Warn(p.Session[:8]), term.Plain(fmt.Sprintf(": a child with %s, removed by %s, %s, %s", plural(int(p.Events), "event"), p.By, codeText(p.Code, p.Basis), secondsOf(p.Time))))
	}
	for _, h := range r.Holds {
		a.out.Wrap(0, term.Warn(h.Hold), term.Plain(fmt.Sprintf(": legal hold by %s, code %s, seq %d", h.By, h.Code, h.Seq)))
	}
}

func codeText(code string, basis *string) string {
	if basis == nil {
		return "code " + code
	}
	return "code " + code + " (" + *basis + ")"
}

func (a *app) chainUp(chain []review.Link, principal *wire.Principal) {
	a.section("chain up", "each with the receipt by which it got its authority")
	rows := make([][]term.Text, len(chain))
	for i := range chain {
		l := &chain[i]
		label := term.Plain(l.Label)
		if l.Label == "" {
			label = term.Dim("(", l.Kind, ")")
		}
		receipt, says := term.Dim("none: a ", l.Kind), term.Text(nil)
		if principal != nil && i == len(chain)-1 {
			says = term.Plain("works for ", principal.Kind, " ", principal.Ref)
		}
		if l.Receipt != nil {
			receipt = term.Plain((*l.Receipt)[:16])
			says = term.Good(fmt.Sprintf("named above, seq %d", l.Started))
		}
		switch {
		case l.Note != "" && l.Claimed:
			receipt, says = term.Dim("none"), term.Warn("claimed")
		case l.Note != "":
			says = term.Bad("broken")
			if l.Receipt == nil {
				receipt = term.Bad("unreadable")
			}
		}
		rows[i] = []term.Text{term.Plain(l.Session[:8]), label, term.Plain(l.Kind), receipt, says}
	}
	a.out.Table([]term.Column{{Title: "SESSION"}, {Title: "LABEL", Min: 10}, {Title: "KIND", Drop: 1}, {Title: "RECEIPT"}, {Title: ""}}, rows)
	for i := 0; i < len(chain); i++ {
		note, names := chain[i].Note, chain[i].Session[:8]
		for i+1 < len(chain) && chain[i+1].Note == note {
			i++
			names += ", " + chain[i].Session[:8]
		}
		if note != "" {
			a.out.Wrap(0, term.Plain(names, ": ", note))
		}
	}
}

// secondsOf shortens a time of a model for people.
func secondsOf(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return shortTime(t)
}
