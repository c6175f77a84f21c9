package policy

// Compiled is a subject made ready for many decisions, with the answers that
// depend on the tool alone worked out for every name in the table, the palette
// and the tool scope. It is built once for each effective policy and never
// changes, so it is safe for concurrent use.
type Compiled struct {
	ready *ready
	deny  denyIndex
	quick *quickPaths
	tools map[string]compiledTool
}

// compiledTool has what stands against one tool: for a shell at each level that
// a call may need, else once.
type compiledTool []toolReasons

var shellNeeds = []GrantShell{GrantFull, GrantInspect, GrantVerify}

// Compile makes a subject ready. It keeps nothing of s that its caller may
// write to but Causes, which must not change any more. It takes about as long
// as one plain decision, and milliseconds for the longest lists there may be.
func Compile(s Subject) *Compiled {
	classTable, _ := classTables()
	p := &Compiled{ready: makeReady(s), tools: make(map[string]compiledTool, len(classTable))}
	p.deny = indexDenied(p.ready.own.Profile.Denied)
	p.quick = quickPathsOf(p.ready)
	add := func(name string) {
		if t, err := p.ready.Palette.Classify(name); err == nil {
			p.tools[name] = p.reasonsOf(t)
		}
	}
	for name := range classTable {
		add(name)
	}
	for _, e := range p.ready.Palette.entries {
		add(e.Name)
	}
	for _, name := range p.ready.own.Profile.Tools.names {
		add(name)
	}
	for _, name := range recoveryTools {
		add(name)
	}
	return p
}

func (p *Compiled) reasonsOf(t Tool) compiledTool {
	needs := shellNeeds
	if t.Class != ClassShell {
		needs = shellNeeds[:1]
	}
	c := make(compiledTool, len(needs))
	for i, need := range needs {
		c[i] = p.ready.reasonsOf(t, need, p.deny.match(t, need), p.ready.Sandbox.Value)
	}
	return c
}

// Decide decides one call as [Authorize] does, into d, of which it reuses the
// slices. With a d that has decided before, a call of a known tool allocates
// nothing, unless it escalates or names a path that is refused, untidy, or
// outside the workspace. What d held is lost. Neither c nor m is written to, but
// their strings may be kept in d. Two goroutines need two decisions.
func (p *Compiled) Decide(d *Decision, c *Call, m *Moment) {
	*d = Decision{Targets: d.Targets[:0], Outside: d.Outside[:0], AlsoDeniedBy: d.AlsoDeniedBy[:0]}
	known, ok := p.tools[c.Tool]
	if !ok {
		// Unknown names are not kept: there is no end to them.
		if t, err := p.ready.Palette.Classify(c.Tool); err == nil {
			known = p.reasonsOf(t)
		}
	}
	p.ready.decide(d, c, m, known.at(c.Verdict), p.quick)
}

// at returns the reasons for a call with the given verdict, nil if there is no
// such tool.
func (t compiledTool) at(v Classified) *toolReasons {
	switch len(t) {
	case 0:
		return nil
	case 1:
		return &t[0]
	}
	switch v.Shell() {
	case GrantInspect:
		return &t[1]
	case GrantVerify:
		return &t[2]
	}
	return &t[0]
}
