package policy_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func claims(t require.TestingT, list ...policy.Claim) policy.Claims {
	c, err := policy.NewClaims(list...)
	require.NoError(t, err)
	return c
}

func TestClaimsOverlaps(t *testing.T) {
	all := claims(t,
		policy.Claim{ID: "tests", Scope: scope(t, "srcx", "test")},
		policy.Claim{ID: "core", Scope: scope(t, "src", "README")},
		policy.Claim{ID: "docs", Scope: scope(t, "docs", "Readme")},
		policy.Claim{ID: "part", Scope: scope(t, "src/a", "src/b", "test/x")},
		policy.Claim{ID: "reader", Scope: scope(t)},
	)
	want := []policy.Overlap{
		{A: "core", B: "docs", PathA: "README", PathB: "Readme"},
		{A: "core", B: "part", PathA: "src", PathB: "src/a"},
		{A: "core", B: "part", PathA: "src", PathB: "src/b"},
		{A: "part", B: "tests", PathA: "test/x", PathB: "test"},
	}
	assert.Equal(t, want, all.Overlaps())
	assert.Empty(t, claims(t).Overlaps())
	assert.Empty(t, policy.Claims{}.Overlaps())

	assert.Equal(t, []policy.Overlap{{A: "core", B: "new", PathA: "src", PathB: "src/c"}},
		all.Against(policy.Claim{ID: "new", Scope: scope(t, "src/c", "x")}))
	assert.Empty(t, all.Against(policy.Claim{ID: "new"}), "who reads has no conflict")
	assert.Len(t, all.Against(policy.Claim{ID: "new", Scope: policy.Unscoped()}), 9)
	assert.Equal(t, want[1:3], all.Against(policy.Claim{ID: "core", Scope: scope(t, "src")}), "not with the claim it replaces")

	assert.Equal(t, []string{"core", "part"}, all.Holders("x", "src/a/file"))
	assert.Equal(t, []string{"core"}, all.Holders("part", "SRC/a/file"))
	assert.Equal(t, []string{"part"}, all.Holders("tests", "test"), "removing a directory enters what lies below")
	assert.Nil(t, all.Holders("x", "other"))
	assert.Equal(t, []string{"core", "docs", "part", "tests"}, all.Holders("x", "../y"))
	assert.Equal(t, []string{"core", "docs", "part", "tests"}, all.Holders("x", "."))

	assert.Empty(t, claims(t, policy.Claim{ID: "a", Scope: scope(t, "\u200b")}, policy.Claim{ID: "b", Scope: scope(t, "src")}).Overlaps(),
		"an invisible name is not the workspace")

	for _, bad := range [][]policy.Claim{{{}}, {{ID: "a"}, {ID: "b"}, {ID: "a"}}} {
		_, err := policy.NewClaims(bad...)
		assert.ErrorIs(t, err, policy.ErrInvalid)
	}
}

// 17. The list of overlaps is the plain definition, pair by pair, and does not
// depend on the order of the claims.
func TestPropertyOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := make([]policy.Claim, rapid.IntRange(0, 6).Draw(t, "siblings"))
		for i := range list {
			list[i] = policy.Claim{ID: fmt.Sprint("c", i), Scope: genScope().Draw(t, "scope")}
		}
		entries := func(s policy.Scope) []string {
			if !s.Stated() {
				return []string{"."}
			}
			return s.Entries()
		}
		var want []policy.Overlap
		for i, a := range list {
			for _, b := range list[i+1:] {
				for _, p := range entries(a.Scope) {
					for _, q := range entries(b.Scope) {
						if p == "." || q == "." || scope(t, p).Overlaps(scope(t, q)) {
							want = append(want, policy.Overlap{A: a.ID, B: b.ID, PathA: p, PathB: q})
						}
					}
				}
				require.Equal(t, a.Scope.Overlaps(b.Scope), len(claims(t, a).Against(b)) > 0)
			}
		}
		got := claims(t, list...).Overlaps()
		require.ElementsMatch(t, want, got)
		slices.Reverse(list)
		require.Equal(t, got, claims(t, list...).Overlaps())
		if len(list) > 0 {
			var with []policy.Overlap
			for _, o := range got {
				if o.A == list[0].ID || o.B == list[0].ID {
					with = append(with, o)
				}
			}
			require.Equal(t, with, claims(t, list[1:]...).Against(list[0]))
		}
	})
}

// Thousands of siblings that do not conflict are compared without comparing
// each with each.
func TestManyClaims(t *testing.T) {
	list := make([]policy.Claim, 5000)
	for i := range list {
		list[i] = policy.Claim{ID: fmt.Sprint(i), Scope: scope(t, numbered(fmt.Sprintf("d%d/%%d", i), 16)...)}
	}
	c := claims(t, list...)
	assert.Empty(t, c.Overlaps())
	assert.Equal(t, []string{"77"}, c.Holders("x", "d77/3/x"))
	assert.True(t, strings.HasPrefix(list[77].Scope.String(), "d77/0, d77/1"))
}

func TestPlanMerge(t *testing.T) {
	for _, c := range []struct {
		name    string
		results []policy.MergeResult
		want    string
	}{
		{"nothing", nil,
			`{"strategy":"read_only","requires_parent_merge":false,"read_only_ids":[],"mutating_ids":[],"write_scopes":{},"conflict_ids":[],"conflicts":[]}`},
		{"readers", []policy.MergeResult{{ID: "b"}, {ID: "a", Scope: policy.Unscoped()}},
			`{"strategy":"read_only","requires_parent_merge":false,"read_only_ids":["b","a"],"mutating_ids":[],"write_scopes":{},"conflict_ids":[],"conflicts":[]}`},
		{"writers apart", []policy.MergeResult{{ID: "z", Mutating: true, Scope: scope(t, "src", "docs")}, {ID: "r"}, {ID: "a", Mutating: true, Scope: scope(t, "srcx")}},
			`{"strategy":"transactional_parent_merge","requires_parent_merge":true,"read_only_ids":["r"],"mutating_ids":["z","a"],"write_scopes":{"a":["srcx"],"z":["docs","src"]},"conflict_ids":[],"conflicts":[]}`},
		{"writers that meet by containment", []policy.MergeResult{{ID: "z", Mutating: true, Scope: scope(t, "src")}, {ID: "m", Mutating: true, Scope: scope(t, "x")}, {ID: "a", Mutating: true, Scope: scope(t, "Src/a")}},
			`{"strategy":"transactional_parent_merge","requires_parent_merge":true,"read_only_ids":[],"mutating_ids":["z","m","a"],"write_scopes":{"a":["Src/a"],"m":["x"],"z":["src"]},"conflict_ids":["z","a"],"conflicts":[{"a":"a","b":"z","path_a":"Src/a","path_b":"src"}]}`},
		{"a writer without a scope", []policy.MergeResult{{ID: "a", Mutating: true, Scope: policy.Unscoped()}, {ID: "b", Mutating: true, Scope: scope(t, "x")}},
			`{"strategy":"transactional_parent_merge","requires_parent_merge":true,"read_only_ids":[],"mutating_ids":["a","b"],"write_scopes":{"a":null,"b":["x"]},"conflict_ids":["a","b"],"conflicts":[{"a":"a","b":"b","path_a":".","path_b":"x"}]}`},
		{"a writer that may write nothing", []policy.MergeResult{{ID: "a", Mutating: true, Scope: scope(t)}},
			`{"strategy":"transactional_parent_merge","requires_parent_merge":true,"read_only_ids":[],"mutating_ids":["a"],"write_scopes":{"a":[]},"conflict_ids":[],"conflicts":[]}`},
	} {
		plan, err := policy.PlanMerge(c.results)
		require.NoError(t, err, c.name)
		got, err := json.Marshal(plan)
		require.NoError(t, err)
		assert.Equal(t, c.want, string(got), c.name)
		assert.Equal(t, len(plan.ConflictIDs) > 0, plan.HasConflicts())
	}
	for _, bad := range [][]policy.MergeResult{
		{{}},
		{{ID: "a"}, {ID: "a", Mutating: true}},
		{{ID: "a", Scope: scope(t, "src")}},
	} {
		_, err := policy.PlanMerge(bad)
		assert.ErrorIs(t, err, policy.ErrInvalid)
	}
}
