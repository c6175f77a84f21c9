package claudecode

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/cmd/childlog/internal/importtest"
	"childlog/eventlog"
	"childlog/policy"
)

func samples(t testing.TB) string { return importtest.Samples(t, "claude-code") }

// TestSamples imports every sample into one store.
func TestSamples(t *testing.T) {
	dir, s := samples(t), newStore(t)
	dry := load(t, s, importer.Options{DryRun: true}, dir)
	report := load(t, s, importer.Options{}, dir)
	require.Equal(t, dry.Events, report.Events)
	require.Equal(t, dry.Findings, report.Findings)
	require.Equal(t, 4, report.Files)
	require.Equal(t, 4, report.Sessions)
	require.Zero(t, report.Skipped)
	require.EqualValues(t, 40, report.Lines)
	require.Equal(t, importer.Kept{NonObject: 3, Untyped: 1, Malformed: 3}, report.Kept)
	require.Equal(t, []string{importer.CodeMalformed, importer.CodeMalformed, importer.CodeMalformed, importer.CodeTorn, codeBypass, codeCallInferred}, codes(report))
	require.Empty(t, report.Drift)

	byName := map[string]importer.Session{}
	for _, x := range report.SessionList {
		byName[filepath.Base(x.File)] = x
		raw, err := os.ReadFile(x.File)
		require.NoError(t, err)
		var want []string
		for _, l := range bytes.SplitAfter(raw, []byte("\n")) {
			if whole, ok := bytes.CutSuffix(l, []byte("\n")); ok {
				want = append(want, string(whole))
			}
		}
		require.Equal(t, want, lineContents(events(t, s, x.ID)), x.File)
		e := policyOf(t, s, x.ID)
		require.True(t, e.Evidence)
		require.Equal(t, policy.ReadOnly, e.Sandbox.Value.Mode)
		require.Equal(t, e.Sandbox.Value.String(), x.Sandbox)
		require.Equal(t, string(e.Approvals), x.Approvals)
	}

	// A session in bypassPermissions, whose person rejected two calls before
	// such a rejection was a field of its own.
	session := find(t, s, "55604662-cf2a-4331-851a-ec234028f8ca")
	require.Equal(t, session, byName["short.jsonl"].ID)
	row, err := s.Row(session)
	require.NoError(t, err)
	require.Equal(t, []eventlog.Count{{Code: "approval_human", N: 2}}, row.Denials)
	require.EqualValues(t, 13, row.Usage.Output, "of a response on five lines, once")
	require.EqualValues(t, 1, row.Usage.Of)
	for _, ev := range of(events(t, s, session), eventlog.TypeToolResult) {
		require.Equal(t, outcomeDenied, ev.Facts.Str("outcome"))
		require.True(t, ev.Facts.Bool("inferred"))
	}
	require.Equal(t, policy.Approval(modeBypass), policyOf(t, s, session).ApprovalRaw)

	// The agent's lines name no session and the call has neither id nor prompt.
	d := report.DelegationList[0]
	require.Equal(t, find(t, s, "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"), d.Parent)
	require.Equal(t, importer.Inferred, d.ParentMark, "by the folder alone")
	require.Equal(t, importer.Fact{Value: "pa1#1", Mark: importer.Inferred, Seq: 6}, d.Call)
	require.Equal(t, importer.Absent, d.Approvals.Mark)
	require.Equal(t, importer.Effective{Sandbox: "read-only (network off)", Approvals: "never"}, d.Effective)

	again := load(t, s, importer.Options{}, dir)
	require.Zero(t, again.Events)
	require.Equal(t, report.DelegationList, again.DelegationList)
}
