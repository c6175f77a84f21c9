package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What the parts of a half do to each other, each alone against the top.
func TestHalfCanonical(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*policy.Half)
		want   func(*policy.Grant)
	}{
		{"no write permission", func(h *policy.Half) { h.Profile.Permissions.Write = false }, func(g *policy.Grant) { g.Files = policy.FilesRead }},
		{"no network permission", func(h *policy.Half) { h.Profile.Permissions.Network = false }, func(g *policy.Grant) { g.Network = false }},
		{"profile shell read_only", func(h *policy.Half) { h.Profile.Shell = policy.ShellReadOnly }, func(g *policy.Grant) { g.Shell = policy.GrantInspect }},
		{"profile shell none", func(h *policy.Half) { h.Profile.Shell = policy.ShellNone }, func(g *policy.Grant) { g.Shell = policy.GrantNone }},
		{"a shell of a newer version", func(h *policy.Half) { h.Profile.Shell = "root" }, func(g *policy.Grant) { g.Shell = policy.GrantNone }},
		{"files of a newer version", func(h *policy.Half) { h.Grant.Files = "raw" }, func(g *policy.Grant) { g.Files = policy.FilesNone }},
		{"no tools", func(h *policy.Half) { h.Profile.Tools = toolsOf(t) }, func(g *policy.Grant) { g.Files = policy.FilesNone }},
		{"one tool", func(h *policy.Half) { h.Profile.Tools = toolsOf(t, "write") }, func(g *policy.Grant) {}},
		{"null tools", func(h *policy.Half) { h.Profile.Tools = policy.ToolsNull() }, func(g *policy.Grant) {}},
		{"fetch_url denied", func(h *policy.Half) { h.Profile.Denied = denying(t, "fetch_url") }, func(g *policy.Grant) { g.Network = false }},
		{"run_tests denied", func(h *policy.Half) { h.Profile.Denied = denying(t, "run_tests") }, func(g *policy.Grant) { g.Shell = policy.GrantInspect }},
		{"bash denied", func(h *policy.Half) { h.Profile.Denied = denying(t, "bash") }, func(g *policy.Grant) { g.Shell = policy.GrantVerify }},
		{"a desktop", func(h *policy.Half) { h.Grant.Desktop = true }, func(g *policy.Grant) {}},
	} {
		h, want := policy.TopHalf(), policy.TopHalf().Grant
		c.change(&h)
		c.want(&want)
		assert.Equal(t, want, h.Canonical().Grant, c.name)
	}
	zero := policy.Half{}.Canonical()
	assert.Equal(t, policy.Grant{Files: policy.FilesNone, Shell: policy.GrantNone, Surface: policy.SurfaceEvidence}, zero.Grant, "nothing was said, nothing is granted")
	assert.True(t, zero.Grant.Scope.IsEmpty())
}

func TestHalfValidate(t *testing.T) {
	require.NoError(t, policy.TopHalf().Validate())
	for want, change := range map[string]func(*policy.Half){
		"shell: got \"root\"":            func(h *policy.Half) { h.Profile.Shell = "root" },
		"deadline: got -1":               func(h *policy.Half) { h.Profile.Limits.DeadlineMS = -1 },
		"files: got \"\"":                func(h *policy.Half) { h.Grant.Files = "" },
		"grant shell: got \"read_only\"": func(h *policy.Half) { h.Grant.Shell = "read_only" },
		"surface: got \"all\"":           func(h *policy.Half) { h.Grant.Surface = "all" },
		"desktop: got true":              func(h *policy.Half) { h.Grant.Desktop = true },
		"max children: got -1":           func(h *policy.Half) { h.Grant.MaxChildren = ptr(-1) },
	} {
		h := policy.TopHalf()
		change(&h)
		require.ErrorIs(t, h.Validate(), policy.ErrInvalid)
		assert.ErrorContains(t, h.Validate(), want)
		assert.ErrorIs(t, policy.Authority{Own: policy.TopHalf(), Delegable: h}.Validate(), policy.ErrInvalid)
	}
}

func TestGrantMaxChildren(t *testing.T) {
	with := func(n *int) policy.Grant { return policy.Grant{MaxChildren: n} }
	assert.Nil(t, with(nil).Meet(with(nil)).MaxChildren)
	assert.Equal(t, 2, *with(ptr(2)).Meet(with(nil)).MaxChildren)
	assert.Equal(t, 2, *with(nil).Meet(with(ptr(2))).MaxChildren)
	assert.Equal(t, 0, *with(ptr(0)).Meet(with(ptr(2))).MaxChildren, "0 is none, not absent")
	assert.True(t, with(ptr(1)).Within(with(nil)) && !with(nil).Within(with(ptr(1))))

	n := 3
	m := with(&n).Meet(with(nil))
	n = 9
	assert.Equal(t, 3, *m.MaxChildren, "the caller's number was copied")
}

func equivalent(a, b policy.Half) bool { return a.Within(b) && b.Within(a) }

// The meet is within both sides, and anything within both is within it; it is
// commutative, associative and idempotent up to the order of lists; the top is
// neutral.
func TestPropertyHalfMeetLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := genHalf().Draw(t, "a"), genHalf().Draw(t, "b"), genHalf().Draw(t, "c")
		m := a.Meet(b)
		require.True(t, m.Within(a) && m.Within(b))
		require.True(t, m.Meet(c).Within(m))
		if c.Within(a) && c.Within(b) {
			require.True(t, c.Within(m))
		}
		require.True(t, equivalent(m, b.Meet(a)))
		require.True(t, equivalent(m.Meet(c), a.Meet(b.Meet(c))))
		require.True(t, a.Meet(a).Equal(a))
		require.True(t, equivalent(a, policy.TopHalf().Meet(a)) && equivalent(a, a.Meet(policy.TopHalf())))
		require.Equal(t, a.Within(b), equivalent(a.Meet(b), a))
	})
}

// The canonical form is worth the same, is its own canonical form, is fit to be
// recorded whenever its limits are, and permits nothing that was not stated.
func TestPropertyHalfCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := genHalf().Draw(t, "h")
		c := h.Canonical()
		require.True(t, c.Equal(h) && equivalent(c, h))
		require.Equal(t, c, c.Canonical())
		require.NoError(t, c.Validate())
		require.True(t, c.Profile.Within(h.Profile) && c.Grant.Within(h.Grant))
	})
}

// Narrowing takes away from both halves, and again changes nothing.
func TestPropertyNarrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, ceiling := genAuthority().Draw(t, "a"), genHalf().Draw(t, "ceiling")
		n := a.Narrow(ceiling)
		require.True(t, n.Within(a))
		require.True(t, n.Own.Within(ceiling) && n.Delegable.Within(ceiling))
		require.True(t, n.Equal(n.Narrow(ceiling)))
	})
}
