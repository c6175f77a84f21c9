package wire

import (
	"childlog/policy"
	"childlog/replay"
)

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

// Decision is the answer to a call, without the session that it is about. Tool and paths are as in the call; what
// holds bytes that are not UTF-8 is shown with replacement characters.
type Decision struct {
	Verdict string `json:"verdict"`
	Denial
	Tool         Tool          `json:"tool"`
	Targets      []string      `json:"targets"`
	Outside      []OutsidePath `json:"outside"`
	AlsoDeniedBy []Denial      `json:"also_denied_by"`
	Classified   *Classified   `json:"classified"` // null: nobody judged the command
}

// Classified is what a classifier found a shell command to need: inspect, verify or
// full. Why is its code for why no less, null without one. Text says so in words that
// may be the command's; of a record it is null once the texts were redacted.
type Classified struct {
	By   string  `json:"by"`
	Need string  `json:"need"`
	Why  *string `json:"why"`
	Text *string `json:"text"`
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
	if c := d.Classified; c.Named() {
		out.Classified = &Classified{By: c.By, Need: string(c.Shell()), Why: optional(c.Why), Text: optional(c.Text)}
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

// Decider says who decided: rule, pin, human or host. Ref is null without one.
type Decider struct {
	Kind string  `json:"kind"`
	Ref  *string `json:"ref"`
}

// RecordedAt says where a call and its decision were recorded. Existing: they
// were before, and this answers a retry.
type RecordedAt struct {
	CallSeq     uint64 `json:"call_seq"`
	DecisionSeq uint64 `json:"decision_seq"`
	Existing    bool   `json:"existing"`
}

// Judgement is the answer to one call of a session: what check prints. Line is
// that of a batch, left out for a single call. Change is null for a call that
// is allowed, Failure unless the policy can't be read.
type Judgement struct {
	Line    uint64 `json:"line,omitzero"`
	Session string `json:"session"`
	Call    string `json:"call"`
	Decision
	Decider      Decider     `json:"decider"`
	EvaluatedSeq uint64      `json:"evaluated_seq"`
	Reason       string      `json:"reason"`
	Change       *string     `json:"change"`
	Failure      *string     `json:"failure"`
	Recorded     *RecordedAt `json:"recorded"`
}

// JudgementOf converts a judgement on the call with the given id.
func JudgementOf(j *replay.Judgement, call string) Judgement {
	out := Judgement{Session: j.Session.String(), Call: call, Decision: DecisionOf(j.Decision), Decider: Decider{Kind: string(j.Decider())},
		EvaluatedSeq: j.EvaluatedSeq, Reason: j.Decision.Reason(), Change: optional(j.Decision.Change(&j.Subject))}
	if j.Failure != nil {
		out.Failure = optional(j.Failure.Error())
	}
	if j.DecisionSeq != 0 {
		out.Recorded = &RecordedAt{j.CallSeq, j.DecisionSeq, j.Existing}
	}
	return out
}

// Checked answers one call of a batch: one of the two is there. A call without a
// judgement was not decided, and is not allowed.
type Checked struct {
	Judgement *Judgement   `json:"judgement,omitzero"`
	Error     *FailureBody `json:"error,omitzero"`
}

// BadLine answers a line of a batch that holds no call.
type BadLine struct {
	Line  uint64      `json:"line"`
	Error FailureBody `json:"error"`
}
