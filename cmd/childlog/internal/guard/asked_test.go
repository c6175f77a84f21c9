package guard

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// unboxed is the input of a call that needs an approval.
func unboxed() map[string]any {
	return map[string]any{"command": "make install", "dangerouslyDisableSandbox": true}
}

// begun is a session of Claude Code with one call that was put to its person.
func begun(t *testing.T) *session {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
	x.send("UserPromptSubmit", "prompt", "install it")
	require.Equal(t, Ask, x.call("", "c", "Bash", unboxed()).Verb)
	return x
}

// ruling is what became of the question about a call.
func (x *session) ruling(call string) replay.Ruling {
	x.t.Helper()
	row := x.row("")
	r, err := replay.RulingOf(context.Background(), x.s, row.Session, x.g.askID(&row, call))
	require.NoError(x.t, err)
	return r
}

func (x *session) decided(call string, outcome eventlog.AskOutcome, decider eventlog.Decider, rule string) {
	x.t.Helper()
	r := x.ruling(call)
	require.Equal(x.t, []any{outcome, decider, rule}, []any{r.Outcome, r.Decider, r.Rule})
	require.Empty(x.t, x.row("").Grants, "a harness's word grants nothing")
}

// TestPersonOfTheHarness: the harness showed the question and the call ran, so a
// person let it pass, by the harness's word.
func TestPersonOfTheHarness(t *testing.T) {
	x := begun(t)
	require.Equal(t, Ask, x.call("", "c", "Bash", unboxed()).Verb) // the hook comes twice
	require.Len(t, x.row("").OpenAsks, 1)
	require.True(t, func() bool { r := x.ruling("c"); return r.Waits() }())
	x.send("PermissionRequest", "tool_name", "Bash", "tool_input", map[string]any{"command": "other"})
	x.send("PermissionRequest", "tool_name", "Bash", "tool_input", unboxed())
	for range 2 {
		x.send("PostToolUse", "tool_name", "Bash", "tool_use_id", "c", "tool_input", unboxed(), "tool_response", map[string]any{"stdout": ""})
	}
	x.decided("c", eventlog.AskAllowedElsewhere, eventlog.DeciderHuman, "")
	require.Equal(t, "claude-code", func() string { r := x.ruling("c"); return r.Ref }())
	require.Empty(t, x.row("").OpenCalls)
	// Neither the record nor another answer allows the call.
	row := x.row("")
	args := []byte(`{"command":"make install","dangerouslyDisableSandbox":true}`)
	_, err := replay.Once(context.Background(), x.s, replay.Use{Session: row.Session, Ask: x.g.askID(&row, "c"), Call: "c", Tool: "Bash", Args: args})
	require.ErrorIs(t, err, eventlog.ErrUnauthorized)
	require.Equal(t, Deny, x.call("", "c", "Bash", unboxed()).Verb, "a call is asked about once")
}

// TestOnlyTheHarnessAnswers: nobody else answers a question that it put.
func TestOnlyTheHarnessAnswers(t *testing.T) {
	x := begun(t)
	row := x.row("")
	for _, answer := range []replay.Answer{replay.AllowOnce, replay.Reject} {
		_, err := replay.Respond(context.Background(), x.s, replay.AnswerRequest{Session: row.Session, Ask: row.OpenAsks[0].Ask, Answer: answer, Decider: eventlog.DeciderHuman})
		require.ErrorIs(t, err, eventlog.ErrUnauthorized)
	}
	// Nor is one that is answered here decided by a harness's word.
	_, err := replay.Pose(context.Background(), x.s, replay.AskRequest{Session: row.Session, Ask: "own", Call: "d", Tool: "Bash"})
	require.NoError(t, err)
	_, err = replay.Learn(context.Background(), x.s, replay.Learned{Session: row.Session, Ask: "own", Outcome: eventlog.AskAllowedElsewhere, Decider: eventlog.DeciderHuman})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	x.send("Stop")
	require.Equal(t, "own", x.row("").OpenAsks[0].Ask, "another's question is left to it")
}

// TestRanUnseen: without a question that was seen to be shown no person is named;
// also where the call failed.
func TestRanUnseen(t *testing.T) {
	x := begun(t)
	x.send("PostToolUseFailure", "tool_name", "Bash", "tool_use_id", "c", "error", "exit status 2")
	x.decided("c", eventlog.AskAllowedElsewhere, eventlog.DeciderHost, "")
}

// TestLeftBehind: no hook tells that a person rejected a call. What is told is
// that the harness goes on, or ends, without a result.
func TestLeftBehind(t *testing.T) {
	for _, next := range []string{"UserPromptSubmit", "Stop", "StopFailure", "SessionEnd"} {
		t.Run(next, func(t *testing.T) {
			x := begun(t)
			x.send(next, "prompt", "no, look first", "reason", "logout")
			x.decided("c", eventlog.AskCancelled, eventlog.DeciderHost, replay.RuleNoResult)
			require.Empty(t, x.row("").OpenAsks)
			// A result that comes later is recorded, and changes no decision.
			x.send("PostToolUse", "tool_name", "Bash", "tool_use_id", "c")
			x.decided("c", eventlog.AskCancelled, eventlog.DeciderHost, replay.RuleNoResult)
			require.Contains(t, x.types(""), eventlog.TypeToolResult)
		})
	}
}

// TestRejectedByTheHarness: its classifier tells of a rejection.
func TestRejectedByTheHarness(t *testing.T) {
	x := begun(t)
	for range 2 {
		require.Equal(t, Outcome{}, x.send("PermissionDenied", "tool_name", "Bash", "tool_use_id", "c", "tool_input", unboxed(), "reason", "too far"))
	}
	x.send("PermissionDenied", "tool_name", "Bash", "tool_use_id", "unknown")
	x.send("PermissionDenied")
	x.decided("c", eventlog.AskRejected, eventlog.DeciderHost, "")
	require.Equal(t, []eventlog.Count{{Code: "approval_host", N: 1}}, x.row("").Denials)
}

// TestRevokedMeanwhile: an allowance under another policy than was asked under
// counts for nothing, whoever gave it.
func TestRevokedMeanwhile(t *testing.T) {
	x := begun(t)
	_, err := replay.Narrow(context.Background(), x.s, replay.Narrowing{Session: x.root(), Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Reason: "enough"})
	require.NoError(t, err)
	x.send("PostToolUse", "tool_name", "Bash", "tool_use_id", "c")
	x.decided("c", eventlog.AskCancelled, eventlog.DeciderRule, replay.RulePolicyMoved)
}

// TestResultAlone: a result of a call that nobody asked about decides nothing.
func TestResultAlone(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
	x.send("PostToolUse", "tool_name", "Bash", "tool_use_id", "c")
	x.send("PermissionRequest", "tool_name", "Bash", "tool_input", unboxed())
	require.NotContains(t, x.types(""), eventlog.TypeApprovalDecided)
	require.NotContains(t, x.types(""), eventlog.TypeApprovalAsked)
}

// TestCutOff: a question whose harness is gone is closed by the next run, as any
// other.
func TestCutOff(t *testing.T) {
	x := begun(t)
	x.send("SessionStart", "source", "resume")
	x.decided("c", eventlog.AskUnavailable, eventlog.DeciderRule, replay.RuleInterrupted)
}

// TestAskedOutsideOfATurn: calls of a model that no prompt woke belong to one turn,
// however many there are at once, and each keeps its question.
func TestAskedOutsideOfATurn(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
	x.send("SessionStart", "source", "startup")
	var wg sync.WaitGroup
	for i := range 8 {
		ev := x.event("PreToolUse", "tool_name", "Bash", "tool_use_id", fmt.Sprint("c", i), "tool_input", unboxed())
		wg.Go(func() {
			o, err := x.g.Handle(context.Background(), x.s, ev)
			if err != nil || o.Verb != Ask {
				t.Errorf("%v %+v", err, o)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, x.row("").Turns)
	x.send("PermissionRequest", "tool_name", "Bash", "tool_input", unboxed())
	people := 0
	for i := range 8 {
		call := fmt.Sprint("c", i)
		x.send("PostToolUse", "tool_name", "Bash", "tool_use_id", call)
		r := x.ruling(call)
		require.Equal(t, eventlog.AskAllowedElsewhere, r.Outcome)
		if r.Decider == eventlog.DeciderHuman {
			people++
		}
	}
	require.Equal(t, 1, people, "one question was shown")
}

// TestNobodyToAsk: where a hook can't ask, question and decision are one unit; where
// a guard only watches there is no question.
func TestNobodyToAsk(t *testing.T) {
	for _, c := range []struct {
		g    Guard
		want []string
	}{
		{Guard{Harness: Codex}, []string{eventlog.TypeApprovalAsked, eventlog.TypeApprovalDecided}},
		{Guard{Harness: ClaudeCode, Observe: true}, nil},
	} {
		x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
		c.g.Policy, c.g.Files = x.g.Policy, x.g.Files
		_, err := ask(x, &c.g)
		require.NoError(t, err)
		var got []string
		for _, typ := range x.types("") {
			if eventlog.Family(typ) == "approval" && typ != eventlog.TypeApprovalPolicy {
				got = append(got, typ)
			}
		}
		require.Equal(t, c.want, got)
		require.Empty(t, x.row("").OpenAsks)
	}
}

// ask records a judgement that an approval is needed, as g does.
func ask(x *session, g *Guard) (Outcome, error) {
	x.g = g
	x.send("UserPromptSubmit", "prompt", "go")
	e := &policy.Escalation{Sandbox: policy.Top(), Justification: "wants out"}
	return g.put(context.Background(), x.s, x.row(""), x.event("PreToolUse", "tool_name", "Bash", "tool_use_id", "c", "tool_input", unboxed()), e, Outcome{Verb: Ask, Reason: "needs an approval"})
}
