package eventlog

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"childlog/policy"
)

// This file reads and writes the facts of a question and of its decision.
// What a person is shown (the question, the justification, the arguments) is
// content of approval/asked: it can be redacted and the facts still bind.

// AskOutcome is what came of a question. The strings are recorded in logs.
type AskOutcome string

// The outcomes. Only the first grants anything.
const (
	AskAllowedOnce AskOutcome = "allowed-once"
	AskRejected    AskOutcome = "rejected"
	AskCancelled   AskOutcome = "cancelled"   // withdrawn before there was an answer that counts
	AskUnavailable AskOutcome = "unavailable" // nobody answered, or whoever should have failed

	// A harness says that it let the call pass, after a question that it put
	// itself. It is a word about what happened, and no leave: nothing is granted
	// by it, here or to the call.
	AskAllowedElsewhere AskOutcome = "allowed-elsewhere"
)

// Known reports whether o is one of the outcomes. An imported log may state
// others, which grant nothing.
func (o AskOutcome) Known() bool {
	return slices.Contains([]AskOutcome{AskAllowedOnce, AskRejected, AskCancelled, AskUnavailable, AskAllowedElsewhere}, o)
}

// Decider says who decided a question. The strings are recorded in logs.
type Decider string

// The deciders. Pin and rule decide without anybody being asked, and are
// written with source store.
const (
	DeciderPin   Decider = "pin"   // the approval pin of a child
	DeciderRule  Decider = "rule"  // a rule of childlog, named beside it
	DeciderHuman Decider = "human" // a person, through an answerer registered as one
	DeciderHost  Decider = "host"  // a program that answers for the deployment, or the harness that withdrew
)

// Known reports whether d is one of the deciders.
func (d Decider) Known() bool { return d.Answers() || d == DeciderPin || d == DeciderRule }

// Answers reports whether d decides because it was asked.
func (d Decider) Answers() bool { return d == DeciderHuman || d == DeciderHost }

// Asked is approval/asked. A field that is missing reads as its zero value,
// which grants nothing.
type Asked struct {
	Ask, Tool, Call string
	Escalation      *policy.Sandbox // nil: the call stays within the sandbox
	Args            Hash            // see CommitArgs; zero: not recorded, matches no arguments
	Evaluated       uint64          // seq of the last policy-bearing event when it was asked
	InTurn          bool
	Turn            uint64 // number of the open turn, if InTurn
	Epoch           uint64 // of the activation that asked; 0: none
	Elsewhere       string // the harness that puts it to its own person; "": it is answered here
}

// Facts encodes a.
func (a Asked) Facts() Facts {
	m := map[string]any{"ask": a.Ask, "tool": a.Tool, "evaluated": a.Evaluated, "args": a.Args}
	if a.Call != "" {
		m["call"] = a.Call
	}
	if a.Escalation != nil {
		m["escalation"] = sandboxFact(*a.Escalation)
	}
	if a.InTurn {
		m["turn"] = a.Turn
	}
	if a.Epoch != 0 {
		m["epoch"] = a.Epoch
	}
	if a.Elsewhere != "" {
		m["elsewhere"] = a.Elsewhere
	}
	return mustFacts(m)
}

// ParseAsked reads approval/asked.
func ParseAsked(ev *Event) (Asked, error) {
	r, err := readFacts(ev)
	if err != nil {
		return Asked{}, err
	}
	a := Asked{Ask: r.code("ask"), Tool: r.code("tool"), Call: r.str("call"), Args: r.hash("args"), Evaluated: r.uint("evaluated"),
		Turn: r.uint("turn"), Epoch: r.uint("epoch"), Elsewhere: r.str("elsewhere")}
	_, a.InTurn = r.m["turn"]
	if e := r.sub("escalation", false); e != nil {
		sandbox := e.sandbox()
		a.Escalation = &sandbox
		r.adopt(e)
	}
	return a, r.err
}

// Decided is approval/decided.
type Decided struct {
	Ask     string
	Outcome AskOutcome
	Decider Decider
	Ref     string            // an opaque reference of whoever answered, a code; "": none
	Rule    string            // a code; "": whoever answered decided
	Origin  policy.RuleOrigin // the event that stated the rule; zero: none did
}

// Facts encodes d.
func (d Decided) Facts() Facts {
	m := map[string]any{"ask": d.Ask, "outcome": string(d.Outcome), "decider": string(d.Decider)}
	if d.Ref != "" {
		m["ref"] = d.Ref
	}
	if d.Rule != "" {
		m["rule"] = d.Rule
	}
	if d.Origin.At.Seq != 0 {
		m["origin"] = map[string]any{"kind": string(d.Origin.Kind), "session": d.Origin.At.Session, "seq": d.Origin.At.Seq}
	}
	return mustFacts(m)
}

// ParseDecided reads approval/decided. Outcomes and deciders of other systems,
// which imported logs hold, are kept as they are.
func ParseDecided(ev *Event) (Decided, error) {
	r, err := readFacts(ev)
	if err != nil {
		return Decided{}, err
	}
	d := Decided{Ask: r.code("ask"), Outcome: AskOutcome(r.code("outcome")), Decider: Decider(r.code("decider")), Ref: r.str("ref"), Rule: r.str("rule")}
	if o := r.sub("origin", false); o != nil {
		d.Origin = policy.RuleOrigin{Kind: policy.OriginKind(o.code("kind")), At: policy.Origin{Session: o.id("session", true), Seq: o.uint("seq")}}
		r.adopt(o)
	}
	return d, r.err
}

// CommitArgs is the salted commitment to a call's arguments, exact bytes. The
// salt belongs into a content, never into facts: once it is redacted with the
// arguments, nobody can try candidates against the commitment.
func CommitArgs(salt Salt, args []byte) Hash {
	b := make([]byte, 0, len(tagArgs)+len(salt)+8+len(args))
	b = append(append(b, tagArgs...), salt[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(args)))
	return sha256.Sum256(append(b, args...))
}
