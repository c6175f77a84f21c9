package claudecode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
)

// TestTree imports a session of today with its agents: who called whom, in
// which permission mode, how it ended, and what it used.
func TestTree(t *testing.T) {
	s := newStore(t)
	dry := load(t, s, importer.Options{DryRun: true}, "testdata/tree")
	report := load(t, s, importer.Options{}, "testdata/tree")
	dry.DryRun = false
	require.Equal(t, dry.Events, report.Events)
	require.Equal(t, 7, report.Files)
	require.Equal(t, 6, report.Sessions)
	require.Equal(t, 4, report.Delegations)
	require.Equal(t, 1, report.Skipped, "a workflow's journal is no transcript")
	require.EqualValues(t, 1, report.Kept.Duplicate)
	require.EqualValues(t, 1, report.Kept.Unknown)
	require.Empty(t, report.Drift)
	require.ElementsMatch(t, []string{codeUnsandboxed, codeBypass, codeNoEnd, importer.CodeUnknownType, codeNotTranscript}, codes(report))
	require.EqualValues(t, 22, finding(t, report, codeNoEnd).Line, "the workflow; agent b's end is told by a notification")

	root := find(t, s, garden)
	weeds, row2, bed := find(t, s, garden+"/a10000000000000a1"), find(t, s, garden+"/c10000000000000c1"), find(t, s, garden+"/b10000000000000b1")
	reap, compaction := find(t, s, garden+"/f10000000000000f1"), find(t, s, garden+"/acompact-d1")
	for child, parent := range map[uuid.UUID]uuid.UUID{weeds: root, row2: weeds, bed: root, reap: root, compaction: root} {
		row, err := s.Row(child)
		require.NoError(t, err)
		require.Equal(t, parent, row.Parent)
		require.Equal(t, root, row.Root)
		require.Equal(t, eventlog.KindChild, row.Kind)
		e := policyOf(t, s, child)
		require.True(t, e.Evidence)
		require.Equal(t, policy.ReadOnly, e.Sandbox.Value.Mode)
		require.Equal(t, policy.Never, e.Approvals)
	}
	row, err := s.Row(root)
	require.NoError(t, err)
	require.Equal(t, "Beds and weeds", row.Label)
	require.EqualValues(t, 2, row.Turns)
	require.Zero(t, row.Turn, "turn_duration ended it")
	require.EqualValues(t, 6, row.Calls)
	require.Empty(t, row.OpenCalls)
	require.Empty(t, row.OpenAsks)
	require.Equal(t, []eventlog.Count{{Code: "approval_host", N: 1}, {Code: "approval_human", N: 1}}, row.Denials)
	require.EqualValues(t, 12+5+5+3, row.Usage.Input)
	require.EqualValues(t, 31+7+8+3, row.Usage.Output, "as the last line of a response says")
	require.EqualValues(t, 100, row.Usage.CacheRead)
	require.EqualValues(t, 40, row.Usage.CacheWrite)
	e := policyOf(t, s, root)
	require.Equal(t, policy.ReadOnly, e.Sandbox.Value.Mode, "a permission mode is no sandbox")
	require.Equal(t, policy.Approval("bypassPermissions"), e.ApprovalRaw)

	d := delegation(t, report, weeds)
	require.Equal(t, "count the weeds", d.Label)
	require.Equal(t, "explore", d.Provider)
	require.Equal(t, "foreground", d.Mode)
	require.Equal(t, importer.Recorded, d.ParentMark)
	require.Equal(t, importer.Fact{Value: "toolu_a", Mark: importer.Recorded, Seq: 12}, d.Call)
	require.Equal(t, importer.Fact{Value: "default", Mark: importer.Inferred, Seq: 3}, d.Approvals, "the mode before the call")
	require.Equal(t, importer.Absent, d.Sandbox.Mark)
	d = delegation(t, report, row2)
	require.Equal(t, weeds, d.Parent)
	require.Equal(t, 2, d.Depth)
	require.Equal(t, importer.Fact{Value: "default", Mark: importer.Inferred, Seq: 3}, d.Approvals, "the mode when its parent was called")
	d = delegation(t, report, bed)
	require.Equal(t, "background", d.Mode)
	require.Equal(t, "water bed 1", d.Label, "from the call: it has no .meta.json")
	d = delegation(t, report, reap)
	require.Equal(t, "Workflow", d.Tool)
	require.Equal(t, importer.Recorded, d.Call.Mark)
	require.Equal(t, "bypassPermissions", d.Approvals.Value)

	list := events(t, s, compaction)
	require.NotNil(t, list[1].Inherited, "the conversation that it was given")
	require.Equal(t, root, list[1].Inherited.Session)
	require.Equal(t, eventlog.TypeUserMessage, events(t, s, root)[list[1].Inherited.Seq-1].Type)
	side := of(events(t, s, weeds), importer.TypeSidecar)
	require.Len(t, side, 1)
	want, err := os.ReadFile(filepath.Join("testdata/tree/-srv-garden", garden, "subagents/agent-a10000000000000a1.meta.json"))
	require.NoError(t, err)
	require.Equal(t, string(want), string(side[0].Content))

	again := load(t, s, importer.Options{}, "testdata/tree")
	require.Zero(t, again.Events)
	require.Equal(t, 6, again.Unchanged)
	require.Equal(t, report.Lines, again.Lines)
	require.Equal(t, report.DelegationList, again.DelegationList, "from what the run before kept of it")
	require.Equal(t, []string{codeNotTranscript}, codes(again), "what the lines hold was reported then")

	// One file that has grown, and its session's are read again.
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/tree")))
	main, err := os.OpenFile(filepath.Join(dir, "-srv-garden", garden+".jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = main.WriteString("{}\n")
	require.NoError(t, err)
	require.NoError(t, main.Close())
	again = load(t, s, importer.Options{}, dir)
	require.EqualValues(t, 2, again.Events)
	require.Zero(t, again.Unchanged)
	require.Equal(t, report.DelegationList, again.DelegationList)
	require.Equal(t, len(report.Findings), len(again.Findings))
}

// TestOutcomes: what became of a call, and who denied it.
func TestOutcomes(t *testing.T) {
	s := newStore(t)
	load(t, s, importer.Options{}, "testdata/tree")
	list := events(t, s, find(t, s, garden))
	got := map[string]string{}
	for _, ev := range of(list, eventlog.TypeToolResult) {
		got[ev.Facts.Str("call")] = ev.Facts.Str("outcome") + " " + ev.Facts.Str("denial")
	}
	require.Equal(t, map[string]string{"toolu_a": "ok ", "toolu_b": "launched ", "toolu_c": "denied user-rejected", "toolu_d": "denied permission-rule",
		"toolu_e": "ok ", "toolu_w": "launched "}, got)
	got = map[string]string{}
	for _, ev := range of(list, eventlog.TypeApprovalDecided) {
		got[ev.Facts.Str("ask")] = ev.Facts.Str("outcome") + " " + ev.Facts.Str("decider") + " " + ev.Facts.Str("rule")
	}
	require.Equal(t, map[string]string{"toolu_c": "rejected human ", "toolu_d": "rejected host permission-rule"}, got)
}

// TestEveryLineIsAnEvent, in order and byte for byte, whatever it is.
func TestEveryLineIsAnEvent(t *testing.T) {
	for _, path := range []string{"testdata/tree/-srv-garden/" + garden + ".jsonl", "testdata/odd/" + odd + ".jsonl"} {
		s := newStore(t)
		report := load(t, s, importer.Options{}, path)
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		want := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
		require.Equal(t, want, lineContents(events(t, s, report.SessionList[0].ID)))
		require.EqualValues(t, len(want), report.Lines)
	}
}

// TestInline: the sidechains of a session of 2025 are its children.
func TestInline(t *testing.T) {
	s := newStore(t)
	report := load(t, s, importer.Options{}, "testdata/inline")
	require.Equal(t, 3, report.Sessions)
	require.Equal(t, 2, report.Delegations)
	root := find(t, s, "old-session-1")
	sweep, shelve := find(t, s, "old-session-1/inline/o-0003"), find(t, s, "old-session-1/inline/o-0004")
	require.Equal(t, []string{"session/created", "import/other summary", "user/message", "turn/start", "assistant/message", "tool/call", "tool/call",
		"usage/recorded", "tool/result", "tool/result", "import/source"}, types(events(t, s, root)))
	require.Equal(t, []string{"session/created", "user/message", "turn/start", "tool/call", "usage/recorded", "tool/result", "import/source"}, types(events(t, s, sweep)))
	require.Equal(t, []string{"session/created", "user/message", "turn/start", "assistant/message", "usage/recorded", "import/source"}, types(events(t, s, shelve)))
	for child, label := range map[uuid.UUID]string{sweep: "sweep", shelve: "shelve"} {
		d := delegation(t, report, child)
		require.Equal(t, root, d.Parent)
		require.Equal(t, label, d.Label)
		require.Equal(t, importer.Inferred, d.Call.Mark)
	}
	row, err := s.Row(root)
	require.NoError(t, err)
	require.Equal(t, "Tidy the shed", row.Label)
	require.EqualValues(t, 7, row.Usage.Input, "without its children's")
	require.Zero(t, load(t, s, importer.Options{}, "testdata/inline").Events)
}

// TestBeside: an agent's file lies beside its session's; only its first
// message tells which call made it.
func TestBeside(t *testing.T) {
	s := newStore(t)
	report := load(t, s, importer.Options{}, "testdata/beside")
	require.Equal(t, []string{codeCallInferred}, codes(report))
	d := report.DelegationList[0]
	require.Equal(t, find(t, s, "77aa0c3e-0000-4000-8000-00000000be51"), d.Parent)
	require.Equal(t, importer.Recorded, d.ParentMark)
	require.Equal(t, "Explore", d.Provider)
	require.Equal(t, importer.Fact{Value: "plan", Mark: importer.Inferred, Seq: 4}, d.Approvals)
}

// TestForks: lines that were copied are inherited and count once, whether they
// say so or not, and whatever the order of the files.
func TestForks(t *testing.T) {
	path := func(id string) string { return "testdata/fork/" + id + ".jsonl" }
	for _, paths := range [][]string{{"testdata/fork"}, {path(copied), path(forked), path(hedge)}} {
		s := newStore(t)
		dry := load(t, s, importer.Options{DryRun: true}, paths...)
		report := load(t, s, importer.Options{}, paths...)
		require.Equal(t, dry.Events, report.Events)
		require.Equal(t, []string{codeBypass, codeForkInferred}, codes(report))
		origin := find(t, s, hedge)
		original := events(t, s, origin)
		for _, id := range []string{forked, copied} {
			session := find(t, s, id)
			row, err := s.Row(session)
			require.NoError(t, err)
			require.Equal(t, eventlog.KindRoot, row.Kind, "nobody delegated it")
			require.EqualValues(t, 70, row.Usage.Input)
			require.EqualValues(t, 1, row.Turns)
			require.Equal(t, policy.Never, policyOf(t, s, session).Approvals, "the mode is the original's")
			inherited := 0
			for _, ev := range events(t, s, session) {
				if ev.Inherited != nil {
					inherited++
					require.Equal(t, origin, ev.Inherited.Session)
					if ev.HasContent { // the line's own event
						require.Equal(t, original[ev.Inherited.Seq-1].Facts.Str("uuid"), ev.Facts.Str("uuid"))
						require.Equal(t, original[ev.Inherited.Seq-1].Type, ev.Type)
					}
				}
			}
			require.Positive(t, inherited)
		}
		for _, x := range report.SessionList {
			require.Equal(t, map[string]int64{hedge: 0, forked: 3, copied: 3}[x.External], x.Inherited)
		}
		require.Zero(t, load(t, s, importer.Options{}, paths...).Events)
	}

	// Alone, a fork that says so is one all the same; one that does not is a
	// session of its own, and stays what it was once the original comes.
	s := newStore(t)
	report := load(t, s, importer.Options{}, path(forked), path(copied))
	require.Contains(t, codes(report), codeUnlocated)
	require.Equal(t, importer.SessionID(System, hedge), events(t, s, find(t, s, forked))[2].Inherited.Session)
	require.Nil(t, events(t, s, find(t, s, copied))[2].Inherited)
	report = load(t, s, importer.Options{}, "testdata/fork")
	require.Equal(t, 1, report.NewSessions)
	require.NotContains(t, codes(report), importer.CodeChanged)
}

// TestOdd: lines that are wrong in every way are kept, counted and located,
// and with strict nothing of their file is taken.
func TestOdd(t *testing.T) {
	s := newStore(t)
	strict := load(t, s, importer.Options{Strict: true}, "testdata/odd")
	require.Equal(t, 1, strict.Refused)
	require.Equal(t, 2, strict.Skipped)
	require.Zero(t, strict.Events)
	require.Contains(t, codes(strict), importer.CodeRefused)

	report := load(t, s, importer.Options{}, "testdata/odd")
	require.Equal(t, importer.Kept{Blank: 1, NonObject: 3, Untyped: 1, Unreadable: 2, Malformed: 3, Unknown: 3}, report.Kept)
	require.EqualValues(t, 7, finding(t, report, importer.CodeUnreadable).Line)
	require.EqualValues(t, 14, finding(t, report, importer.CodeTime).Line)
	require.EqualValues(t, 16, finding(t, report, codeUnknownMode).Line)
	session := find(t, s, odd)
	list := events(t, s, session)
	require.Equal(t, []string{"session/created", "user/message", "turn/start", "import/other blank", "import/other non-object", "import/other non-object",
		"import/other non-object", "import/other untyped", "import/other unreadable", "import/other unreadable", "import/other user", "user/message", "turn/end",
		"turn/start", "import/other assistant", "tool/call", "tool/result", "user/message", "turn/end", "turn/start", "user/message", "turn/end", "turn/start",
		"approval/policy", "import/other permission-mode", "import/other session/created", "import/other import/source"},
		types(list)[:27], "a malformed line does not take its uuid from the sound one")
	require.Equal(t, "e-0004#1", of(list, eventlog.TypeToolCall)[0].Facts.Str("call"), "it has no id")
	require.Equal(t, "e-0004#1", of(list, eventlog.TypeToolResult)[0].Facts.Str("call"))
	require.Equal(t, policy.Ask, policyOf(t, s, session).Approvals)
	require.Zero(t, load(t, s, importer.Options{}, "testdata/odd").Events)
}
