package policy_test

import (
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The compiled way and the plain one give the same decision, field by field,
// whatever the subject, the call and the moment, also into a decision that was
// used before. Every decision is complete: it has a verdict and a code, a rule
// where it did not simply allow, and no more further reasons than there may be.
func TestPropertyCompiledAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genSubject().Draw(t, "subject")
		p := policy.Compile(s)
		var used policy.Decision
		for range 4 {
			c, m := genCall().Draw(t, "call"), genMoment().Draw(t, "moment")
			want := policy.Authorize(s, c, m)
			var fresh policy.Decision
			p.Decide(&fresh, &c, &m)
			require.Equal(t, want, fresh)
			p.Decide(&used, &c, &m)
			require.Equal(t, want, trimmed(used))

			require.NotEmpty(t, want.Verdict)
			require.NotEmpty(t, want.Code)
			require.Equal(t, want.Code == policy.CodeAllowed, want.Rule == "")
			require.LessOrEqual(t, len(want.AlsoDeniedBy), policy.MaxAlsoDenied)
			require.Equal(t, want.Allowed(), want.Change(&s) == "")
			require.NotContains(t, want.Reason()+want.Change(&s), "\n")
			if want.Verdict != policy.VerdictDeny {
				require.Empty(t, want.AlsoDeniedBy)
				require.Empty(t, want.Outside)
			}
			if s.Child {
				require.NotEqual(t, policy.VerdictNeedsApproval, want.Verdict)
				require.NotEqual(t, policy.CodeAllowedOnce, want.Code)
			}
		}
	})
}

// trimmed is d with nil for the slices that are empty.
func trimmed(d policy.Decision) policy.Decision {
	if len(d.Targets) == 0 {
		d.Targets = nil
	}
	if len(d.Outside) == 0 {
		d.Outside = nil
	}
	if len(d.AlsoDeniedBy) == 0 {
		d.AlsoDeniedBy = nil
	}
	return d
}

// Deciding is monotone: what a narrowed session may do, the wider one may do,
// for the same call at the same moment. A narrower sandbox counts as narrowing,
// more operator rules and more steps or children used do. The one exception is
// in what .git, .codex, .claude and .childlog need, which is to be named: a
// ceiling may be the first to name one.
func TestPropertyDecideIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wide := genSubject().Draw(t, "wide")
		narrow := wide
		narrow.Authority = wide.Authority.Narrow(genHalf().Draw(t, "ceiling")).Under(genOperator().Draw(t, "rules"))
		less := genSandbox().Draw(t, "sandbox ceiling")
		narrow.Bound = wide.Bound.Meet(less)
		narrow.Sandbox = wide.Sandbox.Meet(policy.Trace(less, narrowedAt))
		c, m := genCall().Draw(t, "call"), genMoment().Draw(t, "moment")
		c.Escalation = nil // relative to the sandbox, and never more than once
		later := m
		later.Steps, later.Children, later.NowMS = m.Steps+1, m.Children+1, m.NowMS+1
		wideAnswer := policy.Authorize(wide, c, m)
		for _, answer := range []policy.Decision{policy.Authorize(narrow, c, m), policy.Authorize(wide, c, later)} {
			if answer.Allowed() && !wideAnswer.Allowed() {
				require.Equal(t, []policy.Rule{policy.RuleProtectedName}, rulesOf(wideAnswer), "%s", wideAnswer.Reason())
			}
		}
	})
}

// An escalation lets nothing through that only the sandbox should: what is
// denied under the top of everything is denied with any escalation, and an
// approved one is allowed at most within the bound.
func TestPropertyEscalationIsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, c, m := genSubject().Draw(t, "subject"), genCall().Draw(t, "call"), genMoment().Draw(t, "moment")
		answer := policy.Authorize(s, c, m)
		if c.Escalation == nil || answer.Verdict == policy.VerdictDeny {
			return
		}
		require.True(t, c.Escalation.Sandbox.Within(s.Bound))
		most := s
		most.Sandbox = policy.Trace(s.Bound, switchAt)
		c.Escalation = nil
		answer = policy.Authorize(most, c, m)
		require.True(t, answer.Allowed(), "%s", answer.Reason())
	})
}

// What is shown can be called, and what a session's standing already rules out
// is not shown. A smaller session is shown no more.
func TestPropertyVisibleAgreesWithDecide(t *testing.T) {
	tools := strings.Fields(everyTool + " read bash file mcp__x__y exec_command subagent wait write_file WRITE rollback lint prompt_block_edit deploy chmod")
	rapid.Check(t, func(t *rapid.T) {
		s, m := genSubject().Draw(t, "subject"), genMoment().Draw(t, "moment")
		p := policy.Compile(s)
		shown := p.Visible(tools, m)
		a := s.Authority.Canonical()
		standing := policy.Visible(policy.Standing{Own: a.Own, Sandbox: s.Sandbox.Value, Palette: s.Palette}, tools)
		for _, name := range shown {
			if name != "rollback" { // which a standing does not know to have anything to undo
				require.Contains(t, standing, name)
			}
		}
		for range 3 {
			c := genCall().Draw(t, "call")
			c.Escalation = nil
			if answer := policy.Authorize(s, c, m); answer.Allowed() && contains(tools, c.Tool) && c.Tool != "rollback" {
				require.Contains(t, shown, c.Tool, "%q", c.Paths)
			}
		}
	})
}

// FuzzDecide decides hostile calls: whatever the name, the paths and the
// verdict, both ways agree, nothing panics, and an edit that is allowed has
// nothing but targets that its scope and its sandbox hold.
func FuzzDecide(f *testing.F) {
	for _, seed := range [][5]string{
		{"write", "src/a", "/w/docs/x", "", ""}, {"write", "src/../a", "~/x", "", ""}, {"WRITE", "src/.GIT/x", "secrets", "", ""},
		{"bash", "", "", "shellcheck", "inspect"}, {"bash", "", "", "a b", "verify"}, {"r\u0435ad", "\xff", "e\u0301", "x", "root"},
		{"rollback", "src/a", "/tmp/x", "", ""}, {"prompt_block_edit", "/W/SECRETS", "//", "", ""}, {"mcp__x__y", `src\a`, "C:/x", "\x00", "full"},
		{"apply_patch", "/w/.childlog/x", "src/\u200c.git/x", "", ""}, {"apply_patch", "src/\uff0e/x", "./ /a", "", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4], true)
	}
	free := rootSubject(f, policy.TopAuthority().Under(operatorRules(f, nil, []string{"secrets", "caf\u00e9"})))
	free.Protected = []string{"/w/.childlog", "/v/store"}
	subjects := []policy.Subject{busySubject(f), free, under(free, write(f, "/w/src", "/v"))}
	var compiled []*policy.Compiled
	for _, s := range subjects {
		compiled = append(compiled, policy.Compile(s))
	}
	f.Fuzz(func(t *testing.T, tool, first, second, by, need string, known bool) {
		c := policy.Call{ID: by, Tool: tool, Paths: []string{first, second}, PathsKnown: known,
			Verdict: policy.Classified{By: by, Need: policy.GrantShell(need)}}
		m := policy.Moment{Admitted: []string{"src/a"}}
		var d policy.Decision
		for i, p := range compiled {
			p.Decide(&d, &c, &m)
			require.Equal(t, policy.Authorize(subjects[i], c, m), trimmed(d))
			require.NotEmpty(t, d.Code)
			require.NotEmpty(t, d.Reason())
			require.Equal(t, d.Allowed(), d.Change(&subjects[i]) == "")
			if !d.Allowed() || d.Tool.Class != policy.ClassEdit {
				continue
			}
			require.True(t, known)
			require.NotEmpty(t, d.Targets)
			for _, raw := range c.Paths {
				target, err := subjects[i].Workspace.Target(raw)
				if err != nil {
					require.NotEqual(t, 0, i, "a scope holds what is in the workspace: %q", raw)
					continue
				}
				require.Contains(t, d.Targets, target)
				require.True(t, subjects[i].Authority.Own.Grant.Scope.Admits(target))
				_, denied := subjects[i].Authority.Operator.Paths().Covers(target)
				require.False(t, denied, "%q", raw)
			}
		}
	})
}
