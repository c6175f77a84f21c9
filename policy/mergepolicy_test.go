package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseMergePolicy(t *testing.T) {
	for _, m := range []policy.MergePolicy{policy.MergeReadOnly, policy.MergeTransactionalWrite} {
		got, err := policy.ParseMergePolicy(string(m))
		require.NoError(t, err)
		assert.Equal(t, m, got)
	}
	for _, s := range []string{"", "none", "READ_ONLY", "write"} {
		_, err := policy.ParseMergePolicy(s)
		require.ErrorIs(t, err, policy.ErrInvalid, s)
	}
}

func TestCase44_ContractsAreGatedUpFront(t *testing.T) {
	list := func(entries ...string) *[]string { return &entries }
	seventeen := make([]string, 17)
	for i := range seventeen {
		seventeen[i] = "src" // counted as given: one path, seventeen times
	}
	for _, c := range []struct {
		name   string
		policy policy.MergePolicy
		scope  *[]string
		want   string // of the error; "" if accepted
		stated bool
	}{
		{"no contract", "", nil, "", false},
		{"no contract, a scope", "", list("src"), "", true},
		{"no contract, nothing", "", list(), "", true},
		{"no contract, seventeen", "", &seventeen, "got 17 paths", false},
		{"read_only", policy.MergeReadOnly, nil, "", false},
		{"read_only with a scope", policy.MergeReadOnly, list("src"), "got 1 paths, want none stated", false},
		{"read_only with an empty one", policy.MergeReadOnly, list(), "got 0 paths, want none stated", false},
		{"write without a scope", policy.MergeTransactionalWrite, nil, "got none stated, want 1 to 16", false},
		{"write with an empty one", policy.MergeTransactionalWrite, list(), "got 0 paths, want 1 to 16", false},
		{"write", policy.MergeTransactionalWrite, list("src", "./docs/"), "", true},
		{"write with sixteen", policy.MergeTransactionalWrite, ptr(seventeen[:16]), "", true},
		{"write with seventeen", policy.MergeTransactionalWrite, &seventeen, "got 17 paths", false},
		{"write with a bad path", policy.MergeTransactionalWrite, list("a/../b"), "no .. segment", false},
		{"another policy", "yolo", list("src"), `got "yolo"`, false},
	} {
		s, err := policy.Contract{Policy: c.policy, WriteScope: c.scope}.Gate(policy.NameSet{})
		d, deriveErr := policy.Derive(policy.TopAuthority(), input(), policy.Request{MergePolicy: c.policy, Wish: policy.Wish{WriteScope: c.scope}})
		if c.want != "" {
			require.ErrorIs(t, err, policy.ErrInvalid, c.name)
			assert.ErrorContains(t, err, c.want, c.name)
			assert.EqualError(t, deriveErr, err.Error(), c.name)
			continue
		}
		require.NoError(t, err, c.name)
		require.NoError(t, deriveErr, c.name)
		assert.Equal(t, c.stated, s.Stated(), c.name)
		assert.True(t, s.Equal(d.Granted.Own.Grant.Scope), c.name)
		assert.Equal(t, c.policy, d.Merge, c.name)
	}
}

// The parent must hold the capability to merge; its lack is named.
func TestContractNeedsCapability(t *testing.T) {
	write := policy.Contract{Policy: policy.MergeTransactionalWrite, WriteScope: &[]string{"src"}}
	for _, held := range []policy.NameSet{{}, namesOf(t, "subagents"), namesOf(t, "browser", "subagents")} {
		_, err := write.Gate(held)
		require.NoError(t, err)
	}
	for _, held := range []policy.NameSet{namesOf(t), namesOf(t, "browser"), namesOf(t, "Subagents")} {
		_, err := write.Gate(held)
		require.ErrorIs(t, err, policy.ErrWidening)
		var refused *policy.RefusedError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, policy.RuleCapability, refused.Rule)
		assert.ErrorContains(t, err, "want subagents")
		_, err = policy.Contract{Policy: policy.MergeReadOnly}.Gate(held)
		require.NoError(t, err, "only writing needs it")
		_, err = policy.Contract{WriteScope: &[]string{"src"}}.Gate(held)
		require.NoError(t, err, "and only under a contract")
	}
}

func TestGateBatch(t *testing.T) {
	none, reads := policy.Contract{}, policy.Contract{Policy: policy.MergeReadOnly}
	writes := policy.Contract{Policy: policy.MergeTransactionalWrite, WriteScope: &[]string{"src"}}
	for _, c := range []struct {
		tasks []policy.Contract
		want  policy.MergePolicy
	}{
		{nil, ""},
		{[]policy.Contract{none, none}, ""},
		{[]policy.Contract{none, reads}, policy.MergeReadOnly},
		{[]policy.Contract{reads, writes, none}, policy.MergeTransactionalWrite},
	} {
		got, err := policy.GateBatch(policy.NameSet{}, c.tasks...)
		require.NoError(t, err)
		assert.Equal(t, c.want, got)
	}
	_, err := policy.GateBatch(namesOf(t), reads, writes)
	require.ErrorIs(t, err, policy.ErrWidening, "one task that is refused refuses the batch")
	assert.ErrorContains(t, err, "task 1 of 2")
	_, err = policy.GateBatch(policy.NameSet{}, writes, policy.Contract{Policy: policy.MergeReadOnly, WriteScope: &[]string{}})
	require.ErrorIs(t, err, policy.ErrInvalid)
}

// Under read_only neither the child nor, whatever was asked, its workers write.
func TestMergeReadOnlyBinds(t *testing.T) {
	d := derive(t, policy.TopAuthority(), policy.Request{
		Role:        "implement",
		MergePolicy: policy.MergeReadOnly,
		Delegable:   &policy.Wish{Permissions: &policy.Permissions{Write: true, Network: true}},
	})
	for _, h := range []policy.Half{d.Granted.Own, d.Granted.Delegable} {
		assert.Equal(t, policy.FilesRead, h.Grant.Files)
		assert.False(t, h.Profile.Permissions.Write)
	}
	assert.Contains(t, d.Cuts, policy.Cut{Field: policy.FieldFiles, From: "write", To: "read", Rule: policy.RuleMergeReadOnly})
	assert.Contains(t, d.Cuts, policy.Cut{Field: "delegable." + policy.FieldFiles, From: "write", To: "read", Rule: policy.RuleMergeReadOnly})
}

// A scope is part of authority: a grandchild's is met with its parent's, and
// the workers of a worker under contract stay in its scope.
func TestScopesMeetDownTheChain(t *testing.T) {
	write := func(entries ...string) policy.Request {
		return policy.Request{Role: "implement", MergePolicy: policy.MergeTransactionalWrite, Wish: policy.Wish{WriteScope: &entries}}
	}
	d := derive(t, policy.TopAuthority(), write("src", "docs"))
	g := derive(t, d.Granted, write("src/a", "lib"))
	assert.Equal(t, []string{"src/a"}, g.Granted.Own.Grant.Scope.Entries())
	assert.Contains(t, g.Cuts, policy.Cut{Field: policy.FieldScope, From: `["lib" "src/a"]`, To: `["src/a"]`, Rule: policy.RuleParent})

	r := write("src")
	r.Delegable = &policy.Wish{WriteScope: &[]string{"docs", "src/a"}}
	d = derive(t, policy.TopAuthority(), r)
	assert.Equal(t, []string{"src/a"}, d.Granted.Delegable.Grant.Scope.Entries())
	assert.Contains(t, d.Cuts, policy.Cut{Field: "delegable." + policy.FieldScope, From: `["docs" "src/a"]`, To: `["src/a"]`, Rule: policy.RuleMergeScope})
}
