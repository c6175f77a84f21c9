package objection

import (
	"slices"
	"strings"
	"unicode/utf8"

	"childlog/policy"
)

// Sweep shows every call to every objector that is meant for its tool, call by
// call, and returns an outcome for each in the order of the calls. It is total:
// whatever objectors do becomes part of the outcome. It neither keeps nor
// changes what it was given, and reads it before the first objector runs.
func (s *Sweeper) Sweep(calls []Call) []Outcome {
	outcomes := make([]Outcome, len(calls))
	for i, c := range calls {
		outcomes[i] = begin(c)
	}
	for i := range outcomes {
		if outcomes[i].Refused == "" {
			s.sweep(&outcomes[i])
		}
	}
	return outcomes
}

// begin is the outcome of a call before anybody was asked.
func begin(c Call) Outcome {
	o := Outcome{ID: c.ID, Tool: c.Tool, Objections: []Raised{}, Record: Record{Degraded: []Degraded{}, Amendments: []Amendment{}}}
	before, why := clone(c.Args)
	if why != "" {
		o.Refused = policy.CodeMalformed
		return o
	}
	o.Before = before
	o.Args, _ = clone(before)
	return o
}

// sweep asks all objectors about one call.
func (s *Sweeper) sweep(o *Outcome) {
	// The names that may be shown: the call's own, and what was declared.
	shown := make(map[string]bool, len(o.Before))
	for key := range o.Before {
		shown[key] = policy.CheckToolName(key) == nil
	}
	for i := range s.objectors {
		if s.objectors[i].sees(o.Tool) {
			s.objectors[i].look(o, shown)
		}
	}
	switch r := &o.Record; {
	case len(o.Objections) > 0:
		o.Refused, o.By = CodeObjection, o.Objections[0].Rule
	case len(r.Degraded) > 0 && !s.options.CarryOn:
		o.Refused, o.By = CodeDegraded, r.Degraded[0].Rule
	}
	o.Record.CarriedOn = len(o.Record.Degraded) > 0 && s.options.CarryOn
}

// look asks one objector about a call and takes in what it says and what it
// changed. Until both are found sound the outcome holds the arguments from
// before, which the objector never had: that is how they are restored.
func (ob *Objector) look(o *Outcome, shown map[string]bool) {
	given, _ := clone(o.Args) // an outcome holds only what has been cloned before
	o.Record.Checked++
	rule := ob.rule(o.Tool)
	said, objects, failed, why := ob.ask(Call{ID: o.ID, Tool: o.Tool, Args: given})
	if !failed && objects && said.Rule != "" {
		if slices.Contains(ob.Rules, said.Rule) {
			rule = said.Rule
		} else {
			failed, why = true, WhyUnknownRule
		}
	}
	// An objection that was returned stands, under the objector's own name if it
	// must: a deployment that carries on without a broken objector does so
	// because it said nothing, and this one did.
	if objects {
		o.Objections = append(o.Objections, Raised{Rule: rule, Reason: cut(said.Reason)})
	}
	var left map[string]any
	if !failed {
		left, why = clone(given)
		failed = why != ""
	}
	if failed {
		o.Record.Degraded = append(o.Record.Degraded, Degraded{Rule: rule, Why: why})
		return
	}
	changed := changedKeys(o.Args, left)
	if len(changed) == 0 {
		return
	}
	for _, key := range ob.Adds {
		if _, ok := left[key]; ok {
			shown[key] = true
		}
	}
	keys := make([]string, len(changed))
	for i, key := range changed {
		if keys[i] = KeyUnnamed; shown[key] {
			keys[i] = key
		}
	}
	slices.Sort(keys)
	o.Args = left
	o.Record.Amendments = append(o.Record.Amendments, Amendment{Rule: rule, Keys: slices.Compact(keys)})
}

// changedKeys returns the top-level keys whose values differ or that only one
// side has.
func changedKeys(a, b map[string]any) []string {
	var changed []string
	for key, x := range a {
		if y, ok := b[key]; !ok || !equal(x, y) {
			changed = append(changed, key)
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			changed = append(changed, key)
		}
	}
	return changed
}

// cut bounds a reason, at the start of a character.
func cut(reason string) string {
	if len(reason) > MaxReason {
		end := MaxReason
		for end > MaxReason-utf8.UTFMax && !utf8.RuneStart(reason[end]) {
			end--
		}
		reason = reason[:end]
	}
	return strings.ToValidUTF8(reason, "\uFFFD")
}
