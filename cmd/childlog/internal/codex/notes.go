package codex

import (
	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
)

// notes are what the reports need of a log, taken line by line in bounded
// memory.
type notes struct {
	sandboxes []setting // the thread's own, where they changed, in order
	approvals []setting
	born      [2]*setting // inferred at delegation: sandbox, approvals
	calls     []call
	byCall    map[string]int // open ones, into calls
	turns     map[string]bool
	keepTurns bool // some thread of the run may replay this one

	stored    bool   // taken from the store, whose log has calls that calls lacks
	parentSeq uint64 // of the call, by session/created of a stored session

	policy     []eventlog.Event
	policyLine map[uint64]int64
	overflow   bool
}

// setting is a policy value that a log states.
type setting struct {
	raw   string
	value policy.Sandbox // of a sandbox
	mark  string
	seq   uint64
}

// call is a call that spawns a thread, with the policy in force when it was made.
type call struct {
	id, tool  string
	seq       uint64
	agent     string // id of the thread that it made
	path      string // or the agent's place in the tree
	sandbox   *setting
	approvals *setting
}

// Bounds of what is kept of one log for the reports.
const (
	maxPolicy = 65536 // events
	maxCalls  = 16384
)

func newNotes() *notes {
	return &notes{byCall: map[string]int{}, policyLine: map[uint64]int64{}}
}

// event takes note of an event of the thread's own that bears policy.
func (n *notes) event(session uuid.UUID, ev *eventlog.NewEvent, seq uint64, line int64) {
	n.take(&eventlog.Event{Session: session, Seq: seq, Type: ev.Type, Version: 1, Source: eventlog.SourceImport, PolicyBearing: true, Facts: ev.Facts}, line)
}

func (n *notes) take(ev *eventlog.Event, line int64) {
	if len(n.policy) < maxPolicy {
		n.policy = append(n.policy, *ev)
		n.policyLine[ev.Seq] = line
	} else {
		n.overflow = true
	}
	n.setting(ev)
}

func (n *notes) setting(ev *eventlog.Event) {
	claimed := eventlog.Claimed(ev)
	s := setting{seq: ev.Seq, mark: importer.Recorded}
	if claimed == claimedInferred || claimed == eventlog.ClaimedInferred {
		s.mark = importer.Inferred
	}
	list, i := &n.sandboxes, 0
	switch ev.Type {
	case eventlog.TypeSandboxMode:
		s.value, _ = eventlog.ParseSandbox(ev)
		s.raw = string(s.value.Mode)
	case eventlog.TypeApprovalPolicy:
		a, _ := eventlog.ParseApproval(ev)
		s.raw, list, i = string(a), &n.approvals, 1
	default:
		return
	}
	if claimed == eventlog.ClaimedInferred {
		n.born[i] = &s
		return
	}
	if len(*list) >= maxPolicy { // the first ones, and always the last
		(*list)[len(*list)-1] = s
		return
	}
	*list = append(*list, s)
}

func last(list []setting) *setting {
	if len(list) == 0 {
		return nil
	}
	s := list[len(list)-1]
	return &s
}

// line takes note of a line of the thread's own, whose first event has seq.
func (n *notes) line(out *mapped, seq uint64) {
	rec := &out.rec
	if rec.doc == nil || out.inherited {
		return
	}
	if n.keepTurns && (rec.sub == "task_started" || rec.sub == "turn_started" || rec.typ == "turn_context") && len(n.turns) < maxTurns {
		if id := rec.turnID(); id != "" {
			n.turns[id] = true
		}
	}
	switch rec.sub {
	case "function_call":
		if tool, _ := importer.Text(rec.p.name); tool == toolSpawn && len(n.calls) < maxCalls {
			id, _ := importer.Text(rec.p.call)
			n.byCall[id] = len(n.calls)
			n.calls = append(n.calls, call{id: importer.Clip(id), tool: tool, seq: seq, sandbox: last(n.sandboxes), approvals: last(n.approvals)})
		}
	case "function_call_output", "custom_tool_call_output":
		id, _ := importer.Text(rec.p.call)
		if i, ok := n.byCall[id]; ok {
			delete(n.byCall, id)
			if answer, ok := arguments(rec.p.output); ok {
				n.calls[i].agent, _ = importer.Text(answer, "agent_id")
				n.calls[i].path, _ = importer.Text(answer, "task_name")
			}
		}
	case "collab_agent_spawn_end":
		n.spawned(rec, seq)
	}
}

// spawned reads the harness's own word for a thread that a call has made, also
// of a call inside a script, which no other line tells of.
func (n *notes) spawned(rec *record, seq uint64) {
	thread, _ := importer.Text(rec.p.newThread)
	id, _ := importer.Text(rec.p.call)
	if thread == "" {
		return
	}
	for i := len(n.calls) - 1; i >= 0; i-- {
		if n.calls[i].id == id {
			n.calls[i].agent = thread
			return
		}
	}
	if len(n.calls) < maxCalls {
		n.calls = append(n.calls, call{id: importer.Clip(id), tool: toolSpawn, seq: seq, agent: thread, sandbox: last(n.sandboxes), approvals: last(n.approvals)})
	}
}

// callOf finds the call that made a thread: the one that names its place in the
// tree, or its id.
func (n *notes) callOf(h *header) *call {
	for i := range n.calls {
		c := &n.calls[i]
		if c.path != "" && c.path == h.path || c.agent != "" && c.agent == h.id {
			return c
		}
	}
	return nil
}

// bears reports whether an event bears policy.
func (n *notes) bears(ev *eventlog.NewEvent) bool {
	return ev.Type == eventlog.TypeSandboxMode || ev.Type == eventlog.TypeApprovalPolicy
}

// approvalOf is the value of an approval setting, as its log writes it.
func approvalOf(s *setting) policy.Approval { return policy.Approval(s.raw) }
