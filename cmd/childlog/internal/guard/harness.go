package guard

import (
	"fmt"
	"slices"
	"strings"

	"childlog/eventlog"
)

// Harness is a program whose hooks are answered.
type Harness string

// The harnesses, by the names of their commands.
const (
	ClaudeCode Harness = "claude-code"
	Codex      Harness = "codex"
)

// Harnesses lists them in the order in which they are shown.
func Harnesses() []Harness { return []Harness{ClaudeCode, Codex} }

// ParseHarness returns the harness of that name. Errors: ErrInvalid.
func ParseHarness(name string) (Harness, error) {
	if h := Harness(name); slices.Contains(Harnesses(), h) {
		return h, nil
	}
	return "", fmt.Errorf("%w: harness: got %.40q, want %s or %s", eventlog.ErrInvalid, name, ClaudeCode, Codex)
}

// System is the system of the external id under which the root of a guarded
// session is found: SYSTEM:ID with the harness's own session id. It is not the
// one that the importers use, so that a guarded session and the imported log of
// the same session stand beside each other: neither takes the other's name.
func (h Harness) System() string { return string(h) + "-guard" }

// Kind is what a hook event asks of a guard.
type Kind uint8

// The kinds of event.
const (
	KindOther      Kind = iota // recorded, if there is a session to record it in
	KindUnknown                // likewise, unless it is about a call that was not made yet
	KindStart                  // of a session, also of one that goes on
	KindEnd                    // of a session
	KindPrompt                 // begins a turn
	KindStop                   // ends a turn
	KindCall                   // may the call be made
	KindPermission             // may the call be made that the harness would ask a person about
	KindResult                 // the call was made
	KindFailure                // the call was made, or begun, and failed
	KindDenied                 // the harness itself rejected the call
	KindAgentStart
	KindAgentStop
)

// eventRow is one hook event. Install is whether a guard has to be told of it.
type eventRow struct {
	name    string
	kind    Kind
	in      string // the harnesses that send it: a, c or ac
	install bool
}

// eventRows is the table of the events. Sources: the hooks reference of Claude
// Code; codex-rs/hooks of Codex (schema.rs, events/). WorktreeCreate is known
// and never installed: its hook has to make a worktree and print where.
var eventRows = [...]eventRow{
	{"SessionStart", KindStart, "ac", true},
	{"SessionEnd", KindEnd, "ac", true},
	{"UserPromptSubmit", KindPrompt, "ac", true},
	{"PreToolUse", KindCall, "ac", true},
	{"PermissionRequest", KindPermission, "ac", true},
	{"PostToolUse", KindResult, "ac", true},
	{"PostToolUseFailure", KindFailure, "a", true},
	{"SubagentStart", KindAgentStart, "ac", true},
	{"SubagentStop", KindAgentStop, "ac", true},
	{"Stop", KindStop, "ac", true},
	{"StopFailure", KindStop, "ac", false},
	{"PermissionDenied", KindDenied, "a", false},
	{"PostToolBatch", KindOther, "a", false},
	{"UserPromptExpansion", KindOther, "a", false},
	{"Notification", KindOther, "a", false},
	{"PreCompact", KindOther, "ac", false},
	{"PostCompact", KindOther, "ac", false},
	{"Interrupt", KindOther, "c", false},
	{"Setup", KindOther, "a", false},
	{"ConfigChange", KindOther, "a", false},
	{"CwdChanged", KindOther, "a", false},
	{"FileChanged", KindOther, "a", false},
	{"InstructionsLoaded", KindOther, "a", false},
	{"TaskCreated", KindOther, "a", false},
	{"TaskCompleted", KindOther, "a", false},
	{"TeammateIdle", KindOther, "a", false},
	{"Elicitation", KindOther, "a", false},
	{"ElicitationResult", KindOther, "a", false},
	{"WorktreeCreate", KindOther, "a", false},
	{"WorktreeRemove", KindOther, "a", false},
}

// KindOf classifies an event by its name. A harness that starts to send an event
// of the other one is understood.
func KindOf(event string) Kind {
	for i := range eventRows {
		if eventRows[i].name == event {
			return eventRows[i].kind
		}
	}
	return KindUnknown
}

// Events lists the events that the hooks of a harness have to be set for: with
// fewer a guard enforces or records less, more are recorded and nothing else.
func (h Harness) Events() []string {
	in := "a"
	if h == Codex {
		in = "c"
	}
	var out []string
	for i := range eventRows {
		if row := &eventRows[i]; row.install && strings.Contains(row.in, in) {
			out = append(out, row.name)
		}
	}
	return out
}

// asks reports whether the harness waits for an answer of this kind before it
// does something: a guard that fails then has to refuse.
func (k Kind) asks() bool {
	switch k {
	case KindCall, KindPermission, KindPrompt, KindStart, KindAgentStart, KindUnknown:
		return true
	}
	return false
}
