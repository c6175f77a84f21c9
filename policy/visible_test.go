package policy_test

import (
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// palette is one tool of each class, and some that are none of them.
const everyTool = "Read apply_patch Bash run_tests WebFetch Task mcp__x BASH rеad"

func TestVisible(t *testing.T) {
	with := func(change func(*policy.Half)) policy.Half {
		h := policy.TopHalf()
		change(&h)
		return h
	}
	preset := func(role policy.Role) policy.Half {
		return derive(t, policy.TopAuthority(), policy.Request{Role: string(role)}).Granted.Own
	}
	for _, c := range []struct {
		name    string
		own     policy.Half
		sandbox policy.Sandbox
		want    string
	}{
		{"the top", policy.TopHalf(), policy.Top(), "Read apply_patch Bash run_tests WebFetch Task mcp__x BASH"},
		{"nothing", policy.Half{}, policy.Top(), ""},
		{"explorer", preset(policy.RoleExplore), policy.Top(), "Read Bash run_tests WebFetch Task"},
		{"advisor", preset(policy.RoleAdvisor), policy.Top(), "Read WebFetch Task"},
		{"coordinator", coordinator(t, policy.TopHalf()).Own, policy.Top(), ""},
		{"exact names", with(func(h *policy.Half) { h.Profile.Tools = toolsOf(t, "Read", "Task") }), policy.Top(), "Read Task"},
		{"no tools", with(func(h *policy.Half) { h.Profile.Tools = toolsOf(t) }), policy.Top(), ""},
		{"a denied shell", with(func(h *policy.Half) { h.Profile.Denied = denying(t, "exec_shell") }), policy.Top(), "Read apply_patch run_tests WebFetch Task"},
		{"denied tests", with(func(h *policy.Half) { h.Profile.Denied = denying(t, "run_tests") }), policy.Top(), "Read apply_patch Bash WebFetch Task"},
		{"denied network", with(func(h *policy.Half) { h.Profile.Denied = denying(t, "fetch_url") }), policy.Top(), "Read apply_patch Bash run_tests Task"},
		{"all denied", with(func(h *policy.Half) { h.Profile.Denied = denying(t, "*") }), policy.Top(), ""},
		{"a scope", scoped(t, "src"), policy.Top(), "Read apply_patch WebFetch Task"},
		{"an empty scope", scoped(t), policy.Top(), "Read WebFetch Task"},
		{"no delegation", with(func(h *policy.Half) { h.Grant.Spawn = false }), policy.Top(), "Read apply_patch Bash run_tests WebFetch mcp__x BASH"},
		{"no children", with(func(h *policy.Half) { h.Grant.MaxChildren = ptr(0) }), policy.Top(), "Read apply_patch Bash run_tests WebFetch mcp__x BASH"},
		{"read-only sandbox", policy.TopHalf(), online(readOnly()), "Read Bash run_tests WebFetch Task"},
		{"sandbox without network", policy.TopHalf(), write(t, "/w"), "Read apply_patch Bash run_tests Task"},
		{"sandbox with roots", policy.TopHalf(), online(write(t, "/w")), "Read apply_patch Bash run_tests WebFetch Task"},
		{"a foreign sandbox", policy.TopHalf(), policy.Sandbox{Mode: "external-sandbox"}, "Read Bash run_tests Task"},
	} {
		got := policy.Visible(policy.Standing{Own: c.own, Sandbox: c.sandbox}, strings.Fields(everyTool))
		assert.Equal(t, c.want, strings.Join(got, " "), c.name)
	}
	assert.Equal(t, []string{"subagent"}, policy.Visible(policy.Standing{Own: coordinator(t, policy.TopHalf()).Own, Sandbox: policy.Top()},
		[]string{"read", "subagent", "subagent_fork"}))
}

// inspecting is limited in the shell alone.
func inspecting() policy.Grant {
	g := policy.TopHalf().Grant
	g.Shell = policy.GrantInspect
	return g
}

func TestPermitsNamesTheRule(t *testing.T) {
	byOperator := policy.TopAuthority().Under(operatorRules(t, []string{"read"}, nil)).Own
	for _, c := range []struct {
		tool string
		own  policy.Half
		need policy.GrantShell
		want policy.Rule
	}{
		{"read", byOperator, "", policy.RuleOperatorDeny},
		{"read", policy.Half{Profile: policy.Profile{Denied: denying(t, "read")}}, "", policy.RuleDenyList},
		{"read", policy.Half{Profile: policy.Profile{Tools: toolsOf(t, "bash")}}, "", policy.RuleToolScope},
		{"bash", scoped(t, "src"), policy.GrantInspect, policy.RuleWriteScope},
		{"mcp__x", scoped(t, "src"), "", policy.RuleWriteScope},
		{"write", scoped(t), "", policy.RuleWriteScope},
		{"write", policy.RoleTest.Preset().Half(), "", policy.RuleFiles},
		{"bash", policy.RoleTest.Preset().Half(), "", policy.RuleShell},
		{"bash", policy.RoleTest.Preset().Half(), policy.GrantVerify, ""},
		{"bash", policy.RoleExplore.Preset().Half(), policy.GrantVerify, policy.RuleShell},
		{"mcp__x", policy.RoleTest.Preset().Half(), "", policy.RuleOpaque},
		{"mcp__x", policy.TopHalf().Meet(policy.Half{Profile: policy.TopHalf().Profile, Grant: inspecting()}), "", policy.RuleOpaque},
		{"web_fetch", policy.Half{}, "", policy.RuleNetwork},
		{"subagent", policy.Half{}, "", policy.RuleDelegate},
		{"rollback", scoped(t, "src"), "", ""},
		{"rollback", policy.RoleTest.Preset().Half(), "", policy.RuleFiles},
	} {
		got, ok := policy.Standing{Own: c.own, Sandbox: policy.Top()}.Permits(classOf(t, c.tool), c.need)
		assert.Equal(t, c.want, got, "%s %s", c.tool, c.need)
		assert.Equal(t, c.want == "", ok, c.tool)
	}
}

// A tool is shown if and only if some call of it is permitted; what the deny
// list denies at every level is never shown, nor what the tools do not allow;
// and a smaller session is shown no more.
func TestPropertyVisible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policy.Standing{Own: genHalf().Draw(t, "own"), Sandbox: genStated().Draw(t, "sandbox")}
		less := policy.Standing{Own: s.Own.Meet(genHalf().Draw(t, "less")), Sandbox: s.Sandbox.Meet(genStated().Draw(t, "less sandbox"))}
		tools := strings.Fields(everyTool + " read bash file mcp__x__y exec_command subagent write_file rollback")
		shown := policy.Visible(s, tools)
		for _, name := range tools {
			tool, err := s.Palette.Classify(name)
			if err != nil {
				require.NotContains(t, shown, name)
				continue
			}
			callable := false
			for _, need := range []policy.GrantShell{policy.GrantInspect, policy.GrantVerify, policy.GrantFull} {
				_, ok := s.Permits(tool, need)
				callable = callable || ok
			}
			require.Equal(t, callable, contains(shown, name), name)
			if len(s.Own.Profile.Denied.Match(tool, policy.GrantInspect)) > 0 || !s.Own.Profile.Tools.Allows(name) {
				require.NotContains(t, shown, name)
			}
		}
		for _, name := range policy.Visible(less, tools) {
			require.Contains(t, shown, name)
		}
	})
}
