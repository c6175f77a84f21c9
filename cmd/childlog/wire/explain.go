package wire

import (
	"encoding/hex"
	"time"

	"childlog/policy"
	"childlog/replay"
)

// Field is one field of a policy.
type Field struct {
	Field string `json:"field"`
	Value string `json:"value"`
	Cause
}

// FieldLine is a field in the list of all.
type FieldLine struct {
	Group string `json:"group"`
	Field
}

// Step is what one session on the way down held when it handed down. Delegable
// is what it could hand on, null where that is the same.
type Step struct {
	Session   string  `json:"session"`
	Label     string  `json:"label"`
	Seq       uint64  `json:"seq"`
	Value     string  `json:"value"`
	Delegable *string `json:"delegable"`
	Cause     *Cause  `json:"cause"`
	Note      *string `json:"note"`
}

// Explanation says why a field has its value. DecidedBy is the rule, null where
// the source says it all; Rule is the same in words.
type Explanation struct {
	Session string `json:"session"`
	Seq     uint64 `json:"seq"`
	Field
	DecidedBy *string `json:"decided_by"`
	Rule      string  `json:"rule"`
	Chain     []Step  `json:"chain"`
	Change    string  `json:"change"`
	Effective *Limit  `json:"effective"` // null: the value is effective
}

// Limit is another part of the policy that leaves less than a field says.
type Limit struct {
	Field
	DecidedBy *string `json:"decided_by"`
	Rule      string  `json:"rule"`
}

// ExplanationOf converts an explanation.
func ExplanationOf(x *replay.Explanation) Explanation {
	out := Explanation{Session: x.Session.String(), Seq: x.Seq, Field: Field{x.Field, x.Value, CauseOf(x.By)}, DecidedBy: optional(string(x.DecidedBy)),
		Rule: x.Rule, Chain: stepsOf(x.Chain), Change: x.Change}
	if l := x.Effective; l != nil {
		out.Effective = &Limit{Field: Field{l.Field, l.Value, CauseOf(l.By)}, DecidedBy: optional(string(l.DecidedBy)), Rule: l.Rule}
	}
	return out
}

func stepsOf(chain []replay.Step) []Step {
	out := []Step{}
	for _, s := range chain {
		step := Step{Session: s.Session.String(), Label: s.Label, Seq: s.Seq, Value: s.Value, Delegable: optional(s.Delegable), Note: optional(s.Note)}
		if s.Note == "" {
			by := CauseOf(s.By)
			step.Cause = &by
		}
		out = append(out, step)
	}
	return out
}

// CallExplanation says why a call is decided as it is. Field is the part of the
// policy that decided, null if none did; LostAt is the session of the chain in
// which the reason stands first.
type CallExplanation struct {
	Judgement
	Seq        uint64  `json:"seq"`
	OriginText string  `json:"origin_text"`
	Field      *string `json:"field"`
	Chain      []Step  `json:"chain"`
	LostAt     *string `json:"lost_at"`
}

// CallExplanationOf converts an explanation.
func CallExplanationOf(x *replay.CallExplanation, call string) CallExplanation {
	out := CallExplanation{Judgement: JudgementOf(&x.Judgement, call), Seq: x.At, OriginText: x.Origin, Field: optional(x.Field), Chain: stepsOf(x.Chain)}
	if x.LostAt >= 0 {
		out.LostAt = ID(x.Chain[x.LostAt].Session)
	}
	return out
}

// EventChange is a field that an event set or changed; From is null in an event
// of the creation.
type EventChange struct {
	Field string  `json:"field"`
	From  *string `json:"from"`
	To    string  `json:"to"`
	Cause
}

// EventExplanation says what one event did. Policy is the one in force after
// it, null with a note where there is none.
type EventExplanation struct {
	Session       string             `json:"session"`
	Seq           uint64             `json:"seq"`
	Type          string             `json:"type"`
	Source        string             `json:"source"`
	Time          string             `json:"time"`
	PolicyBearing bool               `json:"policy_bearing"`
	What          string             `json:"what"`
	Creation      bool               `json:"creation"`
	Changes       []EventChange      `json:"changes"`
	Decision      *ExplainedDecision `json:"decision"`
	Policy        *Policy            `json:"policy"`
	Note          *string            `json:"note"`
}

// EventExplanationOf converts an explanation.
func EventExplanationOf(x *replay.EventExplanation) EventExplanation {
	ev := &x.Event
	out := EventExplanation{Session: ev.Session.String(), Seq: ev.Seq, Type: ev.Type, Source: ev.Source.String(), Time: Time(ev.Time), PolicyBearing: ev.PolicyBearing,
		What: x.What, Creation: x.Born, Changes: []EventChange{}, Note: optional(x.Note)}
	for _, c := range x.Changes {
		change := EventChange{Field: c.Field, From: &c.From, To: c.To, Cause: CauseOf(c.By)}
		if x.Born {
			change.From = nil
		}
		out.Changes = append(out.Changes, change)
	}
	if x.Policy != nil {
		p := PolicyOf(x.Policy)
		out.Policy = &p
	}
	if x.Decision != nil {
		d := explainedOf(x.Decision)
		out.Decision = &d
	}
	return out
}

// ExplainedDecision is a decision as it was recorded, explained. Given, targets
// and outside are null or as the facts have them where the texts were redacted.
type ExplainedDecision struct {
	RecordedDecision
	CallSeq    uint64  `json:"call_seq"` // of its tool/call; 0: it is not there
	Reason     string  `json:"reason"`
	OriginText string  `json:"origin_text"`
	Change     *string `json:"change"`
	Field      *string `json:"field"`
	Chain      []Step  `json:"chain"`
}

func explainedOf(x *replay.RecordedExplanation) ExplainedDecision {
	return ExplainedDecision{RecordedDecision: RecordedDecisionOf(&x.Recorded), CallSeq: x.CallSeq, Reason: x.Reason, OriginText: x.Origin, Change: optional(x.Change),
		Field: optional(x.Field), Chain: stepsOf(x.Chain)}
}

// RecordedDecision is tool/decision.
type RecordedDecision struct {
	Decision
	Session      string     `json:"session"`
	Seq          uint64     `json:"seq"`
	Root         string     `json:"root"`
	Epoch        uint64     `json:"epoch"`
	Receipt      *string    `json:"receipt"` // digest; null for a root
	Call         string     `json:"call"`
	Ask          *string    `json:"ask"`
	Decider      Decider    `json:"decider"`
	EvaluatedSeq uint64     `json:"evaluated_seq"`
	PolicyDigest string     `json:"policy_digest"`
	Evaluated    string     `json:"evaluated"`
	Steps        uint64     `json:"steps"`
	Engine       uint64     `json:"engine"`
	Args         ArgsPair   `json:"args"`
	TargetCount  uint64     `json:"target_count"`
	Objections   Objections `json:"objections"`
	Enforcement  string     `json:"enforcement"`
	TextsGone    bool       `json:"texts_gone"` // given name, targets and outside can't be read any more
}

// ArgsPair are the commitments of a call's arguments.
type ArgsPair struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// Objections is what the objectors did before a decision.
type Objections struct {
	Checked    int         `json:"checked"`
	CarriedOn  bool        `json:"carried_on"`
	Degraded   []Degraded  `json:"degraded"`
	Amendments []Amendment `json:"amendments"`
}

// Degraded is an objector that failed.
type Degraded struct {
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// Amendment is a change that an objector made to the arguments, by key.
type Amendment struct {
	Rule string   `json:"rule"`
	Keys []string `json:"keys"`
}

// RecordedDecisionOf converts a record.
func RecordedDecisionOf(r *replay.Recorded) RecordedDecision {
	out := RecordedDecision{Decision: DecisionOf(r.Decided()), Session: r.Session.String(), Seq: r.Seq, Root: r.Root.String(), Epoch: r.Epoch, Call: r.Call,
		Ask: optional(r.Ask), Decider: Decider{string(r.Decider), optional(r.Ref)}, EvaluatedSeq: r.EvaluatedSeq, PolicyDigest: Hex(r.Policy),
		Evaluated: Time(time.UnixMilli(int64(min(r.EvaluatedMS, policy.MaxNumber)))), Steps: r.Steps, Engine: r.Engine, Args: ArgsPair{Hex(r.ArgsBefore), Hex(r.ArgsAfter)},
		TargetCount: r.TargetCount, Enforcement: r.Enforcement, TextsGone: r.Targets == nil,
		Objections: Objections{Checked: r.Objections.Checked, CarriedOn: r.Objections.CarriedOn, Degraded: []Degraded{}, Amendments: []Amendment{}}}
	if !r.Receipt.IsZero() {
		digest := hex.EncodeToString(r.Receipt[:])
		out.Receipt = &digest
	}
	for _, d := range r.Objections.Degraded {
		out.Objections.Degraded = append(out.Objections.Degraded, Degraded{d.Rule, string(d.Why)})
	}
	for _, a := range r.Objections.Amendments {
		out.Objections.Amendments = append(out.Objections.Amendments, Amendment{a.Rule, append([]string{}, a.Keys...)})
	}
	return out
}
