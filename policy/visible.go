package policy

import "strings"

// The rules by which a tool as such is out of reach, whatever its arguments. In
// the order in which they are asked.
const (
	RuleOperatorDeny Rule = "operator_deny"
	RuleDenyList     Rule = "deny_list"
	RuleToolScope    Rule = "tool_scope"
	RuleWriteScope   Rule = "write_scope"  // the scope is empty, or the tool is of a kind that no scope can hold
	RuleFiles        Rule = "grant_files"  // the grant's files
	RuleShell        Rule = "grant_shell"  // the grant's shell
	RuleNetwork      Rule = "no_network"   // the grant, the profile or the sandbox has none
	RuleSandbox      Rule = "sandbox"      // it lets nothing be written
	RuleOpaque       Rule = "opaque_tool"  // the tool could do what is not granted
	RuleDelegate     Rule = "grant_spawn"  // the session may not delegate
	RuleMalformed    Rule = "invalid_name" // not a tool name
)

// Standing is what a session may do at one moment, as far as a tool as such is
// concerned: its own half, its effective sandbox, its palette.
type Standing struct {
	Own     Half
	Sandbox Sandbox
	Palette Palette
}

// Permits reports whether some call of t that needs the given shell level (see
// [DenyEntry.Denies]) may run, and if not the first rule against it. It is the
// part of a decision that looks at no argument, counter or clock: a yes means
// that the decision depends on those.
//
// A tool that is not known is held to everything: it is refused where writing,
// shell, network or paths are limited, by the grant or by the sandbox.
func (s Standing) Permits(t Tool, need GrantShell) (against Rule, ok bool) {
	own := s.Own.Canonical()
	if denied := own.Profile.Denied.Match(t, need); len(denied) > 0 {
		if denied[0].Entry.Kind == DenyOperator {
			return RuleOperatorDeny, false
		}
		return RuleDenyList, false
	}
	if !own.Profile.Tools.Allows(t.Given) {
		return RuleToolScope, false
	}
	g, effect := own.Grant, EffectOf(t.Given, string(t.Class))
	// The recovery tools are taken for what their names say: a guard holds them
	// to targets that were admitted before.
	opaque := effect == EffectOpaque || !t.Known && effect != EffectRecovery
	if g.Scope.Stated() {
		switch {
		case effect == EffectShell, opaque:
			return RuleWriteScope, false
		case g.Scope.IsEmpty() && (effect == EffectEdit || effect == EffectRecovery):
			return RuleWriteScope, false
		}
	}
	network := g.Network && own.Profile.Permissions.NetworkInEffect(s.Sandbox)
	switch effect {
	case EffectRead:
		if g.Files == FilesNone {
			return RuleFiles, false
		}
	case EffectEdit, EffectRecovery:
		if g.Files != FilesWrite {
			return RuleFiles, false
		}
		if !s.Sandbox.letsWrite() {
			return RuleSandbox, false
		}
	case EffectShell:
		if !g.Shell.Admits(need) {
			return RuleShell, false
		}
	case EffectNetwork:
		if !network {
			return RuleNetwork, false
		}
	case EffectDelegate:
		if !g.Spawn || startsChild(t.Given) && g.MaxChildren != nil && *g.MaxChildren == 0 {
			return RuleDelegate, false
		}
	}
	unlimited := g.Files == FilesWrite && g.Shell == GrantFull && network && s.Sandbox.Canonical().Mode == DangerFullAccess
	if opaque && !unlimited {
		return RuleOpaque, false
	}
	return "", true
}

// letsWrite reports whether some file may be written. $TMPDIR is nowhere that a
// decision could know of.
func (s Sandbox) letsWrite() bool {
	s = s.Canonical()
	return s.Mode == DangerFullAccess || len(s.Roots.dirs) > 0 || !s.ExcludeSlashTmp
}

// Visible returns the tools to show to a session of which no more is known than
// its standing, in the order given: one that is denied whatever the arguments is
// not shown. A name that is no tool name is left out too. Where the whole
// subject is known, [Compiled.Visible] shows no more than this, and each of its
// tools can be called.
func Visible(s Standing, tools []string) []string {
	shown := make([]string, 0, len(tools))
	for _, name := range tools {
		t, err := s.Palette.Classify(name)
		if err != nil {
			continue
		}
		// Whoever may inspect can call with that verdict.
		if _, ok := s.Permits(t, GrantInspect); ok {
			shown = append(shown, name)
		}
	}
	return shown
}

// Visible returns the tools to show to a session at a moment, in the order
// given: each can be called, with some arguments and some verdict of a
// classifier, without an escalation. A shell that may only inspect is shown, an
// edit where the scope and the sandbox have no place in common is not. To a
// session that is closed or out of time nothing is shown.
func (p *Compiled) Visible(tools []string, m Moment) []string {
	shown := make([]string, 0, len(tools))
	anywhere := p.ready.somewhere()
	var d Decision
	for _, name := range tools {
		// Whoever may inspect can call with that verdict.
		c := Call{Tool: name, Verdict: Classified{By: "visible", Need: GrantInspect}}
		p.Decide(&d, &c, &m) // a recovery call may name no path
		if !d.Allowed() && len(anywhere) > 0 {
			c.Paths, c.PathsKnown = anywhere, true
			p.Decide(&d, &c, &m)
		}
		if d.Allowed() {
			shown = append(shown, name)
		}
	}
	return shown
}

// somewhere returns a path that the session may write, nil if there is none: an
// entry of the scope or a root, or what is in one. The name of a new file stands
// for all names that nobody has a rule for.
func (r *ready) somewhere() []string {
	const file = "new-file"
	places := append(r.own.Grant.Scope.Entries(), file)
	if r.box.Mode == WorkspaceWrite {
		for _, dir := range r.box.dirs {
			if rel, want := r.Workspace.target(dir); want == "" {
				dir = rel
			}
			places = append(places, dir)
		}
	} else if r.box.Mode == DangerFullAccess {
		places = append(places, "/", "C:/")
	}
	for _, p := range places {
		for _, path := range []string{p, strings.TrimRight(p, "/") + "/" + file} {
			if r.judge(path, &r.box, nil).want == "" {
				return []string{path}
			}
		}
	}
	return nil
}
