package eventlog

import (
	"github.com/google/uuid"

	"childlog/policy"
	"childlog/policy/objection"
)

// Decision is tool/decision, schema version 1: the answer to one call with the
// rule that gave it. It commits to the arguments and to the places the call
// may touch; the texts are its content, see [DecisionTexts].
type Decision struct {
	Session uuid.UUID
	Root    uuid.UUID
	Epoch   uint64 // of the activation it was decided in; 0: none was open
	Receipt Hash   // of the session; zero for roots
	Call    string // the call's id, a code
	Ask     string // of the approval that was relied on or is needed; "" without one

	Tool        policy.Tool // as classified; a name that is none is kept as content only
	ArgsBefore  Hash        // commitment of the arguments as the model gave them
	ArgsAfter   Hash        // and as they were decided, after amendments
	TargetCount uint64
	Targets     Hash // commitment of the resolved targets, in order

	// Classified is the verdict of a classifier that the decision on a shell call
	// was made with: by whom and which version, the level that it found and the code
	// for why no less. Zero without one, and in records of before it was kept. Its
	// Text is content.
	Classified policy.Classified

	Verdict policy.Verdict
	Code    policy.Code
	Rule    policy.Rule // "" where the code says it all
	Origin  policy.RuleOrigin
	Also    []policy.Denial
	Decider Decider // rule, pin, or who answered the ask that was relied on
	Ref     string  // an opaque reference of the decider, a code; "" if there is none

	EvaluatedSeq uint64 // the policy-bearing seq that was in force
	Policy       Hash   // digest of the effective policy at it
	EvaluatedMS  uint64 // ms since 1970, the store's clock
	Steps        uint64 // used by then
	Engine       uint64 // version of the rules of deciding

	Objections  objection.Record // what the objectors did before
	Enforcement string           // see the constants
}

// Enforcement of a decision.
const (
	Enforced = "enforced" // the harness obeys it
	Advisory = "advisory" // it is recorded and not obeyed: a provider outside the process, a harness that observes
	Imported = "imported" // read from another system's log
)

// InvalidTool stands in the facts for a name that is no tool name.
const InvalidTool = "invalid-name"

// Facts encodes d. Errors: ErrTooLarge.
func (d Decision) Facts() (Facts, error) {
	tool := d.Tool
	if policy.CheckToolName(tool.Given) != nil {
		tool = policy.Tool{Given: InvalidTool, Canonical: InvalidTool, Class: policy.ClassOpaque}
	}
	also := make([]any, len(d.Also))
	for i, a := range d.Also {
		also[i] = ruleFact(a.Rule, map[string]any{"code": string(a.Code), "origin": ruleOriginFact(a.Origin)})
	}
	m := map[string]any{"schema": 1, "session": d.Session, "root": d.Root, "epoch": d.Epoch, "call": d.Call,
		"tool": tool.Given, "canonical": tool.Canonical, "class": string(tool.Class), "known": tool.Known,
		"args":    map[string]any{"before": d.ArgsBefore, "after": d.ArgsAfter},
		"targets": map[string]any{"count": d.TargetCount, "commitment": d.Targets},
		"verdict": string(d.Verdict), "code": string(d.Code), "origin": ruleOriginFact(d.Origin), "also_denied_by": also,
		"decider": deciderFact(d.Decider, d.Ref), "evaluated_seq": d.EvaluatedSeq, "policy": d.Policy, "evaluated_at": d.EvaluatedMS, "steps": d.Steps,
		"engine": d.Engine, "objections": objectionsFact(d.Objections), "enforcement": d.Enforcement}
	if !d.Receipt.IsZero() {
		m["receipt"] = d.Receipt
	}
	if d.Ask != "" {
		m["ask"] = d.Ask
	}
	if c := d.Classified; c.By != "" {
		found := map[string]any{"by": c.By, "need": string(c.Need)}
		if c.Why != "" {
			found["why"] = c.Why
		}
		m["classified"] = found
	}
	return MakeFacts(ruleFact(d.Rule, m))
}

// ruleFact adds a rule, which is left out where the code says it all: nothing
// stands against most calls.
func ruleFact(rule policy.Rule, m map[string]any) map[string]any {
	if rule != "" {
		m["rule"] = string(rule)
	}
	return m
}

func deciderFact(d Decider, ref string) map[string]any {
	m := map[string]any{"kind": string(d)}
	if ref != "" {
		m["ref"] = ref
	}
	return m
}

func ruleOriginFact(o policy.RuleOrigin) map[string]any {
	m := map[string]any{"kind": string(o.Kind)}
	if o.At != (policy.Origin{}) {
		originFact(o.At, m)
	}
	return m
}

func objectionsFact(o objection.Record) map[string]any {
	degraded, amendments := make([]any, len(o.Degraded)), make([]any, len(o.Amendments))
	for i, d := range o.Degraded {
		degraded[i] = map[string]any{"rule": d.Rule, "why": string(d.Why)}
	}
	for i, a := range o.Amendments {
		amendments[i] = map[string]any{"rule": a.Rule, "keys": append([]string{}, a.Keys...)}
	}
	return map[string]any{"checked": o.Checked, "degraded": degraded, "carried_on": o.CarriedOn, "amendments": amendments}
}

// ParseDecision reads tool/decision. Errors: ErrCorrupt with the field.
func ParseDecision(ev *Event) (Decision, error) {
	r, err := readFacts(ev)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Session: r.id("session", true), Root: r.id("root", true), Epoch: r.uint("epoch"), Receipt: r.hash("receipt"), Call: r.code("call"), Ask: r.str("ask"),
		Tool:    policy.Tool{Given: r.code("tool"), Canonical: r.code("canonical"), Class: policy.Class(r.code("class")), Known: r.bool("known", false)},
		Verdict: policy.Verdict(r.code("verdict")), Code: policy.Code(r.code("code")), Rule: policy.Rule(r.str("rule")), Origin: r.ruleOrigin("origin"),
		EvaluatedSeq: r.uint("evaluated_seq"), Policy: r.hash("policy"), EvaluatedMS: r.uint("evaluated_at"), Steps: r.uint("steps"), Engine: r.uint("engine"),
		Enforcement: r.code("enforcement")}
	if s := r.sub("args", true); s != nil {
		d.ArgsBefore, d.ArgsAfter = s.hash("before"), s.hash("after")
		r.adopt(s)
	}
	if s := r.sub("targets", true); s != nil {
		d.TargetCount, d.Targets = s.uint("count"), s.hash("commitment")
		r.adopt(s)
	}
	if s := r.sub("classified", false); s != nil {
		d.Classified = policy.Classified{By: s.code("by"), Need: policy.GrantShell(s.code("need")), Why: s.str("why")}
		r.adopt(s)
	}
	r.maps("also_denied_by", func(m *factsMap) {
		d.Also = append(d.Also, policy.Denial{Code: policy.Code(m.code("code")), Rule: policy.Rule(m.str("rule")), Origin: m.ruleOrigin("origin")})
	})
	if s := r.sub("decider", true); s != nil {
		d.Decider, d.Ref = Decider(s.code("kind")), s.str("ref")
		r.adopt(s)
	}
	if s := r.sub("objections", true); s != nil {
		d.Objections.Checked, d.Objections.CarriedOn = s.int("checked"), s.bool("carried_on", true)
		s.maps("degraded", func(m *factsMap) {
			d.Objections.Degraded = append(d.Objections.Degraded, objection.Degraded{Rule: m.code("rule"), Why: objection.Why(m.code("why"))})
		})
		s.maps("amendments", func(m *factsMap) {
			d.Objections.Amendments = append(d.Objections.Amendments, objection.Amendment{Rule: m.code("rule"), Keys: m.strs("keys")})
		})
		r.adopt(s)
	}
	return d, r.err
}

// ruleOrigin reads the origin of a rule.
func (r *factsMap) ruleOrigin(field string) (o policy.RuleOrigin) {
	if s := r.sub(field, true); s != nil {
		o.Kind = policy.OriginKind(s.code("kind"))
		if _, ok := s.m["session"]; ok {
			o.At = s.origin()
		}
		r.adopt(s)
	}
	return o
}
