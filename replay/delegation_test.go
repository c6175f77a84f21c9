package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// count is how many events of a type a log has that are its own.
func (f *fixture) count(id [16]byte, typ string) (n int) {
	f.t.Helper()
	for _, ev := range f.log(id) {
		if ev.Type == typ && ev.Inherited == nil {
			n++
		}
	}
	return n
}

// TestCase1_FollowUpsInTwoProcessLives: a child of full access and never asked
// stays that over two process lives with three follow-ups each, and its log
// holds one sandbox event and one pin.
func TestCase1_FollowUpsInTwoProcessLives(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	child := f.child(root).ID
	f.say(child, 0, event(t, "turn/start", "turn", 1), event(t, "turn/end", "turn", 1))

	turn := 1
	for life := 1; life <= 2; life++ {
		f.reopen(eventlog.Options{})
		for range 3 {
			turn++
			_, _, err := replay.Send(f.ctx, f.Store, child, replay.AsParent(root), "go on")
			require.NoError(t, err)
			r := f.resume(child, replay.AsParent(root))
			require.Equal(t, policy.DangerFullAccess, r.Policy.Sandbox.Value.Mode)
			require.Equal(t, policy.Never, r.Policy.Approvals)
			a, err := replay.Activate(f.ctx, f.Store, child, replay.AsParent(root))
			require.NoError(t, err)
			require.Len(t, a.Inbox, 1)
			require.Equal(t, r.Policy.Sandbox, a.Policy.Sandbox)
			f.say(child, a.Epoch, event(t, "turn/start", "turn", turn), event(t, "turn/end", "turn", turn))
			f.settle(child, a.Epoch, "completed")
		}
	}
	require.Equal(t, 1, f.count(child, eventlog.TypeSandboxMode))
	require.Equal(t, 1, f.count(child, eventlog.TypeApprovalPolicy))
	require.Equal(t, 1, f.count(child, eventlog.TypeDelegationGranted))
	require.Equal(t, uint64(6), f.row(child).Epoch)
}

// TestCase7_AParentsSwitchAndANarrowing: an ordinary switch of the parent does
// not touch the child and is shown as drift; a narrowing with subtree makes
// the child and everything below it narrow from that seq on.
func TestCase7_AParentsSwitchAndANarrowing(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	child := f.child(root).ID
	grandchild := f.child(child).ID
	before := f.policy(child)

	f.switchTo(root, policy.ReadOnly)
	r := f.resume(child, replay.AsParent(root))
	require.Equal(t, before.Sandbox, r.Policy.Sandbox)
	require.Len(t, r.Drift, 1)
	require.Equal(t, replay.DriftParentTightened, r.Drift[0].Kind)
	require.Equal(t, before.Sandbox.Value.String(), r.Drift[0].Recorded)
	require.Equal(t, "read-only (network off)", r.Drift[0].Present)

	done := f.narrow(root, policy.ReadOnly, true)
	require.Len(t, done, 3)
	for i, id := range [][16]byte{root, child, grandchild} {
		e := f.policy(id)
		require.True(t, e.Sandbox.Value.Equal(readOnly()), "%d", i)
		require.Equal(t, done[i].Seq, e.Bound.Mode.Origin.Seq, "%d: the narrowing bounds it", i)
		require.Equal(t, policy.SourceNarrowing, e.Bound.Mode.Source)
		if i > 0 { // from that seq on, and not before
			was, err := replay.Policy(f.ctx, f.Store, id, done[i].Seq-1)
			require.NoError(t, err)
			require.Equal(t, policy.DangerFullAccess, was.Sandbox.Value.Mode)
		}
	}
	require.Empty(t, f.resume(child, replay.AsParent(root)).Drift, "the parent holds no less than the child now")
}

// TestCase10_TheRecordedDefaultCounts: the parent has no override and its
// deployment default was workspace-write. A reader whose default is wider or
// narrower has a drift to report and changes nothing.
func TestCase10_TheRecordedDefaultCounts(t *testing.T) {
	f := newFixture(t)
	root := f.root(materialize.RootRequest{Default: &policy.Setting{Mode: policy.WorkspaceWrite}})
	child := f.child(root).ID
	require.Zero(t, f.count(child, eventlog.TypeSandboxMode), "an unswitched parent hands down no sandbox event")
	require.Equal(t, 1, f.count(child, eventlog.TypeApprovalPolicy), "the pin always")
	want := resolved(t, policy.Setting{Mode: policy.WorkspaceWrite})

	for _, present := range []policy.Defaults{
		{Sandbox: policy.Top(), Approvals: policy.Ask},
		{Sandbox: readOnly(), Approvals: policy.Never},
		{Sandbox: policy.Sandbox{Mode: "external-sandbox"}, Approvals: "on-request"},
	} {
		r, err := replay.Resume(f.ctx, f.Store, replay.Request{Session: child, By: replay.AsParent(root), Present: &present})
		require.NoError(t, err)
		require.True(t, r.Policy.Sandbox.Value.Equal(want))
		require.False(t, r.Policy.Explicit)
		require.Equal(t, policy.SourceDefault, r.Policy.Sandbox.Cause().Source)
		require.NotEmpty(t, r.Drift)
		require.Equal(t, replay.Drift{Kind: replay.DriftDefault, Field: "defaults.sandbox", Recorded: want.String(), Present: present.Sandbox.String(),
			Detail: "the default recorded at creation counts"}, r.Drift[0])
		require.Equal(t, present.Approvals.Effective() != policy.Ask, len(r.Drift) == 2, "approvals drift only if they count as another value")
	}
	same := policy.Defaults{Sandbox: want, Approvals: policy.Ask}
	r, err := replay.Resume(f.ctx, f.Store, replay.Request{Session: child, By: replay.AsParent(root), Present: &same})
	require.NoError(t, err)
	require.Empty(t, r.Drift)
}

// TestCase50_ANarrowingIsNotUndone: a child narrowed to read-only can't be
// switched back, nor can a root; and what a narrowed parent without an
// override hands down is narrow.
func TestCase50_ANarrowingIsNotUndone(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	child := f.child(root).ID
	f.narrow(child, policy.ReadOnly, false)
	for _, mode := range []policy.Mode{policy.WorkspaceWrite, policy.DangerFullAccess} {
		_, _, err := replay.Switch(f.ctx, f.Store, child, replay.Change{Sandbox: &policy.Setting{Mode: mode}})
		require.ErrorIs(t, err, eventlog.ErrWidening)
		var we *policy.WideningError
		require.ErrorAs(t, err, &we)
		require.Equal(t, policy.SourceNarrowing, we.BoundBy.Source)
	}
	require.True(t, f.policy(child).Sandbox.Value.Equal(readOnly()))

	t.Run("a narrowed root", func(t *testing.T) {
		f.narrow(root, policy.ReadOnly, false)
		_, _, err := replay.Switch(f.ctx, f.Store, root, replay.Change{Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}})
		require.ErrorIs(t, err, eventlog.ErrWidening)
	})

	t.Run("a narrowed parent without an override", func(t *testing.T) {
		plain := f.root(materialize.RootRequest{Default: &policy.Setting{Mode: policy.DangerFullAccess}})
		f.narrow(plain, policy.ReadOnly, false)
		born := f.child(plain)
		require.True(t, born.Policy.Sandbox.Value.Equal(readOnly()))
		require.True(t, f.child(born.ID).Policy.Sandbox.Value.Equal(readOnly()))
		for _, mode := range []policy.Mode{policy.WorkspaceWrite, policy.DangerFullAccess} {
			_, _, err := replay.Switch(f.ctx, f.Store, born.ID, replay.Change{Sandbox: &policy.Setting{Mode: mode}})
			require.ErrorIs(t, err, eventlog.ErrWidening)
		}
	})

	t.Run("narrowed twice, the later one wider", func(t *testing.T) {
		plain := f.rootWith(policy.DangerFullAccess)
		f.narrow(plain, policy.ReadOnly, false)
		done := f.narrow(plain, policy.WorkspaceWrite, false)
		require.Equal(t, replay.SkipNarrower, done[0].Skipped)
		require.True(t, f.policy(plain).Sandbox.Value.Equal(readOnly()))
	})
}

// TestCase53_TheNarrowerDefaultCounts: the parent was created under
// workspace-write, today's default is full access. Its new child and
// grandchild record, and get, workspace-write; a narrower default of today
// does reach them.
func TestCase53_TheNarrowerDefaultCounts(t *testing.T) {
	f := newFixture(t)
	root := f.root(materialize.RootRequest{Default: &policy.Setting{Mode: policy.WorkspaceWrite}})
	want := resolved(t, policy.Setting{Mode: policy.WorkspaceWrite})
	today := &policy.Defaults{Sandbox: policy.Top(), Approvals: policy.Ask}

	parent := root
	for range 2 {
		made, err := materialize.Delegate(f.ctx, f.Store, parent, snapshot.Options{Present: today}, materialize.Request{})
		require.NoError(t, err)
		require.True(t, made.Policy.Defaults.Sandbox.Equal(want))
		require.True(t, made.Policy.Sandbox.Value.Equal(want))
		_, _, err = replay.Switch(f.ctx, f.Store, made.ID, replay.Change{Sandbox: &policy.Setting{Mode: policy.DangerFullAccess}})
		require.ErrorIs(t, err, eventlog.ErrWidening)
		parent = made.ID
	}

	tight := &policy.Defaults{Sandbox: readOnly(), Approvals: policy.Never}
	made, err := materialize.Delegate(f.ctx, f.Store, root, snapshot.Options{Present: tight}, materialize.Request{})
	require.NoError(t, err)
	require.True(t, made.Policy.Sandbox.Value.Equal(readOnly()))
	require.Equal(t, policy.Never, made.Policy.Defaults.Approvals)

	t.Run("a narrowing does not widen through the default", func(t *testing.T) {
		// Narrowed to full access without /tmp's exclusion is no narrowing; to
		// workspace-write it is, but the default in force is tighter still.
		plain := f.root(materialize.RootRequest{Default: &policy.Setting{Mode: policy.DangerFullAccess}})
		f.narrow(plain, policy.WorkspaceWrite, false)
		made, err := materialize.Delegate(f.ctx, f.Store, plain, snapshot.Options{Present: tight}, materialize.Request{})
		require.NoError(t, err)
		require.True(t, made.Policy.Sandbox.Value.Equal(readOnly()), "%v", made.Policy.Sandbox.Value)
	})
}

// TestUpstreamBehaviours is the list of what the systems that this one follows
// promise about a delegation.
func TestUpstreamBehaviours(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	f.say(root, 0, event(t, "turn/start", "turn", 1), event(t, "user/message"), event(t, "turn/end", "turn", 1))

	t.Run("override seeded, approvals pinned", func(t *testing.T) {
		_, _, err := replay.Switch(f.ctx, f.Store, root, replay.Change{Approvals: policy.Ask})
		require.NoError(t, err)
		child := f.child(root)
		require.Equal(t, policy.WorkspaceWrite, child.Policy.Sandbox.Value.Mode)
		require.True(t, child.Policy.Explicit)
		require.Equal(t, policy.Never, child.Policy.Approvals)
		require.Equal(t, policy.SourceDelegation, child.Policy.Sandbox.Cause().Source)
		require.Equal(t, policy.SourcePin, child.Policy.ApprovalBy.Source)
	})
	t.Run("the pin follows the fork prefix", func(t *testing.T) {
		child := f.childOf(root, materialize.Request{Fork: f.row(root).Head})
		require.Equal(t, []string{"session/created", "turn/start", "user/message", "turn/end", "session/end-seed", "delegation/granted", "sandbox/mode", "approval/policy"}, f.types(child.ID))
	})
	t.Run("no sandbox event for an unswitched parent, but the pin", func(t *testing.T) {
		plain := f.root(materialize.RootRequest{})
		require.Equal(t, []string{"session/created", "delegation/granted", "approval/policy"}, f.types(f.child(plain).ID))
	})
	t.Run("a narrowing child switch wins, a widening one is refused", func(t *testing.T) {
		child := f.child(root).ID
		f.switchTo(child, policy.ReadOnly)
		require.True(t, f.policy(child).Sandbox.Value.Equal(readOnly()))
		require.Equal(t, policy.SourceSwitch, f.policy(child).Sandbox.Cause().Source)
		f.switchTo(child, policy.WorkspaceWrite) // within the bound it is reversible
		require.Equal(t, policy.WorkspaceWrite, f.policy(child).Sandbox.Value.Mode)
		before := f.row(child).Hash
		_, _, err := replay.Switch(f.ctx, f.Store, child, replay.Change{Sandbox: &policy.Setting{Mode: policy.DangerFullAccess}})
		require.ErrorIs(t, err, eventlog.ErrWidening)
		_, _, err = replay.Switch(f.ctx, f.Store, child, replay.Change{Approvals: policy.Ask})
		require.ErrorIs(t, err, eventlog.ErrWidening)
		require.Equal(t, before, f.row(child).Hash, "a refusal writes nothing")
	})
	t.Run("resume leaves one event of each and the parent's log alone", func(t *testing.T) {
		child := f.child(root).ID
		parentHash := f.row(root).Hash
		for range 3 {
			f.reopen(eventlog.Options{})
			f.resume(child, replay.AsParent(root))
		}
		for _, typ := range []string{eventlog.TypeSandboxMode, eventlog.TypeApprovalPolicy, eventlog.TypeDelegationGranted} {
			require.Equal(t, 1, f.count(child, typ))
		}
		require.Equal(t, parentHash, f.row(root).Hash)
	})
}
