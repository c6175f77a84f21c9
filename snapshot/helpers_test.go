package snapshot_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// fixture is a store under test. When the test ends it is closed, opened for
// reading and checked as a whole.
type fixture struct {
	*eventlog.Store
	t   *testing.T
	ctx context.Context
	dir string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, ctx: context.Background(), dir: filepath.Join(t.TempDir(), "store")}
	_, err := eventlog.Init(f.ctx, f.dir)
	require.NoError(t, err)
	f.open(eventlog.Options{})
	t.Cleanup(func() {
		f.reopen(eventlog.Options{ReadOnly: true})
		report, err := f.Store.Check(f.ctx, eventlog.CheckOptions{})
		require.NoError(t, err)
		require.True(t, report.OK(), "%v", report.Findings)
		require.NoError(t, f.Store.Close())
	})
	return f
}

func (f *fixture) open(o eventlog.Options) {
	f.t.Helper()
	s, err := eventlog.Open(f.ctx, f.dir, o)
	require.NoError(f.t, err)
	f.Store = s
}

func (f *fixture) reopen(o eventlog.Options) {
	f.t.Helper()
	require.NoError(f.t, f.Store.Close())
	f.open(o)
}

func (f *fixture) root(r materialize.RootRequest) uuid.UUID {
	f.t.Helper()
	r.Workspace = "/srv/project"
	made, err := materialize.Root(f.ctx, f.Store, r)
	require.NoError(f.t, err)
	return made.ID
}

func (f *fixture) rootWith(mode policy.Mode) uuid.UUID {
	f.t.Helper()
	return f.root(materialize.RootRequest{Sandbox: &policy.Setting{Mode: mode}})
}

func (f *fixture) take(parent uuid.UUID, o snapshot.Options) *snapshot.Capture {
	f.t.Helper()
	c, err := snapshot.Take(f.ctx, f.Store, parent, o)
	require.NoError(f.t, err)
	return c
}

func (f *fixture) make(c *snapshot.Capture) materialize.Session {
	f.t.Helper()
	made, err := materialize.Child(f.ctx, f.Store, c, materialize.Request{})
	require.NoError(f.t, err)
	return made
}

// stale requires that a capture makes no child, and that the attempt leaves
// the parent's log alone.
func (f *fixture) stale(c *snapshot.Capture, also ...error) {
	f.t.Helper()
	before, err := f.Row(c.Parent())
	require.NoError(f.t, err)
	_, err = materialize.Child(f.ctx, f.Store, c, materialize.Request{})
	require.ErrorIs(f.t, err, eventlog.ErrStaleCapture)
	for _, want := range also {
		require.ErrorIs(f.t, err, want)
	}
	after, err := f.Row(c.Parent())
	require.NoError(f.t, err)
	require.Equal(f.t, before, after)
}

func (f *fixture) switchTo(id uuid.UUID, mode policy.Mode) {
	f.t.Helper()
	_, _, err := replay.Switch(f.ctx, f.Store, id, replay.Change{Sandbox: &policy.Setting{Mode: mode}})
	require.NoError(f.t, err)
}

func (f *fixture) narrow(id uuid.UUID, s policy.Setting, subtree bool) {
	f.t.Helper()
	_, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: id, Sandbox: &s, Reason: "a test", Subtree: subtree})
	require.NoError(f.t, err)
}

func (f *fixture) activate(id uuid.UUID) replay.Activation {
	f.t.Helper()
	a, err := replay.Activate(f.ctx, f.Store, id, replay.AsOperator())
	require.NoError(f.t, err)
	return a
}

func (f *fixture) resolved(s policy.Setting) policy.Sandbox {
	f.t.Helper()
	v, err := s.Resolve("/srv/project")
	require.NoError(f.t, err)
	return v
}

func readOnly() policy.Sandbox { return policy.Sandbox{Mode: policy.ReadOnly}.Canonical() }
