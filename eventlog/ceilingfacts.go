package eventlog

import (
	"childlog/policy"
)

// Ceiling is what a narrowing meets into a session's bound and authority. What
// is nil or empty limits nothing.
type Ceiling struct {
	Sandbox *policy.Sandbox
	Half    *policy.Half         // meets both halves of the authority
	Rules   policy.OperatorRules // joined to the captured ones
}

// IsZero reports whether the ceiling limits nothing.
func (c Ceiling) IsZero() bool { return c.Sandbox == nil && c.Half == nil && c.Rules.Len() == 0 }

// Facts encodes policy/narrowed; by says in whose name, a code.
func (c Ceiling) Facts(by string) (Facts, error) {
	m := map[string]any{}
	if c.Sandbox != nil {
		m["sandbox"] = sandboxFact(*c.Sandbox)
	}
	if c.Half != nil {
		var table denyTable
		m["authority"] = halfFact(*c.Half, &table)
		m["denied_tools"] = table.fact()
	}
	if c.Rules.Len() > 0 {
		m["operator"] = operatorFact(c.Rules)
	}
	return MakeFacts(map[string]any{"ceiling": m, "by": by})
}

// NarrowedFacts encodes policy/narrowed with a sandbox ceiling alone.
func NarrowedFacts(ceiling policy.Sandbox, by string) Facts {
	return mustFacts(map[string]any{"ceiling": map[string]any{"sandbox": sandboxFact(ceiling)}, "by": by})
}

// ParseNarrowed reads policy/narrowed. A ceiling of a kind that this version
// does not know is an error: ignoring it would widen. So is one that limits
// nothing, which no call of ours writes.
func ParseNarrowed(ev *Event) (Ceiling, error) {
	r, err := readFacts(ev)
	if err != nil {
		return Ceiling{}, err
	}
	var out Ceiling
	if c := r.sub("ceiling", true); c != nil {
		for name := range c.m {
			switch name {
			case "sandbox", "authority", "denied_tools", "operator":
			default:
				c.fail(name, "unknown ceiling")
			}
		}
		if s := c.sub("sandbox", false); s != nil {
			v := s.sandbox()
			out.Sandbox = &v
			c.adopt(s)
		}
		if _, ok := c.m["authority"]; ok {
			h := c.half("authority", true, c.denied())
			out.Half = &h
		}
		out.Rules = c.operator()
		if c.err == nil && out.IsZero() {
			c.fail("sandbox", "the ceiling limits nothing")
		}
		r.adopt(c)
	}
	return out, r.err
}
