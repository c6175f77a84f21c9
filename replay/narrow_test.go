package replay_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// TestCase52_ChildrenCreatedDuringANarrowing: while a subtree is narrowed,
// children and grandchildren are made as fast as the store takes them, in the
// long form thousands. Every one of them ends narrow: it was either enumerated
// or born narrow.
func TestCase52_ChildrenCreatedDuringANarrowing(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	coordinator := f.child(root).ID
	workers, each := 8, 15
	if !testing.Short() {
		workers, each = 64, 40
	}
	var mu sync.Mutex
	var made []uuid.UUID
	var count atomic.Int64
	half, narrowed := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			parent := []uuid.UUID{root, coordinator}[w%2]
			for i := range each {
				// A capture from before the narrowing is spent after it now and then.
				c, err := snapshot.Take(f.ctx, f.Store, parent, snapshot.Options{})
				if err != nil {
					panic(err)
				}
				if i == each/2 && w%4 == 0 {
					<-narrowed
				}
				s, err := materialize.Child(f.ctx, f.Store, c, materialize.Request{})
				if err != nil {
					panic(err)
				}
				mu.Lock()
				made = append(made, s.ID)
				mu.Unlock()
				if count.Add(1) == int64(workers*each/4) {
					close(half)
				}
			}
		})
	}
	<-half
	out := f.narrow(root, policy.ReadOnly, true)
	close(narrowed)
	wg.Wait()
	require.Len(t, made, workers*each)
	reached := map[uuid.UUID]bool{}
	for _, n := range out {
		reached[n.Session] = true
		require.Empty(t, n.Skipped)
	}
	born := 0
	for _, id := range append(made, root, coordinator) {
		e := f.policy(id)
		require.True(t, e.Sandbox.Value.Equal(readOnly()), "%s: %v", id, e.Sandbox.Value)
		require.True(t, e.Bound.Value.Equal(readOnly()), "%s: %v", id, e.Bound.Value)
		if !reached[id] {
			born++
			require.Equal(t, policy.SourceDelegation, e.Bound.Cause().Source, "it was born narrow")
		}
	}
	require.NotZero(t, born)
	require.Greater(t, len(reached), 2)
}

// TestCase52_OneAlreadyTighter: such a member is skipped and listed, and the
// narrowing goes through for the others. So are closed ones.
func TestCase52_OneAlreadyTighter(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	wide, tight, closed := f.child(root).ID, f.child(root).ID, f.child(root).ID
	below := f.child(closed).ID
	f.narrow(tight, policy.ReadOnly, false)
	_, err := replay.Close(f.ctx, f.Store, closed)
	require.NoError(t, err)
	before := f.row(tight)

	got := map[uuid.UUID]replay.Narrowed{}
	for _, n := range f.narrow(root, policy.WorkspaceWrite, true) {
		got[n.Session] = n
	}
	require.Len(t, got, 5)
	require.Equal(t, replay.SkipNarrower, got[tight].Skipped)
	require.Equal(t, before, f.row(tight), "nothing was written there")
	require.Equal(t, replay.SkipClosed, got[closed].Skipped)
	for _, id := range []uuid.UUID{root, wide, below} {
		require.Empty(t, got[id].Skipped)
		require.Equal(t, policy.DangerFullAccess, got[id].Before.Mode)
		require.Equal(t, policy.WorkspaceWrite, got[id].After.Mode)
		require.Equal(t, f.row(id).Head, got[id].Seq)
		require.Equal(t, policy.WorkspaceWrite, f.policy(id).Sandbox.Value.Mode, "a closed session's children too")
	}

	t.Run("again", func(t *testing.T) {
		hash := f.row(root).Hash
		for _, n := range f.narrow(root, policy.WorkspaceWrite, true) {
			require.NotEmpty(t, n.Skipped)
		}
		require.Equal(t, hash, f.row(root).Hash)
	})
	t.Run("without subtree", func(t *testing.T) {
		require.Len(t, f.narrow(root, policy.ReadOnly, false), 1)
		require.Equal(t, policy.WorkspaceWrite, f.policy(wide).Sandbox.Value.Mode)
	})
}

// TestNarrowCutsEveryComponent: roots, network and temp directories are met
// one by one, and each names the event that cut it.
func TestNarrowCutsEveryComponent(t *testing.T) {
	f := newFixture(t)
	on, off := true, false
	root := f.root(materialize.RootRequest{Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{"/var/data", "/opt/cache"}, Network: &on}})
	child := f.child(root).ID
	steps := []policy.Setting{
		{Mode: policy.WorkspaceWrite, WritableRoots: []string{workspace, "/var/data/in", "/opt"}, Network: &on},
		{Mode: policy.WorkspaceWrite, WritableRoots: []string{workspace, "/var", "/opt/cache"}, Network: &off},
		{Mode: policy.WorkspaceWrite, WritableRoots: []string{workspace, "/var", "/opt/cache"}, Network: &on, ExcludeSlashTmp: true},
	}
	var seqs []uint64
	for _, s := range steps {
		out, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: child, Sandbox: &s, Reason: "step by step"})
		require.NoError(t, err)
		require.Empty(t, out[0].Skipped)
		seqs = append(seqs, out[0].Seq)
	}
	e := f.policy(child)
	v := e.Sandbox.Value
	require.Equal(t, []string{"/opt/cache", workspace, "/var/data/in"}, v.Roots.List())
	require.False(t, v.Network)
	require.True(t, v.ExcludeSlashTmp)
	require.False(t, v.ExcludeTmpdirEnvVar)
	require.Equal(t, policy.SourceDelegation, e.Sandbox.Mode.Source)
	require.Equal(t, seqs[0], e.Sandbox.Roots.Origin.Seq)
	require.Equal(t, seqs[1], e.Sandbox.Network.Origin.Seq)
	require.Equal(t, seqs[2], e.Sandbox.ExcludeSlashTmp.Origin.Seq)
	require.Equal(t, policy.SourceDelegation, e.Sandbox.ExcludeTmpdirEnvVar.Source)

	t.Run("the reason is content", func(t *testing.T) {
		for _, ev := range f.log(child) {
			if ev.Type == eventlog.TypePolicyNarrowed {
				require.Equal(t, "step by step", string(ev.Content))
				require.NotContains(t, string(ev.Facts), "step by step")
			}
		}
	})
}

// TestNarrowRefusals: what is no narrowing, and that it writes nothing.
func TestNarrowRefusals(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	child := f.child(root).ID
	evidence := f.evidence(eventlog.KindRoot, uuid.Nil)
	ro := policy.Setting{Mode: policy.ReadOnly}
	before := []eventlog.Row{f.row(root), f.row(child), f.row(evidence)}
	for name, c := range map[string]struct {
		n    replay.Narrowing
		want error
	}{
		"no reason":          {replay.Narrowing{Session: root, Sandbox: &ro}, eventlog.ErrInvalid},
		"no ceiling":         {replay.Narrowing{Session: root, Reason: "r"}, eventlog.ErrInvalid},
		"a foreign mode":     {replay.Narrowing{Session: root, Sandbox: &policy.Setting{Mode: "external-sandbox"}, Reason: "r"}, eventlog.ErrInvalid},
		"a relative root":    {replay.Narrowing{Session: root, Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{"x"}}, Reason: "r", Subtree: true}, eventlog.ErrInvalid},
		"a reason of octets": {replay.Narrowing{Session: root, Sandbox: &ro, Reason: "\xff", Subtree: true}, eventlog.ErrInvalid},
		"no such session":    {replay.Narrowing{Session: uuid.MustParse("99999999-9999-4999-8999-999999999999"), Sandbox: &ro, Reason: "r"}, eventlog.ErrNotFound},
		"evidence":           {replay.Narrowing{Session: evidence, Sandbox: &ro, Reason: "r", Subtree: true}, eventlog.ErrEvidence},
	} {
		_, err := replay.Narrow(f.ctx, f.Store, c.n)
		require.ErrorIs(t, err, c.want, name)
	}
	require.Equal(t, before, []eventlog.Row{f.row(root), f.row(child), f.row(evidence)})
}

// TestASubtreeIsNarrowedWhole: more members than an atomic unit can hold, and
// none of them is narrowed; one that can't be read does not keep the others.
func TestASubtreeIsNarrowedWhole(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	var children []uuid.UUID
	for range 5 {
		children = append(children, f.child(root).ID)
	}
	f.reopen(eventlog.Options{Limits: eventlog.Limits{UnitFrames: 5}})
	_, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: root, Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Reason: "r", Subtree: true})
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
	for _, id := range append(children, root) {
		require.Equal(t, policy.DangerFullAccess, f.policy(id).Sandbox.Value.Mode)
	}

	f.fillIndex(root)
	f.damaged = true
	f.rewrite(children[2], flip("approval/policy"))
	f.open(eventlog.Options{})
	for _, n := range f.narrow(root, policy.ReadOnly, true) {
		if n.Session == children[2] {
			require.Equal(t, replay.SkipUnreadable, n.Skipped)
			continue
		}
		require.Empty(t, n.Skipped)
		require.True(t, f.policy(n.Session).Sandbox.Value.Equal(readOnly()))
	}
	_, err = replay.Policy(f.ctx, f.Store, children[2], 0)
	require.ErrorIs(t, err, eventlog.ErrPolicyUnreadable)
}

// TestNarrowingsAndDelegationsInParallel: what each holds in the end is within
// what narrows it, whatever the order was.
func TestNarrowingsAndDelegationsInParallel(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.DangerFullAccess)
	ceilings := []policy.Setting{{Mode: policy.WorkspaceWrite, WritableRoots: []string{"/a"}}, {Mode: policy.WorkspaceWrite, WritableRoots: []string{"/b"}}}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			parent := root
			for i := range 6 {
				s, err := materialize.Delegate(context.Background(), f.Store, parent, snapshot.Options{}, materialize.Request{Key: fmt.Sprint(w, i), Label: fmt.Sprint(i)})
				if err != nil {
					panic(err)
				}
				if parent = root; i%2 == 0 {
					parent = s.ID
				}
			}
		})
	}
	for _, c := range ceilings {
		wg.Go(func() {
			if _, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: root, Sandbox: &c, Reason: "r", Subtree: true}); err != nil {
				panic(err)
			}
		})
	}
	wg.Wait()
	n := 0
	require.NoError(t, f.Store.EachRow(f.ctx, func(row *eventlog.Row) (bool, error) {
		n++
		for _, c := range ceilings {
			require.True(t, f.policy(row.Session).Sandbox.Value.Within(resolved(t, c)))
		}
		return true, nil
	}))
	require.Equal(t, 1+4*6, n)
}
