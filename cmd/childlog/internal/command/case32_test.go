package command

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// TestCase32_FilterByDeciderInEveryList: of decisions by a pin, a rule and a human
// each filter returns one.
func TestCase32_FilterByDeciderInEveryList(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "store")
	_, err := eventlog.Init(ctx, dir)
	require.NoError(t, err)
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(t, err)
	root, err := materialize.Root(ctx, s, materialize.RootRequest{Label: "root", Approvals: policy.Ask, Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}, Workspace: "/srv/p"})
	require.NoError(t, err)
	capture, err := snapshot.Take(ctx, s, root.ID, snapshot.Options{})
	require.NoError(t, err)
	child, err := materialize.Child(ctx, s, capture, materialize.Request{Label: "child"})
	require.NoError(t, err)
	facts, err := eventlog.MakeFacts(map[string]any{"turn": 1})
	require.NoError(t, err)
	_, err = s.Append(ctx, eventlog.Batch{Session: root.ID, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: eventlog.TypeTurnStart, Facts: facts}}})
	require.NoError(t, err)

	allow := replay.Human(func(context.Context, replay.Question) (replay.Answer, error) { return replay.AllowOnce, nil })
	ruling, err := replay.Ask(ctx, s, replay.AskRequest{Session: root.ID, Ask: "by-human", Call: "c1", Tool: "edit"}, allow)
	require.NoError(t, err)
	require.Equal(t, eventlog.DeciderHuman, ruling.Decider)
	ruling, err = replay.Ask(ctx, s, replay.AskRequest{Session: root.ID, Ask: "by-rule", Call: "c2", Tool: "edit"})
	require.NoError(t, err)
	require.Equal(t, eventlog.DeciderRule, ruling.Decider)
	ruling, err = replay.Ask(ctx, s, replay.AskRequest{Session: child.ID, Ask: "by-pin", Call: "c3", Tool: "edit"}, allow)
	require.NoError(t, err)
	require.Equal(t, eventlog.DeciderPin, ruling.Decider)
	require.NoError(t, s.Close())

	for decider, ask := range map[string]string{"human": "by-human", "rule": "by-rule", "pin": "by-pin"} {
		code, out, msg := inProcess(t, dir, "", "search", "--decider", decider, "--json")
		require.Zero(t, code, msg)
		require.Equal(t, 1, strings.Count(out, "\n"), "%s: %s", decider, out)
		session := root.ID.String()
		if decider == "pin" {
			session = child.ID.String()
		}
		code, out, msg = inProcess(t, dir, "", "log", session, "--decider", decider, "--json")
		require.Zero(t, code, msg)
		require.Equal(t, 1, strings.Count(out, "\n"), "%s: %s", decider, out)
		require.Contains(t, out, `"ask":"`+ask+`"`)
		code, out, msg = inProcess(t, dir, "", "ls", "--decider", decider, "--json")
		require.Zero(t, code, msg)
		require.Equal(t, 1, strings.Count(out, "\n"), "%s: %s", decider, out)
		require.Contains(t, out, session)
	}
	// What nobody answered is an exception; the child's denial counts by its code.
	code, out, msg := inProcess(t, dir, "", "report", "--list", "exceptions", "--json")
	require.Zero(t, code, msg)
	require.Contains(t, out, `"kind":"unanswered_ask"`)
	require.Contains(t, out, `{"code":"approval_pin","count":1}`)
	code, _, msg = inProcess(t, dir, "", "verify")
	require.Zero(t, code, msg)
}
