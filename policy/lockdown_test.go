package policy_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLockdownLocks(t *testing.T) {
	l, err := policy.NewLockdown("Persona_Edit", "mcp:blocks/edit")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		tool           string
		builtin, added bool
	}{
		"edit":                    {"prompt_block_edit", true, true},
		"append":                  {"prompt_block_append", true, true},
		"replace":                 {"prompt_block_replace", true, true},
		"delete":                  {"prompt_block_delete", true, true},
		"upper case":              {"PROMPT_Block_EDIT", true, true},
		"added, lowered":          {"persona_edit", false, true},
		"added, upper":            {"PERSONA_EDIT", false, true},
		"added, with separators":  {"mcp:blocks/edit", false, true},
		"the prefix alone":        {"prompt_block", false, false},
		"reading one":             {"prompt_block_read", false, false},
		"a longer name":           {"prompt_block_edits", false, false},
		"behind a server's name":  {"mcp__x__prompt_block_edit", false, false},
		"the configuration field": {"prompt_block_self_edit", false, false},
		"file":                    {"file", false, false},
		"Cyrillic look-alike":     {"prompt_block_еdit", true, true},
		"Kelvin sign":             {"prompt_bloc\u212a_edit", true, true},
		"zero-width space":        {"prompt_block_edit\u200b", true, true},
		"a space around it":       {" prompt_block_edit", true, true},
		"empty":                   {"", true, true},
		"too long":                {strings.Repeat("a", 129), true, true},
	} {
		require.Equal(t, c.builtin, policy.Lockdown{}.Locks(c.tool), name)
		require.Equal(t, c.added, l.Locks(c.tool), name)
	}
}

func TestLockdownNames(t *testing.T) {
	builtin := []string{"prompt_block_append", "prompt_block_delete", "prompt_block_edit", "prompt_block_replace"}
	require.Equal(t, []string{"prompt_block_edit", "prompt_block_append", "prompt_block_replace", "prompt_block_delete"}, policy.LockdownTools())
	require.Equal(t, builtin, policy.Lockdown{}.Names())

	given := []string{"zap", "Alter", "alter", "PROMPT_BLOCK_EDIT"}
	l, err := policy.NewLockdown(given...)
	require.NoError(t, err)
	want := []string{"alter", "prompt_block_append", "prompt_block_delete", "prompt_block_edit", "prompt_block_replace", "zap"}
	require.Equal(t, want, l.Names())

	// Nothing that came in or out reaches the set.
	given[0], l.Names()[0], policy.LockdownTools()[0] = "x", "x", "x"
	require.Equal(t, want, l.Names())
	require.True(t, l.Locks("zap"))
	require.False(t, l.Locks("x"))

	again, err := policy.NewLockdown(l.Names()...)
	require.NoError(t, err)
	require.Equal(t, l, again)
}

func TestLockdownRefusesNamesThatAreNone(t *testing.T) {
	many := make([]string, 1025)
	for i := range many {
		many[i] = "t" + strconv.Itoa(i)
	}
	for name, names := range map[string][]string{
		"empty":      {""},
		"wildcard":   {"prompt_block_*"},
		"space":      {"fine", "not fine"},
		"look-alike": {"prompt_block_еdit"},
		"too many":   many,
	} {
		_, err := policy.NewLockdown(names...)
		require.ErrorIs(t, err, policy.ErrInvalid, name)
	}
	_, err := policy.NewLockdown(many[:1024]...)
	require.NoError(t, err)
}

// A set locks exactly its names, in any letter case, and adding never unlocks.
func TestPropertyLockdownOnlyGrows(t *testing.T) {
	genName := rapid.StringMatching(`[A-Za-z_.]{1,6}`)
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(genName, 0, 6).Draw(t, "names")
		l, err := policy.NewLockdown(names...)
		require.NoError(t, err)
		require.True(t, slices.IsSorted(l.Names()))
		for _, n := range append(names, policy.LockdownTools()...) {
			require.True(t, l.Locks(strings.ToUpper(n)), n)
		}
		probe := genName.Draw(t, "probe")
		require.Equal(t, slices.Contains(l.Names(), strings.ToLower(probe)), l.Locks(probe))
	})
}
