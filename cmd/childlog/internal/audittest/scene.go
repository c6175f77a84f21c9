// Package audittest sets a scene for tests of what leaves a store: a root, a
// child that worked under a narrowing, and a grandchild.
package audittest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// The sessions of the scene.
var (
	Root       = uuid.MustParse("00000000-0000-4000-8000-0000000000a1")
	Child      = uuid.MustParse("00000000-0000-4000-8000-0000000000a2")
	Grandchild = uuid.MustParse("00000000-0000-4000-8000-0000000000a3")
)

// Texts are put where a log holds free text.
type Texts struct {
	Label    string // of the child
	Prompt   string // of the delegation
	Argument string // of a call, in a nested field
	Result   string // of a call
}

// Scene makes a store in which Root, who writes below docs and src, delegated
// to Child to write below docs, and Child to Grandchild. The child's calls:
//
//	c1  read_file, allowed, result ok
//	c2  write_file outside of its scope, denied
//	c3  exec_shell, denied, and yet a result
//	c4  write_file, allowed, no result
//	c5  write_file after a narrowing, denied
//	c6  read_file, that nobody decided, result failed
//
// The store is checked in full when the test ends.
func Scene(t testing.TB, texts Texts) *eventlog.Store {
	t.Helper()
	ctx := context.Background()
	now := time.Date(2026, 11, 30, 13, 0, 0, 0, time.UTC)
	s := storetest.Open(t, eventlog.Options{Clock: func() time.Time { now = now.Add(time.Second); return now }})
	scope, wall := []string{"docs", "src"}, int64(time.Hour/time.Millisecond)
	_, err := materialize.Root(ctx, s, materialize.RootRequest{ID: Root, Label: "coordinator", Workspace: "/srv/project", Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite},
		Profile: &materialize.Profile{Own: policy.Wish{WriteScope: &scope}, Principal: eventlog.Principal{Kind: eventlog.PrincipalPerson, Ref: "u17"}}})
	require.NoError(t, err)
	docs := []string{"docs"}
	_, err = materialize.Delegate(ctx, s, Root, snapshot.Options{}, materialize.Request{ID: Child, Label: texts.Label, Prompt: texts.Prompt, ToolCall: "r1",
		Want: policy.Request{Wish: policy.Wish{WriteScope: &docs, DeniedTools: []string{"fetch_url"}}, WallMS: &wall, Role: "implement"}})
	require.NoError(t, err)
	_, err = materialize.Delegate(ctx, s, Child, snapshot.Options{}, materialize.Request{ID: Grandchild, Label: "scout", Want: policy.Request{Role: "explore"}})
	require.NoError(t, err)

	run, err := replay.Activate(ctx, s, Child, replay.AsParent(Root))
	require.NoError(t, err)
	w := worker{t, ctx, s, run.Epoch, replay.NewAuthorizer(s, Child)}
	w.decide("c1", "read_file", map[string]any{"path": "docs/a.md", "deep": []any{map[string]any{"note": texts.Argument}}})
	w.result("c1", "ok", texts.Result)
	w.decide("c2", "write_file", map[string]any{"path": "src/main.go"})
	w.decide("c3", "exec_shell", map[string]any{"command": "touch x"})
	w.result("c3", "ok", "")
	w.decide("c4", "write_file", map[string]any{"path": "docs/a.md"})
	w.append(eventlog.TypeUsageRecorded, map[string]any{"usage": "u1", "model": "m-large", "input": 1000, "output": 20}, "")
	_, err = replay.Narrow(ctx, s, replay.Narrowing{Session: Child, Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Reason: "frozen"})
	require.NoError(t, err)
	w.decide("c5", "write_file", map[string]any{"path": "docs/b.md"})
	w.append(eventlog.TypeToolCall, map[string]any{"call": "c6", "tool": "read_file"}, "")
	w.result("c6", "failed", "")
	return s
}

// worker is the child at work.
type worker struct {
	t     testing.TB
	ctx   context.Context
	s     *eventlog.Store
	epoch uint64
	rules *replay.Authorizer
}

func (w *worker) decide(id, tool string, args map[string]any) {
	w.t.Helper()
	raw, err := json.Marshal(args)
	require.NoError(w.t, err)
	_, err = w.rules.Record(w.ctx, replay.CallRequest{Call: policy.NewCall(id, tool, args), Args: raw, Epoch: w.epoch})
	require.NoError(w.t, err)
}

func (w *worker) result(id, outcome, text string) {
	w.t.Helper()
	w.append(eventlog.TypeToolResult, map[string]any{"call": id, "outcome": outcome}, text)
}

func (w *worker) append(typ string, facts map[string]any, text string) {
	w.t.Helper()
	f, err := eventlog.MakeFacts(facts)
	require.NoError(w.t, err)
	ev := eventlog.NewEvent{Type: typ, Facts: f}
	if text != "" {
		ev.Media, ev.Content = eventlog.MediaText, []byte(text)
	}
	_, err = w.s.Append(w.ctx, eventlog.Batch{Session: Child, Expect: eventlog.Any(), Epoch: w.epoch, Events: []eventlog.NewEvent{ev}})
	require.NoError(w.t, err)
}
