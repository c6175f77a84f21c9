package snapshot_test

import (
	"errors"
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

// TestCase41_TheCaptureComesFirst: the parent switches between the capture and
// the commit. The child has the old value, whether the switch widens or not.
func TestCase41_TheCaptureComesFirst(t *testing.T) {
	f := newFixture(t)
	for from, to := range map[policy.Mode]policy.Mode{policy.ReadOnly: policy.DangerFullAccess, policy.DangerFullAccess: policy.ReadOnly} {
		root := f.rootWith(from)
		c := f.take(root, snapshot.Options{})
		f.switchTo(root, to)
		made := f.make(c)
		require.Equal(t, from, made.Policy.Sandbox.Value.Mode)
		require.Equal(t, to, f.make(f.take(root, snapshot.Options{})).Policy.Sandbox.Value.Mode)
	}
	t.Run("a first switch after the capture", func(t *testing.T) {
		root := f.root(materialize.RootRequest{})
		c := f.take(root, snapshot.Options{})
		f.switchTo(root, policy.DangerFullAccess)
		made := f.make(c)
		require.False(t, made.Policy.Explicit)
		require.True(t, made.Policy.Sandbox.Value.Equal(readOnly()))
	})
}

// TestCase51_ANarrowingAfterTheCapture: capture; narrow with subtree;
// materialize: the child is born narrow. A capture used twice, or after its
// parent closed, is refused.
func TestCase51_ANarrowingAfterTheCapture(t *testing.T) {
	f := newFixture(t)
	ww := f.resolved(policy.Setting{Mode: policy.WorkspaceWrite})
	full := &policy.Setting{Mode: policy.DangerFullAccess}

	for name, c := range map[string]struct {
		r       materialize.RootRequest
		present *policy.Defaults
		after   []policy.Setting
		want    policy.Sandbox
	}{
		"an override":             {materialize.RootRequest{Sandbox: full}, nil, []policy.Setting{{Mode: policy.ReadOnly}}, readOnly()},
		"no override":             {materialize.RootRequest{Default: full}, nil, []policy.Setting{{Mode: policy.ReadOnly}}, readOnly()},
		"no override, wide again": {materialize.RootRequest{}, nil, []policy.Setting{{Mode: policy.WorkspaceWrite}}, readOnly()},
		"two of them": {materialize.RootRequest{Sandbox: full}, nil, []policy.Setting{{Mode: policy.WorkspaceWrite, WritableRoots: []string{"/srv/project", "/a"}},
			{Mode: policy.WorkspaceWrite, WritableRoots: []string{"/srv/project", "/b"}}}, ww},
		"a tighter default in force": {materialize.RootRequest{Default: full}, &policy.Defaults{Sandbox: readOnly()}, []policy.Setting{{Mode: policy.WorkspaceWrite}}, readOnly()},
	} {
		root := f.root(c.r)
		capture := f.take(root, snapshot.Options{Present: c.present})
		f.switchTo(root, policy.DangerFullAccess) // belongs to the parent's future
		for _, n := range c.after {
			f.narrow(root, n, true)
		}
		made := f.make(capture)
		require.True(t, c.want.Equal(made.Policy.Sandbox.Value), "%s: %v", name, made.Policy.Sandbox.Value)
		require.True(t, c.want.Equal(made.Policy.Bound.Value), name)
		require.Equal(t, policy.SourceDelegation, made.Policy.Bound.Cause().Source, name)
		_, _, err := replay.Switch(f.ctx, f.Store, made.ID, replay.Change{Sandbox: full})
		require.ErrorIs(t, err, eventlog.ErrWidening, name)
	}

	t.Run("narrowed from above", func(t *testing.T) {
		root := f.rootWith(policy.DangerFullAccess)
		parent := f.make(f.take(root, snapshot.Options{})).ID
		c := f.take(parent, snapshot.Options{})
		f.narrow(root, policy.Setting{Mode: policy.ReadOnly}, true)
		require.True(t, f.make(c).Policy.Sandbox.Value.Equal(readOnly()))
	})
	t.Run("used twice", func(t *testing.T) {
		c := f.take(f.rootWith(policy.WorkspaceWrite), snapshot.Options{})
		f.make(c)
		f.stale(c)
	})
	t.Run("after the parent closed", func(t *testing.T) {
		root := f.rootWith(policy.WorkspaceWrite)
		c := f.take(root, snapshot.Options{})
		_, err := replay.Close(f.ctx, f.Store, root)
		require.NoError(t, err)
		f.stale(c, eventlog.ErrSessionClosed)
	})
}

// TestAStaleEpoch: the caller's activation is superseded, or ended, between the
// capture and the commit.
func TestAStaleEpoch(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	c := f.take(root, snapshot.Options{Epoch: f.activate(root).Epoch})
	young := f.activate(root)
	f.stale(c, eventlog.ErrFenced)

	c = f.take(root, snapshot.Options{Epoch: young.Epoch})
	_, err := replay.End(f.ctx, f.Store, root, young.Epoch, "released")
	require.NoError(t, err)
	f.stale(c, eventlog.ErrFenced)

	c = f.take(root, snapshot.Options{}) // names none: an operator's delegation
	f.activate(root)
	f.make(c)
}

// TestACaptureDiesWithItsHandle: after a reopen, and on another store, it is
// worth nothing.
func TestACaptureDiesWithItsHandle(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	c := f.take(root, snapshot.Options{})
	other := newFixture(t)
	_, err := materialize.Child(f.ctx, other.Store, c, materialize.Request{})
	require.ErrorIs(t, err, eventlog.ErrStaleCapture)

	old := f.Store
	f.reopen(eventlog.Options{})
	for _, s := range []*eventlog.Store{old, f.Store} {
		for _, key := range []string{"", "a key that nobody used"} {
			_, err = materialize.Child(f.ctx, s, c, materialize.Request{Key: key})
			require.Error(t, err)
			require.True(t, key != "" || errors.Is(err, eventlog.ErrStaleCapture), "%v", err)
		}
	}
	row, err := f.Row(root)
	require.NoError(t, err)
	require.Equal(t, uint64(2), row.Head)
	children, err := f.Children(root)
	require.NoError(t, err)
	require.Empty(t, children)
}

// TestARefusalSpendsNothing: an attempt that certainly wrote nothing leaves
// the capture usable, once.
func TestARefusalSpendsNothing(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	c := f.take(root, snapshot.Options{})
	for _, r := range []materialize.Request{{Mode: "for ever"}, {Workspace: "relative"}, {Fork: 99}, {ID: root}, {Provider: eventlog.Provider{Name: "remote"}}, {Label: "\xff"}} {
		_, err := materialize.Child(f.ctx, f.Store, c, r)
		require.Error(t, err)
		require.NotErrorIs(t, err, eventlog.ErrStaleCapture)
	}
	f.make(c)
	f.stale(c)

	t.Run("for reading", func(t *testing.T) {
		f.reopen(eventlog.Options{ReadOnly: true})
		c := f.take(root, snapshot.Options{})
		_, err := materialize.Child(f.ctx, f.Store, c, materialize.Request{})
		require.ErrorIs(t, err, eventlog.ErrReadOnly)
		f.reopen(eventlog.Options{})
	})
}

// TestOneCaptureInManyHands: used by many at once it makes one child.
func TestOneCaptureInManyHands(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	c := f.take(root, snapshot.Options{})
	var made, refused atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			c.Digest()
			c.Sandbox()
			_, err := materialize.Child(f.ctx, f.Store, c, materialize.Request{})
			switch {
			case err == nil:
				made.Add(1)
			case errors.Is(err, eventlog.ErrStaleCapture):
				refused.Add(1)
			default:
				panic(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(1), made.Load())
	require.Equal(t, int64(15), refused.Load())
	children, err := f.Children(root)
	require.NoError(t, err)
	require.Len(t, children, 1)
	require.NotEqual(t, uuid.Nil, children[0])
}
