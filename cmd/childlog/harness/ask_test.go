package harness_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/eventlog"
)

// TestAskAndAnswer: one caller asks, another answers, and each step may be sent
// again by whoever lost its answer.
func TestAskAndAnswer(t *testing.T) {
	both(t, func(t *testing.T, h harness.Harness) {
		scene(t, h)
		turn := harness.AppendRequest{Session: rootID, Key: "run 4, turn 1", Events: []harness.Event{{Type: "turn/start", Facts: map[string]any{"turn": 1}}}}
		first, err := h.Append(ctx, turn)
		require.NoError(t, err)
		again, err := h.Append(ctx, turn)
		require.NoError(t, err)
		require.True(t, again.Replayed)
		require.Equal(t, first.Seq, again.Seq)

		call := write("c1", "/etc/hosts")
		call.Ask = "a1"
		call.Escalation = &harness.Escalation{Sandbox: harness.Sandbox{Mode: "danger-full-access"}, Justification: "a host is missing"}
		ask := harness.AskRequest{Session: rootID, Call: call, Question: "May I?"}
		for range 2 {
			waits, err := h.Ask(ctx, ask)
			require.NoError(t, err)
			require.True(t, waits.Waits)
			require.Nil(t, waits.Outcome)
			require.Equal(t, first.Seq+1, waits.AskedSeq)
		}
		for _, session := range []string{"", rootID} {
			list, err := h.Asks(ctx, harness.AsksRequest{Session: session})
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			require.Equal(t, "a host is missing", *list.Items[0].Escalation.Justification)
			require.JSONEq(t, string(call.Args), string(list.Items[0].Args))
		}
		answer := harness.AnswerRequest{Session: rootID, Ask: "a1", Allow: true, Ref: "ticket-7"}
		require.Equal(t, harness.Operates, answer.Level())
		for i := range 2 {
			ruling, err := h.Answer(ctx, answer)
			require.NoError(t, err)
			require.True(t, ruling.Allowed)
			require.Equal(t, i == 1, ruling.Existing)
			require.Equal(t, "human", ruling.Decider.Kind)
		}
		answer.Allow = false
		_, err = h.Answer(ctx, answer)
		require.ErrorIs(t, err, eventlog.ErrConflict)
		allowed, err := h.Ask(ctx, ask)
		require.NoError(t, err)
		require.True(t, allowed.Allowed)
		for i := range 2 {
			j, err := h.Check(ctx, harness.CheckRequest{Session: rootID, Call: call, Record: true})
			require.NoError(t, err)
			require.Equal(t, "allowed_once", j.Code)
			require.Equal(t, i == 1, j.Recorded.Existing)
		}
		spent, err := h.Ask(ctx, ask)
		require.NoError(t, err)
		require.False(t, spent.Allowed)
		require.Contains(t, *spent.Void, "used")
		call.Args = harness.JSON(`{"path":"/etc/passwd"}`)
		_, err = h.Check(ctx, harness.CheckRequest{Session: rootID, Call: call, Record: true})
		require.ErrorIs(t, err, eventlog.ErrConflict, "another call of the same id")
	})
}

// TestAskWorthNothing: a question whose allowance the sandbox would still refuse
// is not put, and the refusal says what it takes.
func TestAskWorthNothing(t *testing.T) {
	both(t, func(t *testing.T, h harness.Harness) {
		scene(t, h)
		_, err := h.Append(ctx, harness.AppendRequest{Session: rootID, Events: []harness.Event{{Type: "turn/start", Facts: map[string]any{"turn": 1}}}})
		require.NoError(t, err)
		call := write("c1", "/etc/hosts")
		call.Ask = "a1"
		_, err = h.Ask(ctx, harness.AskRequest{Session: rootID, Call: call})
		require.ErrorIs(t, err, eventlog.ErrUnauthorized)
		require.ErrorContains(t, err, `would be worth nothing`)
		require.ErrorContains(t, err, `"mode":"danger-full-access"`)
		list, err := h.Asks(ctx, harness.AsksRequest{})
		require.NoError(t, err)
		require.Empty(t, list.Items)
	})
}
