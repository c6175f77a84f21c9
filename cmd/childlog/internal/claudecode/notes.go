package claudecode

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// notes are what the reports need of one conversation, taken line by line in
// bounded memory.
type notes struct {
	place  *importer.Place
	report func(code string, line int64, seq uint64, detail string)

	custom, ai, prompt, summary string // titles, the likeliest first: a summary may be another session's
	promptSum                   [32]byte
	calls                       []call
	byCall                      map[string]int // open ones, into calls
	ended                       map[string]bool
	modes                       []mode
	policy                      []eventlog.Event
	policyLine                  map[uint64]int64 // line by seq
	overflow                    bool
	uuids                       map[key]uint64 // seqs of lines by their uuid, if others copied them
}

// call is a tool call by which a conversation may have delegated.
type call struct {
	id, tool, agentType, description string
	prompt                           [32]byte // of its text; zero: none
	background                       bool
	mode                             string // the permission mode it asked for
	seq                              uint64
	line                             int64

	failed   bool   // it was denied, or ended in an error
	launched bool   // the answer is not the agent's end
	agent    string // that the answer names
	run      string // workflow run that it names
	task     string // by which its end is told
	found    bool   // a conversation that it made
}

// mode is a permission mode and the event that states it.
type mode struct {
	value string
	seq   uint64
}

// Bounds of what is kept of one conversation for the reports.
const (
	maxPolicy = 65536 // policy events, modes
	maxCalls  = 16384
)

func newNotes(place *importer.Place, report func(code string, line int64, seq uint64, detail string)) *notes {
	return &notes{place: place, report: report, byCall: map[string]int{}, ended: map[string]bool{}, policyLine: map[uint64]int64{}}
}

// created puts session/created in front of the policy events.
func (n *notes) created(seq uint64) {
	n.policy = append(n.policy, n.policyEvent(seq, eventlog.TypeSessionCreated, n.place.Created(0).Facts()))
}

func (n *notes) policyEvent(seq uint64, typ string, facts eventlog.Facts) eventlog.Event {
	return eventlog.Event{Session: n.place.Session, Seq: seq, Type: typ, Version: 1, Source: eventlog.SourceImport, PolicyBearing: true, Facts: facts}
}

// line takes note of a line of the conversation's own.
func (n *notes) line(out *mapped, line importer.Line, seqs []uint64) {
	e := out.e
	if e == nil || out.duplicate {
		return
	}
	if n.uuids != nil && len(n.uuids) < maxSeen && !out.malformed {
		if id := str(e.uuid); id != "" {
			n.uuids[keyOf(id)] = seqs[0]
		}
	}
	for i := range out.events {
		if out.events[i].Type == eventlog.TypeApprovalPolicy {
			n.mode(str(e.permissionMode), seqs[i], line.Number, out.events[i].Facts)
		}
	}
	switch e.typ {
	case "user":
		n.user(out)
	case "queue-operation":
		n.notification(str(e.content))
	case "custom-title":
		n.custom = importer.Clip(str(e.customTitle)) // the last one counts
	case "ai-title":
		n.ai = importer.Clip(str(e.aiTitle))
	case "summary":
		n.summary = importer.Clip(str(e.summary))
	}
	for i := range out.m.calls {
		c := &out.m.calls[i]
		if c.event < 0 {
			continue
		}
		if c.unsandboxed {
			n.report(codeUnsandboxed, line.Number, seqs[c.event], fmt.Sprintf("the call of %.80q asks to run outside of the sandbox", c.tool))
		}
		if delegates(c.tool) {
			n.call(c, seqs[c.event], line.Number)
		}
	}
}

func (n *notes) mode(value string, seq uint64, line int64, facts eventlog.Facts) {
	switch {
	case value == modeBypass:
		n.report(codeBypass, line, seq, "from here on nothing is asked and everything runs, as far as the permission mode goes")
	case !isMode(value):
		n.report(codeUnknownMode, line, seq, fmt.Sprintf("permission mode %.80q is not known here and counts as ask", value))
	}
	if len(n.policy) >= maxPolicy {
		n.overflow = true
		return
	}
	n.policy = append(n.policy, n.policyEvent(seq, eventlog.TypeApprovalPolicy, facts))
	n.policyLine[seq] = line
	n.modes = append(n.modes, mode{value: importer.Clip(value), seq: seq})
}

// delegates reports whether a tool makes agents.
func delegates(tool string) bool {
	switch tool {
	case "Task", "Agent", "Workflow":
		return true
	}
	return false
}

func (n *notes) call(b *block, seq uint64, line int64) {
	if len(n.calls) >= maxCalls {
		return
	}
	field := func(name string) string {
		s, _ := importer.Text(b.input, name)
		return s
	}
	c := call{id: importer.Clip(b.id), tool: b.tool, agentType: importer.Clip(field("subagent_type")), description: importer.Clip(field("description")),
		mode: importer.Clip(field("mode")), seq: seq, line: line}
	c.background, _ = importer.Boolean(b.input, "run_in_background")
	if p := field("prompt"); p != "" {
		c.prompt = sha256.Sum256([]byte(p))
	}
	n.byCall[c.id] = len(n.calls)
	n.calls = append(n.calls, c)
}

// user takes note of the results of calls, of prompts, and of what the harness
// says of agents in the background.
func (n *notes) user(out *mapped) {
	for i := range out.m.results {
		j, ok := n.byCall[importer.Clip(out.m.results[i].id)]
		if !ok {
			continue
		}
		c := &n.calls[j]
		c.failed = out.m.results[i].fails
		if len(out.m.results) > 1 {
			continue // toolUseResult speaks of one
		}
		status, _ := importer.Text(out.e.toolUseResult, "status")
		c.launched = launched(status)
		c.background = c.background || c.launched
		c.agent = importer.Bounded(agentOf(out.e))
		c.run, _ = importer.Text(out.e.toolUseResult, "runId")
		c.task = c.agent
		if task, _ := importer.Text(out.e.toolUseResult, "taskId"); task != "" {
			c.task = importer.Bounded(task)
		}
	}
	if len(out.m.results) > 0 {
		return
	}
	if strings.HasPrefix(out.m.text, notificationTag) {
		n.notification(out.m.text)
		return
	}
	if out.m.text != "" && n.promptSum == [32]byte{} {
		n.promptSum = sha256.Sum256([]byte(out.m.text))
	}
	if text := strings.TrimSpace(out.m.text); n.prompt == "" && text != "" && !harnessSays(text) && !isTrue(out.e.meta) {
		n.prompt = titleOf(text)
	}
}

// titleOf is the beginning of a prompt's first line.
func titleOf(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	first = strings.TrimSpace(first)
	if len(first) <= maxTitle {
		return first
	}
	return strings.ToValidUTF8(first[:maxTitle], "") + "…"
}

const maxTitle = 80 // bytes

const notificationTag = "<task-notification>"

// notification takes note of an agent that ended in the background. The
// harness says so in prose; nothing but its end is concluded from it.
func (n *notes) notification(text string) {
	if !strings.HasPrefix(text, notificationTag) || len(n.ended) >= maxCalls {
		return
	}
	id, status := tagged(text, "task-id"), tagged(text, "status")
	if id != "" && status != "" && status != "running" {
		n.ended[importer.Bounded(id)] = true
	}
}

// tagged is the text between <name> and </name>, "" if there is none.
func tagged(text, name string) string {
	_, rest, ok := strings.Cut(text, "<"+name+">")
	if !ok {
		return ""
	}
	inner, _, ok := strings.Cut(rest, "</"+name+">")
	if !ok {
		return ""
	}
	return inner
}

// title is what a session is called in lists.
func (n *notes) title() string {
	for _, t := range []string{n.custom, n.ai, n.prompt, n.summary} {
		if t != "" {
			return t
		}
	}
	return ""
}

// modeAt is the permission mode that the lines up to a seq last stated. The
// order is the file's: lines that state a mode bear no time.
func (n *notes) modeAt(seq uint64) importer.Fact {
	out := importer.Fact{Mark: importer.Absent}
	for _, m := range n.modes {
		if m.seq > seq {
			break
		}
		out = importer.Fact{Value: m.value, Mark: importer.Inferred, Seq: m.seq}
	}
	return out
}
