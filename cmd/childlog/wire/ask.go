package wire

import (
	"github.com/go-json-experiment/json/jsontext"

	"childlog/replay"
)

// Ruling is what came of a question. While it waits, what belongs to a decision
// is null. Allowed is whether the call may be made, once: Void says why an
// allowance covers it no more. Existing: it was recorded before, and this answers
// a retry.
type Ruling struct {
	Session    string     `json:"session"`
	Ask        string     `json:"ask"`
	Waits      bool       `json:"waits"`
	Allowed    bool       `json:"allowed"`
	Outcome    *string    `json:"outcome"`
	Decider    *Decider   `json:"decider"`
	Rule       *string    `json:"rule"`
	Origin     RuleOrigin `json:"origin"`
	Void       *string    `json:"void"`
	AskedSeq   uint64     `json:"asked_seq"`
	DecidedSeq *uint64    `json:"decided_seq"`
	Existing   bool       `json:"existing"`
}

// RulingOf converts a ruling on a question of the session.
func RulingOf(session string, r *replay.Ruling) Ruling {
	out := Ruling{Session: session, Ask: r.Ask, Waits: r.Waits(), Allowed: r.Allowed(), Origin: ruleOriginOf(r.Origin), AskedSeq: r.Seq, Existing: r.Existing}
	if r.Waits() {
		return out
	}
	seq := r.DecidedSeq
	out.Outcome, out.Rule, out.DecidedSeq = optional(string(r.Outcome)), optional(r.Rule), &seq
	out.Decider = &Decider{Kind: string(r.Decider), Ref: optional(r.Ref)}
	if r.Void != nil {
		out.Void = optional(r.Void.Error())
	}
	return out
}

// AskedEscalation is what is wanted for one call beyond the sandbox.
type AskedEscalation struct {
	Sandbox       Sandbox `json:"sandbox"`
	Justification *string `json:"justification"` // null: gone, or none was given
}

// Question is one that waits for its answer. Sandbox is in force, escalation what
// is wanted beyond it, null: nothing. An answer after the end of the turn, of the
// activation, or after another policy than that of evaluated_seq is too late.
type Question struct {
	Session      string           `json:"session"`
	Ask          string           `json:"ask"`
	Call         string           `json:"call"`
	Tool         string           `json:"tool"`
	Args         jsontext.Value   `json:"args"`     // null: none, or gone
	Question     *string          `json:"question"` // null: none, or gone
	Sandbox      Sandbox          `json:"sandbox"`
	Escalation   *AskedEscalation `json:"escalation"`
	AskedSeq     uint64           `json:"asked_seq"`
	Asked        string           `json:"asked"`
	EvaluatedSeq uint64           `json:"evaluated_seq"`
	Turn         uint64           `json:"turn"`
	Epoch        uint64           `json:"epoch"`
	Elsewhere    *string          `json:"elsewhere"` // the harness that puts it to its own person, who answers it there; null: it is answered here
	TextsGone    bool             `json:"texts_gone"`
}

// QuestionOf converts a question.
func QuestionOf(w *replay.Waiting) Question {
	out := Question{Session: w.Session.String(), Ask: w.Ask, Call: w.Call, Tool: w.Tool, Args: jsontext.Value(w.Args), Question: optional(w.Text), Sandbox: SandboxOf(w.Sandbox),
		AskedSeq: w.Seq, Asked: Time(w.Time), EvaluatedSeq: w.Evaluated, Turn: w.Turn, Epoch: w.Epoch, Elsewhere: optional(w.Elsewhere), TextsGone: w.Gone != nil}
	if e := w.Escalation; e != nil {
		out.Escalation = &AskedEscalation{Sandbox: SandboxOf(e.Sandbox), Justification: optional(e.Justification)}
	}
	return out
}
