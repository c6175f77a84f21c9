package guard

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/importtest"
	"childlog/eventlog"
)

// session is a harness's session as its hooks show it.
type session struct {
	t   testing.TB
	s   *eventlog.Store
	g   *Guard
	id  string
	cwd string
}

func begin(t testing.TB, s *eventlog.Store, h Harness, profile string) *session {
	p, err := Named(profile)
	require.NoError(t, err)
	return &session{t: t, s: s, g: &Guard{Harness: h, Policy: p, Files: files.Local{}}, id: "s-1", cwd: "/w/p"}
}

// event makes the event of a hook: pairs of name and value beside what all have.
func (x *session) event(name string, pairs ...any) *Event {
	x.t.Helper()
	ev, err := Parse(x.payload(name, pairs...))
	require.NoError(x.t, err)
	return ev
}

func (x *session) payload(name string, pairs ...any) []byte {
	x.t.Helper()
	m := map[string]any{"session_id": x.id, "cwd": x.cwd, "hook_event_name": name}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	b, err := json.Marshal(m, json.Deterministic(true))
	require.NoError(x.t, err)
	return b
}

// send handles an event that must be answered.
func (x *session) send(name string, pairs ...any) Outcome {
	x.t.Helper()
	o, err := x.g.Handle(context.Background(), x.s, x.event(name, pairs...))
	require.NoError(x.t, err)
	return o
}

// call asks for a call of the session, or of an agent if one is named.
func (x *session) call(agent, id, tool string, input map[string]any) Outcome {
	x.t.Helper()
	pairs := []any{"tool_name", tool, "tool_use_id", id, "tool_input", input}
	if agent != "" {
		pairs = append(pairs, "agent_id", agent)
	}
	return x.send("PreToolUse", pairs...)
}

func (x *session) write(agent, id, path string) Outcome {
	x.t.Helper()
	return x.call(agent, id, "Write", map[string]any{"file_path": path, "content": ""})
}

func (x *session) root() uuid.UUID {
	x.t.Helper()
	id, err := x.s.ByExternal(x.g.Harness.System(), x.id)
	require.NoError(x.t, err)
	return id
}

// row is the row of an agent, or of the session for "".
func (x *session) row(agent string) eventlog.Row {
	x.t.Helper()
	id := x.root()
	if agent != "" {
		id = agentID(id, agent)
	}
	row, err := x.s.Row(id)
	require.NoError(x.t, err)
	return row
}

// types lists the types of a log.
func (x *session) types(agent string) (out []string) {
	x.t.Helper()
	require.NoError(x.t, x.s.Replay(context.Background(), x.row(agent).Session, false, func(ev *eventlog.Event) error {
		out = append(out, ev.Type)
		return nil
	}))
	return out
}

// shared is a folder of the samples beside the project, or the test is skipped.
func shared(t testing.TB, parts ...string) string {
	return importtest.Samples(t, filepath.Join(parts...))
}
