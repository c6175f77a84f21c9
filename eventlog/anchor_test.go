package eventlog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnchorIsHeldOrTold: what is given to hold a store against is never passed
// over: not where the journal has nothing at its place, and not where only
// another session is checked.
func TestAnchorIsHeldOrTold(t *testing.T) {
	ts := newStore(t)
	ts.say(ts.root(sid(1)), "one", "two")
	ts.root(sid(2))
	head := must(ts.Row(sid(1)))
	check := func(session int, a Anchor) (CheckReport, error) {
		o := CheckOptions{Against: Against{Anchors: []Anchor{a}}}
		if session > 0 {
			o.Session = sid(session)
		}
		return ts.Check(ctx, o)
	}
	for _, session := range []int{0, 1} {
		holds := Anchor{sid(1), head.Head, head.Hash}
		report := must(check(session, holds))
		require.Empty(t, report.Findings)
		require.Equal(t, []Anchor{holds}, report.Heads)
		for what, a := range map[string]Anchor{"another hash": {sid(1), head.Head, Hash{1}}, "no hash": {sid(1), head.Head, Hash{}},
			"truncated": {sid(1), head.Head + 1, Hash{1}}, "truncated, no hash": {sid(1), head.Head + 1, Hash{}}} {
			report := must(check(session, a))
			require.Equal(t, []string{FindAnchor}, report.kinds(), what)
			require.Empty(t, report.Heads, what)
		}
	}
	report := must(check(0, Anchor{sid(3), 1, Hash{}}))
	require.Equal(t, []string{FindAnchor}, report.kinds(), "a session that is not here")
	_, err := check(2, Anchor{sid(1), head.Head, head.Hash})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, sid(1).String())
}
