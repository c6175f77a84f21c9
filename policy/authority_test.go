package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What its request denied to a parent is for its child the parent's rule, and
// keeps the event that stated it; an operator's rule stays an operator's.
func TestDeniedToolsAsTheChildHasThem(t *testing.T) {
	in := input()
	in.Operator = operatorRules(t, []string{"deploy"}, nil)
	p, err := policy.Derive(policy.TopAuthority(), in, policy.Request{Wish: policy.Wish{DeniedTools: []string{"chmod"}}})
	require.NoError(t, err)
	in.Depth, in.Receipt.Seq = 2, 30
	c, err := policy.Derive(p.Granted, in, policy.Request{
		Wish: policy.Wish{DeniedTools: []string{"CHMOD", "chown"}}, Delegable: &policy.Wish{DeniedTools: []string{"ls"}},
	})
	require.NoError(t, err)
	want := []policy.DenyEntry{
		{Pattern: "deploy", Kind: policy.DenyOperator, Origin: operatorAt},
		{Pattern: "chmod", Kind: policy.DenyParent, Origin: receiptAt},
		{Pattern: "chown", Kind: policy.DenyRequest, Origin: in.Receipt},
	}
	assert.Equal(t, want, c.Granted.Own.Profile.Denied.Entries())
	want = append(want, policy.DenyEntry{Pattern: "ls", Kind: policy.DenyRequest, Origin: in.Receipt})
	assert.Equal(t, want, c.Granted.Delegable.Profile.Denied.Entries())
}

// A closed place is in no half, and still is a part of what one authority has
// beyond another.
func TestAuthorityWithinKnowsClosedPlaces(t *testing.T) {
	top := policy.TopAuthority()
	closed := top.Under(operatorRules(t, nil, []string{"secrets"}))
	assert.True(t, closed.Within(top))
	assert.False(t, top.Within(closed))
	assert.False(t, top.Equal(closed))
	other := top.Under(operatorRules(t, nil, []string{"secrets/a"}))
	assert.False(t, closed.Within(other) || other.Within(closed), "rules are compared as written")
}

// What a canonical authority holds is its own, to the last number.
func TestCanonicalAuthorityShares(t *testing.T) {
	a := policy.TopAuthority()
	a.Own.Grant.MaxChildren, a.Delegable.Grant.MaxChildren = ptr(3), ptr(4)
	a.Explicit = []policy.ExplicitGrant{{ID: "x", Issuer: issuerAt}}
	c := a.Canonical()
	*a.Own.Grant.MaxChildren, *a.Delegable.Grant.MaxChildren, a.Explicit[0].ID = 9, 9, "y"
	assert.Equal(t, 3, *c.Own.Grant.MaxChildren)
	assert.Equal(t, 4, *c.Delegable.Grant.MaxChildren)
	assert.Equal(t, "x", c.Explicit[0].ID)
}

// It is the parent itself that has to hold the capability, not those it hands
// on to.
func TestCapabilityOfTheParentItself(t *testing.T) {
	write := policy.Request{MergePolicy: policy.MergeTransactionalWrite, Wish: policy.Wish{WriteScope: &[]string{"src"}}}
	a := policy.TopAuthority()
	a.Own.Profile.Capabilities = namesOf(t, "browser")
	_, err := policy.Derive(a, input(), write)
	var refused *policy.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, policy.RefusedError{Field: "capabilities", Got: "[browser]", Want: "subagents for merge policy transactional_write", Rule: "capability"}, *refused)

	a = policy.TopAuthority()
	a.Delegable.Profile.Capabilities = namesOf(t, "browser")
	d := derive(t, a, write)
	assert.Equal(t, []string{"browser"}, d.Granted.Own.Profile.Capabilities.List())
	in := input()
	in.Depth = 2
	_, err = policy.Derive(d.Granted, in, write)
	require.ErrorIs(t, err, policy.ErrWidening, "its child does not hold it")
}

// Several counts of one grant: the highest is the one that was seen last.
func TestUsesOfOneGrant(t *testing.T) {
	p := coordinator(t, scoped(t, "src"))
	p.Explicit = []policy.ExplicitGrant{{ID: "x", Issuer: issuerAt, Uses: 2}}
	in := input()
	for _, used := range [][]uint64{{2, 1}, {1, 2}, {0, 5, 0}} {
		in.Uses = nil
		for _, n := range used {
			in.Uses = append(in.Uses, policy.GrantUse{ID: "x", Issuer: issuerAt, Used: n})
		}
		_, err := policy.Derive(p, in, policy.Request{Role: "implement", Wish: policy.Wish{WriteScope: &[]string{"src"}}})
		var refused *policy.RefusedError
		require.ErrorAs(t, err, &refused, "%v", used)
		assert.Equal(t, policy.RuleGrantSpent, refused.Rule)
	}
}
