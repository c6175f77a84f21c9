package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPermissions(t *testing.T) {
	for text, p := range map[string]policy.Permissions{
		"read":               {},
		"read,write":         {Write: true},
		"read,network":       {Network: true},
		"read,write,network": {Write: true, Network: true},
	} {
		assert.Equal(t, text, p.String())
		got, err := policy.ParsePermissions(text)
		require.NoError(t, err)
		assert.Equal(t, p, got)
		assert.Equal(t, p, p.Meet(policy.Permissions{Write: true, Network: true}))
		assert.Equal(t, policy.Permissions{}, p.Meet(policy.Permissions{}))
		assert.True(t, policy.Permissions{}.Within(p))
	}
	for _, s := range []string{"", "write", "read,network,write", "Read", "read, write", "full"} {
		_, err := policy.ParsePermissions(s)
		assert.ErrorIs(t, err, policy.ErrInvalid, s)
	}
	assert.False(t, policy.Permissions{Write: true}.Within(policy.Permissions{Network: true}))
}

// The network of a session is what both its sandbox and its profile have.
func TestNetworkInEffect(t *testing.T) {
	has, hasNot := policy.Permissions{Network: true}, policy.Permissions{Write: true}
	assert.True(t, has.NetworkInEffect(policy.Top()))
	assert.True(t, has.NetworkInEffect(online(readOnly())))
	assert.False(t, has.NetworkInEffect(readOnly()))
	assert.False(t, hasNot.NetworkInEffect(policy.Top()))
	assert.False(t, has.NetworkInEffect(policy.Sandbox{Mode: "external-sandbox", Network: true}), "a foreign mode has none")
}

// ladder is one of the ordered levels, narrowest first.
type ladder struct {
	levels []string
	parse  func(string) (string, error)
	meet   func(a, b string) string
	within func(a, b string) bool
}

func ladders() map[string]ladder {
	return map[string]ladder{
		"shell": {
			[]string{"none", "read_only", "full"},
			func(s string) (string, error) { l, err := policy.ParseShell(s); return l.String(), err },
			func(a, b string) string { return policy.Shell(a).Meet(policy.Shell(b)).String() },
			func(a, b string) bool { return policy.Shell(a).Within(policy.Shell(b)) },
		},
		"grant shell": {
			[]string{"none", "inspect", "verify", "full"},
			func(s string) (string, error) { l, err := policy.ParseGrantShell(s); return l.String(), err },
			func(a, b string) string { return policy.GrantShell(a).Meet(policy.GrantShell(b)).String() },
			func(a, b string) bool { return policy.GrantShell(a).Within(policy.GrantShell(b)) },
		},
		"files": {
			[]string{"none", "read", "write"},
			func(s string) (string, error) { l, err := policy.ParseFiles(s); return l.String(), err },
			func(a, b string) string { return policy.Files(a).Meet(policy.Files(b)).String() },
			func(a, b string) bool { return policy.Files(a).Within(policy.Files(b)) },
		},
		"surface": {
			[]string{"evidence", "inherited"},
			func(s string) (string, error) { l, err := policy.ParseSurface(s); return l.String(), err },
			func(a, b string) string { return policy.Surface(a).Meet(policy.Surface(b)).String() },
			func(a, b string) bool { return policy.Surface(a).Within(policy.Surface(b)) },
		},
	}
}

// Every pair of every ladder: the meet is the lower one, and whatever is not on
// the ladder is worth its lowest level.
func TestLevels(t *testing.T) {
	for name, l := range ladders() {
		for i, a := range l.levels {
			got, err := l.parse(a)
			require.NoError(t, err, name)
			assert.Equal(t, a, got, name)
			for j, b := range l.levels {
				assert.Equal(t, l.levels[min(i, j)], l.meet(a, b), "%s: %s ^ %s", name, a, b)
				assert.Equal(t, i <= j, l.within(a, b), "%s: %s within %s", name, a, b)
			}
			for _, foreign := range []string{"", "superuser", "FULL", " full", "Write"} {
				_, err := l.parse(foreign)
				require.ErrorIs(t, err, policy.ErrInvalid, "%s: %q", name, foreign)
				assert.ErrorContains(t, err, "want "+l.levels[0], name)
				assert.Equal(t, l.levels[0], l.meet(foreign, a), "%s: %q", name, foreign)
				assert.True(t, l.within(foreign, a), "%s: %q", name, foreign)
				assert.Equal(t, i == 0, l.within(a, foreign), "%s: %q", name, foreign)
			}
		}
	}
}

func TestShellCap(t *testing.T) {
	assert.Equal(t, policy.GrantNone, policy.ShellNone.Cap())
	assert.Equal(t, policy.GrantInspect, policy.ShellReadOnly.Cap())
	assert.Equal(t, policy.GrantFull, policy.ShellFull.Cap())
	assert.Equal(t, policy.GrantNone, policy.Shell("admin").Cap())
}

// A call that no classifier has judged needs the full shell.
func TestGrantShellAdmits(t *testing.T) {
	for _, c := range []struct {
		grant policy.GrantShell
		runs  []policy.GrantShell
	}{
		{"", nil},
		{policy.GrantNone, nil},
		{policy.GrantInspect, []policy.GrantShell{policy.GrantInspect}},
		{policy.GrantVerify, []policy.GrantShell{policy.GrantInspect, policy.GrantVerify}},
		{policy.GrantFull, []policy.GrantShell{policy.GrantInspect, policy.GrantVerify, policy.GrantFull, "", policy.GrantNone, "raw"}},
	} {
		for _, need := range []policy.GrantShell{policy.GrantInspect, policy.GrantVerify, policy.GrantFull, "", policy.GrantNone, "raw"} {
			assert.Equal(t, contains(c.runs, need), c.grant.Admits(need), "%s admits %q", c.grant, string(need))
		}
	}
}

func contains[T comparable](list []T, item T) bool {
	for _, have := range list {
		if have == item {
			return true
		}
	}
	return false
}

func TestTransport(t *testing.T) {
	for g, want := range map[policy.GrantShell]string{
		policy.GrantNone: "none", policy.GrantInspect: "read_only", policy.GrantVerify: "full", policy.GrantFull: "full",
		"": "none", "root": "none",
	} {
		assert.Equal(t, want, policy.Transport(g), "%q", string(g))
	}
}
