package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// typed reports whether an error is one that Derive documents.
func typed(err error) bool {
	return errors.Is(err, policy.ErrInvalid) || errors.Is(err, policy.ErrDepth) || errors.Is(err, policy.ErrWidening)
}

func genInput(depth int) *rapid.Generator[policy.DeriveInput] {
	return rapid.Custom(func(t *rapid.T) policy.DeriveInput {
		in := input()
		in.Depth = depth
		in.NowMS += rapid.Int64Range(0, 3).Draw(t, "later")
		in.Children = rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "children")
		in.Operator = genOperator().Draw(t, "operator")
		return in
	})
}

// A child never holds, nor can hand on, what its parent could not hand on: over
// random chains to depth 8, with the parent narrowed at random between two
// delegations. The same holds against every ancestor and for every single tool
// call. Whatever was denied stays denied, and nobody outlives his parent.
func TestPropertyNobodyExceedsWhatWasHandedDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := genAuthority().Draw(t, "root")
		if rapid.Bool().Draw(t, "explicit") {
			a.Explicit = []policy.ExplicitGrant{{ID: "x", Issuer: issuerAt, ExpiresMS: nowMS + rapid.Int64Range(1, 4).Draw(t, "expires")}}
		}
		a = a.Canonical()
		var above []policy.Authority
		for depth := 1; depth <= policy.HardMaxDepth; depth++ {
			if rapid.IntRange(0, 3).Draw(t, "narrow") == 0 {
				narrowed := a.Narrow(genHalf().Draw(t, "ceiling"))
				require.True(t, narrowed.Within(a))
				a = narrowed
			}
			above = append(above, a)
			in, r := genInput(depth).Draw(t, "input"), genRequest().Draw(t, "request")
			d, err := policy.Derive(a, in, r)
			if err != nil {
				// A refusal would end most chains early; ask for less.
				require.True(t, typed(err), "%v", err)
				r = policy.Request{Provider: "deepseek", Wish: policy.Wish{DeniedTools: r.DeniedTools}, Delegable: r.Delegable}
				if r.Delegable != nil {
					r.Delegable.WriteScope = nil
				}
				if d, err = policy.Derive(a, in, r); err != nil {
					require.True(t, typed(err), "%v", err)
					return
				}
			}
			got := d.Granted
			for _, ancestor := range above {
				require.True(t, got.Own.Within(ancestor.Delegable), "own: %v", d.Cuts)
				require.True(t, got.Delegable.Within(ancestor.Delegable), "delegable: %v", d.Cuts)
				for _, h := range []policy.Half{got.Own, got.Delegable} {
					require.True(t, h.Profile.Denied.Covers(ancestor.Own.Profile.Denied))
					require.True(t, h.Profile.Denied.Covers(ancestor.Operator.Denied()))
					if deadline := ancestor.Own.Profile.Limits.DeadlineMS; deadline != 0 {
						require.True(t, 0 < h.Profile.Limits.DeadlineMS && h.Profile.Limits.DeadlineMS <= deadline)
					}
				}
				require.True(t, got.Operator.Covers(ancestor.Operator))
			}
			require.True(t, got.Operator.Covers(in.Operator))
			noCallBeyond(t, got.Own, a.Delegable)
			require.NoError(t, got.Validate())
			require.Equal(t, got, got.Canonical())
			a = got
		}
	})
}

// noCallBeyond checks containment by what it is for: no call runs in the child
// that the parent could not have handed on.
func noCallBeyond(t *rapid.T, child, parent policy.Half) {
	c, p := policy.Standing{Own: child, Sandbox: policy.Top()}, policy.Standing{Own: parent, Sandbox: policy.Top()}
	for _, name := range strings.Fields("read Read write file apply_patch bash exec_command run_tests WebFetch subagent mcp__x__y") {
		tool, err := policy.Palette{}.Classify(name)
		require.NoError(t, err)
		for _, need := range []policy.GrantShell{policy.GrantInspect, policy.GrantVerify, policy.GrantFull} {
			if _, ok := c.Permits(tool, need); ok {
				rule, ok := p.Permits(tool, need)
				require.True(t, ok, "%s at %s: the child may, the parent not by %s", name, need, rule)
			}
		}
	}
}

// Derive is monotone: a smaller parent never has a larger child. Where it has a
// child at all, so has the larger parent.
func TestPropertyDeriveIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		larger := genAuthority().Draw(t, "larger").Canonical()
		smaller := larger.Narrow(genHalf().Draw(t, "less"))
		smaller.Delegable = smaller.Delegable.Meet(genHalf().Draw(t, "less to hand on"))
		in, r := genInput(1).Draw(t, "input"), genRequest().Draw(t, "request")
		little, err := policy.Derive(smaller, in, r)
		if err != nil {
			require.True(t, typed(err), "%v", err)
			return
		}
		much, err := policy.Derive(larger, in, r)
		require.NoError(t, err)
		require.True(t, little.Granted.Within(much.Granted), "%v", little.Cuts)
	})
}

// So is it in the operator rules and in what the request denies or limits: more
// of them never gives a larger child.
func TestPropertyMoreRulesNarrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := genAuthority().Draw(t, "parent")
		in, r := genInput(1).Draw(t, "input"), genRequest().Draw(t, "request")
		before, err := policy.Derive(a, in, r)
		if err != nil {
			return
		}
		in.Operator = in.Operator.Union(genOperator().Draw(t, "more rules"))
		r.DeniedTools = append(slices.Clone(r.DeniedTools), genPatterns().Draw(t, "more denied")...)
		if r.MaxSteps == nil {
			r.MaxSteps = ptr(uint64(1))
		}
		after, err := policy.Derive(a, in, r)
		if err != nil {
			require.ErrorIs(t, err, policy.ErrWidening)
			return
		}
		require.True(t, after.Granted.Within(before.Granted))
	})
}

// Derive is idempotent: what a request got, it gets again from exactly that.
func TestPropertyDeriveIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, r := genInput(1).Draw(t, "input"), genRequest().Draw(t, "request")
		r.Delegable, r.Spawn, r.MaxChildren = nil, nil, nil // else the child may not make another
		r.Capabilities = policy.NameSet{}
		a := genAuthority().Draw(t, "parent")
		a.Delegable.Grant.Spawn, a.Delegable.Grant.MaxChildren = true, nil
		a.Delegable.Profile.Capabilities = policy.NameSet{}
		first, err := policy.Derive(a, in, r)
		if err != nil {
			return
		}
		again, err := policy.Derive(first.Granted, in, r)
		require.NoError(t, err)
		require.True(t, again.Granted.Equal(first.Granted), "%v", again.Cuts)
		require.True(t, again.Granted.Within(first.Granted) && first.Granted.Within(again.Granted))
		require.Equal(t, first.Fingerprint, again.Fingerprint)
	})
}

// Derive is pure: it answers the same to the same, changes nothing it was
// given, and what it returns does not change with what it was given.
func TestPropertyDeriveIsPure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := genAuthority().Draw(t, "parent")
		a.Explicit = []policy.ExplicitGrant{{ID: "x", Issuer: issuerAt}}
		in, r := genInput(1).Draw(t, "input"), genRequest().Draw(t, "request")
		before := policy.FingerprintOf("", a)
		d, err := policy.Derive(a, in, r)
		again, err2 := policy.Derive(a, in, r)
		require.Equal(t, d, again)
		require.Equal(t, err, err2)
		require.Equal(t, before, policy.FingerprintOf("", a))
		if err != nil {
			require.Equal(t, policy.Derived{}, d)
			return
		}
		for _, n := range []*int{r.MaxChildren, a.Own.Grant.MaxChildren, a.Delegable.Grant.MaxChildren} {
			if n != nil {
				*n = 1 << 20
			}
		}
		a.Explicit[0].ID = "y"
		if r.WriteScope != nil && len(*r.WriteScope) > 0 {
			(*r.WriteScope)[0] = "elsewhere"
		}
		for i := range r.DeniedTools {
			r.DeniedTools[i] = "elsewhere"
		}
		require.Equal(t, again, d)
		require.NoError(t, d.Fingerprint.Check(d.Choices.Role, d.Granted))
	})
}

// The cuts tell the whole way from what was requested to what was granted: the
// first of a field starts at the one, each goes on where the last one ended, the
// last ends at the other, and a field without cuts was granted as requested
// unless the request left it open.
func TestPropertyCutsAreComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, err := policy.Derive(genAuthority().Draw(t, "parent"), genInput(1).Draw(t, "input"), genRequest().Draw(t, "request"))
		if err != nil {
			return
		}
		at := map[string]string{}
		for _, c := range d.Cuts {
			require.NotEqual(t, c.From, c.To, "%v", c)
			require.NotEmpty(t, c.Rule)
			if last, ok := at[c.Field]; ok {
				require.Equal(t, last, c.From, "%v", c)
			}
			at[c.Field] = c.To
		}
		own, granted := d.Requested.Own, d.Granted.Own
		for name, pair := range map[string][2]string{
			policy.FieldFiles:      {own.Grant.Files.String(), granted.Grant.Files.String()},
			policy.FieldGrantShell: {own.Grant.Shell.String(), granted.Grant.Shell.String()},
			policy.FieldShell:      {own.Profile.Shell.String(), granted.Profile.Shell.String()},
			policy.FieldSurface:    {own.Grant.Surface.String(), granted.Grant.Surface.String()},
		} {
			end, ok := at[name]
			if !ok {
				end = pair[0]
			}
			require.Equal(t, pair[1], end, "%s: %v", name, d.Cuts)
		}
	})
}
