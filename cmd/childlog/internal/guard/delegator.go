package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"childlog/eventlog"
	"childlog/replay"
)

// delegator is who started an agent, as far as the hooks tell.
type delegator struct {
	row    eventlog.Row
	call   string // of the tool that delegates; "": none was seen
	prompt string // of that call
}

// spawning are the tools that start agents, as Claude Code and Codex name them.
var spawning = []string{"Task", "Agent", "Workflow", "spawn_agent", "spawn_agents_on_csv"}

// maxLive bounds the sessions of a tree among which a delegator is looked for.
const maxLive = 1024

// candidate is a session that may have started an agent.
type candidate struct {
	row  eventlog.Row
	call *openSpawn
	e    replay.Effective
}

type openSpawn struct {
	id     string
	seq    uint64
	kind   string // the agent type it names
	prompt string
	linked bool // an agent was started by it already
}

// delegator finds out who started an agent: no hook says it. It is the session
// with an open call of a spawning tool that has started nobody yet; else one
// with such a call that has (one call may start several); else, where a harness
// shows no such call, any session that is alive. Of several that is taken which
// may hand on the least, so that a wrong guess gives the agent too little and
// never too much; where none is within all the others nothing is made.
func (g *Guard) delegator(ctx context.Context, s *eventlog.Store, root eventlog.Row, ev *Event) (delegator, error) {
	live, err := g.live(s, root)
	if err != nil {
		return delegator{}, err
	}
	started, err := startedBy(ctx, s, live)
	if err != nil {
		return delegator{}, err
	}
	var fresh, open, any []candidate
	for _, row := range live {
		if row.Session == agentID(root.Session, ev.Agent) {
			continue
		}
		calls, err := openSpawns(ctx, s, &row, started)
		if err != nil {
			return delegator{}, err
		}
		any = append(any, candidate{row: row})
		if len(calls) == 0 {
			continue
		}
		best := chosen(calls, &row, ev.AgentType)
		c := candidate{row: row, call: best}
		if open = append(open, c); !best.linked {
			fresh = append(fresh, c)
		}
	}
	from := any
	switch {
	case len(fresh) > 0:
		from = fresh
	case len(open) > 0:
		from = open
	}
	c, err := narrowest(ctx, s, from)
	if err != nil {
		return delegator{}, err
	}
	d := delegator{row: c.row}
	if c.call != nil {
		d.call, d.prompt = c.call.id, c.call.prompt
	}
	return d, nil
}

// live lists the sessions of a tree that may act, parents before children. The
// root is always one of them.
func (g *Guard) live(s *eventlog.Store, root eventlog.Row) ([]eventlog.Row, error) {
	out := []eventlog.Row{root}
	for at := 0; at < len(out); at++ {
		children, err := s.Children(out[at].Session)
		if err != nil {
			return nil, err
		}
		for _, id := range children {
			row, err := s.Row(id)
			if errors.Is(err, eventlog.ErrPurged) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if row.Evidence {
				continue
			}
			if len(out) == maxLive {
				return nil, &eventlog.TooLargeError{What: "agents of a session that have not stopped", Limit: maxLive, Size: maxLive + 1}
			}
			out = append(out, row)
		}
	}
	// What has settled was walked for its children and acts no more.
	return slices.DeleteFunc(out, func(row eventlog.Row) bool {
		return row.Session != root.Session && (row.SettledSeq != 0 || row.ClosedSeq != 0)
	}), nil
}

// startedBy collects the calls by which agents of these sessions were started.
func startedBy(ctx context.Context, s *eventlog.Store, live []eventlog.Row) (map[string]bool, error) {
	started := map[string]bool{}
	for i := range live {
		if live[i].Delegations == 0 || !slices.ContainsFunc(live[i].OpenCalls, spawns) {
			continue
		}
		children, err := s.Children(live[i].Session)
		if err != nil {
			return nil, err
		}
		for _, id := range children {
			e, err := replay.Policy(ctx, s, id, 0)
			if errors.Is(err, eventlog.ErrPurged) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if e.Granted != nil && e.Granted.ToolCall != "" {
				started[live[i].Session.String()+"/"+e.Granted.ToolCall] = true
			}
		}
	}
	return started, nil
}

func spawns(c eventlog.OpenCall) bool { return c.Started && slices.Contains(spawning, c.Tool) }

// openSpawns reads the open spawning calls of a session, oldest first.
func openSpawns(ctx context.Context, s *eventlog.Store, row *eventlog.Row, started map[string]bool) ([]openSpawn, error) {
	var out []openSpawn
	for _, c := range row.OpenCalls {
		if !spawns(c) {
			continue
		}
		o := openSpawn{id: c.Call, seq: c.Seq, linked: started[row.Session.String()+"/"+c.Call]}
		page, err := s.Read(ctx, row.Session, eventlog.ReadOptions{From: c.Seq, To: c.Seq, Contents: true})
		if err != nil {
			return nil, err
		}
		if len(page.Events) == 1 {
			var args struct {
				Subagent string `json:"subagent_type"`
				Agent    string `json:"agent_type"`
				Prompt   string `json:"prompt"`
				Message  string `json:"message"`
			}
			if json.Unmarshal(page.Events[0].Content, &args) == nil { // other arguments say nothing here
				o.kind, o.prompt = cmp.Or(args.Subagent, args.Agent), cmp.Or(args.Prompt, args.Message)
			}
		}
		out = append(out, o)
	}
	return out, nil
}

// chosen is the call of a session that is most likely the one: not linked, of
// this turn, and naming the agent's type; of equals the oldest.
func chosen(calls []openSpawn, row *eventlog.Row, kind string) *openSpawn {
	rank := func(c *openSpawn) (n int) {
		if !c.linked {
			n += 4
		}
		if c.seq > row.TurnSeq {
			n += 2
		}
		if c.kind != "" && c.kind == kind {
			n++
		}
		return n
	}
	best := &calls[0]
	for i := range calls {
		if rank(&calls[i]) > rank(best) {
			best = &calls[i]
		}
	}
	return best
}

// narrowest is the candidate that can hand on no more than any other; the first
// of equals, and so the one nearest to the root.
func narrowest(ctx context.Context, s *eventlog.Store, from []candidate) (candidate, error) {
	if len(from) == 1 {
		return from[0], nil
	}
	for i := range from {
		e, err := replay.Policy(ctx, s, from[i].row.Session, 0)
		if err != nil {
			return candidate{}, err
		}
		from[i].e = e
	}
	within := func(a, b *replay.Effective) bool {
		return a.Sandbox.Value.Within(b.Sandbox.Value) && a.Authority.Delegable.Within(b.Authority.Delegable)
	}
	for i := range from {
		if !slices.ContainsFunc(from, func(o candidate) bool { return !within(&from[i].e, &o.e) }) {
			return from[i], nil
		}
	}
	return candidate{}, fmt.Errorf("%w: %d sessions may have started the agent, and none of them holds the least: nothing is handed on by guess", eventlog.ErrAmbiguous, len(from))
}
