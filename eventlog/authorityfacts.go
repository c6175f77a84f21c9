package eventlog

import (
	"childlog/policy"
)

// This file reads and writes halves of authority, as they stand in receipts,
// profiles and narrowings:
//
//	{permissions: {write, network}, shell, tools, denied: [index ...],
//	 deadline, max_steps, max_depth, providers, capabilities,
//	 grant: {files, shell, network, surface, spawn, max_children, write_scope}}
//
// Absent, null and empty stay three things: tools that are missing were not
// stated, null was stated as null, [] is nothing. Deny rules are written once
// an event, in a table beside the halves, since a receipt has up to six halves
// with the same thousand rules; a half holds indices into it. Missing levels
// read as the lowest.

// denyTable collects the deny rules of one event's halves.
type denyTable struct {
	entries []policy.DenyEntry
	index   map[policy.DenyEntry]int
}

func (t *denyTable) indices(d policy.DenyList) []any {
	out := make([]any, 0, d.Len())
	for _, e := range d.Entries() {
		i, ok := t.index[e]
		if !ok {
			if t.index == nil {
				t.index = map[policy.DenyEntry]int{}
			}
			i = len(t.entries)
			t.index[e], t.entries = i, append(t.entries, e)
		}
		out = append(out, i)
	}
	return out
}

func (t *denyTable) fact() []any {
	out := make([]any, len(t.entries))
	for i, e := range t.entries {
		out[i] = originFact(e.Origin, map[string]any{"pattern": e.Pattern, "kind": string(e.Kind)})
	}
	return out
}

// originFact adds the place of an event to m.
func originFact(o policy.Origin, m map[string]any) map[string]any {
	m["session"], m["seq"] = o.Session, o.Seq
	return m
}

// denied reads the table of an event's deny rules.
func (r *factsMap) denied() []policy.DenyEntry {
	var out []policy.DenyEntry
	r.maps("denied_tools", func(m *factsMap) {
		out = append(out, policy.DenyEntry{Pattern: m.code("pattern"), Kind: policy.DenyKind(m.code("kind")), Origin: m.origin()})
	})
	return out
}

func halfFact(h policy.Half, table *denyTable) map[string]any {
	h = h.Canonical()
	p, g := h.Profile, h.Grant
	grant := map[string]any{"files": string(g.Files), "shell": string(g.Shell), "network": g.Network, "surface": string(g.Surface), "spawn": g.Spawn}
	if g.MaxChildren != nil {
		grant["max_children"] = *g.MaxChildren
	}
	if g.Scope.Stated() {
		grant["write_scope"] = g.Scope.Entries()
	}
	m := map[string]any{"permissions": map[string]any{"write": p.Permissions.Write, "network": p.Permissions.Network}, "shell": string(p.Shell),
		"denied": table.indices(p.Denied), "grant": grant}
	switch p.Tools.State() {
	case policy.StateNull:
		m["tools"] = nil
	case policy.StateList:
		m["tools"] = p.Tools.List()
	}
	if p.Limits.DeadlineMS != 0 {
		m["deadline"] = p.Limits.DeadlineMS
	}
	if p.Limits.MaxSteps != 0 {
		m["max_steps"] = p.Limits.MaxSteps
	}
	if p.Limits.MaxDepth != 0 {
		m["max_depth"] = p.Limits.MaxDepth
	}
	if p.Providers.Recorded() {
		m["providers"] = p.Providers.List()
	}
	if p.Capabilities.Recorded() {
		m["capabilities"] = p.Capabilities.List()
	}
	return m
}

// half reads one half. What package policy would refuse to be stated is damage.
func (r *factsMap) half(field string, required bool, rules []policy.DenyEntry) policy.Half {
	m := r.sub(field, required)
	if m == nil {
		return policy.Half{}
	}
	defer r.adopt(m)
	var h policy.Half
	p, g := &h.Profile, &h.Grant
	if s := m.sub("permissions", true); s != nil {
		p.Permissions = policy.Permissions{Write: s.bool("write", false), Network: s.bool("network", false)}
		m.adopt(s)
	}
	p.Shell = policy.Shell(m.code("shell"))
	p.Tools = m.tools()
	var denied []policy.DenyEntry
	for _, v := range m.list("denied") {
		i, ok := v.(int64)
		if !ok || i < 0 || i >= int64(len(rules)) {
			m.fail("denied", "an index outside of the table of denied tools")
			return policy.Half{}
		}
		denied = append(denied, rules[i])
	}
	var err error
	p.Denied, err = policy.DenyListOf(denied...)
	m.check("denied", err)
	p.Limits = policy.Limits{DeadlineMS: int64(m.uint("deadline")), MaxSteps: m.uint("max_steps"), MaxDepth: m.int("max_depth")}
	p.Providers, p.Capabilities = m.names("providers"), m.names("capabilities")
	if s := m.sub("grant", true); s != nil {
		*g = policy.Grant{Files: policy.Files(s.code("files")), Shell: policy.GrantShell(s.code("shell")), Network: s.bool("network", false),
			Surface: policy.Surface(s.code("surface")), Spawn: s.bool("spawn", false), Scope: policy.Unscoped()}
		if _, ok := s.m["max_children"]; ok {
			n := s.int("max_children")
			g.MaxChildren = &n
		}
		if _, ok := s.m["write_scope"]; ok {
			g.Scope, err = policy.ParseScope(s.strs("write_scope"))
			s.check("write_scope", err)
		}
		m.adopt(s)
	}
	if m.err == nil {
		m.check("grant", h.Validate())
	}
	return h
}

// tools reads the three forms apart.
func (r *factsMap) tools() policy.Tools {
	v, ok := r.m["tools"]
	switch {
	case !ok:
		return policy.ToolsAbsent()
	case v == nil:
		return policy.ToolsNull()
	}
	t, err := policy.ToolsList(r.strs("tools")...)
	r.check("tools", err)
	return t
}

// names reads an allow-list; missing is absent, which [] is not.
func (r *factsMap) names(field string) policy.NameSet {
	if _, ok := r.m[field]; !ok {
		return policy.NameSet{}
	}
	set, err := policy.NameSetOf(r.strs(field)...)
	r.check(field, err)
	return set
}

func explicitFact(grants []policy.ExplicitGrant) []any {
	out := make([]any, len(grants))
	for i, g := range grants {
		out[i] = originFact(g.Issuer, map[string]any{"id": g.ID, "expires": g.ExpiresMS, "uses": g.Uses})
	}
	return out
}

// explicit reads the terms of explicit grants; missing is none.
func (r *factsMap) explicit(field string) []policy.ExplicitGrant {
	var out []policy.ExplicitGrant
	r.maps(field, func(m *factsMap) {
		g := policy.ExplicitGrant{ID: m.code("id"), Issuer: m.origin(), ExpiresMS: int64(m.uint("expires")), Uses: m.uint("uses")}
		m.check("id", g.Validate())
		out = append(out, g)
	})
	return out
}

func operatorFact(rules policy.OperatorRules) map[string]any {
	list := make([]any, 0, rules.Len())
	for _, r := range rules.Entries() {
		m := originFact(r.Origin, map[string]any{})
		if r.Path != "" {
			m["path"] = r.Path
		} else {
			m["tool"] = r.Tool
		}
		list = append(list, m)
	}
	digest := rules.Digest()
	return map[string]any{"digest": Hash(digest), "rules": list}
}

// operator reads operator rules with their digest; missing is none.
func (r *factsMap) operator() policy.OperatorRules {
	s := r.sub("operator", false)
	if s == nil {
		return policy.OperatorRules{}
	}
	defer r.adopt(s)
	var list []policy.OperatorRule
	s.maps("rules", func(m *factsMap) {
		list = append(list, policy.OperatorRule{Tool: m.str("tool"), Path: m.str("path"), Origin: m.origin()})
	})
	rules, err := policy.OperatorRulesOf(list...)
	s.check("rules", err)
	if s.err == nil && s.hash("digest") != rules.Digest() {
		s.fail("digest", "it is not that of the rules")
	}
	return rules
}
