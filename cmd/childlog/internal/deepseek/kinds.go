package deepseek

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
)

// kind reads the facts of a type that childlog has too. ok is false if the
// line lacks something that the type needs; nil facts without that mean that
// this one has no counterpart. Either way the line is kept as import/other.
type kind func(m *mapper, out *mapped, line importer.Line) (f eventlog.Facts, ok bool)

// kinds are the types that the harness is known to write. Those without a
// function keep their name if it may stand, and are import/other if not.
var kinds = map[string]kind{
	"sandbox/mode":      sandboxMode,
	"approval/policy":   approvalPolicy,
	"approval/asked":    approvalAsked,
	"approval/decided":  approvalDecided,
	"turn/start":        turn,
	"turn/end":          turnEnd,
	"step/start":        step,
	"step/end":          step,
	"user/message":      userMessage,
	"assistant/message": assistantMessage,
	"tool/call":         toolCall,
	"tool/result":       toolResult,
	"session/end-seed":  endSeed,

	"subagent/descriptor": descriptor,

	"session/title": nil, "assistant/chunk": nil, "text-chunks": nil, "reasoning-chunks": nil, "tool-call-chunks": nil,
}

// families of which every type is the harness's.
var families = map[string]bool{"turn": true, "step": true, "request": true, "agent": true, "compaction": true, "todo": true, "hook": true}

// unrecorded stands in facts that a type requires and a log does not have.
const unrecorded = "unrecorded"

// claimed is what a policy event says of where it came from.
func claimed(data jsontext.Value) string {
	source, ok := text(data, "source")
	switch {
	case !ok || source == "":
		return eventlog.ClaimedSwitch
	case source == "delegation":
		return eventlog.ClaimedDelegation
	}
	return importer.Code(source)
}

// foreignFields reports what a policy event says beyond what is understood.
func (m *mapper) foreignFields(data jsontext.Value, known string, line importer.Line) {
	members(data, func(key, _ jsontext.Value) bool {
		if name := unquote(key); name != known && name != "source" {
			m.report(codeForeignField, line.Number, fmt.Sprintf("field %.80q of a policy event is not understood; it is kept in the content and has no effect", name))
		}
		return true
	})
}

func (m *mapper) rootClaim(claim string, out *mapped, line importer.Line) {
	if claim == eventlog.ClaimedDelegation && !out.inherited && !m.h.isChild() {
		m.report(codeRootClaim, line.Number, "a root claims a policy of source delegation; it counts as a switch")
	}
}

// sandboxMode never gives a line up: what can't be read narrows.
func sandboxMode(m *mapper, out *mapped, line importer.Line) (eventlog.Facts, bool) {
	data := at(out.doc, "data")
	mode, ok := text(data, "mode")
	if !ok || mode == "" {
		mode = unrecorded
		m.kept.Malformed++
		m.report(importer.CodeMalformed, line.Number, "sandbox/mode without a mode counts as read-only")
	}
	m.foreignFields(data, "mode", line)
	claim := claimed(data)
	m.rootClaim(claim, out, line)
	return eventlog.ImportedSandboxFacts(sandboxOf(mode, m.h.workspace), claim), true
}

// sandboxOf is what a mode of the harness is worth. The harness records the
// mode alone, so everything that could be more is left out.
func sandboxOf(mode, workspace string) policy.Sandbox {
	v := policy.Sandbox{Mode: policy.Mode(importer.Code(mode)), ExcludeTmpdirEnvVar: true, ExcludeSlashTmp: true}
	switch v.Mode {
	case policy.DangerFullAccess:
		return policy.Top()
	case policy.ReadOnly:
		return v.Canonical()
	case policy.WorkspaceWrite:
		if roots, err := policy.RootsOf(workspace); err == nil {
			v.Roots = roots
		}
	}
	return v
}

// approvalPolicy never gives a line up either: what can't be read is never.
func approvalPolicy(m *mapper, out *mapped, line importer.Line) (eventlog.Facts, bool) {
	data := at(out.doc, "data")
	value, ok := text(data, "policy")
	m.foreignFields(data, "policy", line)
	claim := claimed(data)
	m.rootClaim(claim, out, line)
	switch {
	case !ok || value == "":
		m.kept.Malformed++
		m.report(importer.CodeMalformed, line.Number, "approval/policy without a policy counts as never")
		return eventlog.ImportedApprovalFacts(policy.Never, unrecorded), true
	case claim == eventlog.ClaimedDelegation && value != string(policy.Never) && !out.inherited && m.h.isChild():
		// No delegation of the harness pins anything else; as a switch it is
		// shown, and has no effect on a child.
		m.report(codeBadPin, line.Number, fmt.Sprintf("a delegation pins approvals to never, this one says %.80q; it is kept as a switch", value))
		claim = "delegation-not-never"
	}
	return eventlog.ImportedApprovalFacts(policy.Approval(importer.Code(value)), claim), true
}

func approvalAsked(m *mapper, out *mapped, line importer.Line) (eventlog.Facts, bool) {
	data := at(out.doc, "data")
	id, ok := text(data, "id")
	if !ok || id == "" {
		return nil, false
	}
	pairs := []any{"ask", importer.Code(id), "tool", unrecorded}
	if tool, ok := text(data, "toolName"); ok && tool != "" {
		pairs[3] = importer.Code(tool)
	}
	call, ok := text(data, "callId")
	if ok && call != "" {
		pairs = append(pairs, "call", importer.Code(call))
	}
	if !out.inherited && (!m.open(m.asks, id, line) || call != "" && !m.open(m.calls, call, line)) {
		return nil, true
	}
	return facts(pairs...), true
}

func approvalDecided(m *mapper, out *mapped, line importer.Line) (eventlog.Facts, bool) {
	id, ok := text(out.doc, "data", "id")
	outcome, ok2 := text(out.doc, "data", "outcome")
	if !ok || !ok2 || id == "" || outcome == "" {
		return nil, false
	}
	if !out.inherited {
		delete(m.asks, id)
	}
	return facts("ask", importer.Code(id), "outcome", importer.Code(outcome), "decider", unrecorded), true
}

// open admits one more call or ask that waits for its end.
func (m *mapper) open(set map[string]struct{}, id string, line importer.Line) bool {
	if _, there := set[id]; !there && len(set) >= maxOpen {
		m.report(codeTooManyOpen, line.Number, fmt.Sprintf("more than %d calls or asks wait for their end; this one is kept as import/other", maxOpen))
		return false
	}
	set[id] = struct{}{}
	return true
}

func turn(_ *mapper, out *mapped, _ importer.Line) (eventlog.Facts, bool) {
	n, ok := integer(out.doc, "data", "turn")
	return facts("turn", n), ok
}

func turnEnd(_ *mapper, out *mapped, _ importer.Line) (eventlog.Facts, bool) {
	n, ok := integer(out.doc, "data", "turn")
	if reason, found := text(out.doc, "data", "reason", "kind"); found && eventlog.IsCode(reason) {
		return facts("turn", n, "reason", reason), ok
	}
	return facts("turn", n), ok
}

func step(_ *mapper, out *mapped, _ importer.Line) (eventlog.Facts, bool) {
	t, ok := integer(out.doc, "data", "turn")
	n, ok2 := integer(out.doc, "data", "step")
	return facts("turn", t, "step", n), ok && ok2
}

func userMessage(_ *mapper, out *mapped, _ importer.Line) (eventlog.Facts, bool) {
	return message(at(out.doc, "data")), true
}

func assistantMessage(_ *mapper, out *mapped, _ importer.Line) (eventlog.Facts, bool) {
	return message(at(out.doc, "data", "message")), true
}

// message names a message by its id, if it has one that may stand.
func message(m jsontext.Value) eventlog.Facts {
	if id, ok := text(m, "id"); ok && eventlog.IsCode(id) {
		return facts("message", id)
	}
	return facts()
}

func toolCall(m *mapper, out *mapped, line importer.Line) (eventlog.Facts, bool) {
	call, ok := text(out.doc, "data", "callId")
	tool, ok2 := text(out.doc, "data", "name")
	if !ok || !ok2 || call == "" || tool == "" {
		return nil, false
	}
	if !out.inherited && !m.open(m.calls, call, line) {
		return nil, true
	}
	return facts("call", importer.Code(call), "tool", importer.Code(tool)), true
}

func toolResult(m *mapper, out *mapped, _ importer.Line) (eventlog.Facts, bool) {
	data := at(out.doc, "data")
	call, ok := resultCall(data)
	if !ok {
		return nil, false
	}
	if !out.inherited {
		delete(m.calls, call)
	}
	outcome := unrecorded
	each(at(data, "message", "content"), func(part jsontext.Value) bool {
		failed, stated := boolean(part, "isError")
		switch {
		case stated && failed:
			outcome = "error"
		case stated && outcome == unrecorded:
			outcome = "ok"
		}
		return outcome != "error"
	})
	pairs := []any{"call", importer.Code(call), "outcome", outcome}
	if e := at(data, "error"); e != nil && e.Kind() != 'n' {
		pairs[3] = "error"
		if code, ok := text(e, "code"); ok && eventlog.IsCode(code) {
			pairs = append(pairs, "error", code)
		}
	}
	return facts(pairs...), true
}

// resultCall names the call that a result ends.
func resultCall(data jsontext.Value) (call string, ok bool) {
	if call, ok = text(data, "message", "source", "callId"); ok && call != "" {
		return call, true
	}
	each(at(data, "message", "content"), func(part jsontext.Value) bool {
		call, ok = text(part, "toolCallId")
		return !ok
	})
	return call, ok && call != ""
}

// endSeed keeps its meaning only where the seed does end. A root writes one
// whenever it is resumed, and a continuable child before its delegation.
func endSeed(m *mapper, out *mapped, _ importer.Line) (eventlog.Facts, bool) {
	if m.h.seedState != stated || m.h.seed == 0 || out.inherited || m.own {
		return nil, true
	}
	return facts(), true
}

func descriptor(_ *mapper, out *mapped, _ importer.Line) (eventlog.Facts, bool) {
	data := at(out.doc, "data")
	var pairs []any
	if n, ok := integer(data, "version"); ok {
		pairs = append(pairs, "version", n)
	}
	for _, name := range []string{"mode", "provider"} {
		if v, ok := text(data, name); ok && eventlog.IsCode(v) {
			pairs = append(pairs, name, v)
		}
	}
	return facts(pairs...), true
}

// facts builds a map of names and values that are facts already.
func facts(pairs ...any) eventlog.Facts {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	f, err := eventlog.MakeFacts(m)
	if err != nil {
		return eventlog.Facts{0x80} // refused by the type's schema, never half there
	}
	return f
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

func bytesText(n int64) string { return strconv.FormatInt(n, 10) + " bytes" }

// offsetText names the place of a line in the file.
func offsetText(offset int64) string {
	return "line at byte offset " + strconv.FormatInt(offset, 10) + ": "
}
