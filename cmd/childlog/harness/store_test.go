package harness_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/storetest"
)

var ctx = context.Background()

func TestEmbedded(t *testing.T) {
	h := harness.On(storetest.New(t))
	root, err := h.Root(ctx, harness.RootRequest{Sandbox: &harness.Sandbox{Mode: "workspace-write"}, Workspace: "/srv/app", Label: "agent"})
	require.NoError(t, err)
	child, err := h.Delegate(ctx, harness.DelegateRequest{Parent: root.Session, Child: harness.Child{Key: "run 4, call 7", Role: "implement", WriteScope: []string{"docs"}, Tools: harness.OnlyTools("write_file")}})
	require.NoError(t, err)
	require.Equal(t, &[]string{"docs"}, child.Manifest.WriteScope)
	_, err = h.Append(ctx, harness.AppendRequest{Session: child.Session, Events: []harness.Event{{Type: "user/message", ContentText: new("hi")}, {Type: "a/b", Facts: map[string]any{"n": 1}, Content: harness.JSON(`{ "a" : 1.0 }`)}}})
	require.NoError(t, err)
	j, err := h.Check(ctx, harness.CheckRequest{Session: child.Session, Record: true, Call: harness.Call{ID: "c1", Tool: "write_file", Args: harness.JSON(`{"path": "src/a.go"}`)}})
	require.NoError(t, err)
	require.Equal(t, "deny", j.Verdict)
	page, err := h.Log(ctx, harness.LogRequest{Session: child.Session, EventFilter: harness.EventFilter{Types: []string{"a/b"}}})
	require.NoError(t, err)
	require.Equal(t, `{ "a" : 1.0 }`, string(page.Events[0].Content))
	n := 0
	for ev, err := range h.Follow(ctx, harness.FollowRequest{}) {
		require.NoError(t, err)
		if n++; ev.Event.Type == "tool/decision" {
			break
		}
	}
	p, err := h.Policy(ctx, harness.PolicyRequest{Session: child.Session})
	require.NoError(t, err)
	require.Equal(t, "never", p.Approvals.Policy)
}
