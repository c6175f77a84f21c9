package eventlog

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/policy"
)

// nextVersion makes the type's present schema an old one for the time of the
// test, as a later release will.
func nextVersion(t *testing.T, typ string, up func(map[string]any) map[string]any) {
	was := coreTypes()[typ]
	next := was
	next.version++
	coreTypes()[typ] = next
	upcasters()[typ] = map[uint8]func(map[string]any) map[string]any{was.version: up}
	t.Cleanup(func() {
		coreTypes()[typ] = was
		delete(upcasters(), typ)
	})
}

func event(typ string, version uint8, facts Facts) *Event {
	return &Event{Session: sid(1), Seq: 7, Type: typ, Version: version, Facts: facts}
}

// TestCase16_OldEventLoads: an event that an older version wrote lacks a field
// of this one. The upcaster fills in the restrictive value.
func TestCase16_OldEventLoads(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	old := mustFacts(map[string]any{"mode": "workspace-write", "writable_roots": []string{"/w"}, "network": true})
	_, err := ts.transact(EntryOperator, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: TypeSandboxMode, Facts: old}}})
	require.NoError(t, err)
	nextVersion(t, TypeSandboxMode, func(m map[string]any) map[string]any {
		m["network"] = false // say, version 2 means another network by it
		return m
	})
	ts.reopen()
	events, row, err := ts.Policy(ctx, id, 0)
	require.NoError(t, err)
	require.Zero(t, row.UnknownSeq)
	require.Equal(t, old, events[1].Facts, "what is stored stays what it is")
	require.Equal(t, uint8(1), events[1].Version)
	sandbox, err := ParseSandbox(&events[1])
	require.NoError(t, err)
	require.False(t, sandbox.Network)
	require.True(t, sandbox.ExcludeSlashTmp, "what the old version did not state")
	require.True(t, sandbox.ExcludeTmpdirEnvVar)
}

// TestCase16_MissingFieldsAreRestrictive, field by field, as documented at
// each.
func TestCase16_MissingFieldsAreRestrictive(t *testing.T) {
	s, err := ParseSandbox(event(TypeSandboxMode, 1, mustFacts(map[string]any{"mode": "workspace-write"})))
	require.NoError(t, err)
	require.Equal(t, policy.Sandbox{Mode: policy.WorkspaceWrite, ExcludeTmpdirEnvVar: true, ExcludeSlashTmp: true}, s)
	require.False(t, s.Roots.Recorded(), "absent roots are not the empty ones, and neither is a default")

	c, err := ParseCreated(event(TypeSessionCreated, 1, mustFacts(map[string]any{"kind": "child", "root": sid(2), "depth": 2})))
	require.NoError(t, err)
	require.Equal(t, ModeOneShot, c.Mode)
	require.Equal(t, 2, c.MaxDepth, "no deeper than it is itself")
	require.False(t, c.Provider.InProcess)
	require.Equal(t, policy.Never, c.Defaults.Approvals)
	require.True(t, c.Defaults.Sandbox.Equal(policy.Sandbox{Mode: policy.ReadOnly}))

	g, err := ParseGranted(event(TypeDelegationGranted, 0, mustFacts(map[string]any{"parent": sid(1), "child": sid(2), "root": sid(1), "approvals": "never", "issuer": map[string]any{}})))
	require.NoError(t, err)
	require.True(t, g.IssuerClaimed, "an issuer is not native unless it says so")
	require.Nil(t, g.Sandbox)
	require.Equal(t, policy.Never, g.Defaults.Approvals)
}

// TestCase16_BrokenEvent: the error names seq, type and field, and it is never
// "not found".
func TestCase16_BrokenEvent(t *testing.T) {
	parse := map[string]func(*Event) error{
		TypeSandboxMode:       func(ev *Event) error { _, err := ParseSandbox(ev); return err },
		TypeSessionCreated:    func(ev *Event) error { _, err := ParseCreated(ev); return err },
		TypeDelegationGranted: func(ev *Event) error { _, err := ParseGranted(ev); return err },
		TypePolicyNarrowed:    func(ev *Event) error { _, err := ParseNarrowed(ev); return err },
		TypeApprovalPolicy:    func(ev *Event) error { _, err := ParseApproval(ev); return err },
	}
	granted := func(change map[string]any) map[string]any {
		m := map[string]any{"parent": sid(1), "child": sid(2), "root": sid(1), "approvals": "never", "issuer": map[string]any{}}
		for k, v := range change {
			m[k] = v
		}
		return m
	}
	for _, c := range []struct {
		typ, field, reason string
		version            uint8
		facts              map[string]any
	}{
		{TypeSandboxMode, "mode", "missing", 1, map[string]any{}},
		{TypeSandboxMode, "mode", "want string, got int64", 1, map[string]any{"mode": 7}},
		{TypeSandboxMode, "network", "want bool, got string", 1, map[string]any{"mode": "read-only", "network": "yes"}},
		{TypeSandboxMode, "writable_roots", "entry 1: want a string, got int64", 1, map[string]any{"mode": "workspace-write", "writable_roots": []any{"/a", 7}}},
		{TypeSandboxMode, "writable_roots", "..", 1, map[string]any{"mode": "workspace-write", "writable_roots": []any{"/a/../b"}}},
		{TypeSessionCreated, "root", "missing", 1, map[string]any{"kind": "root"}},
		{TypeSessionCreated, "root", "want 16 bytes, got 32", 1, map[string]any{"kind": "root", "root": Hash{}}},
		{TypeSessionCreated, "defaults/sandbox/mode", "missing", 1, map[string]any{"kind": "root", "root": sid(1), "defaults": map[string]any{"sandbox": map[string]any{}}}},
		{TypeSessionCreated, "depth", "want 0 or more, got -1", 1, map[string]any{"kind": "root", "root": sid(1), "depth": -1}},
		{TypeDelegationGranted, "approvals", `want never, got "ask"`, 0, granted(map[string]any{"approvals": "ask"})},
		{TypeDelegationGranted, "issuer/epoch", "want int64, got string", 0, granted(map[string]any{"issuer": map[string]any{"epoch": "1"}})},
		{TypeDelegationGranted, "parent_head", "want 32 bytes, got 16", 0, granted(map[string]any{"parent_head": sid(1)})},
		{TypePolicyNarrowed, "ceiling", "missing", 1, map[string]any{"by": "x"}},
		{TypePolicyNarrowed, "ceiling/tools", "unknown ceiling", 1, map[string]any{"by": "x", "ceiling": map[string]any{"tools": []any{}, "sandbox": map[string]any{"mode": "read-only"}}}},
		{TypeApprovalPolicy, "policy", "missing", 1, map[string]any{}},
		{TypeSandboxMode, "", "schema version: newest known 1, got 2", 2, map[string]any{"mode": "read-only"}},
	} {
		err := parse[c.typ](event(c.typ, c.version, mustFacts(c.facts)))
		var where *CorruptError
		require.ErrorAs(t, err, &where, "%v", c)
		require.ErrorIs(t, err, ErrCorrupt)
		require.NotErrorIs(t, err, ErrNotFound)
		require.Equal(t, CorruptError{Session: sid(1), Seq: 7, Type: c.typ, Field: c.field, Reason: where.Reason}, *where)
		require.Contains(t, where.Reason, c.reason)
		require.ErrorContains(t, err, "seq 7: type "+c.typ)
	}
	nextVersion(t, TypeSandboxMode, nil)
	err := parse[TypeSandboxMode](event(TypeSandboxMode, 1, mustFacts(map[string]any{"mode": "read-only"})))
	require.ErrorContains(t, err, "schema version: no way from 1 to 2")
}

// TestCoreFactsRoundTrip: what the encoders write, the readers read, and the
// schema takes.
func TestCoreFactsRoundTrip(t *testing.T) {
	roots, err := policy.RootsOf("/w", "/tmp/x")
	require.NoError(t, err)
	write := policy.Sandbox{Mode: policy.WorkspaceWrite, Roots: roots, Network: true, ExcludeSlashTmp: true}
	none, err := policy.RootsOf()
	require.NoError(t, err)
	empty := policy.Sandbox{Mode: policy.WorkspaceWrite, Roots: none}
	absent := policy.Sandbox{Mode: policy.WorkspaceWrite}
	for _, s := range []policy.Sandbox{write, empty, absent, policy.Top(), {Mode: "external-sandbox"}} {
		require.NoError(t, checkFacts(TypeSandboxMode, SandboxFacts(s)))
		got, err := ParseSandbox(event(TypeSandboxMode, 1, SandboxFacts(s)))
		require.NoError(t, err)
		require.Equal(t, s, got)
		ceiling, err := ParseNarrowed(event(TypePolicyNarrowed, 1, NarrowedFacts(s, "operator")))
		require.NoError(t, err)
		require.Equal(t, Ceiling{Sandbox: &s}, ceiling)
	}
	created := Created{Kind: KindChild, Parent: sid(1), ParentSeq: 9, ParentHead: Hash{1}, Root: sid(0), Depth: 1, MaxDepth: 3, External: &External{System: "codex", IDHash: Hash{2}},
		Mode: ModeContinuable, Provider: Provider{Name: "in-process", InProcess: true}, WorkspaceRoot: "/w", PathStyle: "posix", SeedLen: 4,
		Defaults: policy.Defaults{Sandbox: write, Approvals: policy.Ask}, Evidence: true}
	require.NoError(t, checkFacts(TypeSessionCreated, created.Facts()))
	gotCreated, err := ParseCreated(event(TypeSessionCreated, 1, created.Facts()))
	require.NoError(t, err)
	require.Equal(t, created, gotCreated)
	approval, err := ParseApproval(event(TypeApprovalPolicy, 1, ImportedApprovalFacts("on-request", ClaimedSwitch)))
	require.NoError(t, err)
	require.Equal(t, policy.Approval("on-request"), approval)
	require.Equal(t, ClaimedSwitch, Claimed(event(TypeApprovalPolicy, 1, ImportedApprovalFacts("on-request", ClaimedSwitch))))
	require.Equal(t, uuid.Nil, created.Facts().UUID("nothing"))
}

// TestCase15_UnknownTypes: an open family never stands in the way; a type of
// a closed family that this version does not know is noted in the row, by
// which a resume refuses.
func TestCase15_UnknownTypes(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: "plugin/note", Ignorable: true}}})
	require.NoError(t, err)
	row, err := ts.Row(id)
	require.NoError(t, err)
	require.Zero(t, row.UnknownSeq)

	coreTypes()["policy/future"] = typeSpec{version: 1, policy: true} // a newer version's type
	_, err = ts.transact(EntryOperator, Batch{Session: id, Expect: Any(), Events: []NewEvent{{Type: "policy/future"}}})
	delete(coreTypes(), "policy/future")
	require.NoError(t, err)
	ts.dropIndex()
	ts.open()
	row, err = ts.Row(id)
	require.NoError(t, err)
	require.Equal(t, uint64(3), row.UnknownSeq)
	require.Equal(t, "policy/future", row.UnknownType)
	seqs, holes := ts.seqs(id)
	require.Equal(t, upTo(3), seqs, "it is shown, exported and verified like any other")
	require.Empty(t, holes)
	events, _, err := ts.Policy(ctx, id, 0)
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 3}, seqsOf(events), "and it is in the chain that a reader can't overlook")
}
