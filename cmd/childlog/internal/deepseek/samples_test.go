package deepseek

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// TestSamples imports every sample log into one store. Two pairs of files
// share an id, and three hold placeholders instead of ids: each still gets a
// session of its own.
func TestSamples(t *testing.T) {
	dir, s := samples(t), newStore(t)
	report := load(t, s, importer.Options{}, dir)
	require.Equal(t, 14, report.Files)
	require.Equal(t, 14, report.Sessions)
	require.Equal(t, 14, report.NewSessions)
	require.Zero(t, report.Skipped)
	require.EqualValues(t, 456, report.Lines)
	require.EqualValues(t, 456+2*14, report.Events, "a line is an event, the header two, and each file ends with its source")
	require.Equal(t, 7, report.Delegations)
	require.Empty(t, report.Drift)

	type row struct {
		kind, label, parent string // parent: file name in the same folder
		lines               int64
		inherited           int64
		explicit            bool // an override
		findings            []string
	}
	want := map[string]row{
		"escalation-approved/session.jsonl":                 {kind: "root", label: "The sandbox already denied writing", lines: 37},
		"escalation-rejected/session.jsonl":                 {kind: "root", label: "The sandbox already denied writing", lines: 36},
		"parent-override/child.expected.jsonl":              {kind: "child", label: "Delegated write probe", parent: "parent.expected.jsonl", lines: 30, explicit: true, findings: []string{"parent-inferred", "placeholder-id", "unpinned"}},
		"parent-override/child.replay.jsonl":                {kind: "child", lines: 18, findings: []string{"parent-missing", "unpinned"}},
		"parent-override/parent.expected.jsonl":             {kind: "root", label: "Tighten this session to read-only.", lines: 33, explicit: true, findings: []string{"placeholder-id"}},
		"subagent-child-question-rejection/session.1.jsonl": {kind: "child", label: "Check deployment question", parent: "session.jsonl", lines: 30},
		"subagent-child-question-rejection/session.jsonl":   {kind: "root", label: "Delegate one question check. Ask", lines: 28},
		"subagent-continuable-inheritance/session.1.jsonl":  {kind: "child", label: "Reply with CHILD_OK", parent: "session.jsonl", lines: 22, explicit: true},
		"subagent-continuable-inheritance/session.jsonl":    {kind: "root", label: "Follow these steps exactly, then", lines: 42, explicit: true},
		"subagent-depth-two-rejection/session.1.jsonl":      {kind: "child", label: "Start depth one", parent: "session.jsonl", lines: 30},
		"subagent-depth-two-rejection/session.2.jsonl":      {kind: "child", label: "Start depth two", parent: "session.1.jsonl", lines: 30, findings: []string{"id-collision"}},
		"subagent-depth-two-rejection/session.jsonl":        {kind: "root", label: "Delegate through two child generations.", lines: 28, findings: []string{"id-collision"}},
		"subagent-fork-in-process/session.1.jsonl":          {kind: "child", label: "Recall project codeword", parent: "session.jsonl", lines: 42, inherited: 20},
		"subagent-fork-in-process/session.jsonl":            {kind: "root", label: "Remember this fact for later:", lines: 50},
	}
	byFile := map[string]importer.Session{}
	for _, x := range report.SessionList {
		byFile[x.File] = x
	}
	found := map[string][]string{}
	for _, f := range report.Findings {
		found[f.File] = append(found[f.File], f.Code)
	}
	require.Len(t, byFile, len(want))
	for name, w := range want {
		path := filepath.Join(dir, name)
		got := byFile[path]
		require.Equal(t, w.kind, got.Kind, name)
		require.Equal(t, w.label, got.Label, name)
		require.Equal(t, w.lines, got.Lines, name)
		require.Equal(t, w.lines+2, got.Events, name)
		require.Equal(t, w.inherited, got.Inherited, name)
		require.ElementsMatch(t, w.findings, found[path], name)

		// The store says the same as the report, and no log is worth more
		// than read-only: none records its default, and those that switch
		// switch to just that.
		e := policyOf(t, s, got.ID)
		require.True(t, e.Evidence, name)
		require.Equal(t, policy.ReadOnly, e.Sandbox.Value.Mode, name)
		require.False(t, e.Sandbox.Value.Network, name)
		require.Equal(t, policy.Never, e.Approvals, name)
		require.Equal(t, w.explicit, e.Explicit, name)
		require.Equal(t, policy.SourceImport, e.Sandbox.Cause().Source, name)
		require.Equal(t, e.Sandbox.Value.String(), got.Sandbox, name)
		require.Equal(t, string(e.Approvals), got.Approvals, name)

		row, err := s.Row(got.ID)
		require.NoError(t, err)
		require.Equal(t, uint64(w.lines+2), row.Head, name)
		require.Equal(t, eventlog.StatusEvidence, row.Status(s.Boot()), name)
		if w.parent != "" {
			require.Equal(t, byFile[filepath.Join(dir, filepath.Dir(name), w.parent)].ID, row.Parent, name)
		}
		checkContents(t, s, path, got)
	}

	again := load(t, s, importer.Options{}, dir)
	require.Zero(t, again.Events)
	require.Zero(t, again.NewSessions)
	require.Equal(t, 14, again.Sessions)
}

// checkContents compares every line with the content of its event.
func checkContents(t *testing.T, s *eventlog.Store, path string, got importer.Session) {
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	list := events(t, s, got.ID)
	for i, line := range bytes.Split(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n")) {
		require.Equal(t, string(line), string(list[i+1].Content), "%s line %d", path, i+1)
		require.Equal(t, eventlog.MediaJSON, list[i+1].Media)
		require.Equal(t, eventlog.SourceImport, list[i+1].Source)
	}
	last := list[len(list)-1]
	require.Equal(t, importer.TypeSource, last.Type)
	require.Equal(t, uint64(len(raw)), last.Facts.Uint("bytes"))
	require.Equal(t, path, string(last.Content))
}

// TestSampleFork: the seed of 42 events is 20 lines. Counted by lines it would
// reach to the end of the file and swallow the pin.
func TestSampleFork(t *testing.T) {
	dir, s := samples(t), newStore(t)
	report := load(t, s, importer.Options{}, filepath.Join(dir, "subagent-fork-in-process"))
	child := find(t, s, "ada8966c-9fa3-441b-8721-37ff1e795e6a")
	parent := find(t, s, "96cf59c9-b347-48b9-b234-a5200913ad05")
	e := policyOf(t, s, child)
	require.Equal(t, uint64(24), e.BornSeq, "the pin, on line 23")
	require.Empty(t, e.Findings)
	list := events(t, s, child)
	for _, ev := range list[2:22] {
		require.Equal(t, &eventlog.Ref{Session: parent, Seq: ev.Seq}, ev.Inherited, "seq %d: the parent's line of the same number", ev.Seq)
	}
	require.Equal(t, eventlog.TypeSessionEndSeed, list[22].Type, "right behind the seed")
	for _, ev := range list[22:] {
		require.Nil(t, ev.Inherited)
	}
	d := delegation(t, report, child)
	require.Equal(t, importer.Fact{Value: "never", Mark: importer.Recorded, Seq: 24}, d.Approvals)
	require.Equal(t, importer.Absent, d.Sandbox.Mark)
	require.Equal(t, "danger-full-access", d.Told.Sandbox.Value, "the model was told the default, which no event records")
	require.Equal(t, importer.Inferred, d.Told.Sandbox.Mark)
	require.Equal(t, "subagent_fork", d.Tool)
	require.Equal(t, uint64(37), d.Call.Seq)
}

// TestSampleContinuable: the descriptor comes before session/end-seed and is
// the child's own; that end-seed ends no seed.
func TestSampleContinuable(t *testing.T) {
	dir, s := samples(t), newStore(t)
	report := load(t, s, importer.Options{}, filepath.Join(dir, "subagent-continuable-inheritance"))
	child := find(t, s, "33333333-3333-4333-8333-333333333333")
	require.Equal(t, []string{"session/created", "import/other session", "subagent/descriptor", "import/other session/end-seed", "sandbox/mode", "approval/policy"},
		types(events(t, s, child))[:6])
	d := delegation(t, report, child)
	require.Equal(t, "continuable", d.Mode)
	require.Equal(t, importer.Recorded, d.Call.Mark, "the call's result names the child")
	require.Equal(t, importer.Fact{Value: "read-only", Mark: importer.Recorded, Seq: 3}, d.ParentSandbox)
	require.Equal(t, importer.Fact{Value: "read-only", Mark: importer.Recorded, Seq: 5}, d.Sandbox)
	row, err := s.Row(child)
	require.NoError(t, err)
	require.Equal(t, "continuable", row.Mode)
	require.Equal(t, "spawn", row.Provider)
	x, err := replay.Explain(t.Context(), s, child, "sandbox.mode", 0)
	require.NoError(t, err)
	require.Len(t, x.Chain, 2)
	require.Equal(t, "read-only", x.Chain[0].Value, "what the parent held when it called")
}

// TestSampleEscalations: the person's decision is there, who decided is not.
func TestSampleEscalations(t *testing.T) {
	dir, s := samples(t), newStore(t)
	load(t, s, importer.Options{}, filepath.Join(dir, "escalation-approved"), filepath.Join(dir, "escalation-rejected"))
	for id, outcome := range map[string]string{"f3cbd087-fb45-4b32-b0f2-3082d65bfcb4": "allowed-once", "d692fe7f-7079-4ee4-8b06-f44fd026d4ea": "rejected"} {
		session := find(t, s, id)
		var ask string
		seen := 0
		for _, ev := range events(t, s, session) {
			switch ev.Type {
			case eventlog.TypeApprovalAsked:
				ask = ev.Facts.Str("ask")
				require.Equal(t, "bash", ev.Facts.Str("tool"))
				seen++
			case eventlog.TypeApprovalDecided:
				require.Equal(t, ask, ev.Facts.Str("ask"))
				require.Equal(t, outcome, ev.Facts.Str("outcome"))
				require.Equal(t, "unrecorded", ev.Facts.Str("decider"))
				seen++
			case eventlog.TypeToolResult:
				require.Equal(t, map[string]string{"allowed-once": "ok", "rejected": "error"}[outcome], ev.Facts.Str("outcome"))
				seen++
			}
		}
		require.Equal(t, 3, seen)
		row, err := s.Row(session)
		require.NoError(t, err)
		require.Empty(t, row.OpenCalls)
		require.Empty(t, row.OpenAsks)
	}
}
