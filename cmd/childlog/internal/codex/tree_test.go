package codex

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/replay"
)

// Threads of testdata/tree.
const (
	rootID  = "019d0000-0000-7000-8000-000000000001"
	childID = "019d0001-0000-7000-8000-000000000002"
	forkID  = "019d0002-0000-7000-8000-000000000003"
)

// TestTree: who delegated whom under what, and what they did with it.
func TestTree(t *testing.T) {
	s := newStore(t)
	report := load(t, s, importer.Options{}, "testdata/tree")
	require.Equal(t, 3, report.Sessions)
	root, child, fork := find(t, s, rootID), find(t, s, childID), find(t, s, forkID)
	require.Equal(t, []string{"session/created", "import/other session_meta", "turn/start", "import/other turn_context", "sandbox/mode", "approval/policy",
		"user/message", "user/message", "import/other event_msg/user_message", "import/other response_item/reasoning", "tool/call", "tool/result", "tool/call", "tool/result",
		"usage/recorded", "import/other event_msg/token_count", "assistant/message", "usage/recorded", "turn/end", "turn/start", "import/other turn_context",
		"sandbox/mode", "approval/policy", "tool/call", "tool/result", "history/compacted", "turn/end", "import/source"}, types(events(t, s, root)))

	d := delegation(t, report, child)
	require.Equal(t, "Boyle /root/beds", d.Label)
	require.Equal(t, "thread_spawn", d.Provider)
	require.Equal(t, root, d.Parent)
	require.Equal(t, importer.Recorded, d.ParentMark)
	require.Equal(t, importer.Fact{Value: "call_spawn_1", Mark: importer.Recorded, Seq: 11}, d.Call)
	require.Equal(t, importer.Fact{Value: "workspace-write", Mark: importer.Recorded, Seq: 5}, d.ParentSandbox)
	require.Equal(t, importer.Fact{Value: "workspace-write", Mark: importer.Inferred, Seq: 3}, d.Sandbox)
	require.Equal(t, importer.Fact{Value: "on-request", Mark: importer.Inferred, Seq: 4}, d.Approvals)
	require.Equal(t, "never", d.Effective.Approvals)
	require.Contains(t, d.Effective.Sandbox, "workspace-write", "the switch to full access is wider and does not count")

	require.Len(t, report.Drift, 2)
	require.Equal(t, "sandbox", report.Drift[0].Field)
	require.Equal(t, child, report.Drift[0].Session)
	require.Equal(t, "danger-full-access", report.Drift[0].AtWork.Value)
	require.Contains(t, report.Drift[0].Detail, "wider than the delegation")
	require.Equal(t, "approvals", report.Drift[1].Field)
	require.Equal(t, "never", report.Drift[1].AtWork.Value)
	require.Contains(t, codes(report), replay.FindingWidened)

	d = delegation(t, report, fork)
	require.Equal(t, importer.Fact{Value: "read-only", Mark: importer.Inferred, Seq: 3}, d.Sandbox, "the parent's second turn")
	require.Equal(t, importer.Fact{Value: "never", Mark: importer.Inferred, Seq: 4}, d.Approvals)

	x, err := replay.Explain(t.Context(), s, child, "sandbox.mode", 0)
	require.NoError(t, err)
	require.Contains(t, x.Rule, "inferred by the importer")
	row, err := s.Row(root)
	require.NoError(t, err)
	require.Equal(t, "Water the beds.", row.Label)
	require.Empty(t, row.OpenCalls)
	require.EqualValues(t, 2, row.Usage.Of, "the repeated total counts once")
	require.EqualValues(t, 800, row.Usage.Input)
	require.EqualValues(t, 700, row.Usage.CacheRead)
	require.EqualValues(t, 80, row.Usage.Output)
	row, err = s.Row(fork)
	require.NoError(t, err)
	require.EqualValues(t, 1, row.Usage.Of)
	require.EqualValues(t, 100, row.Usage.Input, "not what the parent had used before")
	require.EqualValues(t, 1, row.Turns)
}

// TestFork: replayed lines lead to the parent's events and decide nothing.
func TestFork(t *testing.T) {
	s := newStore(t)
	report := load(t, s, importer.Options{}, "testdata/tree")
	require.NotContains(t, codes(report), codeUnlinked)
	require.NotContains(t, codes(report), codeSeedBoundary)
	root, fork := find(t, s, rootID), find(t, s, forkID)
	of := map[uint64]eventlog.Event{}
	for _, ev := range events(t, s, root) {
		of[ev.Seq] = ev
	}
	inherited := 0
	for _, ev := range events(t, s, fork) {
		if ev.Inherited == nil {
			continue
		}
		inherited++
		require.Equal(t, root, ev.Inherited.Session)
		original := of[ev.Inherited.Seq]
		require.Equal(t, string(importer.At(original.Content, "payload")), string(importer.At(ev.Content, "payload")))
	}
	require.Equal(t, 18, inherited)
	require.EqualValues(t, 18, delegation(t, report, fork).Seed)
	require.EqualValues(t, 18, delegation(t, load(t, s, importer.Options{}, "testdata/tree"), fork).Seed, "also of a file that is not read again")
}

// TestAnyOrder: the files of a tree give the same logs in every order.
func TestAnyOrder(t *testing.T) {
	a, b, c := "testdata/tree/a-fork.jsonl", "testdata/tree/b-child.jsonl", "testdata/tree/c-root.jsonl"
	var want [][]uuid.UUID
	for _, order := range [][]string{{a, b, c}, {c, b, a}, {b, c, a}, {"testdata/tree"}} {
		s := newStore(t)
		report := load(t, s, importer.Options{}, order...)
		require.NotContains(t, codes(report), importer.CodeParentMissing)
		var got [][]uuid.UUID
		for _, id := range []string{rootID, childID, forkID} {
			var ids []uuid.UUID
			for _, ev := range events(t, s, find(t, s, id)) {
				ids = append(ids, ev.ID)
			}
			got = append(got, ids)
		}
		if want == nil {
			want = got
		}
		require.Equal(t, want, got, "%v", order)
		again := load(t, s, importer.Options{}, order...)
		require.Zero(t, again.Events)
		require.Equal(t, 3, again.Unchanged)
		require.ElementsMatch(t, report.DelegationList, again.DelegationList, "a file that is not read again is reported alike")
		require.ElementsMatch(t, report.Drift, again.Drift)
	}
}

// TestParentLater: a child whose parent's log comes later keeps what it has, and
// is still reported with its delegation.
func TestParentLater(t *testing.T) {
	s := newStore(t)
	report := load(t, s, importer.Options{}, "testdata/tree/b-child.jsonl")
	d := report.DelegationList[0]
	require.Equal(t, importer.SessionID(System, rootID), d.Parent)
	require.False(t, d.ParentKnown)
	require.Equal(t, importer.Absent, d.Sandbox.Mark)
	require.Contains(t, d.Effective.Sandbox, "read-only", "absence is no permission")
	finding(t, report, importer.CodeParentMissing)

	for range 2 {
		report = load(t, s, importer.Options{}, "testdata/tree/b-child.jsonl", "testdata/tree/c-root.jsonl")
		d = delegation(t, report, d.Child)
		require.True(t, d.ParentKnown)
		require.Equal(t, importer.Fact{Value: "call_spawn_1", Mark: importer.Recorded, Seq: 11}, d.Call)
		require.Equal(t, importer.Fact{Value: "workspace-write", Mark: importer.Inferred}, d.Sandbox, "no event of the child's log says so")
		require.Contains(t, d.Effective.Sandbox, "read-only")
		require.NotEmpty(t, report.Drift)
	}
	require.Equal(t, 2, report.Unchanged, "the parent's calls were found in the store")
	require.Zero(t, load(t, s, importer.Options{}, "testdata/tree/b-child.jsonl").Events)
}

// TestChildAlone: a child that was imported with its parent's log goes on
// without it, and is reported as before; so is a fork.
func TestChildAlone(t *testing.T) {
	for _, name := range []string{"b-child.jsonl", "a-fork.jsonl"} {
		raw, err := os.ReadFile("testdata/tree/" + name)
		require.NoError(t, err)
		s, dir := newStore(t), t.TempDir()
		path := filepath.Join(dir, name)
		half := bytes.LastIndexByte(raw[:len(raw)-2], '\n') + 1
		require.NoError(t, os.WriteFile(path, raw[:half], 0o600))
		first := load(t, s, importer.Options{}, path, "testdata/tree/c-root.jsonl")
		require.NoError(t, os.WriteFile(path, raw, 0o600))
		report := load(t, s, importer.Options{}, path)
		require.EqualValues(t, 2, report.Events, "the line and the run's mark")
		require.Equal(t, first.DelegationList, report.DelegationList)
		require.Equal(t, first.Drift, report.Drift)
		again := load(t, s, importer.Options{}, path)
		require.Zero(t, again.Events)
		require.Equal(t, first.DelegationList, again.DelegationList)
	}
}

// TestForkLater: a fork without ordinals and times finds its boundary by what
// the store has of its ancestor.
func TestForkLater(t *testing.T) {
	s, dir := newStore(t), t.TempDir()
	full := `,"sandbox_policy":{"type":"danger-full-access"},"approval_policy":"never"`
	replayed := []string{msg("task_started", `,"turn_id":"turn-1"`), turnContext("turn-1", full)}
	load(t, s, importer.Options{}, lines(t, dir, "p.jsonl", append([]string{meta("parent", "")}, replayed...)...))
	fork := append(append([]string{meta("fork", `"forked_from_id":"parent",`)}, replayed...), msg("task_started", `,"turn_id":"turn-2"`), turnContext("turn-2", readOnly))
	report := load(t, s, importer.Options{}, lines(t, dir, "f.jsonl", fork...))
	require.EqualValues(t, 2, report.SessionList[0].Inherited)
	require.Contains(t, report.SessionList[0].Sandbox, "read-only")
	require.NotContains(t, codes(report), codeUnlinked)
}

// meta is a header of a thread, with more fields in front.
func meta(id, more string) string {
	return fmt.Sprintf(`{"timestamp":"2026-03-01T09:00:00Z","type":"session_meta","payload":{%s"id":%q,"timestamp":"2026-03-01T09:00:00Z","cwd":"/w"}}`, more, id)
}

func spawned(parent string) string {
	return fmt.Sprintf(`"source":{"subagent":{"thread_spawn":{"parent_thread_id":%q,"depth":1}}},`, parent)
}

func msg(typ, more string) string {
	return fmt.Sprintf(`{"timestamp":"2026-03-01T09:00:01Z","type":"event_msg","payload":{"type":%q%s}}`, typ, more)
}

func item(typ, more string) string {
	return fmt.Sprintf(`{"timestamp":"2026-03-01T09:00:01Z","type":"response_item","payload":{"type":%q%s}}`, typ, more)
}

func turnContext(turn, fields string) string {
	return fmt.Sprintf(`{"timestamp":"2026-03-01T09:00:01Z","type":"turn_context","payload":{"turn_id":%q,"cwd":"/w"%s}}`, turn, fields)
}

const readOnly = `,"sandbox_policy":{"type":"read-only"},"approval_policy":"never"`

// TestFirstGeneration: spawn_agent of V1 answers with the thread's id, and the
// harness's own event names it where a script made the call.
func TestFirstGeneration(t *testing.T) {
	dir := t.TempDir()
	lines(t, dir, "p.jsonl", meta("parent-1", ""), turnContext("t", readOnly),
		item("function_call", `,"name":"spawn_agent","call_id":"c1","arguments":"{\"message\":\"go\",\"agent_type\":\"worker\"}"`),
		item("function_call_output", `,"call_id":"c1","output":"{\"agent_id\":\"child-v1\",\"nickname\":\"Ray\"}"`),
		turnContext("t2", `,"sandbox_policy":{"mode":"danger-full-access"},"approval_policy":"on-failure"`),
		item("custom_tool_call", `,"name":"exec","call_id":"c2","input":"tools.spawn_agent({})"`),
		msg("collab_agent_spawn_end", `,"call_id":"c2","new_thread_id":"child-script","new_agent_nickname":"Sol"`))
	lines(t, dir, "a.jsonl", meta("child-v1", spawned("parent-1")), turnContext("u", readOnly))
	lines(t, dir, "b.jsonl", meta("child-script", spawned("parent-1")), turnContext("u", readOnly))
	lines(t, dir, "c.jsonl", meta("child-lost", spawned("parent-1")), turnContext("u", readOnly))
	s := newStore(t)
	report := load(t, s, importer.Options{}, dir)
	d := delegation(t, report, find(t, s, "child-v1"))
	require.Equal(t, "c1", d.Call.Value)
	require.Equal(t, "read-only", d.ParentSandbox.Value)
	d = delegation(t, report, find(t, s, "child-script"))
	require.Equal(t, "c2", d.Call.Value)
	require.Equal(t, "danger-full-access", d.ParentSandbox.Value)
	require.Equal(t, "on-failure", d.Approvals.Value)
	d = delegation(t, report, find(t, s, "child-lost"))
	require.Equal(t, importer.Absent, d.Call.Mark, "no call names it")
	require.Equal(t, importer.Absent, d.Sandbox.Mark)
}

// TestForkBoundary: where the header does not count the ancestor's lines, the
// turns do; and where nothing does, all of them count as the ancestor's.
func TestForkBoundary(t *testing.T) {
	const parent, child = "019d0000-0000-7000-8000-00000000000a", "019d0005-0000-7000-8000-00000000000b"
	const before, after = "019d0001-0000-7000-8000-0000000000aa", "019d0006-0000-7000-8000-0000000000bb"
	full := `,"sandbox_policy":{"type":"danger-full-access"},"approval_policy":"never"`
	replayed := []string{meta(parent, ""), msg("task_started", `,"turn_id":"`+before+`"`), turnContext(before, full), item("message", `,"role":"user","content":[]`), msg("task_complete", `,"turn_id":"`+before+`"`)}
	own := []string{msg("task_started", `,"turn_id":"`+after+`"`), turnContext(after, readOnly)}
	for name, c := range map[string]struct {
		head      string
		parent    bool
		lines     []string
		inherited int64
		sandbox   string
		code      string
	}{
		"by turns of the parent":   {meta(child, spawned(parent)), true, append(replayed[:5:5], own...), 5, "read-only", ""},
		"by the times in ids":      {meta(child, spawned(parent)), false, append(replayed[:5:5], own...), 5, "read-only", ""},
		"a person's fork":          {meta(child, `"forked_from_id":"`+parent+`","source":"cli",`), true, append(replayed[1:5:5], own...), 4, "read-only", ""},
		"nothing of its own":       {meta(child, spawned(parent)), true, replayed, 5, "", codeSeedBoundary},
		"ids without times":        {meta("child-x", spawned(parent)), false, append(replayed[:5:5], own...), 7, "", codeSeedBoundary},
		"other ids, known parent":  {meta("child-x", spawned(parent)), true, append(replayed[:5:5], own...), 5, "read-only", ""},
		"nothing replayed":         {meta(child, spawned(parent)), true, own, 0, "read-only", ""},
		"an ordinal that is none":  {meta(child, `"subagent_history_start_ordinal":"x",`+spawned(parent)), true, own, 2, "", codeSeedBoundary},
		"ordinals without numbers": {meta(child, `"subagent_history_start_ordinal":4,`+spawned(parent)), true, own, 2, "", codeSeedBoundary},
	} {
		t.Run(name, func(t *testing.T) {
			dir, s := t.TempDir(), newStore(t)
			if c.parent {
				lines(t, dir, "p.jsonl", replayed...)
			}
			path := lines(t, dir, "c.jsonl", append([]string{c.head}, c.lines...)...)
			report := load(t, s, importer.Options{}, dir)
			for _, x := range report.SessionList {
				if x.File != path {
					continue
				}
				require.Equal(t, c.inherited, x.Inherited)
				stated := ""
				for _, ev := range events(t, s, x.ID) {
					if ev.Type == eventlog.TypeSandboxMode && ev.Inherited == nil && eventlog.Claimed(&ev) == eventlog.ClaimedSwitch {
						stated = ev.Facts.Str("mode")
					}
				}
				require.Equal(t, c.sandbox, stated, "the parent's full access is never the child's own")
			}
			if c.code != "" {
				finding(t, report, c.code)
			} else {
				require.NotContains(t, codes(report), codeSeedBoundary)
			}
			require.Zero(t, load(t, s, importer.Options{}, dir).Events)
		})
	}
}

// TestCase56_ForgedRollout: whatever a rollout says, it is evidence; one that
// names a native session as its parent is not attached to it, and one that has
// a native session's name is refused.
func TestCase56_ForgedRollout(t *testing.T) {
	s := newStore(t)
	external := &eventlog.External{System: System, IDHash: eventlog.ExternalHash(System, "native-1")}
	id := uuid.New()
	c := eventlog.Created{Kind: eventlog.KindRoot, Root: id, MaxDepth: 3, Mode: eventlog.ModeOneShot, External: external, Defaults: importer.Defaults}
	_, err := s.Transact(t.Context(), eventlog.EntryCreate, func(*eventlog.View) ([]eventlog.Batch, error) {
		return []eventlog.Batch{{Session: id, Events: []eventlog.NewEvent{{Type: eventlog.TypeSessionCreated, Facts: c.Facts()}}}}, nil
	})
	require.NoError(t, err)
	dir := t.TempDir()
	lines(t, dir, "a.jsonl", meta("forged", spawned("native-1")), turnContext("t", `,"sandbox_policy":{"type":"danger-full-access"},"approval_policy":"never"`))
	lines(t, dir, "b.jsonl", meta("native-1", ""))
	report := load(t, s, importer.Options{}, dir)
	finding(t, report, importer.CodeNativeParent)
	finding(t, report, importer.CodeNativeID)
	forged := find(t, s, "forged")
	row, err := s.Row(forged)
	require.NoError(t, err)
	require.True(t, row.Evidence)
	require.Equal(t, uuid.Nil, row.Parent)
	e := policyOf(t, s, forged)
	require.Equal(t, "read-only", string(e.Sandbox.Value.Mode))
	children, err := s.Children(id)
	require.NoError(t, err)
	require.Empty(t, children)
}
