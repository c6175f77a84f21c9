package policy_test

import (
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// restored is t after the way through any encoding that keeps its state apart
// from its names.
func restored(t require.TestingT, tools policy.Tools) policy.Tools {
	switch tools.State() {
	case policy.StateAbsent:
		return policy.ToolsAbsent()
	case policy.StateNull:
		return policy.ToolsNull()
	}
	return toolsOf(t, tools.List()...)
}

// Absent, null, empty and a list are inherit, inherit, nothing and only these,
// also after storage, and also for the child of the child.
func TestCase6_ThreeStatesOfTools(t *testing.T) {
	for _, c := range []struct {
		name        string
		tools       policy.Tools
		state       policy.ToolState
		reads, runs bool
		files       policy.Files
	}{
		{"absent", policy.ToolsAbsent(), policy.StateAbsent, true, true, policy.FilesWrite},
		{"null", policy.ToolsNull(), policy.StateNull, true, true, policy.FilesWrite},
		{"none", toolsOf(t), policy.StateList, false, false, policy.FilesNone},
		{"read", toolsOf(t, "read"), policy.StateList, true, false, policy.FilesWrite},
	} {
		d := derive(t, policy.TopAuthority(), policy.Request{Wish: policy.Wish{Tools: c.tools}})
		got := restored(t, d.Granted.Own.Profile.Tools)
		assert.True(t, c.tools.Equal(got), c.name)
		assert.Equal(t, c.state, got.State(), c.name)
		assert.Equal(t, c.name, got.String())
		assert.Equal(t, c.reads, got.Allows("read"), c.name)
		assert.Equal(t, c.runs, got.Allows("bash"), c.name)
		assert.Equal(t, c.files, d.Granted.Own.Grant.Files, "%s: an empty list leaves no files", c.name)

		next := derive(t, d.Granted, policy.Request{}).Granted.Own.Profile.Tools
		assert.Equal(t, c.reads, next.Allows("read"), c.name)
		assert.Equal(t, c.runs, next.Allows("bash"), c.name)
	}
	assert.Nil(t, policy.ToolsNull().List())
	assert.NotNil(t, toolsOf(t).List(), "an encoder writes a list here, if an empty one")
}

// The name part: what only looks like an allowed tool is not allowed, and what
// is no tool name is no tool.
func TestCase57_NamesThatLookAlike(t *testing.T) {
	reads := toolsOf(t, "read", "bash")
	for _, name := range []string{"write", "file", "Read", "BASH", "read_file", "read ", "reader"} {
		assert.False(t, reads.Allows(name), name)
	}
	for _, name := range []string{
		"rеad",       // Cyrillic e
		"re\u200bad", // zero-width space
		"\u2066read", // isolate
		"ｒｅａｄ",       // full width
		"ba\u017fh",  // long s, which upper-cases to S
		"read\x00", "re ad", "r\xffd", "", "re?d", "read*", "[read]", "read\n", `re\ad`,
		strings.Repeat("a", 129),
	} {
		assert.False(t, reads.Allows(name), "%q", name)
		assert.False(t, policy.ToolsAbsent().Allows(name), "%q: inheriting allows tool names alone", name)
		require.ErrorIs(t, policy.CheckToolName(name), policy.ErrInvalid, "%q", name)
		_, err := policy.ToolsList("read", name)
		require.ErrorIs(t, err, policy.ErrInvalid, "%q", name)
		_, err = policy.Palette{}.Classify(name)
		require.ErrorIs(t, err, policy.ErrInvalid, "%q", name)
	}
	assert.EqualError(t, policy.CheckToolName("re\u200bad"),
		`invalid: tool name: got "re\u200bad", want letters, digits and _.:/- only, not '\u200b' at byte 2`)
	assert.Less(t, len(policy.CheckToolName(strings.Repeat("é", 64)).Error()), 1024)
	require.NoError(t, policy.CheckToolName(strings.Repeat("a", 128)))
	require.NoError(t, policy.CheckToolName("mcp__git-hub__list.files:v1/x"))

	// With every name allowed, the look-alike of a shell tool has no more than
	// the tool itself.
	limited := policy.TopHalf()
	limited.Grant.Shell = policy.GrantInspect
	for _, name := range []string{"BASH", "bAsh", "Exec_Command"} {
		tool, err := policy.Palette{}.Classify(name)
		require.NoError(t, err)
		assert.Equal(t, policy.ClassShell, tool.Class, name)
		assert.False(t, tool.Known, name)
		_, ok := policy.Standing{Own: limited, Sandbox: policy.Top()}.Permits(tool, policy.GrantFull)
		assert.False(t, ok, name)
	}
}

func TestToolsList(t *testing.T) {
	tools := toolsOf(t, "write", "read", "write")
	assert.Equal(t, []string{"write", "read"}, tools.List(), "in the order stated, each once")
	assert.Equal(t, "write, read", tools.String())

	names := []string{"read"}
	kept := toolsOf(t, names...)
	names[0] = "bash"
	kept.List()[0] = "bash"
	assert.Equal(t, []string{"read"}, kept.List())

	_, err := policy.ToolsList(numbered("t%d", 1025)...)
	require.ErrorIs(t, err, policy.ErrInvalid)
	assert.ErrorContains(t, err, "got 1025 names, want at most 1024")
}

func TestToolsDerive(t *testing.T) {
	absent, null := policy.ToolsAbsent(), policy.ToolsNull()
	for _, c := range []struct {
		name                string
		parent, child, want policy.Tools
	}{
		{"the child's order", toolsOf(t, "a", "b", "c"), toolsOf(t, "c", "x", "a"), toolsOf(t, "c", "a")},
		{"nothing in common", toolsOf(t, "a"), toolsOf(t, "b"), toolsOf(t)},
		{"letter case counts", toolsOf(t, "read"), toolsOf(t, "Read"), toolsOf(t)},
		{"an alias is not a name", toolsOf(t, "file"), toolsOf(t, "read"), toolsOf(t)},
		{"parent's, for absent", toolsOf(t, "a", "b"), absent, toolsOf(t, "a", "b")},
		{"parent's, for null", toolsOf(t, "a"), null, toolsOf(t, "a")},
		{"parent's nothing", toolsOf(t), absent, toolsOf(t)},
		{"child's, under absent", absent, toolsOf(t, "b", "a"), toolsOf(t, "b", "a")},
		{"child's nothing", null, toolsOf(t), toolsOf(t)},
		{"null under absent", absent, null, null},
		{"absent under null", null, absent, absent},
	} {
		got := c.parent.Derive(c.child)
		assert.True(t, c.want.Equal(got), "%s: got %s, want %s", c.name, got, c.want)
	}
}

// A child's scope is within its parent's and within what it stated; it allows a
// name if and only if both do; deriving the same again changes nothing; and
// the state of what an unrestricted parent's child states is kept.
func TestPropertyToolsDerive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent, child := genTools().Draw(t, "parent"), genTools().Draw(t, "child")
		got := parent.Derive(child)
		require.True(t, got.Within(parent) && got.Within(child))
		name := rapid.SampledFrom([]string{"read", "Read", "bash", "x", "", "é"}).Draw(t, "name")
		require.Equal(t, parent.Allows(name) && child.Allows(name), got.Allows(name))
		require.True(t, got.Equal(parent.Derive(got)) && got.Equal(got.Derive(child)))
		require.True(t, got.Equal(restored(t, got)))
		if parent.Inherits() {
			require.Equal(t, child.State(), got.State())
		} else {
			require.Equal(t, policy.StateList, got.State())
		}
	})
}

func TestNameSet(t *testing.T) {
	absent, none, ab, bc := policy.NameSet{}, namesOf(t), namesOf(t, "b", "a", "b"), namesOf(t, "b", "c")
	assert.Equal(t, []string{"a", "b"}, ab.List())
	assert.Nil(t, absent.List())
	assert.NotNil(t, none.List())
	assert.True(t, absent.Admits("x"))
	assert.False(t, none.Admits("x"))
	assert.True(t, ab.Admits("a") && !ab.Admits("A"))

	assert.True(t, ab.Equal(absent.Meet(ab)) && ab.Equal(ab.Meet(absent)))
	assert.True(t, namesOf(t, "b").Equal(ab.Meet(bc)))
	assert.True(t, none.Equal(ab.Meet(none)))
	assert.True(t, ab.Within(absent) && !absent.Within(ab) && none.Within(ab) && !ab.Within(bc))
	assert.False(t, none.Equal(absent))

	for _, bad := range []string{"", "a b", "é"} {
		_, err := policy.NameSetOf("ok", bad)
		require.ErrorIs(t, err, policy.ErrInvalid, "%q", bad)
	}
	_, err := policy.NameSetOf(numbered("n%d", 1025)...)
	require.ErrorIs(t, err, policy.ErrInvalid)
}

// A name is accepted everywhere or nowhere, and an accepted one is bounded,
// one line of ASCII, and its own canonical form up to letter case.
func FuzzToolNames(f *testing.F) {
	for _, s := range []string{"Bash", "mcp__a__b", "rеad", "re\u200bad", "a b", "*", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		valid := policy.CheckToolName(s) == nil
		tools, err := policy.ToolsList(s)
		tool, classErr := policy.Palette{}.Classify(s)
		if valid != (err == nil) || valid != (classErr == nil) || valid != policy.ToolsAbsent().Allows(s) {
			t.Fatalf("%q: %v, %v, %v", s, valid, err, classErr)
		}
		if !valid {
			return
		}
		if len(s) > 128 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Fatalf("accepted %q", s)
		}
		if !tools.Allows(s) || tool.Given != s || !strings.EqualFold(tool.Canonical, s) || tool.Class == "" {
			t.Fatalf("%q: %v, %+v", s, tools, tool)
		}
	})
}
