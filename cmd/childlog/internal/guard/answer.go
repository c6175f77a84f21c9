package guard

import (
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Exit codes. There are no others: both harnesses go on after any other code.
const (
	ExitAnswered = 0
	ExitBlocked  = 2
)

// Answer is what a hook command gives back.
type Answer struct {
	Stdout []byte // one JSON object and a newline, or nothing
	Stderr string // for people or for the model, by the harness and the event; "" or text without a newline at its end
	Told   string // the reason, where Stdout asks a person: for who can't write it
	Exit   int
}

// Verb is what a guard says to an event.
type Verb uint8

// The verbs. The zero value says nothing: the harness does what it would have
// done without a guard, its own permission flow included.
const (
	Pass    Verb = iota
	Deny         // with a reason
	Ask          // put it to a person
	Approve      // skip the harness's own question; only where a profile says so
)

// Outcome is what came of an event.
type Outcome struct {
	Verb    Verb
	Reason  string // of Deny and Ask
	Context string // to be told to the model; "": nothing
	Notice  string // to be told to the person; "": nothing
}

// output has the fields that are printed, of both harnesses; Codex refuses what
// it does not know, and then goes on with the call, so nothing is added lightly.
type output struct {
	Notice   string    `json:"systemMessage,omitzero"`
	Specific *specific `json:"hookSpecificOutput,omitzero"`
}

type specific struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision,omitzero"`
	Reason   string `json:"permissionDecisionReason,omitzero"`
	Context  string `json:"additionalContext,omitzero"`
}

// maxReason bounds what a model is told, in bytes. Codex and Claude Code spill
// longer output into files.
const maxReason = 4096

// Answer puts an outcome into the form that the harness reads.
//
// A denial is exit 2 with its reason on stderr, and never JSON: both harnesses run
// a hook in a shell that may read its user's profile, and what that prints comes
// before the JSON. Then all of it counts as text, and text is leave. Nor is JSON
// put beside it: Claude Code before 2.1.90 did not block then.
func (h Harness) Answer(ev *Event, o Outcome) Answer {
	o.Reason, o.Context, o.Notice = clip(o.Reason), clip(o.Context), clip(o.Notice)
	if o.Reason == "" { // without one Codex goes on
		o.Reason = "childlog: no reason is known"
	}
	if o.Verb == Ask && ev.Kind == KindCall && h != ClaudeCode { // Codex knows no ask, and goes on if it is told one
		o.Verb, o.Reason = Deny, o.Reason+" Codex can't put it to a person from a hook, so it is denied."
	}
	if o.Verb == Deny {
		return o.blocked()
	}
	out, told := output{Notice: o.Notice}, ""
	switch {
	case ev.Kind != KindCall || h != ClaudeCode: // to Codex an allow is a failed hook
	case o.Verb == Ask:
		out.Specific, told = &specific{Event: ev.Name, Decision: "ask", Reason: o.Reason}, o.Reason
	case o.Verb == Approve:
		out.Specific = &specific{Event: ev.Name, Decision: "allow", Reason: o.Reason}
	}
	if o.Context != "" && ev.hears() {
		if out.Specific == nil {
			out.Specific = &specific{Event: ev.Name}
		}
		out.Specific.Context = o.Context
	}
	if out == (output{}) {
		return Answer{}
	}
	b, err := json.Marshal(out, jsontext.AllowInvalidUTF8(true), jsontext.EscapeForHTML(true))
	if err != nil { // texts alone can't fail to be written
		return Answer{Stderr: "childlog guard: " + err.Error(), Exit: ExitBlocked}
	}
	return Answer{Stdout: append(b, '\n'), Told: told}
}

// blocked says no. What else there was to tell comes with the reason, because
// nothing but stderr is read.
func (o Outcome) blocked() Answer {
	text := o.Reason
	for _, more := range []string{o.Context, o.Notice} {
		if more != "" {
			text += "\n\n" + more
		}
	}
	return Answer{Exit: ExitBlocked, Stderr: strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, text)}
}

// hears reports whether the model is told additionalContext after this event,
// by both harnesses.
func (ev *Event) hears() bool {
	switch ev.Kind {
	case KindStart, KindAgentStart, KindPrompt, KindCall:
		return true
	}
	return false
}

// Failed is the answer of a guard that could not do its work; ev is nil if not
// even the event is known. Whatever waits for an answer is blocked. After the
// fact there is nothing to block, and a 2 would do harm: it keeps an agent from
// stopping, stands in for the tool's result (Codex), or ends a compaction. Then
// the person is told.
func Failed(ev *Event, reason string) Answer {
	if strings.TrimSpace(reason) == "" {
		reason = "no reason is known"
	}
	reason = clip(reason)
	if ev == nil || ev.Kind.asks() {
		return Answer{Stderr: "childlog guard: blocked: " + reason, Exit: ExitBlocked}
	}
	b, err := json.Marshal(output{Notice: "childlog guard: " + ev.Name + " was not recorded: " + reason}, jsontext.AllowInvalidUTF8(true), jsontext.EscapeForHTML(true))
	if err != nil {
		return Answer{Stderr: "childlog guard: not recorded: " + reason, Exit: ExitBlocked}
	}
	return Answer{Stdout: append(b, '\n')}
}

// Observed turns an answer into that of a guard that only watches: nothing that
// blocks, nothing that a model is told. What went wrong stays on stderr, which
// after exit 0 reaches the harness's own log and nobody else.
func Observed(a Answer, failed bool) Answer {
	out := Answer{}
	if failed {
		out.Stderr = a.Stderr
		if out.Stderr == "" {
			out.Stderr = strings.TrimSpace(string(a.Stdout))
		}
	}
	return out
}

// clip bounds a text and leaves one line of it.
func clip(s string) string {
	s = strings.ToValidUTF8(strings.TrimSpace(s), "\uFFFD")
	if len(s) <= maxReason {
		return s
	}
	return strings.ToValidUTF8(s[:maxReason-3], "") + "..."
}
