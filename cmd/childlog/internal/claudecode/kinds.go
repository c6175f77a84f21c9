package claudecode

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// user maps what the API calls a user's line: a prompt, the results of calls,
// or what the harness put in.
func (m *mapper) user(out *mapped, own eventlog.NewEvent) eventlog.NewEvent {
	e := out.e
	if out.m.others == 0 && len(out.m.calls) == 0 && len(out.m.results) > 0 {
		own.Type, own.Facts = eventlog.TypeToolResult, m.result(out, 0)
		for i := 1; i < len(out.m.results); i++ {
			m.add(eventlog.TypeToolResult, m.result(out, i))
		}
		m.denied(out)
	} else {
		pairs := []any{}
		if id := str(e.uuid); eventlog.IsCode(id) {
			pairs = append(pairs, "message", id)
		}
		for name, v := range map[string]jsontext.Value{"meta": e.meta, "summary": e.compactSummary} {
			if isTrue(v) {
				pairs = append(pairs, name, true)
			}
		}
		if kind, _ := importer.Text(e.origin, "kind"); eventlog.IsCode(kind) {
			pairs = append(pairs, "origin", kind)
		}
		own.Type, own.Facts = eventlog.TypeUserMessage, named(e, pairs...)
		for i := range out.m.results {
			m.add(eventlog.TypeToolResult, m.result(out, i))
		}
		m.denied(out)
		m.calling(out, 0)
		m.turns(out)
	}
	m.changeMode(e)
	m.beyond(out)
	return own
}

// assistant maps one line of a response, which has one element or several.
func (m *mapper) assistant(out *mapped, own eventlog.NewEvent) eventlog.NewEvent {
	e := out.e
	first := 0
	if out.m.others == 0 && len(out.m.results) == 0 && len(out.m.calls) > 0 && m.opens(out, 0) {
		own.Type, own.Facts = eventlog.TypeToolCall, m.call(out, 0)
		out.m.calls[0].event, first = 0, 1
	} else {
		pairs := []any{}
		if id := out.m.id; eventlog.IsCode(id) {
			pairs = append(pairs, "message", id)
		}
		own.Type, own.Facts = eventlog.TypeAssistantMessage, named(e, pairs...)
		for i := range out.m.results { // of tools that the API itself runs
			m.add(eventlog.TypeToolResult, m.result(out, i))
		}
	}
	m.calling(out, first)
	m.usage(out)
	m.beyond(out)
	return own
}

// calling adds the calls of a line from one on.
func (m *mapper) calling(out *mapped, first int) {
	for i := first; i < len(out.m.calls); i++ {
		if m.opens(out, i) {
			m.add(eventlog.TypeToolCall, m.call(out, i))
			out.m.calls[i].event = len(m.events) - 1
		}
	}
}

func (m *mapper) beyond(out *mapped) {
	if out.m.more > 0 {
		m.report(codeTooManyCalls, fmt.Sprintf("%d calls and results of this line beyond the first %d are in its content only", out.m.more, maxParts))
	}
}

// opens admits one more call that waits for its result, and gives a call
// without an id one: its line and its place in it.
func (m *mapper) opens(out *mapped, i int) bool {
	c := &out.m.calls[i]
	if c.id == "" {
		c.id = placeOf(out.e, m.line, i)
		if len(out.m.calls) == 1 && len(m.unnamed) < maxOpen {
			m.unnamed[str(out.e.uuid)] = c.id
		}
	}
	if _, there := m.calls[c.id]; !there && len(m.calls) >= maxOpen {
		m.once(codeTooManyOpen, fmt.Sprintf("more than %d calls wait for their result; those beyond are in the content of their lines only", maxOpen))
		return false
	}
	if c.tool == "" {
		c.tool = importer.Unrecorded
	}
	m.calls[c.id] = importer.Code(c.tool)
	return true
}

func placeOf(e *entry, line int64, i int) string {
	id := str(e.uuid)
	if id == "" {
		id = "line-" + strconv.FormatInt(line, 10)
	}
	return id + "#" + strconv.Itoa(i+1)
}

func (m *mapper) call(out *mapped, i int) eventlog.Facts {
	c := &out.m.calls[i]
	pairs := []any{"call", importer.Code(c.id), "tool", importer.Code(c.tool)}
	if out.m.id != "" && eventlog.IsCode(out.m.id) {
		pairs = append(pairs, "message", out.m.id)
	}
	if unsandboxed, _ := importer.Boolean(c.input, "dangerouslyDisableSandbox"); unsandboxed {
		pairs, c.unsandboxed = append(pairs, "unsandboxed", true), true
	}
	return named(out.e, pairs...)
}

// Outcomes of a call beside "ok" and "error".
const (
	outcomeDenied      = "denied"      // it was not run
	outcomeInterrupted = "interrupted" // it may have been run in part
	outcomeLaunched    = "launched"    // an agent was started and goes on; this is not its end
)

// denialUser: a person said no. All other kinds are the harness's: a rule, or
// the classifier of auto mode.
const denialUser = "user-rejected"

// stopped is the outcome that a denial kind means if it is none: somebody stopped
// the harness, and nobody and no rule decided about the call.
func stopped(kind string) (outcome string) {
	if kind == "interrupted" || kind == "cancelled" {
		return outcomeInterrupted
	}
	return ""
}

// What versions before toolDenialKind wrote in toolUseResult.
const (
	textRejected    = "User rejected tool use"
	textInterrupted = "[Request interrupted by user for tool use]"
)

// denial is the kind of a denial, "" if there is none, and whether it was
// concluded from the harness's words.
func denial(e *entry) (kind string, inferred bool) {
	if kind = str(e.denialKind); kind != "" {
		return kind, false
	}
	switch str(e.toolUseResult) {
	case textRejected:
		return denialUser, true
	case textInterrupted:
		return "interrupted", true
	}
	return "", false
}

// result states what became of a call. The API's default of is_error is false.
func (m *mapper) result(out *mapped, i int) eventlog.Facts {
	r := &out.m.results[i]
	e := out.e
	if r.id == "" { // it answers the only call of the line that it follows, if that had no id either
		if r.id = m.unnamed[str(e.parentUUID)]; r.id != "" {
			delete(m.unnamed, str(e.parentUUID))
		} else {
			r.id = placeOf(e, m.line, i)
		}
	}
	r.tool = m.calls[r.id]
	delete(m.calls, r.id)
	outcome := "ok"
	if r.fails {
		outcome = "error"
	}
	pairs := []any{"call", importer.Code(r.id)}
	if status, _ := importer.Text(e.toolUseResult, "status"); launched(status) && !r.fails {
		outcome = outcomeLaunched
	}
	if cut, _ := importer.Boolean(e.toolUseResult, "interrupted"); cut {
		outcome = outcomeInterrupted
	}
	if kind, inferred := denial(e); kind != "" && (r.fails || len(out.m.results) == 1) {
		if outcome = stopped(kind); outcome == "" {
			outcome = outcomeDenied
		}
		pairs = append(pairs, "denial", importer.Code(kind))
		if inferred {
			pairs = append(pairs, "inferred", true)
		}
	}
	if agent := agentOf(e); eventlog.IsCode(agent) {
		pairs = append(pairs, "agent", agent)
	}
	return named(e, append(pairs, "outcome", outcome)...)
}

// launched reports whether a result with this state is not the end of its agent.
func launched(status string) bool {
	switch status {
	case "async_launched", "remote_launched":
		return true
	}
	return false
}

// agentOf is the agent that a result speaks of.
func agentOf(e *entry) string {
	s, _ := importer.Text(e.toolUseResult, "agentId")
	return s
}

// denied adds the decision behind a denial, with the question that it answers:
// childlog knows no decision without one. Only denials leave a trace in these
// logs; what was allowed can't be told from what was never asked.
func (m *mapper) denied(out *mapped) {
	kind, _ := denial(out.e)
	if kind == "" || stopped(kind) != "" {
		return
	}
	for i := range out.m.results {
		r := &out.m.results[i]
		if !r.fails && len(out.m.results) > 1 {
			continue
		}
		tool := r.tool
		if tool == "" {
			tool = importer.Unrecorded
		}
		// Without the call, which has its result already and stays closed.
		m.add(eventlog.TypeApprovalAsked, importer.Facts("ask", importer.Code(r.id), "tool", tool))
		decided := []any{"ask", importer.Code(r.id), "outcome", string(eventlog.AskRejected), "decider", string(eventlog.DeciderHost), "rule", importer.Code(kind)}
		if kind == denialUser {
			decided = []any{"ask", importer.Code(r.id), "outcome", string(eventlog.AskRejected), "decider", string(eventlog.DeciderHuman)}
		}
		m.add(eventlog.TypeApprovalDecided, importer.Facts(decided...))
	}
}

// turns finds where turns begin and end: they are stated nowhere. A turn
// begins with a prompt, a line that no result, no harness and no compaction
// put there, and of a promptId that is not the running turn's.
func (m *mapper) turns(out *mapped) {
	e := out.e
	if strings.HasPrefix(out.m.text, "[Request interrupted by user") {
		m.endTurn(outcomeInterrupted)
		return
	}
	id := str(e.promptID)
	if len(out.m.results) > 0 || harnessSays(out.m.text) || isTrue(e.meta) || isTrue(e.compactSummary) || id != "" && id == m.prompt && m.open {
		return
	}
	m.endTurn("unterminated")
	m.turn++
	m.open, m.prompt = true, id
	m.add(eventlog.TypeTurnStart, importer.Facts("turn", m.turn))
}

// harnessSays reports whether a text is not a person's: what local commands
// printed, or what was put in for the model alone.
func harnessSays(text string) bool {
	for _, tag := range []string{"<local-command-", "<command-", "<bash-", "<system-reminder>", "Caveat: The messages below were generated by the user"} {
		if strings.HasPrefix(text, tag) {
			return true
		}
	}
	return false
}

func (m *mapper) endTurn(reason string) {
	if m.open {
		m.open = false
		m.add(eventlog.TypeTurnEnd, importer.Facts("turn", m.turn, "reason", reason))
	}
}
