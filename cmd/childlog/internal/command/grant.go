package command

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// manyNames is how many names of a list people are shown; JSON has them all.
const manyNames = 12

// grantRows tell what a session may do and hand on beside its sandbox, each
// with the rule and the event that decided it.
func grantRows(e *replay.Effective) []term.Row {
	switch {
	case e.Evidence:
		return []term.Row{{Name: "grant", Value: term.Warn("none: an imported log is never authority")}}
	case !wire.Stated(e):
		return []term.Row{{Name: "grant", Value: term.Plain("no profile: everything beside the sandbox")}, operatorRow(e)}
	}
	own := e.Authority.Own
	p, g := own.Profile, own.Grant
	row := func(name, field string, value term.Text) term.Row {
		return term.Row{Name: name, Value: value, Note: decidedBy(e, field)}
	}
	rows := []term.Row{
		{Name: "grant", Value: choicesText(e.Choices)},
		row("  files", policy.FieldFiles, levelText(g.Files.String(), g.Files == policy.FilesWrite)),
		row("  shell", policy.FieldGrantShell, levelText(g.Shell.String(), g.Shell == policy.GrantFull)),
		row("  network", policy.FieldGrantNetwork, networkText(e)),
		row("  tools", policy.FieldTools, toolsText(p.Tools)),
	}
	rows = append(rows, deniedRows(e)...)
	rows = append(rows, row("  writes", policy.FieldScope, scopeText(g)))
	rows = append(rows, limitRows(own, row)...)
	rows = append(rows, row("  delegates", policy.FieldSpawn, spawnText(g)))
	if g.Spawn {
		rows = append(rows, term.Row{Name: "hands on", Value: handsOn(e.Authority)})
	}
	for _, x := range e.Authority.Explicit {
		rows = append(rows, term.Row{Name: "explicit", Value: explicitText(x), Note: term.Dim("issued at ", where(x.Issuer, e.Session))})
	}
	rows = append(rows, operatorRow(e))
	if len(e.Lockdown) > 0 {
		rows = append(rows, term.Row{Name: "lockdown", Value: term.Plain(someOf(e.Lockdown), ", beside the built-in ones")})
	}
	if !e.Principal.IsZero() {
		rows = append(rows, term.Row{Name: "principal", Value: term.Plain(e.Principal.Kind, " ", e.Principal.Ref)})
	}
	return append(rows, term.Row{Name: "fingerprint", Value: term.Dim(policy.FingerprintOf(e.Choices.Role, e.Authority).String())})
}

// decidedBy names the rule behind a field and the event that stated it.
func decidedBy(e *replay.Effective, field string) term.Text {
	c, ok := e.Causes[field]
	switch {
	case !ok:
		return nil
	case c.Origin.At == policy.Origin{}:
		return term.Dim(string(c.Rule))
	}
	return term.Dim(string(c.Rule), ", ", where(c.Origin.At, e.Session))
}

// levelText colours a level by whether it is the widest.
func levelText(level string, widest bool) term.Text {
	if widest {
		return term.Warn(level)
	}
	return term.Good(level)
}

// choicesText is what a session runs as.
func choicesText(c policy.Choices) term.Text {
	t := term.Plain("no role")
	if c.Role != "" {
		t = term.Cat(term.Plain("as "), term.Bold(string(c.Role)))
	}
	for _, x := range []struct{ what, value string }{{"model", c.Model}, {"provider", c.Provider}, {"effort", c.Effort}} {
		if x.value != "" {
			t = term.Cat(t, term.Plain(", ", x.what, " ", x.value))
		}
	}
	if c.Background {
		t = term.Cat(t, term.Plain(", in the background"))
	}
	return t
}

func networkText(e *replay.Effective) term.Text {
	own := e.Authority.Own
	switch {
	case !own.Grant.Network:
		return term.Good("off")
	case !own.Profile.Permissions.NetworkInEffect(e.Sandbox.Value):
		return term.Cat(term.Good("off"), term.Plain(": granted, but the sandbox has none"))
	}
	return term.Warn("on")
}

// toolsText keeps the three forms of a tool scope apart.
func toolsText(t policy.Tools) term.Text {
	switch {
	case t.State() == policy.StateNull:
		return term.Plain("inherited (stated as null)")
	case t.Inherits():
		return term.Plain("inherited")
	case t.IsNothing():
		return term.Good("none at all")
	}
	return term.Plain("only ", someOf(t.List()))
}

// deniedRows list the deny rules, tools and then places, with who stated them.
func deniedRows(e *replay.Effective) []term.Row {
	var rows []term.Row
	add := func(value, by string, at policy.Origin) {
		name := ""
		if len(rows) == 0 {
			name = "  denied"
		}
		// Not a note to the right: the origins of a list need not line up.
		if at != (policy.Origin{}) {
			by += ", " + where(at, e.Session)
		}
		rows = append(rows, term.Row{Name: name, Value: term.Cat(term.Plain(value), term.Dim("  by ", by))})
	}
	for _, d := range e.Authority.Own.Profile.Denied.Entries() {
		add(d.Pattern, statedBy(e, d), d.Origin)
	}
	for _, r := range e.Authority.Operator.Entries() {
		if r.Path != "" {
			add("writing in "+r.Path, string(policy.DenyOperator), r.Origin)
		}
	}
	switch n := len(rows); {
	case n == 0:
		rows = []term.Row{{Name: "  denied", Value: term.Plain("no tools")}}
	case n > manyNames:
		rows = append(rows[:manyNames], term.Row{Value: term.Plain(fmt.Sprintf("and %d more", n-manyNames))})
	}
	return rows
}

// statedBy says who stated a deny rule. What a session's own log states is all
// of one kind; the event tells a request from a profile and from a narrowing.
func statedBy(e *replay.Effective, d policy.DenyEntry) string {
	switch first := e.Causes[policy.FieldLockdown]; {
	case d.Kind != policy.DenyRequest || d.Origin.Session != e.Session || d.Origin.Seq == e.ReceiptSeq:
		return string(d.Kind)
	case first.Rule == policy.RuleProfile && first.Origin.At == d.Origin:
		return string(policy.RuleProfile)
	}
	return string(policy.RuleNarrowing)
}

func scopeText(g policy.Grant) term.Text {
	switch {
	case g.Files != policy.FilesWrite || g.Scope.IsEmpty():
		return term.Good("nowhere")
	case !g.Scope.Stated():
		return term.Plain("wherever the sandbox does")
	}
	return term.Plain("in ", someOf(g.Scope.Entries()))
}

// limitRows are the limits that there are.
func limitRows(own policy.Half, row func(name, field string, value term.Text) term.Row) (rows []term.Row) {
	p := own.Profile
	if p.Limits.DeadlineMS != 0 {
		rows = append(rows, row("  until", policy.FieldDeadline, term.Plain(milliText(p.Limits.DeadlineMS))))
	}
	if p.Limits.MaxSteps != 0 {
		rows = append(rows, row("  steps", policy.FieldMaxSteps, term.Plain(fmt.Sprintf("at most %d", p.Limits.MaxSteps))))
	}
	if p.Providers.Recorded() {
		rows = append(rows, row("  providers", policy.FieldProviders, term.Plain("only ", someOf(p.Providers.List()))))
	}
	if p.Capabilities.Recorded() {
		rows = append(rows, row("  capable of", policy.FieldCapabilities, term.Plain("only ", someOf(p.Capabilities.List()))))
	}
	return rows
}

func spawnText(g policy.Grant) term.Text {
	switch {
	case !g.Spawn:
		return term.Good("no")
	case g.MaxChildren != nil:
		return term.Plain(fmt.Sprintf("yes, at most %d in its life", *g.MaxChildren))
	}
	return term.Plain("yes")
}

// handsOn says in what the delegable half differs from the own one.
func handsOn(a policy.Authority) term.Text {
	differ := policy.Changes(a.Own, a.Delegable, policy.RuleReceipt)
	if len(differ) == 0 {
		return term.Plain("the same")
	}
	parts := make([]string, len(differ))
	for i, c := range differ {
		parts[i] = c.Field + " " + c.To
	}
	return term.Plain("the same, but ", strings.Join(parts, ", "))
}

func explicitText(g policy.ExplicitGrant) term.Text {
	t := term.Cat(term.Bold(g.ID), term.Plain(": "))
	if g.Uses == 0 {
		t = term.Cat(t, term.Plain("any number of uses"))
	} else {
		t = term.Cat(t, term.Plain(fmt.Sprintf("%d uses", g.Uses)))
	}
	if g.ExpiresMS != 0 {
		t = term.Cat(t, term.Plain(", until ", milliText(g.ExpiresMS)))
	}
	return t
}

// operatorRow says which rules of the store bind a session.
func operatorRow(e *replay.Effective) term.Row {
	rules := e.Authority.Operator
	text := plural(rules.Len(), "rule") + ", digest " + shortDigest(rules)
	switch {
	case rules.Len() == 0:
		text = "no rules"
	case e.Kind == eventlog.KindChild:
		text += ", kept for ever"
	}
	if e.Kind != eventlog.KindChild {
		if rules.Len() == 0 {
			text = "the store's present rules"
		} else {
			text = "the store's present rules, and for ever " + text
		}
		return term.Row{Name: "operator", Value: term.Plain(text, " (`childlog rules show`)")}
	}
	return term.Row{Name: "operator", Value: term.Plain(text)}
}

// shortDigest is enough of a digest for people to compare.
func shortDigest(r policy.OperatorRules) string {
	digest := r.Digest()
	return hex.EncodeToString(digest[:6])
}

func milliText(ms int64) string { return shortTime(time.UnixMilli(ms)) }

// someOf joins names, up to a dozen of them.
func someOf(names []string) string {
	if n := len(names); n > manyNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:manyNames], ", "), n-manyNames)
	}
	return strings.Join(names, ", ")
}

// grantShort is a grant in a table: role, files and shell.
func grantShort(e *replay.Effective) term.Text {
	if !wire.Stated(e) {
		return nil
	}
	g := e.Authority.Own.Grant
	t := term.Cat(levelText(g.Files.String(), g.Files == policy.FilesWrite), term.Plain("/"), levelText(g.Shell.String(), g.Shell == policy.GrantFull))
	if e.Choices.Role != "" {
		t = term.Cat(term.Plain(string(e.Choices.Role), " "), t)
	}
	return t
}

// cutTable prints cuts, and below what their rules mean.
func (a *app) cutTable(cuts []policy.Cut, asked, got string) {
	rows := make([][]term.Text, len(cuts))
	var rules []policy.Rule
	for i, c := range cuts {
		rows[i] = []term.Text{term.Plain(c.Field), term.Plain(c.From), term.Bold(c.To), term.Dim(string(c.Rule))}
		if !slices.Contains(rules, c.Rule) {
			rules = append(rules, c.Rule)
		}
	}
	a.out.Table([]term.Column{{Title: "FIELD"}, {Title: asked, Min: 8}, {Title: got, Min: 8}, {Title: "RULE"}}, rows)
	for _, r := range rules {
		if text := ruleMeaning(r); text != "" {
			a.out.Wrap(0, term.Bold(string(r)), term.Dim(": ", text))
		}
	}
}

// ruleMeaning puts a rule into words; "" for one that says it all.
func ruleMeaning(r policy.Rule) string {
	switch r {
	case policy.RuleRolePreset:
		return "the role is not meant for more"
	case policy.RuleParent:
		return "the parent has no more to hand on"
	case policy.RuleGrantExpired:
		return "an explicit grant of the parent would have covered it, and has expired"
	case policy.RuleGrantSpent:
		return "an explicit grant of the parent would have covered it, and has no uses left"
	case policy.RuleMergeReadOnly:
		return "the merge contract read_only permits no writing"
	case policy.RuleMergeScope:
		return "the merge contract confines the workers of a worker too"
	case policy.RuleOwnLimits:
		return "no child outlives its parent, or lies deeper than it allows"
	case policy.RuleDenyNetwork:
		return "fetch_url is denied, so there is no network"
	case policy.RuleDenyTests:
		return "run_tests is denied, so the shell may only inspect"
	case policy.RuleDenyShell:
		return "exec_shell is denied, so there is no raw shell"
	case policy.RulePermissions:
		return "the permissions of the profile cap the grant"
	case policy.RuleProfileShell:
		return "the shell of the profile caps that of the grant: none, inspect, full for none, read_only, full"
	case policy.RuleToolsEmpty:
		return "an empty list of tools leaves no files"
	}
	return ""
}
