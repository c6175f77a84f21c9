package eventlog

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"childlog/policy"
	"childlog/policy/objection"
)

// fullReceipt has every field set.
func fullReceipt(t testing.TB) Granted {
	roots := must(policy.RootsOf("/w", "/tmp/x"))
	write := policy.Sandbox{Mode: policy.WorkspaceWrite, Roots: roots, Network: true, ExcludeSlashTmp: true}
	at := policy.Origin{Session: sid(7), Seq: 3}
	deny := must(policy.NewDenyList(policy.DenyParent, at, "exec_*", "fetch_url"))
	scoped := policy.TopHalf()
	scoped.Profile.Tools = must(policy.ToolsList("read", "write"))
	scoped.Profile.Denied = deny
	scoped.Profile.Limits = policy.Limits{DeadlineMS: 1_800_000_000_000, MaxSteps: 40, MaxDepth: 2}
	scoped.Profile.Providers = must(policy.NameSetOf("a", "b"))
	scoped.Profile.Capabilities = must(policy.NameSetOf())
	scoped.Grant.MaxChildren = new(0)
	scoped.Grant.Scope = must(policy.ParseScope([]string{"src", "docs/a b"}))
	explicit := []policy.ExplicitGrant{{ID: "worker", Issuer: at, ExpiresMS: 99, Uses: 2}}
	rules := must(policy.NewOperatorRules(policy.Origin{Session: StoreSession, Seq: 2}, []string{"chmod*"}, []string{"secrets"}))
	granted := policy.Authority{Own: scoped, Delegable: policy.TopHalf(), Operator: rules, Explicit: explicit}.Canonical()
	ceiling := policy.Authority{Own: policy.TopHalf(), Delegable: scoped, Explicit: explicit}.Canonical()
	return Granted{Principal: Principal{Kind: PrincipalPerson, Ref: "p-17"}, IssuerEpoch: 2, Parent: sid(1), Child: sid(2), Root: sid(0), Depth: 1, MaxDepth: 3,
		ParentReceipt: Hash{9}, ParentSeq: 9, ParentHead: Hash{1}, Capture: Hash{2}, ToolCall: "c1", Ceiling: ceiling, Requested: policy.Authority{Own: scoped, Delegable: scoped}.Canonical(),
		Granted: granted, Cuts: []policy.Cut{{Field: "shell", From: "full", To: "none", Rule: policy.RuleRolePreset}}, Relied: explicit,
		Sandbox: &write, Defaults: policy.Defaults{Sandbox: write, Approvals: policy.Never}, Lockdown: []string{"block_edit"}, Inspection: "clean",
		Merge: policy.MergeTransactionalWrite, WorkspaceRoot: "/w", NotBefore: 5,
		Choices: policy.Choices{Role: policy.RoleTest, Model: "m-1", Provider: "p", Effort: "high", Background: true},
		Palette: []policy.PaletteEntry{{Name: "lint", Class: policy.ClassRead}}, ClassTable: 1, SeedLen: 4, SeedDigest: Hash{3},
		Evidence: map[string]string{"model": EvidenceRecorded}, Commitments: Commitments{Prompt: Hash{5}, Request: Hash{6}, Manifest: Hash{7}},
		Fingerprint: policy.FingerprintOf(policy.RoleTest, granted).Sum, Key: Hash{4}}
}

// TestReceiptRoundTrip: a receipt is read as it was written, every field of it.
func TestReceiptRoundTrip(t *testing.T) {
	g := fullReceipt(t)
	facts, err := g.Facts()
	require.NoError(t, err)
	require.NoError(t, checkFacts(TypeDelegationGranted, facts))
	got, err := ParseGranted(event(TypeDelegationGranted, ReceiptVersion, facts))
	require.NoError(t, err)
	for _, pair := range [][2]policy.Authority{{g.Ceiling, got.Ceiling}, {g.Requested, got.Requested}, {g.Granted, got.Granted}} {
		require.True(t, pair[0].Equal(pair[1]), "%v and %v", pair[0], pair[1])
		require.Equal(t, pair[0].Own.Profile.Denied.Entries(), pair[1].Own.Profile.Denied.Entries(), "with kinds and origins")
	}
	require.Equal(t, g, got)
	again, err := got.Facts()
	require.NoError(t, err)
	require.Equal(t, facts, again, "and encodes to the same bytes")
}

// TestProfileAndCeilingRoundTrip does the same for the other two that hold
// halves.
func TestProfileAndCeilingRoundTrip(t *testing.T) {
	g := fullReceipt(t)
	p := Profile{Authority: policy.Authority{Own: g.Granted.Own, Delegable: g.Granted.Delegable, Explicit: g.Granted.Explicit}, Choices: g.Choices,
		Principal: g.Principal, Palette: g.Palette, Lockdown: g.Lockdown}
	facts, err := p.Facts()
	require.NoError(t, err)
	require.NoError(t, checkFacts(TypePolicyProfile, facts))
	got, err := ParseProfile(event(TypePolicyProfile, 1, facts))
	require.NoError(t, err)
	require.Equal(t, p, got)

	for _, c := range []Ceiling{{Half: &g.Granted.Own}, {Sandbox: g.Sandbox}, {Rules: g.Granted.Operator}, {Half: &g.Granted.Own, Sandbox: g.Sandbox, Rules: g.Granted.Operator}} {
		facts, err := c.Facts("operator")
		require.NoError(t, err)
		require.NoError(t, checkFacts(TypePolicyNarrowed, facts))
		got, err := ParseNarrowed(event(TypePolicyNarrowed, 1, facts))
		require.NoError(t, err)
		require.Equal(t, c, got)
	}
	facts, err = Ceiling{}.Facts("operator")
	require.NoError(t, err)
	_, err = ParseNarrowed(event(TypePolicyNarrowed, 1, facts))
	require.ErrorIs(t, err, ErrCorrupt, "a narrowing that limits nothing was not written by us")
}

// TestCase6_ToolScopesStayApart: absent, null, [] and [read] are four things
// after they were stored.
func TestCase6_ToolScopesStayApart(t *testing.T) {
	for name, tools := range map[string]policy.Tools{"absent": policy.ToolsAbsent(), "null": policy.ToolsNull(),
		"nothing": must(policy.ToolsList()), "read": must(policy.ToolsList("read"))} {
		g := fullReceipt(t)
		g.Granted.Own.Profile.Tools = tools
		g.Granted = g.Granted.Canonical()
		facts, err := g.Facts()
		require.NoError(t, err)
		got, err := ParseGranted(event(TypeDelegationGranted, ReceiptVersion, facts))
		require.NoError(t, err)
		require.Equal(t, tools, got.Granted.Own.Profile.Tools, name)
		require.Equal(t, tools.State(), got.Granted.Own.Profile.Tools.State(), name)
	}
}

// TestReceiptDamage: what the reader can't be sure of is damage, never a wider
// grant.
func TestReceiptDamage(t *testing.T) {
	facts := must(fullReceipt(t).Facts())
	for name, change := range map[string]func(m map[string]any){
		"an index beyond the table":   func(m map[string]any) { ownHalf(m)["denied"] = []any{int64(99)} },
		"a negative index":            func(m map[string]any) { ownHalf(m)["denied"] = []any{int64(-1)} },
		"a digest of other rules":     func(m map[string]any) { m["operator"].(map[string]any)["digest"] = make([]byte, 32) },
		"a rule less":                 func(m map[string]any) { m["operator"].(map[string]any)["rules"] = []any{} },
		"a palette of other entries":  func(m map[string]any) { m["palette"].(map[string]any)["entries"] = []any{} },
		"an unknown level":            func(m map[string]any) { ownHalf(m)["shell"] = "root" },
		"a scope that climbs":         func(m map[string]any) { ownHalf(m)["grant"].(map[string]any)["write_scope"] = []any{"a/../.."} },
		"tools of the wrong kind":     func(m map[string]any) { ownHalf(m)["tools"] = "read" },
		"no grant":                    func(m map[string]any) { delete(ownHalf(m), "grant") },
		"no own half":                 func(m map[string]any) { delete(m["granted"].(map[string]any), "own") },
		"no granted authority at all": func(m map[string]any) { delete(m, "granted") },
		"a deadline before time":      func(m map[string]any) { ownHalf(m)["deadline"] = int64(-5) },
		"a principal without a ref":   func(m map[string]any) { delete(m["principal"].(map[string]any), "ref") },
		"approvals that ask":          func(m map[string]any) { m["approvals"] = "ask" },
	} {
		m, err := facts.Map()
		require.NoError(t, err)
		change(m)
		_, err = ParseGranted(event(TypeDelegationGranted, ReceiptVersion, must(MakeFacts(m))))
		require.ErrorIs(t, err, ErrCorrupt, name)
	}
}

func ownHalf(m map[string]any) map[string]any {
	return m["granted"].(map[string]any)["own"].(map[string]any)
}

// TestReceiptOfVersion0: a child of the first release recorded no authority.
// It may read, and no more.
func TestReceiptOfVersion0(t *testing.T) {
	g, err := ParseGranted(event(TypeDelegationGranted, 0, must(MakeFacts(map[string]any{"schema": 0, "issuer": map[string]any{"session": sid(1), "epoch": 0, "source": "delegation", "claimed": false},
		"parent": sid(1), "child": sid(2), "root": sid(1), "depth": 1, "max_depth": 3, "parent_seq": 1, "parent_head": Hash{1}, "capture": Hash{2},
		"defaults": map[string]any{"sandbox": map[string]any{"mode": "danger-full-access", "network": true}, "approvals": "ask"}, "approvals": "never", "not_before": 1}))))
	require.NoError(t, err)
	half := g.Granted.Own
	require.Equal(t, policy.Grant{Files: policy.FilesRead, Shell: policy.GrantNone, Surface: policy.SurfaceEvidence, Scope: policy.Unscoped()}, half.Grant)
	require.Equal(t, policy.Permissions{}, half.Profile.Permissions)
	require.True(t, g.Granted.Delegable.Equal(half))
}

// A receipt that was stored grants exactly what was derived: over random
// parents and requests.
func TestReceiptGrantsWhatWasDerived(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := fullReceipt(t)
		names := rapid.SliceOfN(rapid.StringMatching(`[a-z_]{1,8}`), 0, 4).Draw(rt, "tools")
		if rapid.Bool().Draw(rt, "listed") {
			g.Granted.Own.Profile.Tools = must(policy.ToolsList(names...))
		}
		g.Granted.Own.Profile.Denied = g.Granted.Own.Profile.Denied.Union(must(policy.NewDenyList(policy.DenyRequest, policy.Origin{Session: sid(3), Seq: 2},
			rapid.SliceOfN(rapid.StringMatching(`[a-zA-Z_]{1,6}\*?`), 0, 4).Draw(rt, "denied")...)))
		g.Granted.Own.Grant.Files = rapid.SampledFrom([]policy.Files{"none", "read", "write"}).Draw(rt, "files")
		g.Granted.Own.Grant.Shell = rapid.SampledFrom([]policy.GrantShell{"none", "inspect", "verify", "full"}).Draw(rt, "shell")
		g.Granted.Own.Profile.Limits.MaxSteps = rapid.Uint64Range(0, policy.MaxNumber).Draw(rt, "steps")
		if rapid.Bool().Draw(rt, "unscoped") {
			g.Granted.Own.Grant.Scope = policy.Unscoped()
		}
		g.Granted = g.Granted.Canonical()
		facts, err := g.Facts()
		require.NoError(rt, err)
		got, err := ParseGranted(event(TypeDelegationGranted, ReceiptVersion, facts))
		require.NoError(rt, err)
		require.Equal(rt, g.Granted, got.Granted)
	})
}

// TestDecisionRoundTrip: a decision is read as it was recorded, and a name that
// is no tool name never gets into facts, which no redaction reaches.
func TestDecisionRoundTrip(t *testing.T) {
	at := policy.RuleOrigin{Kind: policy.OriginOperator, At: policy.Origin{Session: StoreSession, Seq: 2}}
	d := Decision{Session: sid(2), Root: sid(0), Epoch: 3, Receipt: Hash{1}, Call: "c-1", Ask: "a-1",
		Tool: policy.Tool{Given: "Bash", Canonical: "bash", Class: policy.ClassShell, Known: true}, ArgsBefore: Hash{2}, ArgsAfter: Hash{3}, TargetCount: 2, Targets: Hash{4},
		Verdict: policy.VerdictDeny, Code: policy.CodeOperatorDeny, Rule: policy.RuleOperatorDeny, Origin: at,
		Also:    []policy.Denial{{Code: policy.CodeShell, Rule: policy.RuleShell, Origin: policy.RuleOrigin{Kind: policy.OriginNone}}},
		Decider: DeciderRule, Ref: "r-1", EvaluatedSeq: 4, Policy: Hash{5}, EvaluatedMS: 6, Steps: 7, Engine: 1,
		Objections: objection.Record{Checked: 2, Degraded: []objection.Degraded{{Rule: "r1", Why: objection.WhyPanic}}, Amendments: []objection.Amendment{{Rule: "redact", Keys: []string{"command"}}}}, Enforcement: Enforced}
	facts, err := d.Facts()
	require.NoError(t, err)
	require.NoError(t, checkFacts(TypeToolDecision, facts))
	got, err := ParseDecision(event(TypeToolDecision, 1, facts))
	require.NoError(t, err)
	require.Equal(t, d, got)

	for _, c := range []policy.Classified{{By: "c/1", Need: policy.GrantInspect}, {By: "c/1", Need: policy.GrantFull, Why: "option:sort"}} {
		d.Classified = c
		facts, err = d.Facts()
		require.NoError(t, err)
		require.NoError(t, checkFacts(TypeToolDecision, facts))
		got, err = ParseDecision(event(TypeToolDecision, 1, facts))
		require.NoError(t, err)
		require.Equal(t, d, got)
	}

	d.Tool = policy.Tool{Given: "Ba\u200bsh", Canonical: "ba\u200bsh"}
	facts, err = d.Facts()
	require.NoError(t, err)
	require.NoError(t, checkFacts(TypeToolDecision, facts))
	require.Equal(t, InvalidTool, facts.Str("tool"))
}
