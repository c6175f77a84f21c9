package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/policy"
	"childlog/replay"
)

// TestNarrowToNamedRoots: the roots of a ceiling are all that stays writable.
// Taken as an addition to the workspace they would narrow nothing, and an
// operator would believe that they did.
func TestNarrowToNamedRoots(t *testing.T) {
	for ceiling, want := range map[string][]string{"/srv/project/docs": {"/srv/project/docs"}, "/etc": {}} {
		f := newFixture(t)
		root := f.rootWith(policy.WorkspaceWrite)
		child := f.child(root).ID
		done, err := replay.Narrow(f.ctx, f.Store, replay.Narrowing{Session: child, Reason: "one directory",
			Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: []string{ceiling}}})
		require.NoError(t, err)
		require.Empty(t, done[0].Skipped)
		require.Equal(t, want, f.policy(child).Sandbox.Value.Roots.List())
	}
}
