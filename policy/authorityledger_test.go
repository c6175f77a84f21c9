package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAuthorityLedger(t *testing.T) {
	d := derive(t, policy.TopAuthority(), policy.Request{Role: "implement", Wish: policy.Wish{MaxSteps: ptr(uint64(9))}})
	l := policy.NewAuthorityLedger(d.Granted, policy.BirthCauses(d.Granted, d.Ceiling, d.Choices.Role, d.Cuts, receiptAt))
	before, causes := l, l.Causes()
	assert.Equal(t, policy.FieldCause{Rule: "receipt", Origin: policy.RuleOrigin{Kind: "session", At: receiptAt}}, causes[policy.FieldFiles])

	assert.False(t, l.Narrow(policy.TopHalf(), policy.OperatorRules{}, narrowedAt), "a ceiling above everything")
	ceiling := policy.TopHalf()
	ceiling.Profile.Permissions.Write = false
	ceiling.Profile.Limits.MaxSteps = 20
	require.True(t, l.Narrow(ceiling, operatorRules(t, []string{"fetch_url"}, []string{"secrets"}), narrowedAt))
	by := policy.FieldCause{Rule: "narrowing", Origin: policy.RuleOrigin{Kind: "narrowing", At: narrowedAt.Origin}}
	for _, field := range []string{policy.FieldWrite, policy.FieldFiles, policy.FieldNetwork, policy.FieldGrantNetwork, policy.FieldDenied} {
		assert.Equal(t, by, l.Causes()[field], field)
	}
	for _, field := range []string{policy.FieldMaxSteps, policy.FieldShell, policy.FieldGrantShell, policy.FieldScope, policy.FieldLockdown} {
		assert.Equal(t, causes[field], l.Causes()[field], field)
	}
	assert.Equal(t, policy.FilesRead, l.Effective().Own.Grant.Files)
	assert.Equal(t, policy.FilesRead, l.Effective().Delegable.Grant.Files)
	assert.Equal(t, []string{"secrets"}, l.Effective().Operator.Paths().Entries())

	assert.True(t, before.Effective().Equal(d.Granted), "a copy is independent")
	assert.Equal(t, causes, before.Causes())
	later := policy.Cause{Source: policy.SourceNarrowing, Origin: policy.Origin{Session: child, Seq: 20}}
	assert.False(t, l.Narrow(ceiling, policy.OperatorRules{}, later), "narrow already")
	l.Causes()[policy.FieldFiles] = policy.FieldCause{}
	assert.Equal(t, by, l.Causes()[policy.FieldFiles], "the map is the caller's")

	s := childSubject(t, d)
	s.Authority, s.Causes = l.Effective(), l.Causes()
	assert.Equal(t, "files:grant_files", allReasons(decided(t, s, callOf("write", "a"), policy.Moment{NowMS: nowMS})))
}

func TestZeroAuthorityLedger(t *testing.T) {
	var l policy.AuthorityLedger
	assert.True(t, l.Effective().Equal(policy.Authority{}))
	assert.Empty(t, l.Causes())
	assert.NotNil(t, l.Causes())
	assert.True(t, l.Narrow(policy.TopHalf(), operatorRules(t, []string{"x"}, nil), narrowedAt), "a rule more")
}

func TestBirthCauses(t *testing.T) {
	at := func(kind policy.OriginKind, o policy.Origin) policy.RuleOrigin {
		return policy.RuleOrigin{Kind: kind, At: o}
	}
	in := input()
	in.Operator = operatorRules(t, []string{"fetch_url"}, nil)
	parent := policy.TopAuthority()
	parent.Delegable.Grant.Shell = policy.GrantVerify
	d, err := policy.Derive(parent, in, policy.Request{Role: "explore", Wish: policy.Wish{
		Shell: ptr(policy.ShellFull), Permissions: &policy.Permissions{Write: true, Network: true}, DeniedTools: []string{"run_tests"},
	}})
	require.NoError(t, err)
	causes := policy.BirthCauses(d.Granted, d.Ceiling, d.Choices.Role, d.Cuts, receiptAt)
	for field, want := range map[string]policy.FieldCause{
		policy.FieldWrite:        {Rule: "role_preset", Origin: at("role", receiptAt)},
		policy.FieldGrantNetwork: {Rule: "deny_fetch_url", Origin: at("operator", operatorAt)},
		policy.FieldShell:        {Rule: "deny_run_tests", Origin: at("session", receiptAt)},
		policy.FieldFiles:        {Rule: "role_preset", Origin: at("role", receiptAt)},
		policy.FieldSpawn:        {Rule: "receipt", Origin: at("session", receiptAt)},
		policy.FieldLockdown:     {Rule: "receipt", Origin: at("session", receiptAt)},
	} {
		assert.Equal(t, want, causes[field], "%s of %v", field, d.Cuts)
	}
	assert.Len(t, causes, 19, "every field and the lockdown")
	for field := range causes {
		assert.NotContains(t, field, "delegable.")
	}
	profile := policy.ProfileCauses(policy.TopAuthority(), issuerAt)
	assert.Equal(t, policy.FieldCause{Rule: "profile", Origin: at("session", issuerAt)}, profile[policy.FieldGrantShell])
}

// However a history is cut in two, folding the second part into a copy of the
// ledger after the first gives what folding all of it gives, and leaves the
// original as it was. Nothing is ever wider than before, and whatever differs
// from birth has a narrowing for its cause.
func TestPropertyAuthorityLedgerFolds(t *testing.T) {
	type narrowing struct {
		ceiling policy.Half
		rules   policy.OperatorRules
	}
	rapid.Check(t, func(t *rapid.T) {
		born := genAuthority().Draw(t, "born")
		birth := policy.ProfileCauses(born, receiptAt)
		whole := policy.NewAuthorityLedger(born, birth)
		var history []narrowing
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			history = append(history, narrowing{genHalf().Draw(t, "ceiling"), genOperator().Draw(t, "rules")})
		}
		cut := rapid.IntRange(0, len(history)).Draw(t, "cut")
		fold := func(l policy.AuthorityLedger, from int, part []narrowing) policy.AuthorityLedger {
			for i, n := range part {
				before := l.Effective()
				changed := l.Narrow(n.ceiling, n.rules, at(policy.SourceNarrowing, uint64(10+from+i)))
				require.True(t, l.Effective().Within(before))
				require.Equal(t, !changed, l.Effective().Equal(before) && before.Operator.Covers(n.rules))
			}
			return l
		}
		first := fold(whole, 0, history[:cut])
		kept, causes := first.Effective(), first.Causes()
		second, all := fold(first, cut, history[cut:]), fold(whole, 0, history)
		require.Equal(t, all.Effective(), second.Effective())
		require.Equal(t, all.Causes(), second.Causes())
		require.Equal(t, kept, first.Effective())
		require.Equal(t, causes, first.Causes())
		for field, cause := range all.Causes() {
			if cause != birth[field] {
				require.Equal(t, policy.RuleNarrowing, cause.Rule, field)
				require.Equal(t, policy.OriginNarrowing, cause.Origin.Kind)
			}
		}
	})
}

// A ceiling that limits nothing changes nothing, not even the way in which
// something was left open: the fingerprint under which a session was launched
// stays its own.
func TestANarrowingThatLimitsNothing(t *testing.T) {
	open := policy.TopHalf()
	for _, tools := range []policy.Tools{policy.ToolsAbsent(), policy.ToolsNull()} {
		held := policy.TopAuthority()
		held.Own.Profile.Tools, held.Delegable.Profile.Tools = tools, tools
		for _, ceiling := range []policy.Tools{policy.ToolsAbsent(), policy.ToolsNull()} {
			open.Profile.Tools = ceiling
			l := policy.NewAuthorityLedger(held, nil)
			require.False(t, l.Narrow(open, policy.OperatorRules{}, policy.Cause{}))
			require.Equal(t, policy.FingerprintOf("", held), policy.FingerprintOf("", held.Narrow(open)))
		}
	}
}
