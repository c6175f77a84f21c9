package wire

import "childlog/policy"

// RuleOrigin is where a rule was stated; the event is null where none did.
type RuleOrigin struct {
	Kind  string  `json:"kind"`
	Event *Origin `json:"event"`
}

// Tool is a tool as a call names it, and what is known about it.
type Tool struct {
	Given     string `json:"given"`
	Canonical string `json:"canonical"`
	Class     string `json:"class"`
	Known     bool   `json:"known"`
}

// OutsidePath is a path that was refused, with what would have been accepted.
type OutsidePath struct {
	Path string `json:"path"`
	Want string `json:"want"`
}

// Denial is one reason to deny a call. Rule is null where the code says it all.
type Denial struct {
	Code   string     `json:"code"`
	Rule   *string    `json:"rule"`
	Origin RuleOrigin `json:"origin"`
}

// Decision is the answer to a call. Tool and paths are as in the call; what
// holds bytes that are not UTF-8 is shown with replacement characters.
type Decision struct {
	Verdict string `json:"verdict"`
	Denial
	Tool         Tool          `json:"tool"`
	Targets      []string      `json:"targets"`
	Outside      []OutsidePath `json:"outside"`
	AlsoDeniedBy []Denial      `json:"also_denied_by"`
}

// DecisionOf converts a decision. One without a verdict denies, as the zero
// value of policy does.
func DecisionOf(d policy.Decision) Decision {
	out := Decision{Verdict: string(d.Verdict), Denial: denialOf(policy.Denial{Code: d.Code, Rule: d.Rule, Origin: d.Origin}),
		Tool:    Tool{Given: d.Tool.Given, Canonical: d.Tool.Canonical, Class: string(d.Tool.Class), Known: d.Tool.Known},
		Targets: append([]string{}, d.Targets...), Outside: []OutsidePath{}, AlsoDeniedBy: []Denial{}}
	if out.Verdict == "" {
		out.Verdict = string(policy.VerdictDeny)
	}
	if out.Tool.Class == "" { // of a name that is none
		out.Tool.Class = string(policy.ClassOpaque)
	}
	for _, p := range d.Outside {
		out.Outside = append(out.Outside, OutsidePath(p))
	}
	for _, a := range d.AlsoDeniedBy {
		out.AlsoDeniedBy = append(out.AlsoDeniedBy, denialOf(a))
	}
	return out
}

func denialOf(d policy.Denial) Denial {
	return Denial{Code: string(d.Code), Rule: optional(string(d.Rule)), Origin: ruleOriginOf(d.Origin)}
}

func ruleOriginOf(o policy.RuleOrigin) RuleOrigin {
	if o.Kind == "" {
		o.Kind = policy.OriginNone
	}
	return RuleOrigin{Kind: string(o.Kind), Event: originOf(o.At)}
}
