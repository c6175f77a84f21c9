package materialize_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

// TestRootDefaults: a root that states nothing has the most careful default.
func TestRootDefaults(t *testing.T) {
	f := newFixture(t)
	made, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{})
	require.NoError(t, err)
	require.Equal(t, uint64(1), made.Seq)
	e := made.Policy
	require.Equal(t, "read-only (network off)", e.Sandbox.Value.String())
	require.Equal(t, policy.Ask, e.Approvals)
	require.False(t, e.Explicit)
	require.Equal(t, []any{eventlog.KindRoot, uuid.Nil, made.ID, 0, 3}, []any{e.Kind, e.Parent, e.Root, e.Depth, e.MaxDepth})
	require.NotEmpty(t, made.Context)
	require.Equal(t, []string{"session/created"}, f.types(made.ID))
}

// TestRootStated: what is stated is recorded as it was resolved, override and
// default apart, and read back the same in a later process.
func TestRootStated(t *testing.T) {
	f := newFixture(t)
	id := uuid.New()
	on := true
	made, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{ID: id, Workspace: "/srv//project/.", Label: "the label", System: "codex", External: "x 1",
		Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{"/var/data"}, Network: &on}, Approvals: policy.Never,
		Default: &policy.Setting{Mode: policy.WorkspaceWrite}, Ask: policy.Ask, MaxDepth: 8})
	require.NoError(t, err)
	require.Equal(t, id, made.ID)
	require.Equal(t, []string{"session/created", "sandbox/mode", "approval/policy"}, f.types(id))
	for range 2 {
		e := f.policy(id)
		require.Equal(t, "workspace-write /srv/project, /var/data (network on)", e.Sandbox.Value.String())
		require.Equal(t, "workspace-write /srv/project (network off)", e.Defaults.Sandbox.String())
		require.Equal(t, policy.Never, e.Approvals)
		require.Equal(t, policy.Ask, e.Defaults.Approvals)
		require.True(t, e.Explicit)
		require.Equal(t, "/srv/project", e.WorkspaceRoot)
		require.Equal(t, 8, e.MaxDepth)
		row := f.row(id)
		require.Equal(t, []string{"the label", "codex", "x 1", "/srv//project/."}, []string{row.Label, row.System, row.ExternalID, row.Cwd})
		f.reopen(eventlog.Options{})
	}
	found, err := f.Resolve(f.ctx, "codex:x 1")
	require.NoError(t, err)
	require.Equal(t, id, found)

	t.Run("windows", func(t *testing.T) {
		made, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{Workspace: `C:/work/x`, Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}})
		require.NoError(t, err)
		require.Equal(t, []string{`C:\work\x`}, made.Policy.Sandbox.Value.Roots.List())
		child := f.made(made.ID, materialize.Request{})
		require.Equal(t, []string{`C:\work\x`}, child.Policy.Sandbox.Value.Roots.List())
	})
}

// TestRootRefusals: each leaves no session behind.
func TestRootRefusals(t *testing.T) {
	f := newFixture(t)
	taken, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{System: "codex", External: "41"})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		r    materialize.RootRequest
		want error
	}{
		"an id in use":            {materialize.RootRequest{ID: taken.ID}, eventlog.ErrExists},
		"an external id in use":   {materialize.RootRequest{System: "codex", External: "41"}, eventlog.ErrExists},
		"half an external id":     {materialize.RootRequest{System: "codex"}, eventlog.ErrInvalid},
		"the other half":          {materialize.RootRequest{External: "41"}, eventlog.ErrInvalid},
		"a system with blanks":    {materialize.RootRequest{System: "my system", External: "1"}, eventlog.ErrInvalid},
		"a system with a colon":   {materialize.RootRequest{System: "a:b", External: "1"}, eventlog.ErrInvalid},
		"a long system":           {materialize.RootRequest{System: strings.Repeat("a", 300), External: "1"}, eventlog.ErrInvalid},
		"an unknown mode":         {materialize.RootRequest{Sandbox: &policy.Setting{Mode: "all"}}, eventlog.ErrInvalid},
		"no mode":                 {materialize.RootRequest{Sandbox: &policy.Setting{}}, eventlog.ErrInvalid},
		"an unknown default":      {materialize.RootRequest{Default: &policy.Setting{Mode: "external-sandbox"}}, eventlog.ErrInvalid},
		"unknown approvals":       {materialize.RootRequest{Approvals: "on-request"}, eventlog.ErrInvalid},
		"unknown default of them": {materialize.RootRequest{Ask: "granular"}, eventlog.ErrInvalid},
		"a relative workspace":    {materialize.RootRequest{Workspace: "."}, eventlog.ErrInvalid},
		"a long label":            {materialize.RootRequest{Label: strings.Repeat("x", 4097)}, eventlog.ErrTooLarge},
		"a label of octets":       {materialize.RootRequest{Label: "\xff"}, eventlog.ErrInvalid},
		"too deep":                {materialize.RootRequest{MaxDepth: 9}, eventlog.ErrDepth},
	} {
		_, err := materialize.Root(f.ctx, f.Store, c.r)
		require.ErrorIs(t, err, c.want, name)
		require.Equal(t, 1, f.sessions(), name)
	}
}

// TestRootsAtTheSameTime: one external id makes one root.
func TestRootsAtTheSameTime(t *testing.T) {
	f := newFixture(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for range 12 {
		wg.Go(func() {
			_, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{System: "codex", External: "41"})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made++
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, made)
	require.Equal(t, 1, f.sessions())
}

// TestWhatWasMadeIsReported: a session exists once its commit is durable. If
// it can't be read back, that is said with its id, and is no plain failure
// after which a caller would make another one.
func TestWhatWasMadeIsReported(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	type made struct {
		s   materialize.Session
		err error
	}
	results := make(chan made, 64)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			s, err := f.delegateWith(f.ctx, root, materialize.Request{})
			results <- made{s, err}
		})
	}
	old := f.Store
	require.NoError(t, old.Close()) // some are committed, some are not, some in between
	wg.Wait()
	close(results)
	f.open(eventlog.Options{})
	want := 0
	for r := range results {
		if r.s.ID == uuid.Nil {
			require.Error(t, r.err)
			continue
		}
		want++
		if r.err != nil {
			require.ErrorIs(t, r.err, eventlog.ErrOutcomeUnknown)
		}
		_, err := replay.Policy(f.ctx, f.Store, r.s.ID, 0)
		require.NoError(t, err)
	}
	children, err := f.Children(root)
	require.NoError(t, err)
	require.Len(t, children, want)
}
