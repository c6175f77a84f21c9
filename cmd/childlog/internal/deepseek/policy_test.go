package deepseek

import (
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/policy"
	"childlog/replay"
)

// TestDelegationsAndDrift: the two reports over a tree of three.
func TestDelegationsAndDrift(t *testing.T) {
	s := newStore(t)
	report := load(t, s, importer.Options{}, "testdata/tree")
	root, child, grandchild := find(t, s, "r-0001"), find(t, s, "c-0002"), find(t, s, "g-0003")
	require.Equal(t, 2, report.Delegations)

	d := delegation(t, report, child)
	require.Equal(t, root, d.Parent)
	require.Equal(t, importer.Recorded, d.ParentMark)
	require.Equal(t, "survey the orchard", d.Label)
	require.Equal(t, "spawn", d.Provider)
	require.Equal(t, importer.Fact{Value: "call-survey", Mark: importer.Recorded, Seq: 7}, d.Call, "its result names the child")
	require.Equal(t, importer.Fact{Value: "workspace-write", Mark: importer.Recorded, Seq: 6}, d.ParentSandbox)
	require.Equal(t, importer.Fact{Value: "workspace-write", Mark: importer.Recorded, Seq: 3}, d.Sandbox)
	require.Equal(t, importer.Fact{Value: "never", Mark: importer.Recorded, Seq: 4}, d.Approvals)
	require.Equal(t, "read-only (network off)", d.Effective.Sandbox)

	d = delegation(t, report, grandchild)
	require.Equal(t, child, d.Parent)
	require.Equal(t, importer.Fact{Value: "call-rows", Mark: importer.Inferred, Seq: 8}, d.Call, "the only call of this label")
	require.Equal(t, importer.Fact{Value: "read-only", Mark: importer.Recorded, Seq: 7}, d.ParentSandbox, "the child's own switch")
	require.Equal(t, "read-only (network off)", d.Effective.Sandbox)
	require.Equal(t, "never", d.Effective.Approvals)

	require.Equal(t, []importer.Drift{
		{Session: child, External: "c-0002", Field: "sandbox", AtDelegation: importer.Fact{Value: "workspace-write", Mark: importer.Recorded, Seq: 3},
			AtWork: importer.Fact{Value: "read-only", Mark: importer.Recorded, Seq: 7}, Counts: "read-only (network off)", Detail: "1 switch; narrower than the delegation"},
		{Session: grandchild, External: "g-0003", Field: "sandbox", AtDelegation: importer.Fact{Value: "read-only", Mark: importer.Recorded, Seq: 4},
			AtWork: importer.Fact{Value: "danger-full-access", Mark: importer.Recorded, Seq: 7}, Counts: "read-only (network off)", Detail: "1 switch; wider than the delegation, which is kept"},
		{Session: grandchild, External: "g-0003", Field: "approvals", AtDelegation: importer.Fact{Value: "never", Mark: importer.Recorded, Seq: 5},
			AtWork: importer.Fact{Value: "on-request", Mark: importer.Recorded, Seq: 8}, Counts: "never", Detail: "a child's approvals are never, whatever its log says later"},
	}, report.Drift)
	widened := finding(t, report, replay.FindingWidened)
	require.Equal(t, grandchild, widened.Session)
	require.EqualValues(t, 7, widened.Seq)
	require.EqualValues(t, 6, widened.Line)
	require.Contains(t, codes(report), replay.FindingForeignAsk)

	e := policyOf(t, s, root)
	require.Equal(t, policy.WorkspaceWrite, e.Sandbox.Value.Mode)
	require.Equal(t, []string{"/srv/orchard"}, e.Sandbox.Value.Roots.List(), "the directory of the header")
	require.False(t, e.Sandbox.Value.Network)
	require.True(t, e.Sandbox.Value.ExcludeSlashTmp, "what is not stated is not permitted")
	row, err := s.Row(root)
	require.NoError(t, err)
	require.Equal(t, "Survey the orchard", row.Label)
	require.EqualValues(t, 1, row.Denials[0].N)
}

// TestPolicyLines: what each policy event of a child is worth.
func TestPolicyLines(t *testing.T) {
	sandbox := func(data string) string { return `{"type":"sandbox/mode","data":` + data + `}` }
	approval := func(data string) string { return `{"type":"approval/policy","data":` + data + `}` }
	for name, c := range map[string]struct {
		lines     []string
		sandbox   string
		approvals policy.Approval
		codes     []string
		drift     int
	}{
		"pinned only":           {[]string{pinLine}, "read-only (network off)", policy.Never, nil, 0},
		"nothing":               {[]string{turnLine}, "read-only (network off)", policy.Never, []string{"unpinned"}, 0},
		"captured top":          {[]string{grantLine, pinLine}, "danger-full-access (network on)", policy.Never, nil, 0},
		"captured workspace":    {[]string{sandbox(`{"mode":"workspace-write","source":"delegation"}`), pinLine}, "workspace-write /w (network off, no $TMPDIR, no /tmp)", policy.Never, nil, 0},
		"switch without grant":  {[]string{pinLine, sandbox(`{"mode":"danger-full-access"}`)}, "read-only (network off)", policy.Never, []string{"widened"}, 1},
		"unknown mode":          {[]string{sandbox(`{"mode":"external-sandbox","source":"delegation"}`), pinLine}, "read-only (network off)", policy.Never, []string{"foreign-mode"}, 0},
		"mode with blanks":      {[]string{sandbox(`{"mode":"do what you like","source":"delegation"}`), pinLine}, "read-only (network off)", policy.Never, []string{"foreign-mode"}, 0},
		"mode missing":          {[]string{grantLine, pinLine, sandbox(`{}`)}, "read-only (network off)", policy.Never, []string{"malformed", "foreign-mode"}, 1},
		"mode of another kind":  {[]string{grantLine, pinLine, sandbox(`{"mode":{"type":"danger-full-access"}}`)}, "read-only (network off)", policy.Never, []string{"malformed", "foreign-mode"}, 1},
		"more than understood":  {[]string{sandbox(`{"mode":"danger-full-access","source":"delegation","writableRoots":["/only"]}`), pinLine}, "danger-full-access (network on)", policy.Never, []string{"foreign-field"}, 0},
		"other source":          {[]string{sandbox(`{"mode":"danger-full-access","source":"user"}`), pinLine}, "read-only (network off)", policy.Never, []string{"widened"}, 1},
		"a pin that asks":       {[]string{approval(`{"policy":"ask","source":"delegation"}`)}, "read-only (network off)", policy.Never, []string{"bad-pin", "unpinned", "widened"}, 1},
		"asks after the pin":    {[]string{pinLine, approval(`{"policy":"ask"}`)}, "read-only (network off)", policy.Never, []string{"widened"}, 1},
		"policy missing":        {[]string{pinLine, approval(`{}`)}, "read-only (network off)", policy.Never, []string{"malformed"}, 0},
		"granted after the pin": {[]string{pinLine, grantLine}, "read-only (network off)", policy.Never, []string{"widened"}, 1},
		"granted twice":         {[]string{sandbox(`{"mode":"read-only","source":"delegation"}`), pinLine, grantLine, pinLine}, "read-only (network off)", policy.Never, []string{"widened"}, 1},
		"unknown policy type":   {[]string{grantLine, pinLine, `{"type":"sandbox/roots","data":{"roots":[]}}`}, "danger-full-access (network on)", policy.Never, []string{"unknown-policy"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			all := append([]string{`{"type":"session","version":0,"id":"s","createdAt":1,"cwd":"/w","parentSession":"p","delegationDepth":1}`}, c.lines...)
			report := load(t, s, importer.Options{}, lines(t, t.TempDir(), "a.jsonl", all...))
			var got []string
			for _, code := range codes(report) {
				if code != importer.CodeParentMissing {
					got = append(got, code)
				}
			}
			require.ElementsMatch(t, c.codes, got)
			e := policyOf(t, s, find(t, s, "s"))
			require.Equal(t, c.sandbox, e.Sandbox.Value.String())
			require.Equal(t, c.approvals, e.Approvals)
			require.Len(t, report.Drift, c.drift)
			require.Equal(t, importer.Effective{Sandbox: c.sandbox, Approvals: string(c.approvals)}, report.DelegationList[0].Effective)
		})
	}
}

// TestToldOtherwise: what the model was told is inferred, changes nothing, and
// is drift where it goes against the log.
func TestToldOtherwise(t *testing.T) {
	s := newStore(t)
	told := func(sandbox, approvals string) string {
		return `{"type":"user/message","data":{"source":{"kind":"plugin","plugin":"@deepseek-ai/dsh-system-prompt","sections":[{"name":"sandbox:policy","text":"Current DSH file policy: ` + sandbox + `. More."},{"name":"approval:policy","text":"` + approvals + `"}]}}}`
	}
	path := lines(t, t.TempDir(), "a.jsonl", head("s", "p"), `{"type":"sandbox/mode","data":{"mode":"read-only","source":"delegation"}}`, pinLine,
		told("danger-full-access", "Approval policy: ask. Go on."))
	report := load(t, s, importer.Options{}, path)
	require.Equal(t, importer.Fact{Value: "danger-full-access", Mark: importer.Inferred, Seq: 5}, report.DelegationList[0].Told.Sandbox)
	require.Len(t, report.Drift, 2)
	require.Equal(t, importer.Inferred, report.Drift[0].AtWork.Mark)
	require.Equal(t, "read-only (network off)", report.Drift[0].Counts)
	require.Equal(t, "never", report.Drift[1].Counts)

	agreeing := lines(t, t.TempDir(), "b.jsonl", head("t", "p"), `{"type":"sandbox/mode","data":{"mode":"read-only","source":"delegation"}}`, pinLine,
		told("read-only", "Approval prompts are disabled in this session: no."))
	require.Empty(t, load(t, s, importer.Options{}, agreeing).Drift)
}
