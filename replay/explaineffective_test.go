package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

// TestEffectiveIsLess: where the grant or the sandbox leaves less than a field
// says, the explanation names it and what cut it; where not, it is silent.
func TestEffectiveIsLess(t *testing.T) {
	f := newFixture(t)
	full := policy.ShellFull
	root, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{Workspace: "/w", Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite},
		Profile: &materialize.Profile{Own: policy.Wish{Shell: &full, DeniedTools: []string{"exec_shell"}, Permissions: &policy.Permissions{Write: true, Network: true}}}})
	require.NoError(t, err)
	limit := func(field string) *replay.Limit {
		x, err := replay.Explain(f.ctx, f.Store, root.ID, field, 0)
		require.NoError(t, err)
		return x.Effective
	}
	shell := limit(policy.FieldShell)
	require.NotNil(t, shell)
	require.Equal(t, []string{policy.FieldGrantShell, "verify"}, []string{shell.Field, shell.Value})
	require.Equal(t, policy.RuleDenyShell, shell.DecidedBy)
	require.Contains(t, shell.Rule, "exec_shell is denied")
	for _, field := range []string{policy.FieldNetwork, policy.FieldGrantNetwork} {
		require.Equal(t, "sandbox.network", limit(field).Field, field)
	}
	for _, field := range []string{policy.FieldWrite, policy.FieldFiles, policy.FieldGrantShell, "sandbox.mode"} {
		require.Nil(t, limit(field), field)
	}
	_, err = replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: root.ID, Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Reason: "enough"})
	require.NoError(t, err)
	for _, field := range []string{policy.FieldWrite, policy.FieldFiles} {
		l := limit(field)
		require.Equal(t, []string{"sandbox.mode", "read-only"}, []string{l.Field, l.Value}, field)
		require.Equal(t, policy.SourceNarrowing, l.By.Source)
	}
}
