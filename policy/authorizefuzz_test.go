package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/require"
)

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
