package deepseek

import (
	"fmt"
	"strconv"
	"sync"

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
var kinds = sync.OnceValue(func() map[string]kind {
	return map[string]kind{
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
})

// ownFamily reports whether every type of a family is the harness's.
func ownFamily(family string) bool {
	switch family {
	case "turn", "step", "request", "agent", "compaction", "todo", "hook":
		return true
	}
	return false
}

// claimed is what a policy event says of where it came from.
func claimed(data jsontext.Value) string {
	source, ok := importer.Text(data, "source")
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
	importer.Members(data, func(key, _ jsontext.Value) bool {
		if name := importer.Unquote(key); name != known && name != "source" {
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
	data := importer.At(out.doc, "data")
	mode, ok := importer.Text(data, "mode")
	if !ok || mode == "" {
		mode = importer.Unrecorded
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
	data := importer.At(out.doc, "data")
	value, ok := importer.Text(data, "policy")
	m.foreignFields(data, "policy", line)
	claim := claimed(data)
	m.rootClaim(claim, out, line)
	switch {
	case !ok || value == "":
		m.kept.Malformed++
		m.report(importer.CodeMalformed, line.Number, "approval/policy without a policy counts as never")
		return eventlog.ImportedApprovalFacts(policy.Never, importer.Unrecorded), true
	case claim == eventlog.ClaimedDelegation && value != string(policy.Never) && !out.inherited && m.h.isChild():
		// No delegation of the harness pins anything else; as a switch it is
		// shown, and has no effect on a child.
		m.report(codeBadPin, line.Number, fmt.Sprintf("a delegation pins approvals to never, this one says %.80q; it is kept as a switch", value))
		claim = "delegation-not-never"
	}
	return eventlog.ImportedApprovalFacts(policy.Approval(importer.Code(value)), claim), true
}

func approvalAsked(m *mapper, out *mapped, line importer.Line) (eventlog.Facts, bool) {
	data := importer.At(out.doc, "data")
	id, ok := importer.Text(data, "id")
	if !ok || id == "" {
		return nil, false
	}
	pairs := []any{"ask", importer.Code(id), "tool", importer.Unrecorded}
	if tool, ok := importer.Text(data, "toolName"); ok && tool != "" {
		pairs[3] = importer.Code(tool)
	}
	call, ok := importer.Text(data, "callId")
	if ok && call != "" {
		pairs = append(pairs, "call", importer.Code(call))
	}
	if !out.inherited && (!m.open(m.asks, id, line) || call != "" && !m.open(m.calls, call, line)) {
		return nil, true
	}
	return importer.Facts(pairs...), true
}

func approvalDecided(m *mapper, out *mapped, line importer.Line) (eventlog.Facts, bool) {
	id, ok := importer.Text(out.doc, "data", "id")
	outcome, ok2 := importer.Text(out.doc, "data", "outcome")
	if !ok || !ok2 || id == "" || outcome == "" {
		return nil, false
	}
	if !out.inherited {
		delete(m.asks, id)
	}
	return importer.Facts("ask", importer.Code(id), "outcome", importer.Code(outcome), "decider", importer.Unrecorded), true
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
	n, ok := importer.Integer(out.doc, "data", "turn")
	return importer.Facts("turn", n), ok
}

func turnEnd(_ *mapper, out *mapped, _ importer.Line) (eventlog.Facts, bool) {
	n, ok := importer.Integer(out.doc, "data", "turn")
	if reason, found := importer.Text(out.doc, "data", "reason", "kind"); found && eventlog.IsCode(reason) {
		return importer.Facts("turn", n, "reason", reason), ok
	}
	return importer.Facts("turn", n), ok
}

func step(_ *mapper, out *mapped, _ importer.Line) (eventlog.Facts, bool) {
	t, ok := importer.Integer(out.doc, "data", "turn")
	n, ok2 := importer.Integer(out.doc, "data", "step")
	return importer.Facts("turn", t, "step", n), ok && ok2
}

func userMessage(_ *mapper, out *mapped, _ importer.Line) (eventlog.Facts, bool) {
	return message(importer.At(out.doc, "data")), true
}

func assistantMessage(_ *mapper, out *mapped, _ importer.Line) (eventlog.Facts, bool) {
	return message(importer.At(out.doc, "data", "message")), true
}

// message names a message by its id, if it has one that may stand.
func message(m jsontext.Value) eventlog.Facts {
	if id, ok := importer.Text(m, "id"); ok && eventlog.IsCode(id) {
		return importer.Facts("message", id)
	}
	return importer.Facts()
}

func toolCall(m *mapper, out *mapped, line importer.Line) (eventlog.Facts, bool) {
	call, ok := importer.Text(out.doc, "data", "callId")
	tool, ok2 := importer.Text(out.doc, "data", "name")
	if !ok || !ok2 || call == "" || tool == "" {
		return nil, false
	}
	if !out.inherited && !m.open(m.calls, call, line) {
		return nil, true
	}
	return importer.Facts("call", importer.Code(call), "tool", importer.Code(tool)), true
}

func toolResult(m *mapper, out *mapped, _ importer.Line) (eventlog.Facts, bool) {
	data := importer.At(out.doc, "data")
	call, ok := resultCall(data)
	if !ok {
		return nil, false
	}
	if !out.inherited {
		delete(m.calls, call)
	}
	outcome := importer.Unrecorded
	importer.Each(importer.At(data, "message", "content"), func(part jsontext.Value) bool {
		failed, stated := importer.Boolean(part, "isError")
		switch {
		case stated && failed:
			outcome = "error"
		case stated && outcome == importer.Unrecorded:
			outcome = "ok"
		}
		return outcome != "error"
	})
	pairs := []any{"call", importer.Code(call), "outcome", outcome}
	if e := importer.At(data, "error"); e != nil && e.Kind() != 'n' {
		pairs[3] = "error"
		if code, ok := importer.Text(e, "code"); ok && eventlog.IsCode(code) {
			pairs = append(pairs, "error", code)
		}
	}
	return importer.Facts(pairs...), true
}

// resultCall names the call that a result ends.
func resultCall(data jsontext.Value) (call string, ok bool) {
	if call, ok = importer.Text(data, "message", "source", "callId"); ok && call != "" {
		return call, true
	}
	importer.Each(importer.At(data, "message", "content"), func(part jsontext.Value) bool {
		call, ok = importer.Text(part, "toolCallId")
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
	return importer.Facts(), true
}

func descriptor(_ *mapper, out *mapped, _ importer.Line) (eventlog.Facts, bool) {
	data := importer.At(out.doc, "data")
	var pairs []any
	if n, ok := importer.Integer(data, "version"); ok {
		pairs = append(pairs, "version", n)
	}
	for _, name := range []string{"mode", "provider"} {
		if v, ok := importer.Text(data, name); ok && eventlog.IsCode(v) {
			pairs = append(pairs, name, v)
		}
	}
	return importer.Facts(pairs...), true
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }
