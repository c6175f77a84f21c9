package deepseek

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
)

// notes are what the reports need of a log, taken line by line in bounded
// memory.
type notes struct {
	f       *file
	ordinal uint64 // events counted so far

	title      string
	described  bool
	label      string
	provider   string
	mode       string
	sandboxes  []setting // the session's own, in order
	approvals  []setting
	told       importer.Told
	calls      []call
	byCall     map[string]int // open ones, into calls
	policy     []eventlog.Event
	policyLine map[uint64]int64 // line by seq
	overflow   bool
}

// setting is a policy value that a log states.
type setting struct {
	raw     string
	claimed string
	value   policy.Sandbox // of a sandbox
	seq     uint64
}

// call is a tool call by which a session may have delegated.
type call struct {
	id, tool    string
	description string
	result      string // its beginning
	seq         uint64
}

// Bounds of what is kept of one log for the reports.
const (
	maxPolicy = 65536 // events
	maxCalls  = 16384
	maxResult = 512 // bytes
)

func newNotes(f *file) *notes {
	return &notes{f: f, byCall: map[string]int{}, policyLine: map[uint64]int64{}, told: importer.Told{
		Sandbox: importer.Fact{Mark: importer.Absent}, Approvals: importer.Fact{Mark: importer.Absent}}}
}

// created puts session/created in front of the policy events.
func (n *notes) created(seq uint64) {
	n.policy = append(n.policy, policyEvent(n.f, seq, eventlog.TypeSessionCreated, n.f.created(nil, 0).Facts()))
}

func policyEvent(f *file, seq uint64, typ string, facts eventlog.Facts) eventlog.Event {
	return eventlog.Event{Session: f.Session, Seq: seq, Type: typ, Version: 1, Source: eventlog.SourceImport, PolicyBearing: true, Facts: facts}
}

// line takes note of one line of the session's own.
func (n *notes) line(out *mapped, line importer.Line, seq uint64) {
	n.ordinal = out.ordinal + out.span
	if out.inherited || out.doc == nil {
		return
	}
	data := importer.At(out.doc, "data")
	switch out.typ {
	case "sandbox/mode":
		ev := n.policyEvent(out, line, seq)
		v, _ := eventlog.ParseSandbox(&ev)
		n.sandboxes = keepStated(n.sandboxes, setting{raw: string(v.Mode), claimed: eventlog.Claimed(&ev), value: v, seq: seq})
	case "approval/policy":
		ev := n.policyEvent(out, line, seq)
		a, _ := eventlog.ParseApproval(&ev)
		n.approvals = keepStated(n.approvals, setting{raw: string(a), claimed: eventlog.Claimed(&ev), seq: seq})
	case "subagent/descriptor":
		if !n.described {
			n.described = true
			n.label, n.provider, n.mode = short(data, "label"), short(data, "provider"), short(data, "mode")
		}
	case "session/title":
		if n.title == "" {
			n.title = short(data, "title")
		}
	case "tool/call":
		n.call(data, seq)
	case "tool/result":
		n.result(data)
	case "user/message":
		n.context(data, seq)
	}
}

func (n *notes) policyEvent(out *mapped, line importer.Line, seq uint64) eventlog.Event {
	ev := policyEvent(n.f, seq, out.typ, out.event.Facts)
	if len(n.policy) < maxPolicy {
		n.policy = append(n.policy, ev)
		n.policyLine[seq] = line.Number
	} else {
		n.overflow = true
	}
	return ev
}

// keepStated keeps the first ones and always the last.
func keepStated(list []setting, s setting) []setting {
	if len(list) >= maxPolicy {
		list[len(list)-1] = s
		return list
	}
	return append(list, s)
}

func short(data jsontext.Value, name string) string {
	s, _ := importer.Text(data, name)
	return importer.Clip(s)
}

// isDelegating: the harness's tools for delegation are subagent and
// subagent_ with a suffix.
func isDelegating(tool string) bool {
	return tool == "subagent" || strings.HasPrefix(tool, "subagent_")
}

func (n *notes) call(data jsontext.Value, seq uint64) {
	tool, _ := importer.Text(data, "name")
	id, _ := importer.Text(data, "callId")
	if !isDelegating(tool) || len(n.calls) >= maxCalls {
		return
	}
	c := call{id: importer.Clip(id), tool: importer.Clip(tool), seq: seq}
	if raw, ok := importer.Text(data, "arguments"); ok && eventlog.CheckJSON([]byte(raw)) == nil {
		c.description = short(jsontext.Value(strings.TrimSpace(raw)), "description")
	}
	n.byCall[c.id] = len(n.calls)
	n.calls = append(n.calls, c)
}

func (n *notes) result(data jsontext.Value) {
	id, ok := resultCall(data)
	if !ok {
		return
	}
	i, ok := n.byCall[id]
	if !ok {
		return
	}
	delete(n.byCall, id)
	importer.Each(importer.At(data, "message", "content"), func(part jsontext.Value) bool {
		importer.Each(importer.At(part, "content"), func(piece jsontext.Value) bool {
			s, _ := importer.Text(piece, "text")
			n.calls[i].result += s[:min(len(s), maxResult-len(n.calls[i].result))]
			return len(n.calls[i].result) < maxResult
		})
		return len(n.calls[i].result) < maxResult
	})
}

// Texts by which the harness tells a model its policy. They are prose, so what
// they say is inferred.
const (
	toldBy        = "@deepseek-ai/dsh-system-prompt"
	toldSandbox   = "Current DSH file policy: "
	toldAsk       = "Approval policy: ask."
	toldNever     = "Approval prompts are disabled in this session"
	partSandbox   = "sandbox:policy"
	partApprovals = "approval:policy"
)

// context reads what the model was last told.
func (n *notes) context(data jsontext.Value, seq uint64) {
	source := importer.At(data, "source")
	if by, _ := importer.Text(source, "plugin"); by != toldBy {
		return
	}
	importer.Each(importer.At(source, "sections"), func(section jsontext.Value) bool {
		name, _ := importer.Text(section, "name")
		said, _ := importer.Text(section, "text")
		switch {
		case name == partSandbox && strings.HasPrefix(said, toldSandbox):
			mode, _, _ := strings.Cut(said[len(toldSandbox):], ".")
			if eventlog.IsCode(mode) {
				n.told.Sandbox = importer.Fact{Value: mode, Mark: importer.Inferred, Seq: seq}
			}
		case name == partApprovals && strings.HasPrefix(said, toldAsk):
			n.told.Approvals = importer.Fact{Value: string(policy.Ask), Mark: importer.Inferred, Seq: seq}
		case name == partApprovals && strings.HasPrefix(said, toldNever):
			n.told.Approvals = importer.Fact{Value: string(policy.Never), Mark: importer.Inferred, Seq: seq}
		}
		return true
	})
}

// displayLabel is what the session is called in lists.
func (n *notes) displayLabel() string {
	if n.label != "" {
		return n.label
	}
	return n.title
}
