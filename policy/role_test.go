package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRoleAliases(t *testing.T) {
	for role, aliases := range map[policy.Role][]string{
		policy.RoleGeneral:   {"worker", "general-purpose", "general_purpose", "default"},
		policy.RoleExplore:   {"scout", "exploration", "explorer"},
		policy.RolePlanner:   {"plan", "planning", "awaiter"},
		policy.RoleReviewer:  {"review", "code-review", "code_review"},
		policy.RoleImplement: {"builder", "implementer", "implementation"},
		policy.RoleTest:      {"verifier", "verify", "verification", "validator", "tester"},
		policy.RoleAdvisor:   {"consultant", "oracle"},
		policy.RoleCustom:    nil,
	} {
		assert.Equal(t, aliases, role.Aliases(), role)
		assert.True(t, role.Known(), role)
		for _, name := range append([]string{string(role)}, aliases...) {
			for _, spelled := range []string{name, " " + name + "\t\n", strings.ToUpper(name)} {
				got, err := policy.ParseRole(spelled)
				require.NoError(t, err, spelled)
				assert.Equal(t, role, got, spelled)
			}
		}
	}
	assert.Len(t, policy.Roles(), 8)
}

func TestUnknownRole(t *testing.T) {
	for _, s := range []string{"", " ", "root", "general purpose", "generаl" /* Cyrillic */, "wor\u212aer" /* Kelvin sign */, "plan\u200bner", "explore\x00", strings.Repeat("x", 1<<20)} {
		_, err := policy.ParseRole(s)
		require.ErrorIs(t, err, policy.ErrInvalid)
		var unknown *policy.UnknownRoleError
		require.ErrorAs(t, err, &unknown)
		assert.Equal(t, s, unknown.Got)
		assert.Equal(t, []string{"general", "explore", "planner", "reviewer", "implement", "test", "advisor", "custom"}, unknown.Known)
		assert.Less(t, len(err.Error()), 512, "a long name must not make a long message")
		assert.NotContains(t, err.Error(), "\u200b")
	}
	assert.Equal(t, policy.Preset{}, policy.Role("scout").Preset(), "an alias is not a role")
	assert.Nil(t, policy.Role("root").Aliases())
}

// The presets, as the table of the specification has them.
func TestRolePresets(t *testing.T) {
	for role, want := range map[policy.Role]struct {
		files    policy.Files
		grant    policy.GrantShell
		surface  policy.Surface
		profile  policy.Shell
		mayWrite bool
	}{
		policy.RoleExplore:   {policy.FilesRead, policy.GrantInspect, policy.SurfaceEvidence, policy.ShellFull, false},
		policy.RoleReviewer:  {policy.FilesRead, policy.GrantInspect, policy.SurfaceEvidence, policy.ShellFull, false},
		policy.RolePlanner:   {policy.FilesRead, policy.GrantInspect, policy.SurfaceInherited, policy.ShellReadOnly, false},
		policy.RoleAdvisor:   {policy.FilesRead, policy.GrantNone, policy.SurfaceInherited, policy.ShellNone, false},
		policy.RoleTest:      {policy.FilesRead, policy.GrantVerify, policy.SurfaceInherited, policy.ShellFull, false},
		policy.RoleGeneral:   {policy.FilesWrite, policy.GrantFull, policy.SurfaceInherited, policy.ShellFull, true},
		policy.RoleImplement: {policy.FilesWrite, policy.GrantFull, policy.SurfaceInherited, policy.ShellFull, true},
		policy.RoleCustom:    {policy.FilesWrite, policy.GrantFull, policy.SurfaceInherited, policy.ShellFull, true},
	} {
		p := role.Preset()
		assert.Equal(t, policy.Preset{
			Permissions: policy.Permissions{Write: want.mayWrite, Network: true},
			Shell:       want.profile, Files: want.files, GrantShell: want.grant, Surface: want.surface,
		}, p, role)

		// A child of the top is what its role is meant for.
		d := derive(t, policy.TopAuthority(), policy.Request{Role: string(role)})
		assert.Equal(t, want.files, d.Granted.Own.Grant.Files, role)
		assert.Equal(t, want.grant, d.Granted.Own.Grant.Shell, role)
		assert.Equal(t, want.surface, d.Granted.Own.Grant.Surface, role)
		assert.Equal(t, want.profile, d.Granted.Own.Profile.Shell, role)
		assert.Empty(t, d.Cuts, "what a role is not meant for was not asked")
	}
}

func TestRoleListsAreCopies(t *testing.T) {
	policy.RoleTest.Aliases()[0] = "x"
	policy.Roles()[0] = "x"
	assert.Equal(t, "verifier", policy.RoleTest.Aliases()[0])
	assert.Equal(t, policy.RoleGeneral, policy.Roles()[0])
}

// Whatever parses is one of the roles, and parses to itself.
func FuzzParseRole(f *testing.F) {
	for _, s := range []string{"worker", " Default ", "\xff", "ſcout", "PLAN"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		role, err := policy.ParseRole(s)
		if err != nil {
			if unknown := (*policy.UnknownRoleError)(nil); !errors.As(err, &unknown) || role != "" {
				t.Fatalf("got %q, %v", role, err)
			}
			return
		}
		again, err := policy.ParseRole(string(role))
		if err != nil || again != role || !slices.Contains(policy.Roles(), role) {
			t.Fatalf("%q parses to %q and that to %q, %v", s, role, again, err)
		}
	})
}
