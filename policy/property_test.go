package policy_test

import (
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// 1. A meet of roots contains a path if and only if both sides do. This ties
// the containment of sets to the containment of paths, which is simpler.
func TestPropertyRootsMeetIsIntersection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genRoots().Draw(t, "a"), genRoots().Draw(t, "b")
		p := genPath().Draw(t, "path")
		require.Equal(t, a.Contains(p) && b.Contains(p), a.Meet(b).Contains(p))
	})
}

// 2. The meet is commutative, associative and idempotent, and Top is neutral:
// the order in which a log states restrictions does not matter.
func TestPropertyMeetLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := genStated().Draw(t, "a"), genStated().Draw(t, "b"), genStated().Draw(t, "c")
		require.Equal(t, a.Meet(b), b.Meet(a))
		require.Equal(t, a.Meet(b).Meet(c), a.Meet(b.Meet(c)))
		require.Equal(t, a.Canonical(), a.Meet(a))
		require.Equal(t, a.Canonical(), a.Meet(policy.Top()))
	})
}

// 3. The meet is within both sides, and anything within both is within it.
func TestPropertyMeetIsGreatestLowerBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := genStated().Draw(t, "a"), genStated().Draw(t, "b"), genStated().Draw(t, "c")
		m := a.Meet(b)
		require.True(t, m.Within(a) && m.Within(b))
		require.Equal(t, c.Within(a) && c.Within(b), c.Within(m))
	})
}

// 4. Within is a partial order on what values are worth, with Top above all.
func TestPropertyWithinIsPartialOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := genStated().Draw(t, "a"), genStated().Draw(t, "b"), genStated().Draw(t, "c")
		require.True(t, a.Within(a))
		require.True(t, a.Within(policy.Top()))
		require.Equal(t, a.Equal(b), a.Within(b) && b.Within(a))
		// Chains are rare among random values, so one is made.
		m := a.Meet(b)
		require.True(t, m.Meet(c).Within(m) && m.Meet(c).Within(a))
		if a.Within(b) && b.Within(c) {
			require.True(t, a.Within(c))
		}
	})
}

// 5. Canonical is idempotent, valid, worth the same, and permits in no
// component what was not stated in it.
func TestPropertyCanonicalNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := genStated().Draw(t, "s"), genPath().Draw(t, "path")
		c := s.Canonical()
		require.Equal(t, c, c.Canonical())
		require.NoError(t, c.Validate())
		require.True(t, c.Equal(s))

		require.True(t, c.Mode == s.Mode || c.Mode == policy.ReadOnly)
		require.True(t, !c.Network || s.Network)
		require.True(t, c.ExcludeTmpdirEnvVar || !s.ExcludeTmpdirEnvVar)
		require.True(t, c.ExcludeSlashTmp || !s.ExcludeSlashTmp)
		require.True(t, !c.Roots.Contains(p) || s.Roots.Contains(p))
	})
}

// 6. A resolved setting is valid and canonical, and its roots contain the
// workspace and every extra root.
func TestPropertyResolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		extra := rapid.SliceOfN(genPath(), 0, 3).Draw(t, "extra")
		workspace := genPath().Draw(t, "workspace")
		s, err := policy.Setting{Mode: policy.WorkspaceWrite, WritableRoots: extra}.Resolve(workspace)
		require.NoError(t, err)
		require.NoError(t, s.Validate())
		require.Equal(t, s, s.Canonical())
		for _, p := range append(extra, workspace) {
			require.True(t, s.Roots.Contains(p), p)
		}
	})
}

// history is a ledger beside the plain definition of what it folds, and the
// value each event stated.
type history struct {
	policy.Ledger
	bound, own policy.Sandbox
	stated     map[policy.Cause]policy.Sandbox
}

func genHistory() *rapid.Generator[*history] {
	return rapid.Custom(func(t *rapid.T) *history {
		def, captured := genStated().Draw(t, "default"), genStated().Draw(t, "captured")
		h := &history{stated: map[policy.Cause]policy.Sandbox{created: def}}
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			h.Ledger, h.bound, h.own = policy.RootLedger(def, created), policy.Top(), def
		case 1:
			h.Ledger, h.bound, h.own = policy.ChildLedger(nil, def, created, delegated), def, def
		default:
			h.Ledger, h.bound, h.own = policy.ChildLedger(&captured, def, created, delegated), captured, captured
			h.stated[delegated] = captured
		}
		return h
	})
}

// 7. Over any interleaving of events: the effective value is the meet of bound
// and last switch, within the bound and so within Top; the bound only shrinks;
// a refused event changes nothing; a copy taken before an event is untouched.
//
// 8. The event named for a component states it. For roots it states the result
// or, where several events cut them, a wider set.
func TestPropertyLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := genHistory().Draw(t, "start")
		h.check(t)
		for seq := uint64(10); seq < 18; seq++ {
			v := genStated().Draw(t, "v")
			before, twin := h.Ledger, h.Ledger
			switch rapid.SampledFrom([]string{"switch", "keep", "narrow"}).Draw(t, "event") {
			case "switch":
				err := h.Switch(v, switched(seq))
				_ = twin.Switch(v, switched(seq))
				accepted := v.Validate() == nil && v.Within(h.bound)
				require.Equal(t, accepted, err == nil, "%v", err)
				if accepted {
					h.own, h.stated[switched(seq)] = v, v
				} else {
					require.Equal(t, before, h.Ledger)
				}
			case "keep":
				require.Equal(t, !v.Within(h.bound), h.Keep(v, switched(seq)))
				twin.Keep(v, switched(seq))
				h.own, h.stated[switched(seq)] = v, v
			case "narrow":
				require.Equal(t, !h.bound.Within(v), h.Narrow(v, narrowed(seq)))
				twin.Narrow(v, narrowed(seq))
				h.bound, h.stated[narrowed(seq)] = h.bound.Meet(v), v
			}
			require.Equal(t, h.Ledger, twin, "the same event on a copy leads to the same ledger")
			require.True(t, h.Bound().Value.Within(before.Bound().Value))
			h.check(t)
		}
	})
}

func (h *history) check(t *rapid.T) {
	e := h.Effective()
	require.Equal(t, h.bound.Meet(h.own), e.Value)
	require.True(t, h.Bound().Value.Equal(h.bound))
	require.True(t, e.Value.Within(h.bound) && e.Value.Within(policy.Top()))
	if captured, ok := h.Captured(); ok {
		require.Equal(t, e.Value, captured)
	} else {
		require.False(t, h.Explicit())
		require.True(t, e.Value.Equal(h.Default().Value), "without an override the default counts")
	}

	value := func(by policy.Cause) policy.Sandbox {
		v, ok := h.stated[by]
		require.True(t, ok, "no such event: %v", by)
		return v.Canonical()
	}
	require.Equal(t, value(e.Mode).Mode, e.Value.Mode)
	require.Equal(t, value(e.Network).Network, e.Value.Network)
	require.Equal(t, value(e.ExcludeTmpdirEnvVar).ExcludeTmpdirEnvVar, e.Value.ExcludeTmpdirEnvVar)
	require.Equal(t, value(e.ExcludeSlashTmp).ExcludeSlashTmp, e.Value.ExcludeSlashTmp)
	if by := value(e.Roots); by.Mode != policy.DangerFullAccess {
		require.True(t, e.Value.Roots.Meet(by.Roots).Equal(e.Value.Roots))
	} else {
		require.Equal(t, policy.DangerFullAccess, e.Value.Mode)
	}
}

// 9. Within the bound a switch is reversible: what a session could do before
// some other accepted switch it can do again.
func TestPropertySwitchIsReversible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := genHistory().Draw(t, "start")
		h.Narrow(genStated().Draw(t, "ceiling"), narrowed(5))
		// A meet with the bound is always within it.
		first := genStated().Draw(t, "first").Meet(h.Bound().Value)
		second := genStated().Draw(t, "second").Meet(h.Bound().Value)
		require.NoError(t, h.Switch(first, switched(6)))
		before := h.Effective().Value
		require.NoError(t, h.Switch(second, switched(7)))
		require.NoError(t, h.Switch(first, switched(8)))
		require.Equal(t, before, h.Effective().Value)
	})
}

// 10. What a session hands down bounds its whole subtree: however a child
// switches, it stays within what its parent was worth at the capture.
func TestPropertyChildStaysWithinItsParent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := genHistory().Draw(t, "parent")
		h.Narrow(genStated().Draw(t, "ceiling"), narrowed(5))
		var captured *policy.Sandbox
		if v, ok := h.Captured(); ok {
			captured = &v
		}
		def := h.Default().Value.Meet(genStated().Draw(t, "deployment"))
		l := policy.ChildLedger(captured, def, created, delegated)
		l.Keep(genStated().Draw(t, "switch"), switched(6))
		assert.True(t, l.Effective().Value.Within(h.Effective().Value))
	})
}
