package policy_test

import (
	"encoding/json"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
