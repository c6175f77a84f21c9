package snapshot_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// TestWhatIsCaptured: an explicit override met with the narrowings; the
// narrowings met with the default if there is no override; nothing if there is
// neither.
func TestWhatIsCaptured(t *testing.T) {
	f := newFixture(t)
	ww := policy.Setting{Mode: policy.WorkspaceWrite}
	full := policy.Setting{Mode: policy.DangerFullAccess}
	with := func(override, def *policy.Setting, narrowings ...policy.Setting) uuid.UUID {
		id := f.root(materialize.RootRequest{Sandbox: override, Default: def})
		for _, n := range narrowings {
			f.narrow(id, n, false)
		}
		return id
	}
	a, b := policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{"/srv/project", "/a"}}, policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{"/srv/project", "/b"}}
	for name, c := range map[string]struct {
		parent  uuid.UUID
		present *policy.Defaults
		want    *policy.Sandbox
	}{
		"nothing stated":                      {with(nil, &full), nil, nil},
		"nothing stated, a tighter default":   {with(nil, &full), &policy.Defaults{Sandbox: readOnly()}, nil},
		"an override":                         {with(&ww, &full), nil, ptr(f.resolved(ww))},
		"an override wider than the default":  {with(&full, &ww), nil, ptr(policy.Top())},
		"an override, a tighter default now":  {with(&full, &ww), &policy.Defaults{Sandbox: readOnly()}, ptr(policy.Top())},
		"an override and a narrowing":         {with(&full, &full, ww), nil, ptr(f.resolved(ww))},
		"an override and two narrowings":      {with(&full, &full, a, b), nil, ptr(f.resolved(ww))},
		"a narrowing alone":                   {with(nil, &full, ww), nil, ptr(f.resolved(ww))},
		"a narrowing wider than the default":  {with(nil, nil, ww), nil, ptr(readOnly())},
		"a narrowing, a tighter default now":  {with(nil, &full, ww), &policy.Defaults{Sandbox: readOnly()}, ptr(readOnly())},
		"an override to the default's value":  {with(&ww, &ww), nil, ptr(f.resolved(ww))},
		"a narrowing that the override is in": {with(&ww, nil, full), nil, ptr(f.resolved(ww))},
	} {
		got := f.take(c.parent, snapshot.Options{Present: c.present}).Sandbox()
		if c.want == nil {
			require.Nil(t, got, name)
			continue
		}
		require.NotNil(t, got, name)
		require.True(t, c.want.Equal(*got), "%s: want %v, got %v", name, c.want, got)
	}
}

func ptr[T any](v T) *T { return &v }

// TestACaptureIsOfOneHead: what it says is what the parent was at that head.
func TestACaptureIsOfOneHead(t *testing.T) {
	f := newFixture(t)
	root := f.root(materialize.RootRequest{MaxDepth: 5, Claimed: true, Default: &policy.Setting{Mode: policy.WorkspaceWrite}})
	parent, err := materialize.Delegate(f.ctx, f.Store, root, snapshot.Options{}, materialize.Request{Workspace: "/elsewhere"})
	require.NoError(t, err)
	a := f.activate(parent.ID)
	row, err := f.Row(parent.ID)
	require.NoError(t, err)

	c := f.take(parent.ID, snapshot.Options{Epoch: a.Epoch})
	seq, head := c.Head()
	require.Equal(t, row.Head, seq)
	require.Equal(t, row.Hash, head)
	require.Equal(t, parent.ID, c.Parent())
	require.Equal(t, root, c.Root())
	depth, ceiling := c.Depth()
	require.Equal(t, []int{1, 5}, []int{depth, ceiling})
	require.Equal(t, "/elsewhere", c.WorkspaceRoot())
	require.Equal(t, a.Epoch, c.Epoch())
	require.False(t, c.Claimed(), "the parent itself is of this store")
	require.True(t, f.take(root, snapshot.Options{}).Claimed())

	made := f.make(c)
	require.Equal(t, seq, made.Policy.ParentSeq, "and the child says which head that was")
	page, err := f.Read(f.ctx, made.ID, eventlog.ReadOptions{From: made.Policy.ReceiptSeq, To: made.Policy.ReceiptSeq})
	require.NoError(t, err)
	g, err := eventlog.ParseGranted(&page.Events[0])
	require.NoError(t, err)
	require.Equal(t, head, g.ParentHead)
	require.Equal(t, a.Epoch, g.IssuerEpoch)
	require.Equal(t, c.Digest(), g.Capture)
}

// TestACaptureIsImmutable: nothing that went in or came out of it changes it,
// nor does what the parent does later.
func TestACaptureIsImmutable(t *testing.T) {
	f := newFixture(t)
	root := f.root(materialize.RootRequest{Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{"/var/data"}}, Default: &policy.Setting{Mode: policy.WorkspaceWrite}})
	present := &policy.Defaults{Sandbox: f.resolved(policy.Setting{Mode: policy.WorkspaceWrite}), Approvals: policy.Ask}
	c := f.take(root, snapshot.Options{Present: present})
	want, defaults, digest := *c.Sandbox(), c.Defaults(), c.Digest()

	*present = policy.Defaults{Sandbox: policy.Top(), Approvals: policy.Ask}
	out := c.Sandbox()
	list := out.Roots.List()
	*out = policy.Top()
	list[0] = "/"
	given := c.Defaults()
	given.Sandbox = policy.Top()
	f.switchTo(root, policy.DangerFullAccess)

	require.True(t, want.Equal(*c.Sandbox()))
	require.True(t, defaults.Equal(c.Defaults()))
	require.Equal(t, digest, c.Digest())
	made := f.make(c)
	require.True(t, want.Equal(made.Policy.Sandbox.Value))
	require.True(t, defaults.Equal(made.Policy.Defaults))
}

// TestDigest: equal captures of one head are equal; another head, parent or
// default is another capture.
func TestDigest(t *testing.T) {
	f := newFixture(t)
	root, other := f.rootWith(policy.WorkspaceWrite), f.rootWith(policy.WorkspaceWrite)
	first := f.take(root, snapshot.Options{}).Digest()
	require.Equal(t, first, f.take(root, snapshot.Options{}).Digest())
	f.reopen(eventlog.Options{})
	require.Equal(t, first, f.take(root, snapshot.Options{}).Digest(), "in another process too")
	seen := map[eventlog.Hash]bool{first: true}
	add := func(c *snapshot.Capture) {
		t.Helper()
		require.False(t, seen[c.Digest()])
		seen[c.Digest()] = true
	}
	add(f.take(other, snapshot.Options{}))
	add(f.take(root, snapshot.Options{Present: &policy.Defaults{Sandbox: readOnly(), Approvals: policy.Never}}))
	f.switchTo(root, policy.WorkspaceWrite)
	add(f.take(root, snapshot.Options{}))
}

// TestTheParentsApprovalsAreNotRead: whatever they are, and were, a child is
// pinned to never.
func TestTheParentsApprovalsAreNotRead(t *testing.T) {
	f := newFixture(t)
	for _, a := range []policy.Approval{"", policy.Ask, policy.Never} {
		root := f.root(materialize.RootRequest{Approvals: a, Ask: policy.Ask})
		require.Equal(t, policy.Never, f.make(f.take(root, snapshot.Options{})).Policy.Approvals)
	}
}

// TestTakeRefusals: who delegates nothing.
func TestTakeRefusals(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	closed := f.rootWith(policy.WorkspaceWrite)
	_, err := replay.Close(f.ctx, f.Store, closed)
	require.NoError(t, err)
	settled := f.rootWith(policy.WorkspaceWrite)
	old := f.activate(root)
	young := f.activate(root)
	for _, c := range []struct {
		id    uuid.UUID
		epoch uint64
		want  error
	}{
		{closed, 0, eventlog.ErrSessionClosed}, {uuid.MustParse("99999999-9999-4999-8999-999999999999"), 0, eventlog.ErrNotFound},
		{root, old.Epoch, eventlog.ErrFenced}, {root, young.Epoch + 1, eventlog.ErrFenced}, {settled, 1, eventlog.ErrFenced},
	} {
		_, err := snapshot.Take(f.ctx, f.Store, c.id, snapshot.Options{Epoch: c.epoch})
		require.ErrorIs(t, err, c.want)
	}
	f.take(root, snapshot.Options{Epoch: young.Epoch})
	_, err = replay.Settle(f.ctx, f.Store, settled, 0, "completed")
	require.NoError(t, err)
	f.take(settled, snapshot.Options{})

	require.NoError(t, f.Store.Close())
	_, err = snapshot.Take(f.ctx, f.Store, root, snapshot.Options{})
	require.ErrorIs(t, err, eventlog.ErrStoreClosed)
	f.open(eventlog.Options{})
}
