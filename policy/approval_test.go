package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestApproval(t *testing.T) {
	for _, c := range []struct {
		a         policy.Approval
		effective policy.Approval
		parses    bool
	}{
		{"never", policy.Never, true},
		{"ask", policy.Ask, true},
		{"", policy.Never, false},
		{"untrusted", policy.Ask, false},
		{"on-request", policy.Ask, false},
		{"on-failure", policy.Ask, false},
		{"granular", policy.Ask, false},
		{"NEVER", policy.Ask, false},
	} {
		assert.Equal(t, c.effective, c.a.Effective(), "%q", c.a)
		got, err := policy.ParseApproval(string(c.a))
		if c.parses {
			require.NoError(t, err)
			assert.Equal(t, c.a, got)
		} else {
			require.ErrorIs(t, err, policy.ErrInvalid, "%q", c.a)
			assert.ErrorContains(t, err, "want never or ask")
		}
		assert.Equal(t, policy.Never, c.a.Meet(policy.Never), "%q", c.a)
		assert.Equal(t, policy.Never, policy.Never.Meet(c.a), "%q", c.a)
		assert.Equal(t, c.effective, c.a.Meet(policy.Ask), "%q", c.a)
		assert.Equal(t, c.effective, policy.Ask.Meet(c.a), "%q", c.a)
	}
}

func TestApprovalMeaning(t *testing.T) {
	assert.Equal(t, "never ask: whatever would need approval is rejected", policy.Never.Meaning())
	assert.Equal(t, policy.Never.Meaning(), policy.Approval("").Meaning())
	assert.Equal(t, policy.Ask.Meaning(), policy.Approval("on-request").Meaning())
	assert.NotEqual(t, policy.Never.Meaning(), policy.Ask.Meaning())
}

func TestDefaults(t *testing.T) {
	old := policy.Defaults{Sandbox: write(t, "/w"), Approvals: policy.Never}
	now := policy.Defaults{Sandbox: policy.Top(), Approvals: policy.Ask}
	assert.True(t, old.Meet(now).Equal(old), "a looser deployment changes nothing")
	assert.True(t, now.Meet(old).Equal(old))
	assert.False(t, old.Equal(now))
	assert.False(t, old.Equal(policy.Defaults{Sandbox: old.Sandbox, Approvals: policy.Ask}))
	assert.True(t, policy.Defaults{}.Equal(policy.Defaults{Sandbox: readOnly(), Approvals: policy.Never}))
	foreign := policy.Defaults{Sandbox: policy.Top(), Approvals: "on-request"}
	assert.True(t, foreign.Equal(now))
}

// effective is what a ledger answers, as one value to compare.
type effective struct {
	value, raw policy.Approval
	by         policy.Cause
}

func approvals(l policy.ApprovalLedger) effective {
	value, raw, by := l.Effective()
	return effective{value, raw, by}
}

func TestRootApprovals(t *testing.T) {
	created := at(policy.SourceDefault, 1)
	l := policy.RootApprovals("on-request", created)
	assert.Equal(t, effective{policy.Ask, "on-request", created}, approvals(l))

	before := l
	require.NoError(t, l.Switch(policy.Never, at(policy.SourceSwitch, 4)))
	assert.Equal(t, effective{policy.Never, policy.Never, at(policy.SourceSwitch, 4)}, approvals(l))
	assert.Equal(t, effective{policy.Ask, "on-request", created}, approvals(before), "a copy is independent")
	require.NoError(t, l.Switch(policy.Ask, at(policy.SourceSwitch, 5)))

	after := l
	require.ErrorIs(t, l.Switch("on-failure", at(policy.SourceSwitch, 6)), policy.ErrInvalid)
	assert.Equal(t, after, l, "a refused switch changes nothing")
	assert.False(t, l.Keep("granular", at(policy.SourceImport, 7)))
	assert.Equal(t, effective{policy.Ask, "granular", at(policy.SourceImport, 7)}, approvals(l))
}

func TestChildApprovalsArePinned(t *testing.T) {
	pin := at(policy.SourcePin, 4)
	l := policy.ChildApprovals(pin)
	assert.Equal(t, effective{policy.Never, policy.Never, pin}, approvals(l))

	before := l
	err := l.Switch(policy.Ask, at(policy.SourceSwitch, 5))
	require.ErrorIs(t, err, policy.ErrWidening)
	assert.EqualError(t, err, "widening: approvals: got ask, want never, set by pin 11111111@4")
	require.ErrorIs(t, l.Switch("on-request", at(policy.SourceSwitch, 5)), policy.ErrInvalid)
	require.NoError(t, l.Switch(policy.Never, at(policy.SourceSwitch, 6)))
	assert.Equal(t, before, l)

	assert.True(t, l.Keep("on-request", at(policy.SourceImport, 7)))
	assert.Equal(t, effective{policy.Never, "on-request", pin}, approvals(l))
	assert.False(t, l.Keep(policy.Never, at(policy.SourceImport, 8)))
	assert.Equal(t, effective{policy.Never, policy.Never, pin}, approvals(l))
}

func TestZeroApprovalLedgerRejects(t *testing.T) {
	assert.Equal(t, effective{value: policy.Never}, approvals(policy.ApprovalLedger{}))
}
