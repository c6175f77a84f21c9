package policy_test

import (
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDenyPatterns(t *testing.T) {
	for _, p := range []string{"read", "READ", "exec_*", "*", "mcp__x__*", strings.Repeat("a", 128) + "*"} {
		d := denying(t, p)
		assert.Equal(t, p, d.Entries()[0].Pattern, "kept as written")
	}
	for want, p := range map[string]string{
		"empty pattern":             "",
		"no wildcard but one":       "a*b",
		"no wildcard but one f":     "**",
		"no wildcard but one fi":    "a**",
		"no wildcard but one fin":   "*a",
		"no wildcard but one fina":  "a?",
		"no wildcard but one final": "[ab]",
		"not ' '":                   " read",
		`not '\u0435'`:              "rеad",
		`not '\u200b'`:              "re\u200bad*",
		"want 1 to 128":             strings.Repeat("a", 129),
		"not '|'":                   "a|b",
	} {
		_, err := policy.NewDenyList(policy.DenyRequest, receiptAt, "ok", p)
		require.ErrorIs(t, err, policy.ErrInvalid, "%q", p)
		assert.ErrorContains(t, err, want)
	}
	_, err := policy.NewDenyList("god", receiptAt, "read")
	require.ErrorIs(t, err, policy.ErrInvalid)
	_, err = policy.NewDenyList(policy.DenyRequest, receiptAt, numbered("t%d", 1025)...)
	require.ErrorIs(t, err, policy.ErrInvalid)
}

func TestDenyByNameAndAlias(t *testing.T) {
	for _, c := range []struct {
		pattern string
		by      policy.DenyBy
		calls   string
	}{
		{"chmod", policy.DenyByName, "chmod CHMOD Chmod"},
		{"CHMOD", policy.DenyByName, "chmod"},
		{"chmod", "", "chmodx chmo mcp__chmod"},
		{"mcp__git*", policy.DenyByName, "mcp__git mcp__git__push MCP__GITHUB__x"},
		{"mcp__git*", "", "mcp__gi mcp_git"},
		{"*", policy.DenyByName, "Read anything"},

		{"read", policy.DenyByAlias, "file File"},
		{"read_file", policy.DenyByAlias, "file"},
		{"write", policy.DenyByAlias, "file"},
		{"write_file", policy.DenyByAlias, "file"},
		{"edit", policy.DenyByAlias, "file"},
		{"edit_file", policy.DenyByAlias, "file"},
		{"file", policy.DenyByAlias, "read Read read_file write Write write_file edit Edit edit_file"},
		{"bash", policy.DenyByAlias, "exec_shell"},
		{"exec_shell", policy.DenyByAlias, "bash Bash BASH"},
		{"fil*", policy.DenyByAlias, "read"},

		// One step: not through the alias to its other names.
		{"read", "", "read_file write write_file edit edit_file Glob"},
		{"write", "", "write_file read edit MultiEdit apply_patch"},
		{"file", "", "Glob apply_patch MultiEdit NotebookEdit files"},
	} {
		for _, call := range strings.Fields(c.calls) {
			m := denying(t, c.pattern).Match(classOf(t, call), policy.GrantFull)
			if c.by == "" {
				assert.Empty(t, m, "%s, call %s", c.pattern, call)
				continue
			}
			require.Len(t, m, 1, "%s, call %s", c.pattern, call)
			assert.Equal(t, c.by, m[0].By, "%s, call %s", c.pattern, call)
			assert.Equal(t, c.pattern, m[0].Entry.Pattern)
			assert.Equal(t, c.by == policy.DenyByAlias, m[0].Via != "")
		}
	}
	assert.Nil(t, policy.Aliases("Glob"))
}

// The class part: whoever denies the one shell tool they know means the shell,
// whatever a foreign harness calls it.
func TestCase58_DeniedByClass(t *testing.T) {
	d := denying(t, "exec_shell*")
	for name, by := range map[string]policy.DenyBy{
		"exec_shell": policy.DenyByName, "exec_shell_wait": policy.DenyByName, "bash": policy.DenyByAlias, "Bash": policy.DenyByAlias, "BASH": policy.DenyByAlias,
		"write_stdin": policy.DenyByClass, "exec_command": policy.DenyByClass, "shell": policy.DenyByClass, "local_shell": policy.DenyByClass,
		"container.exec": policy.DenyByClass, "KillShell": policy.DenyByClass, "job_kill": policy.DenyByClass, "Exec_Command": policy.DenyByClass,
		"run_terminal_cmd": policy.DenyByClass, // unknown: may be a shell
	} {
		m := d.Match(classOf(t, name), policy.GrantFull)
		require.Len(t, m, 1, name)
		assert.Equal(t, by, m[0].By, name)
		assert.Equal(t, receiptAt, m[0].Entry.Origin, name)
		if by == policy.DenyByClass {
			assert.Equal(t, "exec_shell", m[0].Via, name)
		}
	}
	for _, name := range []string{"Read", "apply_patch", "web_search", "spawn_agent"} {
		assert.Empty(t, d.Match(classOf(t, name), policy.GrantFull), name)
	}
	declared, err := policy.NewPalette(policy.PaletteEntry{Name: "run_terminal_cmd", Class: policy.ClassShell})
	require.NoError(t, err)
	tool, err := declared.Classify("run_terminal_cmd")
	require.NoError(t, err)
	assert.Len(t, d.Match(tool, policy.GrantFull), 1)

	// Raw commands are denied, and not what a classifier found harmless; by
	// name the call is denied whatever it does.
	assert.Empty(t, d.Match(classOf(t, "exec_command"), policy.GrantInspect))
	assert.Empty(t, d.Match(classOf(t, "exec_command"), policy.GrantVerify))
	assert.Len(t, d.Match(classOf(t, "exec_command"), ""), 1, "no verdict is no permission")
	assert.Len(t, d.Match(classOf(t, "Bash"), policy.GrantInspect), 1)
	assert.Len(t, d.Match(classOf(t, "Local_Shell"), policy.GrantInspect), 1, "a look-alike is no shell tool that anybody classifies")
	assert.Len(t, denying(t, "fetch_url").Match(classOf(t, "mcp__github__push"), ""), 1, "an unknown tool may reach the network")
	assert.Len(t, d.Match(classOf(t, "run_terminal_cmd"), policy.GrantInspect), 1, "nobody classifies the calls of an unknown tool")
}

func TestDenyEffects(t *testing.T) {
	for _, c := range []struct {
		pattern       string
		network       bool // gone
		profile       policy.Shell
		grant         policy.GrantShell
		inspects, raw bool // what exec_command still may
	}{
		{"chmod", false, policy.ShellFull, policy.GrantFull, true, true},
		{"fetch_url", true, policy.ShellFull, policy.GrantFull, true, true},
		{"FETCH_*", true, policy.ShellFull, policy.GrantFull, true, true},
		{"fetch", false, policy.ShellFull, policy.GrantFull, true, true},
		{"web_fetch", false, policy.ShellFull, policy.GrantFull, true, true},
		{"run_tests", false, policy.ShellReadOnly, policy.GrantInspect, true, false},
		{"run_*", false, policy.ShellReadOnly, policy.GrantInspect, true, false},
		{"exec_shell", false, policy.ShellFull, policy.GrantVerify, true, false},
		{"bash", false, policy.ShellFull, policy.GrantVerify, true, false},
		{"exec*", false, policy.ShellFull, policy.GrantVerify, false, false}, // by name
		{"*", true, policy.ShellReadOnly, policy.GrantInspect, false, false},
	} {
		d := derive(t, policy.TopAuthority(), policy.Request{Wish: policy.Wish{DeniedTools: []string{c.pattern}}})
		own := d.Granted.Own
		assert.Equal(t, !c.network, own.Grant.Network, c.pattern)
		assert.Equal(t, !c.network, own.Profile.Permissions.Network, c.pattern)
		assert.Equal(t, c.profile, own.Profile.Shell, c.pattern)
		assert.Equal(t, c.grant, own.Grant.Shell, c.pattern)
		denies := func(name string, need policy.GrantShell) bool {
			return len(own.Profile.Denied.Match(classOf(t, name), need)) > 0
		}
		assert.Equal(t, c.network, denies("WebSearch", ""), c.pattern)
		assert.Equal(t, !c.inspects, denies("exec_command", policy.GrantInspect), c.pattern)
		assert.Equal(t, !c.raw, denies("exec_command", policy.GrantFull), c.pattern)
	}
	verify := denying(t, "run_tests")
	assert.Len(t, verify.Match(classOf(t, "exec_command"), policy.GrantVerify), 1)
	network, tests, raw := denying(t, "exec_shell", "*").Effects()
	assert.Equal(t, "*", network.Pattern)
	assert.Equal(t, "*", tests.Pattern)
	assert.Equal(t, "exec_shell", raw.Pattern, "the first to do so")
}

// The rule to cite is the operator's, wherever it stands, and each keeps the
// place where it was first stated.
func TestDenyOrigins(t *testing.T) {
	elsewhere := policy.Origin{Session: child, Seq: 99}
	own := denying(t, "chmod", "read")
	d := own.Union(operatorRules(t, []string{"CHMOD"}, nil).Denied())
	m := d.Match(classOf(t, "chmod"), "")
	require.Len(t, m, 2)
	assert.Equal(t, policy.DenyEntry{Pattern: "CHMOD", Kind: policy.DenyOperator, Origin: operatorAt}, m[0].Entry)
	assert.Equal(t, policy.DenyEntry{Pattern: "chmod", Kind: policy.DenyRequest, Origin: receiptAt}, m[1].Entry)

	later, err := policy.NewDenyList(policy.DenyRequest, elsewhere, "Read", "ls")
	require.NoError(t, err)
	u := d.Inherited().Union(later)
	assert.Equal(t, []policy.DenyEntry{
		{Pattern: "chmod", Kind: policy.DenyParent, Origin: receiptAt},
		{Pattern: "read", Kind: policy.DenyParent, Origin: receiptAt},
		{Pattern: "CHMOD", Kind: policy.DenyOperator, Origin: operatorAt},
		{Pattern: "ls", Kind: policy.DenyRequest, Origin: elsewhere},
	}, u.Entries())

	again, err := policy.DenyListOf(u.Entries()...)
	require.NoError(t, err)
	assert.Equal(t, u.Entries(), again.Entries(), "through a record and back")
	u.Entries()[0].Pattern = "x"
	assert.Equal(t, again.Entries(), u.Entries())
	assert.Equal(t, policy.DenyRequest, own.Entries()[0].Kind, "Inherited made another list")
}

// A union denies whatever either side does and nothing else, is idempotent, and
// covers both sides; lists never share what they append to.
func TestPropertyDenyNeverShrinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) policy.DenyList {
			kind := rapid.SampledFrom([]policy.DenyKind{policy.DenyOperator, policy.DenyParent, policy.DenyRequest}).Draw(t, label+" kind")
			d, err := policy.NewDenyList(kind, receiptAt, genPatterns().Draw(t, label)...)
			require.NoError(t, err)
			return d
		}
		a, b, c := draw("a"), draw("b"), draw("c")
		u := a.Union(b)
		before := u.Entries()
		grown := u.Union(c)
		after := grown.Entries()
		_, _ = a.Union(c), u.Union(denying(t, "x", "y", "z"))
		require.Equal(t, before, u.Entries())
		require.Equal(t, after, grown.Entries())
		require.True(t, u.Covers(a) && u.Covers(b))
		require.Equal(t, u.Entries(), u.Union(a).Union(b).Union(u).Entries())
		require.Equal(t, u.Union(c).Entries(), a.Union(b.Union(c)).Entries())

		name := rapid.SampledFrom([]string{"read", "file", "bash", "exec_command", "WebFetch", "chmod", "mcp__x", "Write"}).Draw(t, "tool")
		need := rapid.SampledFrom([]policy.GrantShell{policy.GrantInspect, policy.GrantVerify, ""}).Draw(t, "need")
		tool, err := policy.Palette{}.Classify(name)
		require.NoError(t, err)
		denied := func(d policy.DenyList) bool { return len(d.Match(tool, need)) > 0 }
		require.Equal(t, denied(a) || denied(b), denied(u))
		require.Equal(t, denied(a), denied(a.Inherited()))
	})
}

// A pattern is refused or denies what it says: the name it is, and with a star
// every longer one, in any letter case.
func FuzzDenyPattern(f *testing.F) {
	for _, s := range []string{"exec_shell*", "*", "", "a*b", "Bash", "r\xffd*", "mcp__*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		d, err := policy.NewDenyList(policy.DenyRequest, receiptAt, pattern)
		if err != nil {
			if d.Len() != 0 {
				t.Fatalf("%q: refused and kept", pattern)
			}
			return
		}
		body, wild := strings.CutSuffix(pattern, "*")
		name := body
		if wild {
			name = (body + "xyz")[:min(len(body)+3, 128)]
		}
		for _, call := range []string{name, strings.ToUpper(name), strings.ToLower(name)} {
			tool, err := policy.Palette{}.Classify(call)
			if err != nil {
				t.Fatalf("%q accepted, and %q is no tool name: %v", pattern, call, err)
			}
			if len(d.Match(tool, policy.GrantInspect)) != 1 {
				t.Fatalf("%q does not deny %q", pattern, call)
			}
		}
	})
}
