package claudecode

import (
	"fmt"
	"math"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// place finds the call that made a conversation, and by it whose child it is:
// the log that holds the call is the parent's. The conversations that may have
// called were read before; see plan.order.
func (r *run) place(c *conv) error {
	family := c.f.h.session
	candidates := r.families[family]
	r.families[family] = joined(candidates, c)
	if !c.delegated() {
		return nil
	}
	how := findCall(c, candidates, r.plan.agents[typeKey(family, c.agentType())])
	switch {
	case c.by != nil && how != "":
		r.findAt(c, codeCallInferred, fmt.Sprintf("the call at seq %d of %s is taken for the one that made this agent, %s", c.call.seq, c.by.place.Key, how))
	case c.by == nil && how != "":
		r.findAt(c, codeCallUnclear, how)
	case c.by == nil && len(candidates) > 0:
		r.findAt(c, codeNoCall, "no call in the logs of its session that were read can be the one that made this agent")
	}
	c.shape, c.born = shape(c), modeOf(c, candidates)
	if !c.place.New {
		return nil
	}
	if c.by != nil && c.by.place.Session != c.place.Parent && c.side().parent == "" {
		closes, err := r.plan.tree.Link(c.place, c.by.place.Session, c.callMark)
		if err != nil {
			return err
		}
		if closes {
			r.findAt(c, importer.CodeParentCycle, "the log that holds the call descends from this one; it is not linked")
		}
	}
	return r.plan.tree.Settle(c.place, c.side().depth) // again, since those above may have been linked anew
}

// joined adds a conversation to those of its session. Of copies of one the
// longest stays, or each of its calls would be there twice.
func joined(list []*conv, c *conv) []*conv {
	for i, had := range list {
		if had.place.Session == c.place.Session {
			if c.lines > had.lines {
				list[i] = c
			}
			return list
		}
	}
	return append(list, c)
}

func (r *run) findAt(c *conv, code, detail string) {
	r.Findings.Add(importer.Finding{Code: code, File: c.f.path, Line: 1, Session: c.place.Session, Detail: detail})
}

// findCall sets what made a conversation: the call whose result names it, or
// that its sidecar names, or whose workflow it belongs to; else the only one
// with its prompt; else, of a session with one agent of a type, the only call
// for that type. how is "" if that is recorded, and else says what it was
// concluded from, or without a call what stood against it.
func findCall(c *conv, candidates []*conv, alike int) (how string) {
	match := func(is func(*call) bool) (found []*call, in []*conv) {
		for _, by := range candidates {
			for i := range by.notes.calls {
				if k := &by.notes.calls[i]; is(k) {
					found, in = append(found, k), append(in, by)
				}
			}
		}
		return found, in
	}
	take := func(k *call, by *conv, mark string) {
		k.found = true
		c.call, c.by, c.callMark = *k, by, mark
	}
	recorded := []func(*call) bool{
		func(k *call) bool { return c.agent != "" && k.agent == c.agent },
		func(k *call) bool { return c.side().call != "" && k.id == c.side().call },
		func(k *call) bool { return !c.chain && c.f.h.run != "" && k.run == c.f.h.run },
	}
	for _, is := range recorded {
		if found, in := match(is); len(found) > 0 {
			take(found[0], in[0], importer.Recorded)
			return ""
		}
	}
	// A call whose result names another agent made that one.
	free := func(k *call) bool { return k.agent == "" && k.run == "" }
	if c.notes.promptSum != [32]byte{} {
		found, in := match(func(k *call) bool { return free(k) && k.prompt == c.notes.promptSum })
		if len(found) == 1 {
			take(found[0], in[0], importer.Inferred)
			return "since it has its first message for a prompt"
		}
		if len(found) > 1 {
			return fmt.Sprintf("%d calls have its first message for a prompt; there is no telling which made this agent", len(found))
		}
	}
	if t := c.side().agentType; t != "" && alike == 1 {
		if found, in := match(func(k *call) bool { return k.agentType == t }); len(found) == 1 && free(found[0]) && found[0].prompt == [32]byte{} {
			take(found[0], in[0], importer.Inferred)
			return fmt.Sprintf("since both are the session's only ones of type %.80q", t)
		}
	}
	return ""
}

// delegation reports a child: who delegated it under what, and its drift.
func (r *run) delegation(c *conv) {
	if !c.delegated() {
		return
	}
	d := importer.Delegation{Child: c.place.Session, ChildExternal: c.place.Key, Parent: c.place.Parent, ParentExternal: c.f.h.session, ParentMark: c.place.ParentMark,
		Depth: c.place.Depth, Label: c.title(), Provider: c.agentType(), Mode: c.shape, Seed: uint64(c.inherited),
		Call:          importer.Fact{Mark: importer.Absent},
		ParentSandbox: importer.Fact{Mark: importer.Absent}, Sandbox: importer.Fact{Mark: importer.Absent}, Approvals: c.born,
		Told:      importer.Told{Sandbox: importer.Fact{Mark: importer.Absent}, Approvals: importer.Fact{Mark: importer.Absent}},
		Effective: c.effective}
	if p := r.plan.tree.Of(c.place.Parent); p != nil {
		d.ParentExternal = p.Key
	}
	if c.place.Parent != uuid.Nil {
		var err error
		if d.ParentKnown, err = r.plan.tree.Known(c.place.Parent); err != nil {
			r.findAt(c, importer.CodeDamaged, "the parent's state can't be read: "+err.Error())
		}
	}
	if c.callMark != importer.Absent {
		d.Tool, d.Call = c.call.tool, importer.Fact{Value: importer.Code(c.call.id), Mark: c.callMark, Seq: c.call.seq}
	}
	if c.by != nil {
		r.exceptions(c)
	}
	r.Report.DelegationList = append(r.Report.DelegationList, d)
	for _, m := range c.notes.modes {
		r.Report.Drift = append(r.Report.Drift, importer.Drift{Session: c.place.Session, External: c.place.Key, Field: "approvals", AtDelegation: d.Approvals,
			AtWork: importer.Fact{Value: m.value, Mark: importer.Recorded, Seq: m.seq}, Counts: c.effective.Approvals,
			Detail: "an agent's own lines state a permission mode; a child's approvals are never, whatever its log says"})
	}
}

// shape is whether the call waited for its agent.
func shape(c *conv) string {
	switch {
	case c.side().shape != "":
		return c.side().shape
	case c.by == nil:
		return ""
	case c.call.background:
		return "background"
	}
	return "foreground"
}

// modeOf is the permission mode in which an agent was made: the latest that
// its parent's log states before the call. An agent's log states none, so for
// an agent's agent it is that of the call which made its parent.
func modeOf(c *conv, candidates []*conv) importer.Fact {
	by, seq := c.by, c.call.seq
	for _, p := range candidates { // the call is not known: what was in force when the parent's log ended
		if by == nil && p.place.Session == c.place.Parent {
			by, seq = p, math.MaxUint64
		}
	}
	for by != nil {
		if m := by.notes.modeAt(seq); m.Mark != importer.Absent {
			return m
		}
		by, seq = by.by, by.call.seq
	}
	return importer.Fact{Mark: importer.Absent}
}

// exceptions reports what is out of the ordinary about the call of an agent.
func (r *run) exceptions(c *conv) {
	note := func(code, detail string) {
		r.Findings.Add(importer.Finding{Code: code, File: c.by.f.path, Line: c.call.line, Session: c.by.place.Session, Seq: c.call.seq, Detail: detail})
	}
	at := eventlog.Ref{Session: c.by.place.Session, Seq: c.call.seq}
	if r.noted[at] { // a workflow makes many agents in one call
		return
	}
	r.noted[at] = true
	if c.call.mode != "" {
		note(codeModeRequested, fmt.Sprintf("the call asks for permission mode %.80q for its agent; whether it was given is not recorded", c.call.mode))
	}
	if c.call.launched && !c.by.notes.ended[c.call.task] {
		note(codeNoEnd, "the call returned when what it made began, and no line of this log says that this ended")
	}
}

// missing reports the calls that made agents whose logs are neither in this run
// nor in the store: they were not among the paths, the harness has cleaned them
// up, or its version wrote none.
func (r *run) missing() error {
	for _, id := range r.order {
		c := r.done[id]
		for i := range c.notes.calls {
			k := &c.notes.calls[i]
			if k.found || k.failed {
				continue
			}
			what := "what it made"
			if k.agent != "" {
				what = fmt.Sprintf("agent %.80q", k.agent)
				key := agentKey(c.f.h.session, k.agent)
				session, _, err := r.plan.tree.Resolve(key)
				if err != nil {
					return err
				}
				if known, err := r.plan.tree.Known(session); known || err != nil {
					if err != nil {
						return err
					}
					continue
				}
			}
			r.Findings.Add(importer.Finding{Code: codeNoAgent, File: c.f.path, Line: k.line, Session: id, Seq: k.seq,
				Detail: fmt.Sprintf("tool %.80q delegated, and the log of %s is not there", k.tool, what)})
		}
	}
	return nil
}
