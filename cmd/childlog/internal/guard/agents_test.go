package guard

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

func spawn(kind string) map[string]any {
	return map[string]any{"subagent_type": kind, "prompt": "do " + kind}
}

// TestAgentBeforeItsStart: a call of an agent that nobody announced is decided
// under the agent's own policy, and the announcement finds the same child.
func TestAgentBeforeItsStart(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
	require.Equal(t, Pass, x.write("", "c1", "/w/p/a").Verb)
	require.Equal(t, Deny, x.send("PreToolUse", "tool_name", "Write", "tool_use_id", "c2", "tool_input", map[string]any{"file_path": "/w/p/a"},
		"agent_id", "a1", "agent_type", "Explore").Verb)
	first := x.row("a1")
	o := x.send("SubagentStart", "agent_id", "a1", "agent_type", "Explore")
	require.Contains(t, o.Context, "files read")
	require.Equal(t, first.Session, x.row("a1").Session)
	require.EqualValues(t, 1, x.row("").Delegations)
	require.EqualValues(t, 1, x.row("").Calls, "the agent's call is in the agent's log")
}

// TestRoles: types that the role table knows get its preset, others what the
// parent hands on.
func TestRoles(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
	for i, c := range []struct {
		kind string
		role policy.Role
	}{{"Explore", policy.RoleExplore}, {"Plan", policy.RolePlanner}, {"general-purpose", policy.RoleGeneral}, {"code-review", policy.RoleReviewer}, {"my-plugin:fixer", policy.RoleCustom}, {"", policy.RoleCustom}} {
		agent := fmt.Sprint("a", i)
		x.call("", "t"+agent, "Task", spawn(c.kind))
		x.send("SubagentStart", "agent_id", agent, "agent_type", c.kind)
		e, err := replay.Policy(context.Background(), x.s, x.row(agent).Session, 0)
		require.NoError(t, err)
		require.Equal(t, c.role, e.Choices.Role, c.kind)
		require.Equal(t, "t"+agent, e.Granted.ToolCall)
		require.Equal(t, policy.Never, e.Approvals)
		require.Equal(t, x.row("").Session, e.Parent)
	}
}

// TestWhoDelegated: an agent belongs to whoever has the open call; where two may
// have it, to the one that hands on less.
func TestWhoDelegated(t *testing.T) {
	parentOf := func(x *session, agent string) string {
		switch p := x.row(agent).Parent; p {
		case x.root():
			return "root"
		default:
			for _, a := range []string{"worker", "looker", "other"} {
				if agentID(x.root(), a) == p {
					return a
				}
			}
			return p.String()
		}
	}
	start := func(x *session, agent, kind string) { x.send("SubagentStart", "agent_id", agent, "agent_type", kind) }
	setup := func(t *testing.T) *session {
		x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
		x.call("", "k1", "Task", spawn("worker"))
		start(x, "worker", "worker")
		x.call("", "k2", "Task", spawn("Explore"))
		start(x, "looker", "Explore")
		return x
	}
	t.Run("the one with the open call", func(t *testing.T) {
		x := setup(t)
		x.call("looker", "k3", "Task", spawn("worker"))
		start(x, "n1", "worker")
		require.Equal(t, "looker", parentOf(x, "n1"))
		require.Equal(t, Deny, x.write("n1", "w1", "/w/p/a").Verb, "a worker under an explorer does not write")
		x.call("", "k4", "Agent", spawn("worker"))
		start(x, "n2", "worker")
		require.Equal(t, "root", parentOf(x, "n2"))
		require.Equal(t, Pass, x.write("n2", "w2", "/w/p/a").Verb)
	})
	t.Run("of two the one that hands on less", func(t *testing.T) {
		x := setup(t)
		x.call("worker", "k3", "Task", spawn("worker"))
		x.call("looker", "k4", "Task", spawn("worker"))
		start(x, "n1", "worker")
		require.Equal(t, "looker", parentOf(x, "n1"))
		start(x, "n2", "worker")
		require.Equal(t, "worker", parentOf(x, "n2"), "the other call is left")
	})
	t.Run("of equals the one nearest to the root", func(t *testing.T) {
		x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
		x.call("", "k1", "Task", spawn("worker"))
		start(x, "worker", "worker")
		x.call("", "k2", "Task", spawn("worker"))
		x.call("worker", "k3", "Task", spawn("worker"))
		start(x, "n1", "worker")
		require.Equal(t, "root", parentOf(x, "n1"))
	})
	t.Run("no call was seen", func(t *testing.T) {
		x := setup(t)
		for _, call := range []string{"k1", "k2"} {
			x.send("PostToolUse", "tool_name", "Task", "tool_use_id", call, "tool_response", map[string]any{"status": "async_launched"})
		}
		start(x, "n1", "worker")
		require.Equal(t, "looker", parentOf(x, "n1"), "any of three may have started it")
		x.send("SubagentStop", "agent_id", "looker", "agent_type", "Explore")
		x.send("SubagentStop", "agent_id", "n1", "agent_type", "worker")
		start(x, "n2", "worker")
		require.Equal(t, "root", parentOf(x, "n2"), "the worker holds as much as the root")
	})
	t.Run("none holds the least", func(t *testing.T) {
		x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
		x.call("", "k1", "Task", spawn("worker"))
		start(x, "worker", "worker")
		x.call("", "k2", "Task", spawn("worker"))
		start(x, "other", "worker")
		narrow := func(agent, tool string) {
			_, err := replay.Narrow(context.Background(), x.s, replay.Narrowing{Session: x.row(agent).Session, Authority: &policy.Wish{DeniedTools: []string{tool}}, Reason: "r"})
			require.NoError(t, err)
		}
		narrow("worker", "Write")
		narrow("other", "Bash")
		x.call("worker", "k3", "Task", spawn("worker"))
		x.call("other", "k4", "Task", spawn("worker"))
		_, err := x.g.Handle(context.Background(), x.s, x.event("SubagentStart", "agent_id", "n1", "agent_type", "worker"))
		require.ErrorIs(t, err, eventlog.ErrAmbiguous)
		_, err = x.g.Handle(context.Background(), x.s, x.event("PreToolUse", "agent_id", "n1", "tool_name", "Read", "tool_use_id", "r", "tool_input", map[string]any{}))
		require.ErrorIs(t, err, eventlog.ErrAmbiguous, "nor is it decided under anybody else's policy")
	})
}

// TestDepth: an agent too deep is not made, and each of its calls is refused.
func TestDepth(t *testing.T) {
	x := begin(t, storetest.New(t), Codex, ProfileTrusted)
	from := ""
	for i := range 4 {
		agent := fmt.Sprint("a", i)
		x.call(from, "k"+agent, "spawn_agent", map[string]any{"message": "m"})
		_, err := x.g.Handle(context.Background(), x.s, x.event("SubagentStart", "agent_id", agent, "agent_type", "worker"))
		if i < 3 {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, eventlog.ErrDepth)
		}
		from = agent
	}
	_, err := x.g.Handle(context.Background(), x.s, x.event("PreToolUse", "agent_id", "a3", "tool_name", "Read", "tool_use_id", "r", "tool_input", map[string]any{}))
	require.ErrorIs(t, err, eventlog.ErrDepth)
}

// TestRacingFirstHooks: of hooks that come first at the same time one makes the
// root and one the child; nobody fails.
func TestRacingFirstHooks(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
	var wg sync.WaitGroup
	for i := range 32 {
		pairs := []any{"tool_name", "Read", "tool_use_id", fmt.Sprint("t", i), "tool_input", map[string]any{"file_path": "/w/p/a"}}
		if i%2 == 1 {
			pairs = append(pairs, "agent_id", fmt.Sprint("a", i%4), "agent_type", "Explore")
		}
		ev := x.event("PreToolUse", pairs...)
		wg.Go(func() {
			o, err := x.g.Handle(context.Background(), x.s, ev)
			if err != nil || o.Verb != Pass {
				t.Errorf("%v %v", o, err)
			}
		})
	}
	wg.Wait()
	roots, children := 0, 0
	require.NoError(t, x.s.EachRow(context.Background(), func(row *eventlog.Row) (bool, error) {
		if row.Parent == uuid.Nil {
			roots++
		} else {
			children++
		}
		return true, nil
	}))
	require.Equal(t, []int{1, 2}, []int{roots, children})
	require.EqualValues(t, 16, x.row("").Calls)
	require.EqualValues(t, 8, x.row("a1").Calls)
	require.EqualValues(t, 8, x.row("a3").Calls)
}
