package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOperatorRules(t *testing.T) {
	o := operatorRules(t, []string{"chmod", "CHMOD", "exec_*"}, []string{`./secrets/`, "secrets"})
	assert.Equal(t, []policy.OperatorRule{
		{Tool: "chmod", Origin: operatorAt},
		{Tool: "exec_*", Origin: operatorAt},
		{Path: "secrets", Origin: operatorAt},
	}, o.Entries(), "normalized, each once")
	again, err := policy.OperatorRulesOf(o.Entries()...)
	require.NoError(t, err)
	assert.Equal(t, o.Entries(), again.Entries())

	_, denied := o.Paths().Covers("SECRETS/key")
	assert.True(t, denied)
	assert.Equal(t, []policy.DenyEntry{
		{Pattern: "chmod", Kind: policy.DenyOperator, Origin: operatorAt},
		{Pattern: "exec_*", Kind: policy.DenyOperator, Origin: operatorAt},
	}, o.Denied().Entries())

	o.Entries()[0].Tool = "x"
	assert.Equal(t, "chmod", o.Entries()[0].Tool)

	for why, rules := range map[string][]policy.OperatorRule{
		"states nothing": {{}},
		"states both":    {{Tool: "x", Path: "y"}},
		"bad pattern":    {{Tool: "a*b"}},
		"bad path":       {{Path: "../x"}},
		"too many":       make([]policy.OperatorRule, 1025),
	} {
		_, err := policy.OperatorRulesOf(rules...)
		require.ErrorIs(t, err, policy.ErrInvalid, why)
	}
	_, err = policy.NewOperatorRules(operatorAt, nil, []string{""})
	require.ErrorIs(t, err, policy.ErrInvalid)
}

// The digest is of what the rules say, so that a reader can tell whether the
// store's present rules are still the captured ones.
func TestOperatorDigest(t *testing.T) {
	a := operatorRules(t, []string{"chmod", "exec_*"}, []string{"secrets"})
	b, err := policy.NewOperatorRules(issuerAt, []string{"EXEC_*", "chmod"}, []string{"secrets"})
	require.NoError(t, err)
	assert.Equal(t, a.Digest(), b.Digest())
	assert.NotEqual(t, a.Digest(), operatorRules(t, []string{"chmod"}, []string{"secrets"}).Digest())
	assert.NotEqual(t, operatorRules(t, []string{"x"}, nil).Digest(), operatorRules(t, nil, []string{"x"}).Digest())

	u := a.Union(b)
	assert.Equal(t, a.Entries(), u.Entries(), "stays with the event that set it first")
	assert.True(t, a.Covers(b) && u.Covers(a))
	assert.False(t, policy.OperatorRules{}.Covers(a))
}

// The deny half of case 4: two levels down the operator's rule stands, and is
// the one to cite.
func TestCase4_OperatorRuleBindsEveryDescendant(t *testing.T) {
	in := input()
	in.Operator = operatorRules(t, []string{"chmod"}, nil)
	d, err := policy.Derive(policy.TopAuthority(), in, policy.Request{})
	require.NoError(t, err)

	// Later the store has other rules; C's and G's keep the captured one.
	in.Depth, in.Operator = 2, policy.OperatorRules{}
	g, err := policy.Derive(d.Granted, in, policy.Request{Wish: policy.Wish{DeniedTools: []string{"chmod"}}})
	require.NoError(t, err)
	for _, granted := range []policy.Authority{d.Granted, g.Granted} {
		m := granted.Own.Profile.Denied.Match(classOf(t, "chmod"), "")
		require.NotEmpty(t, m)
		assert.Equal(t, policy.DenyEntry{Pattern: "chmod", Kind: policy.DenyOperator, Origin: operatorAt}, m[0].Entry)
		assert.Equal(t, 1, granted.Operator.Len())
	}
}

// A root follows the store's present rules, with what denying takes away.
func TestAuthorityUnder(t *testing.T) {
	a := policy.TopAuthority().Under(operatorRules(t, []string{"fetch_url", "run_tests"}, []string{"secrets"}))
	for _, h := range []policy.Half{a.Own, a.Delegable} {
		assert.False(t, h.Grant.Network)
		assert.Equal(t, policy.GrantInspect, h.Grant.Shell)
		assert.Equal(t, 2, h.Profile.Denied.Len())
	}
	assert.Equal(t, []string{"secrets"}, a.Operator.Paths().Entries())
	assert.True(t, a.Within(policy.TopAuthority()) && !policy.TopAuthority().Within(a))
}
