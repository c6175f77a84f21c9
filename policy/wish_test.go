package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Nothing stated is no ceiling: narrowing by it changes nothing.
func TestEmptyWishIsTheTop(t *testing.T) {
	h, err := policy.Wish{}.Half(policy.DenyRequest, receiptAt)
	require.NoError(t, err)
	require.True(t, h.Equal(policy.TopHalf()))
}

func TestWishHalf(t *testing.T) {
	half := func(w policy.Wish) policy.Half {
		h, err := w.Half(policy.DenyRequest, receiptAt)
		require.NoError(t, err)
		return h
	}
	h := half(policy.Wish{Permissions: &policy.Permissions{Network: true}})
	require.Equal(t, policy.FilesRead, h.Grant.Files)
	require.True(t, h.Grant.Network)
	require.Equal(t, policy.GrantFull, h.Grant.Shell)
	require.Equal(t, policy.GrantInspect, half(policy.Wish{Shell: ptr(policy.ShellReadOnly)}).Grant.Shell)
	require.Equal(t, policy.FilesNone, half(policy.Wish{Tools: toolsOf(t)}).Grant.Files)
	require.True(t, half(policy.Wish{WriteScope: &[]string{}}).Grant.Scope.IsEmpty())
	require.False(t, half(policy.Wish{}).Grant.Scope.Stated())
	require.False(t, half(policy.Wish{Spawn: ptr(false)}).Grant.Spawn)
	require.EqualValues(t, 1, half(policy.Wish{DeadlineMS: ptr(int64(1))}).Profile.Limits.DeadlineMS)

	// What denying a tool takes away is gone, and the rule cites its event.
	h = half(policy.Wish{DeniedTools: []string{"fetch_url"}})
	require.False(t, h.Grant.Network)
	require.Equal(t, []policy.DenyEntry{{Pattern: "fetch_url", Kind: policy.DenyRequest, Origin: receiptAt}}, h.Profile.Denied.Entries())

	for name, w := range map[string]policy.Wish{
		"depth 0":        {MaxDepth: ptr(0)}, // would be no limit
		"depth 9":        {MaxDepth: ptr(9)},
		"shell":          {Shell: ptr(policy.Shell("some"))},
		"children":       {MaxChildren: ptr(-1)},
		"deadline":       {DeadlineMS: ptr(int64(0))},
		"pattern":        {DeniedTools: []string{"a*b"}},
		"entry":          {WriteScope: &[]string{"a/../b"}},
		"too many paths": {WriteScope: ptr(make([]string, 17))},
	} {
		_, err := w.Half(policy.DenyRequest, receiptAt)
		require.ErrorIs(t, err, policy.ErrInvalid, name)
	}
}

// A ceiling made from any wish only takes away, and has the one canonical form.
func TestWishHalfNarrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := policy.Wish{Tools: genTools().Draw(t, "tools"), Providers: genNames("a", "b").Draw(t, "providers"), DeniedTools: genPatterns().Draw(t, "denied")}
		if rapid.Bool().Draw(t, "shell stated") {
			w.Shell = ptr(rapid.SampledFrom([]policy.Shell{policy.ShellNone, policy.ShellReadOnly, policy.ShellFull}).Draw(t, "shell"))
		}
		ceiling, err := w.Half(policy.DenyRequest, receiptAt)
		require.NoError(t, err)
		require.Equal(t, ceiling.Canonical(), ceiling)
		a := policy.TopAuthority()
		narrow := a.Narrow(ceiling)
		require.True(t, narrow.Within(a))
		require.True(t, narrow.Own.Within(ceiling))
	})
}
