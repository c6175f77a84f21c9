package policy_test

import (
	"math"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCase47_ZeroIsNoLimit(t *testing.T) {
	under := func(parentSteps uint64, childSteps *uint64, deadline int64) policy.Limits {
		a := policy.TopAuthority()
		a.Own.Profile.Limits.DeadlineMS, a.Delegable.Profile.Limits.DeadlineMS = deadline, deadline
		a.Delegable.Profile.Limits.MaxSteps = parentSteps
		return derive(t, a, policy.Request{Wish: policy.Wish{MaxSteps: childSteps}}).Granted.Own.Profile.Limits
	}
	assert.Equal(t, policy.Limits{MaxSteps: 5}, under(0, ptr(uint64(5)), 0), "parent 0, child 5")
	assert.Equal(t, policy.Limits{MaxSteps: 5}, under(5, ptr(uint64(0)), 0), "parent 5, child 0")
	assert.Equal(t, policy.Limits{MaxSteps: 5}, under(5, nil, 0), "parent 5, child says nothing")
	assert.Equal(t, policy.Limits{MaxSteps: 5}, under(9, ptr(uint64(5)), 0))
	assert.Equal(t, policy.Limits{MaxSteps: 5}, under(5, ptr(uint64(9)), 0))
	assert.Equal(t, policy.Limits{}, under(0, nil, 0))
	assert.Equal(t, policy.Limits{DeadlineMS: nowMS + 50}, under(0, nil, nowMS+50), "deadline only in the parent")
}

func TestDeadline(t *testing.T) {
	for _, c := range []struct {
		name                    string
		parent, now, wall, want int64
	}{
		{"neither", 0, 100, 0, 0},
		{"wall time alone", 0, 100, 50, 150},
		{"parent's alone", 120, 100, 0, 120},
		{"the parent's is earlier", 120, 100, 50, 120},
		{"the wall time ends earlier", 200, 100, 50, 150},
		{"a parent that is past it stays so", 90, 100, 50, 90},
		{"a negative wall time states none", 0, 100, -1, 0},
		{"no overflow", 0, math.MaxInt64, math.MaxInt64, policy.MaxNumber},
		{"up to the largest number", 0, 100, policy.MaxNumber, policy.MaxNumber},
		{"before 1970", 0, -100, 50, 1},
		{"long before", 0, math.MinInt64, math.MaxInt64, 1},
		{"a deadline that no policy states is none to lift", -5, 100, 50, -5},
	} {
		assert.Equal(t, c.want, policy.Deadline(c.parent, c.now, c.wall), c.name)
	}
	// A continuation is not a new child: the deadline of the receipt stands.
	first := policy.Deadline(0, 100, 50)
	assert.Equal(t, first, policy.Deadline(first, 149, 50))
}

func TestLimits(t *testing.T) {
	a := policy.Limits{DeadlineMS: 10, MaxSteps: 3}
	b := policy.Limits{DeadlineMS: 20, MaxDepth: 2}
	assert.Equal(t, policy.Limits{DeadlineMS: 10, MaxSteps: 3, MaxDepth: 2}, a.Meet(b))
	assert.True(t, a.Meet(b).Within(a) && a.Meet(b).Within(b) && a.Within(policy.Limits{}))
	assert.False(t, a.Within(b))

	for _, l := range []policy.Limits{{DeadlineMS: -1}, {DeadlineMS: policy.MaxNumber + 1}, {MaxSteps: policy.MaxNumber + 1}, {MaxDepth: -1}, {MaxDepth: 9}} {
		require.ErrorIs(t, l.Validate(), policy.ErrInvalid, "%+v", l)
	}
	require.NoError(t, policy.Limits{DeadlineMS: policy.MaxNumber, MaxSteps: policy.MaxNumber, MaxDepth: 8}.Validate())
}
