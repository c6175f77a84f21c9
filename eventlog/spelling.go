package eventlog

import (
	"bytes"
	"maps"
	"slices"
)

// checkSpelling refuses a native policy event whose facts are not, byte for
// byte, what this version writes for what it reads in them. The schema looks
// at the top level only. Below it an unknown field would be free text that
// nothing can redact, and a field of a later version would be read over here
// and bind there. Types without such a level pass. Errors: ErrInvalid.
func checkSpelling(ev *Event) error {
	again, err := rewritten(ev)
	if err != nil {
		return badFacts(err)
	}
	if !bytes.Equal(again, ev.Facts) {
		return invalidf("%s: facts: %s", ev.Type, difference(ev.Facts, again))
	}
	return nil
}

// rewritten reads the facts of a policy-bearing event and encodes them anew.
func rewritten(ev *Event) (Facts, error) {
	switch ev.Type {
	case TypeSessionCreated:
		c, err := ParseCreated(ev)
		return c.Facts(), err
	case TypeDelegationGranted:
		g, err := ParseGranted(ev)
		if err != nil {
			return nil, err
		}
		return g.Facts()
	case TypePolicyProfile:
		p, err := ParseProfile(ev)
		if err != nil {
			return nil, err
		}
		return p.Facts()
	case TypePolicyNarrowed:
		c, err := ParseNarrowed(ev)
		if err != nil {
			return nil, err
		}
		return c.Facts(ev.Facts.Str("by"))
	case TypeStoreRules:
		rules, err := ParseStoreRules(ev)
		if err != nil {
			return nil, err
		}
		return storeRulesFacts(rules, ev.Facts.Str("by"))
	}
	return ev.Facts, nil
}

// difference names the first top-level field in which two facts differ.
func difference(got, want Facts) string {
	g, err := got.Map()
	if err != nil {
		return err.Error()
	}
	w, err := want.Map()
	if err != nil {
		return err.Error()
	}
	names := maps.Clone(g)
	maps.Copy(names, w)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, inGot := g[name]
		b, inWant := w[name]
		switch {
		case !inWant:
			return name + ": unknown or without effect, want it left out"
		case !inGot:
			return name + ": missing"
		case !bytes.Equal(mustFacts(map[string]any{name: a}), mustFacts(map[string]any{name: b})):
			return name + ": want the spelling that it is written in, without what is not read"
		}
	}
	return "want the spelling that they are written in"
}
