package materialize_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

// TestAnotherWorkspaceMovesNoScope: a parent may write below src of its own
// workspace, or not below a closed place of it. A child elsewhere would read
// the same words as other places, so it is refused, at every depth.
func TestAnotherWorkspaceMovesNoScope(t *testing.T) {
	for name, limit := range map[string]func(f *fixture) materialize.Request{
		"a write scope": func(*fixture) materialize.Request {
			return materialize.Request{Want: policy.Request{Wish: policy.Wish{WriteScope: &[]string{"src"}}}}
		},
		"a closed place": func(f *fixture) materialize.Request {
			_, err := replay.SetRules(f.ctx, f.Store, replay.RuleFile{DenyPaths: []string{"secrets"}})
			require.NoError(t, err)
			return materialize.Request{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			parent := f.made(f.rootWith(policy.DangerFullAccess), limit(f)).ID
			n := f.sessions()
			for _, elsewhere := range []string{"/srv", workspace + "/src", "/srv/other"} {
				_, err := f.delegate(parent, materialize.Request{Workspace: elsewhere})
				var refused *policy.RefusedError
				require.ErrorAs(t, err, &refused)
				require.ErrorIs(t, err, eventlog.ErrWidening)
				require.Equal(t, "workspace_root", refused.Field)
			}
			require.Equal(t, n, f.sessions(), "no log was made")
			f.made(parent, materialize.Request{Workspace: workspace})
		})
	}
}

// TestAChildDoesNotReclassifyATool: what the parent's tree knows as a shell is
// one for every descendant, whether a request repeats it, leaves it out, or
// calls it a reading tool; the last is refused, letter case apart.
func TestAChildDoesNotReclassifyATool(t *testing.T) {
	f := newFixture(t)
	palette := func(name string, c policy.Class) policy.Palette {
		return must(policy.NewPalette(policy.PaletteEntry{Name: name, Class: c}))
	}
	root := f.rootWith(policy.WorkspaceWrite)
	c := f.made(root, materialize.Request{Palette: palette("runner", policy.ClassShell)}).ID
	g := f.made(c, materialize.Request{Palette: palette("look", policy.ClassRead)}).ID
	require.Equal(t, []policy.PaletteEntry{{Name: "look", Class: "read"}, {Name: "runner", Class: "shell"}}, f.policy(g).Palette.Entries())
	n := f.sessions()
	for _, parent := range []uuid.UUID{c, g} {
		for _, name := range []string{"runner", "Runner"} {
			_, err := f.delegate(parent, materialize.Request{Want: policy.Request{Role: "explore"}, Palette: palette(name, policy.ClassRead)})
			require.ErrorIs(t, err, eventlog.ErrInvalid)
		}
	}
	require.Equal(t, n, f.sessions())
	explorer := f.made(g, materialize.Request{Want: policy.Request{Role: "explore"}}).ID
	j, err := replay.NewAuthorizer(f.Store, explorer).Decide(f.ctx, replay.CallRequest{Call: policy.NewCall("c1", "runner", nil)})
	require.NoError(t, err)
	require.Equal(t, policy.CodeShell, j.Code)
}
