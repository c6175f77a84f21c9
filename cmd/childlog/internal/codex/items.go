package codex

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// item maps a response item: what the model said, and its calls. An empty type
// means that it has no counterpart; ok is false if it lacks what its type needs.
func (m *mapper) item(out *mapped, line importer.Line) (typ string, f eventlog.Facts, more []part, ok bool) {
	p := &out.rec.p
	switch out.rec.sub {
	case "message":
		switch role, _ := importer.Text(p.role); role {
		case "user":
			if m.h.bare && !out.inherited {
				more = m.environment(&out.rec)
			}
			return eventlog.TypeUserMessage, named(p.id), more, true
		case "assistant":
			return eventlog.TypeAssistantMessage, named(p.id), nil, true
		case "":
			return "", nil, nil, false
		}
	case "function_call", "custom_tool_call":
		tool, _ := importer.Text(p.name)
		return m.call(out, tool, line)
	case "local_shell_call":
		return m.call(out, "local_shell", line)
	case "tool_search_call":
		return m.call(out, "tool_search", line)
	case "function_call_output", "custom_tool_call_output", "tool_search_output":
		id, _ := importer.Text(p.call)
		if id == "" {
			return "", nil, nil, false
		}
		if !out.inherited {
			delete(m.calls, id)
		}
		return eventlog.TypeToolResult, result(importer.Code(id), p.output), nil, true
	}
	return "", nil, nil, true
}

// named are the facts of a message: its id, if it has one that may stand.
func named(id jsontext.Value) eventlog.Facts {
	if s, ok := importer.Text(id); ok && eventlog.IsCode(s) {
		return importer.Facts("message", s)
	}
	return importer.Facts()
}

// call maps a tool call. What it says of an escalation or a delegation is a
// fact; the texts are in the content.
func (m *mapper) call(out *mapped, tool string, line importer.Line) (string, eventlog.Facts, []part, bool) {
	p := &out.rec.p
	id, _ := importer.Text(p.call)
	if id == "" { // of older local_shell_calls
		id, _ = importer.Text(p.id)
	}
	if id == "" || tool == "" {
		return "", nil, nil, false
	}
	if !out.inherited {
		if _, there := m.calls[id]; !there && len(m.calls) >= maxOpen {
			m.once(codeTooManyOpen, line, fmt.Sprintf("more than %d calls wait for their result; the calls beyond are kept as import/other", maxOpen))
			return "", nil, nil, true
		}
		m.calls[id] = struct{}{}
	}
	pairs := []any{"call", importer.Code(id), "tool", importer.Code(tool)}
	if ns, ok := importer.Text(p.namespace); ok && ns != "" {
		pairs = append(pairs, "namespace", importer.Code(ns))
	}
	if how, justified := escalation(p); how != "" {
		pairs = append(pairs, "escalation", importer.Code(how), "justified", justified, "decision", importer.Unrecorded)
		if !out.inherited {
			m.find(codeUndecided, line.Number, fmt.Sprintf("%.80s asks for %.80s; the log does not record who decided", tool, how))
		}
	}
	if tool == toolSpawn {
		if said, ok := arguments(p.arguments); ok {
			if text, ok := importer.Text(said, "message"); ok {
				sum := sha256.Sum256([]byte(text))
				pairs = append(pairs, "delegated_sha256", eventlog.Hash(sum), "encrypted", isCiphertext(text))
			}
		}
	}
	return eventlog.TypeToolCall, importer.Facts(pairs...), nil, true
}

// toolSpawn is the tool by which a thread delegates, in either generation.
const toolSpawn = "spawn_agent"

// arguments are the JSON inside the text of a call's arguments.
func arguments(raw jsontext.Value) (jsontext.Value, bool) {
	if raw.Kind() == '{' {
		return raw, true
	}
	s, ok := importer.Text(raw)
	if !ok || eventlog.CheckJSON([]byte(s)) != nil {
		return nil, false
	}
	return jsontext.Value(strings.TrimSpace(s)), true
}

// isCiphertext: the service encrypts what one agent tells another and nobody
// else is to read, in tokens of Fernet, which begin with their version.
func isCiphertext(text string) bool { return strings.HasPrefix(text, "gAAAA") }

// escalation is what a call asks for beyond its sandbox: the value of
// sandbox_permissions, or what stood for it before. In a script only the words
// can be found.
func escalation(p *payload) (how string, justified bool) {
	const field, old, reason = "sandbox_permissions", "with_escalated_permissions", "justification"
	raw := p.arguments
	if raw == nil {
		raw = p.input
	}
	if !holds(raw, field) && !holds(raw, old) {
		return "", false
	}
	args, ok := arguments(raw)
	if !ok || args.Kind() != '{' {
		if holds(raw, "require_escalated") || holds(raw, "with_additional_permissions") {
			return "in-script", holds(raw, reason)
		}
		return "", false
	}
	text, _ := importer.Text(args, reason)
	if s, ok := importer.Text(args, field); ok && s != "" && s != "use_default" {
		return s, text != ""
	}
	if v := importer.At(args, field); v != nil && v.Kind() == '{' {
		return "with_additional_permissions", text != ""
	}
	if yes, _ := importer.Boolean(args, old); yes {
		return old, text != ""
	}
	return "", false
}

// result are the facts of a call's end. The outcome is what the program that
// ran it said, not what came out of it: success, or the exit code in front of
// the output.
func result(call string, output jsontext.Value) eventlog.Facts {
	if ok, stated := importer.Boolean(output, "success"); stated {
		return importer.Facts("call", call, "outcome", okOrError(ok))
	}
	if code, found := exitCode(said(output)); found {
		return importer.Facts("call", call, "outcome", okOrError(code == 0), "exit", code)
	}
	return importer.Facts("call", call, "outcome", importer.Unrecorded)
}

func okOrError(ok bool) string {
	if ok {
		return "ok"
	}
	return "error"
}

// maxSaid is how much of an output is looked at, unless it is JSON as a whole.
const maxSaid = 512

// said is the beginning of an output's text, whose first form is the text
// itself and whose later ones hold it as content.
func said(output jsontext.Value) string {
	switch output.Kind() {
	case '"':
		if len(output) > maxSaid && output[1] != '{' { // cut where no escape is cut in two
			cut := output[:maxSaid]
			for len(cut) > 0 && cut[len(cut)-1] == '\\' {
				cut = cut[:len(cut)-1]
			}
			if i := strings.LastIndexByte(string(cut), '\\'); i > len(cut)-7 {
				cut = cut[:i]
			}
			output = append(append(jsontext.Value{}, cut...), '"')
		}
		s, _ := importer.Text(output)
		return s
	case '{':
		if v := importer.At(output, "content"); v != nil {
			return said(v)
		}
		return said(importer.At(output, "text"))
	case '[':
		var first string
		importer.Each(output, func(piece jsontext.Value) bool {
			first, _ = importer.Text(piece, "text")
			return false
		})
		return first
	}
	return ""
}

// exitCode finds the exit code that Codex writes in front of an output.
func exitCode(text string) (code int64, found bool) {
	if strings.HasPrefix(text, "{") && eventlog.CheckJSON([]byte(text)) == nil {
		n, err := strconv.ParseInt(string(importer.At(jsontext.Value(text), "metadata", "exit_code")), 10, 32)
		return n, err == nil
	}
	for range 6 { // a few lines stand in front of the output
		line, rest, more := strings.Cut(text, "\n")
		for _, prefix := range []string{"Exit code: ", "Process exited with code "} {
			if s, ok := strings.CutPrefix(line, prefix); ok {
				n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
				return n, err == nil
			}
		}
		if !more || line == "Output:" {
			break
		}
		text = rest
	}
	return 0, false
}
