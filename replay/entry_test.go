package replay_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

// TestCase55_AHarnessWritesNoAuthority: through the generic append, and through
// the entry point of the harness calls, no event gets in that could grant
// anything.
func TestCase55_AHarnessWritesNoAuthority(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.ReadOnly)
	child := f.child(root).ID
	top := eventlog.SandboxFacts(policy.Top())
	granted := f.log(child)[1].Facts
	asked := facts(t, "ask", "a1", "tool", "edit")
	decided := facts(t, "ask", "a1", "outcome", "allowed-once", "decider", "human")
	closed := map[string]eventlog.Facts{"delegation/granted": granted, "delegation/started": facts(t, "child", child, "receipt", eventlog.Digest()),
		"session/created": f.log(child)[0].Facts, "session/closed": facts(t, "by", "x"), "sandbox/mode": top, "approval/policy": eventlog.ApprovalFacts(policy.Ask),
		"approval/asked": asked, "approval/decided": decided, "policy/narrowed": eventlog.NarrowedFacts(readOnly(), "operator"), "policy/profile": facts(t),
		"activation/started": facts(t, "epoch", 9, "boot", uuid.UUID{}), "inbox/queued": facts(t, "message", child), "control/interrupt": facts(t, "by", "x", "keep_inbox", true),
		"notice/consumed": facts(t, "child", child, "settled_seq", 1), "content/redacted": facts(t), "store/checkpoint": facts(t), "tool/decision": facts(t, "call", "c", "verdict", "allow")}
	before := []eventlog.Row{f.row(root), f.row(child)}
	for typ, fs := range closed {
		_, err := f.Store.Append(f.ctx, eventlog.Batch{Session: child, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: typ, Facts: fs}}})
		require.ErrorIs(t, err, eventlog.ErrUnauthorized, typ)
	}
	for _, src := range []eventlog.Source{eventlog.SourceDelegation, eventlog.SourceOperator, eventlog.SourceImport, eventlog.SourceStore} {
		_, err := f.Store.Append(f.ctx, eventlog.Batch{Session: child, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: "user/message", Source: src}}})
		require.ErrorIs(t, err, eventlog.ErrUnauthorized, src)
	}
	_, err := f.Store.Append(f.ctx, eventlog.Batch{Session: child, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: "step/start",
		Facts: facts(t, "turn", 1, "step", 1), Inherited: &eventlog.Ref{Session: root, Seq: 1}}}})
	require.ErrorIs(t, err, eventlog.ErrUnauthorized, "a step that no counter sees")
	require.Equal(t, before, []eventlog.Row{f.row(root), f.row(child)})

	runtime := func(ev eventlog.NewEvent) error {
		_, err := f.Store.Transact(f.ctx, eventlog.EntryRuntime, func(*eventlog.View) ([]eventlog.Batch, error) {
			return []eventlog.Batch{{Session: child, Expect: eventlog.Any(), Events: []eventlog.NewEvent{ev}}}, nil
		})
		return err
	}
	for _, typ := range []string{"delegation/granted", "delegation/started", "session/created", "policy/narrowed", "policy/profile", "user/message"} {
		require.ErrorIs(t, runtime(eventlog.NewEvent{Type: typ, Facts: closed[typ]}), eventlog.ErrUnauthorized, typ)
	}
	for _, src := range []eventlog.Source{eventlog.SourceDelegation, eventlog.SourceOperator, eventlog.SourceImport, eventlog.SourceStore} {
		require.ErrorIs(t, runtime(eventlog.NewEvent{Type: "sandbox/mode", Facts: top, Source: src}), eventlog.ErrUnauthorized, src)
		require.ErrorIs(t, runtime(eventlog.NewEvent{Type: "approval/policy", Facts: closed["approval/policy"], Source: src}), eventlog.ErrUnauthorized, src)
	}
	require.Equal(t, before, []eventlog.Row{f.row(root), f.row(child)})

	t.Run("a switch past the call that checks it", func(t *testing.T) {
		// The writer refuses it too: stored, it would make a log that nobody can
		// read any more.
		for typ, fs := range map[string]eventlog.Facts{"sandbox/mode": top, "approval/policy": closed["approval/policy"]} {
			require.ErrorIs(t, runtime(eventlog.NewEvent{Type: typ, Facts: fs}), eventlog.ErrWidening, typ)
		}
		require.Equal(t, before, []eventlog.Row{f.row(root), f.row(child)})
	})
}

// TestSwitch: what a switch refuses, and that it is all or nothing.
func TestSwitch(t *testing.T) {
	f := newFixture(t)
	root := f.root(materialize.RootRequest{})
	before := f.row(root).Hash
	for name, c := range map[string]replay.Change{
		"nothing":           {},
		"an unknown mode":   {Sandbox: &policy.Setting{Mode: "external-sandbox"}},
		"roots, read-only":  {Sandbox: &policy.Setting{Mode: policy.ReadOnly, WritableRoots: []string{"/x"}}},
		"foreign approvals": {Approvals: "on-request"},
		"one of two":        {Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}, Approvals: "granular"},
		"full, no network":  {Sandbox: &policy.Setting{Mode: policy.DangerFullAccess, Network: ptr(false)}},
		"a relative root":   {Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{"x"}}},
		"a climbing root":   {Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{"/x/../y"}}},
	} {
		_, _, err := replay.Switch(f.ctx, f.Store, root, c)
		require.ErrorIs(t, err, eventlog.ErrInvalid, name)
	}
	child := f.child(root).ID
	_, _, err := replay.Switch(f.ctx, f.Store, child, replay.Change{Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Approvals: policy.Ask})
	require.ErrorIs(t, err, eventlog.ErrWidening)
	require.Equal(t, uint64(3), f.row(child).Head, "the half that was allowed is not written")
	_, _, err = replay.Switch(f.ctx, f.Store, uuid.MustParse("99999999-9999-4999-8999-999999999999"), replay.Change{Approvals: policy.Ask})
	require.ErrorIs(t, err, eventlog.ErrNotFound)

	f.reopen(eventlog.Options{})
	require.NotEqual(t, before, f.row(root).Hash) // the delegation
	before = f.row(root).Hash
	result, after, err := replay.Switch(f.ctx, f.Store, root, replay.Change{Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}, Approvals: policy.Never})
	require.NoError(t, err)
	require.Equal(t, result.FirstSeq+1, result.LastSeq)
	require.Equal(t, result.LastSeq, after.Seq)
	require.Equal(t, policy.Origin{Session: root, Seq: result.FirstSeq}, after.Sandbox.Cause().Origin)
	require.Equal(t, policy.Origin{Session: root, Seq: result.LastSeq}, after.ApprovalBy.Origin)
	a := f.activate(root)
	result, _, err = replay.Switch(f.ctx, f.Store, root, replay.Change{Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Epoch: a.Epoch})
	require.NoError(t, err)
	require.Equal(t, eventlog.SourceRuntime, f.log(root)[result.LastSeq-1].Source)
	_, err = replay.Close(f.ctx, f.Store, root)
	require.NoError(t, err)
	_, _, err = replay.Switch(f.ctx, f.Store, root, replay.Change{Sandbox: &policy.Setting{Mode: policy.ReadOnly}})
	require.ErrorIs(t, err, eventlog.ErrSessionClosed)
}
