package materialize_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// TestADelegationIsOneUnit: the child's log and the parent's event come
// together, in the order of the package's documentation, and say the same.
func TestADelegationIsOneUnit(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	parent := f.row(root)
	made := f.made(root, materialize.Request{ToolCall: "call-7", Label: "a label", Prompt: "a prompt", Key: "k"})
	require.Equal(t, []string{"session/created", "delegation/granted", "sandbox/mode", "approval/policy"}, f.types(made.ID))
	require.Equal(t, uint64(4), made.Seq)
	for _, ev := range f.log(made.ID) {
		require.Equal(t, eventlog.SourceDelegation, ev.Source)
		require.True(t, ev.PolicyBearing)
	}
	g, receipt := f.receipt(made.ID)
	top := f.policy(root).Sandbox.Value
	require.Equal(t, eventlog.Granted{Parent: root, Child: made.ID, Root: root, Depth: 1, MaxDepth: 3, ParentSeq: parent.Head, ParentHead: parent.Hash,
		Capture: g.Capture, ToolCall: "call-7", Sandbox: &top, Defaults: made.Policy.Defaults, WorkspaceRoot: workspace, NotBefore: g.NotBefore,
		Key: eventlog.KeyHash(root, "k"), Ceiling: policy.TopAuthority(), Requested: g.Requested, Granted: g.Granted,
		Lockdown: []string{}, Choices: policy.Choices{Role: policy.RoleGeneral}, ClassTable: policy.ClassTableVersion, Evidence: g.Evidence,
		Commitments: g.Commitments, Fingerprint: policy.FingerprintOf(policy.RoleGeneral, g.Granted).Sum}, g)
	require.True(t, g.Granted.Equal(policy.TopAuthority()), "an unlimited parent hands on everything that the role is meant for")
	require.NotZero(t, g.NotBefore)
	require.Equal(t, eventlog.Digest(receipt.Facts), made.Receipt)

	after := f.row(root)
	require.Equal(t, parent.Head+1, after.Head)
	started := f.log(root)[after.Head-1]
	require.Equal(t, eventlog.TypeDelegationStarted, started.Type)
	require.Equal(t, made.ID, started.Facts.UUID("child"))
	require.Equal(t, "call-7", started.Facts.Str("tool_call"))
	m, err := started.Facts.Map()
	require.NoError(t, err)
	require.Equal(t, made.Receipt[:], m["receipt"])

	t.Run("texts are content", func(t *testing.T) {
		for _, ev := range append(f.log(made.ID), started) {
			require.NotContains(t, string(ev.Facts), "a label")
			require.NotContains(t, string(ev.Facts), "a prompt")
		}
		require.Equal(t, "a label", f.row(made.ID).Label)
		require.Contains(t, string(receipt.Content), "a prompt")
	})
	t.Run("the row", func(t *testing.T) {
		row := f.row(made.ID)
		require.Equal(t, []any{eventlog.KindChild, root, root, 1, 3, eventlog.ModeContinuable, "in-process", true, workspace},
			[]any{row.Kind, row.Parent, row.Root, row.Depth, row.MaxDepth, row.Mode, row.Provider, row.InProcess, row.WorkspaceRoot})
		children, err := f.Children(root)
		require.NoError(t, err)
		require.Equal(t, []uuid.UUID{made.ID}, children)
	})
}

// TestAHalfMadeChildIsNeverVisible: whatever refuses a delegation leaves the
// store as it was, to the hash.
func TestAHalfMadeChildIsNeverVisible(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	taken := f.made(root, materialize.Request{}).ID
	before, sessions := f.row(root), f.sessions()
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		r    materialize.Request
		want error
	}{
		"an id in use":             {materialize.Request{ID: taken}, eventlog.ErrExists},
		"the parent's id":          {materialize.Request{ID: root}, eventlog.ErrExists},
		"an unknown mode":          {materialize.Request{Mode: "twice"}, eventlog.ErrInvalid},
		"a relative workspace":     {materialize.Request{Workspace: "src"}, eventlog.ErrInvalid},
		"a climbing workspace":     {materialize.Request{Workspace: "/srv/../etc"}, eventlog.ErrInvalid},
		"a label of octets":        {materialize.Request{Label: "\xff"}, eventlog.ErrInvalid},
		"a prompt of octets":       {materialize.Request{Prompt: "\xff"}, eventlog.ErrInvalid},
		"a long label":             {materialize.Request{Label: long}, eventlog.ErrTooLarge},
		"a long prompt":            {materialize.Request{Prompt: strings.Repeat("x", eventlog.MaxContent+1)}, eventlog.ErrTooLarge},
		"a call that is no code":   {materialize.Request{ToolCall: "call seven"}, eventlog.ErrInvalid},
		"a provider with blanks":   {materialize.Request{Provider: eventlog.Provider{Name: "the other one", InProcess: true}}, eventlog.ErrInvalid},
		"a remote, continuable":    {materialize.Request{Provider: eventlog.Provider{Name: "remote"}}, eventlog.ErrInvalid},
		"a fork beyond the head":   {materialize.Request{Fork: before.Head + 1}, eventlog.ErrInvalid},
		"a workspace too long":     {materialize.Request{Workspace: "/" + long}, eventlog.ErrInvalid},
		"a workspace with control": {materialize.Request{Workspace: "/a\nb"}, eventlog.ErrInvalid},
	} {
		_, err := f.delegate(root, c.r)
		require.ErrorIs(t, err, c.want, name)
		require.Equal(t, before, f.row(root), name)
	}
	require.Equal(t, sessions, f.sessions())
	f.reopen(eventlog.Options{Limits: eventlog.Limits{UnitFrames: 1}})
	_, err := f.delegate(root, materialize.Request{})
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
	require.Equal(t, before, f.row(root))
	require.Equal(t, sessions, f.sessions())
}

// TestGivenIDs: a free id is taken, and so is one that a retry names again.
func TestGivenIDs(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	id := uuid.New()
	require.Equal(t, id, f.made(root, materialize.Request{ID: id, Key: "k"}).ID)
	require.Equal(t, id, f.made(root, materialize.Request{ID: id, Key: "k"}).ID)
	_, err := f.delegate(root, materialize.Request{ID: id})
	require.ErrorIs(t, err, eventlog.ErrExists)
	_, err = f.delegate(root, materialize.Request{ID: id, Key: "another"})
	require.ErrorIs(t, err, eventlog.ErrExists)
}

// TestAWorkspaceMovesNoRoot: a child may live elsewhere; what it may write is
// what was captured, and a switch resolves against its own directory within it.
func TestAWorkspaceMovesNoRoot(t *testing.T) {
	f := newFixture(t)
	for _, parent := range []uuid.UUID{f.rootWith(policy.WorkspaceWrite), func() uuid.UUID {
		made, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{Workspace: workspace, Default: &policy.Setting{Mode: policy.WorkspaceWrite}})
		require.NoError(t, err)
		return made.ID
	}()} {
		out := f.made(parent, materialize.Request{Workspace: "/elsewhere"})
		require.Equal(t, "/elsewhere", out.Policy.WorkspaceRoot)
		require.Equal(t, []string{workspace}, out.Policy.Sandbox.Value.Roots.List())
		_, _, err := replay.Switch(f.ctx, f.Store, out.ID, replay.Change{Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}})
		require.ErrorIs(t, err, eventlog.ErrWidening)
		below := f.made(parent, materialize.Request{Workspace: workspace + "/sub"})
		_, after, err := replay.Switch(f.ctx, f.Store, below.ID, replay.Change{Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}})
		require.NoError(t, err)
		require.Equal(t, []string{workspace + "/sub"}, after.Sandbox.Value.Roots.List())
		require.Equal(t, "/elsewhere", f.made(out.ID, materialize.Request{}).Policy.WorkspaceRoot, "inherited")
	}
}

// TestProviders: one outside the process keeps its own policy: one-shot only,
// and said to be unenforced.
func TestProviders(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	remote := f.made(root, materialize.Request{Mode: eventlog.ModeOneShot, Provider: eventlog.Provider{Name: "remote:gpu-1"}})
	require.False(t, remote.Policy.Enforced())
	require.Equal(t, "remote:gpu-1", remote.Policy.Provider.Name)
	for _, p := range []eventlog.Provider{{}, {Name: "in-process", InProcess: true}, {Name: "other", InProcess: true}} {
		e := f.made(root, materialize.Request{Provider: p}).Policy
		require.True(t, e.Enforced())
	}
	root2 := f.policy(root)
	require.True(t, root2.Enforced())
}

// TestTooManyRoots: two sets of roots whose meet is larger than what can be
// recorded. The delegation is refused; a child that nobody can read is worse.
func TestTooManyRoots(t *testing.T) {
	f := newFixture(t)
	// /a/i for i < 20 against /a/i/j: 20 times 13 met roots.
	wide, deep := policy.Setting{Mode: policy.WorkspaceWrite}, policy.Setting{Mode: policy.WorkspaceWrite}
	for i := range 20 {
		dir := "/a/" + string(rune('a'+i))
		if i%2 == 0 {
			wide.WritableRoots = append(wide.WritableRoots, dir)
		} else {
			deep.WritableRoots = append(deep.WritableRoots, dir)
		}
		for j := range 15 {
			sub := dir + "/" + string(rune('a'+j))
			if i%2 == 0 {
				deep.WritableRoots = append(deep.WritableRoots, sub)
			} else {
				wide.WritableRoots = append(wide.WritableRoots, sub)
			}
		}
	}
	root, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{Default: &wide})
	require.NoError(t, err)
	present, err := deep.Resolve("")
	require.NoError(t, err)
	before, sessions := f.row(root.ID), f.sessions()
	_, err = materialize.Delegate(f.ctx, f.Store, root.ID, snapshot.Options{Present: &policy.Defaults{Sandbox: present}}, materialize.Request{})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	require.ErrorContains(t, err, "300 roots")
	require.Equal(t, before, f.row(root.ID))
	require.Equal(t, sessions, f.sessions())

	over, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{Sandbox: &wide})
	require.NoError(t, err)
	c, err := snapshot.Take(f.ctx, f.Store, over.ID, snapshot.Options{})
	require.NoError(t, err)
	_, err = replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: over.ID, Sandbox: &deep, Reason: "r"})
	require.NoError(t, err)
	_, err = materialize.Child(f.ctx, f.Store, c, materialize.Request{})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	require.Equal(t, 300, len(f.policy(over.ID).Sandbox.Value.Roots.List()), "it decides all the same")
}
