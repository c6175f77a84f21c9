package policy_test

import (
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// genName draws segments that are equal, nested, or alike in case, in form, in
// width or by an invisible character, and the protected ones.
func genName() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"a", "ab", "a-", "A", "b", "\u00e9", "e\u0301", "\uff41", "a\u200b", ".git", ".GIT", "git~1", ".claude", "stra\u00dfe",
	})
}

func genEntry() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(genName(), 1, 4).Draw(t, "segments"), "/")
	})
}

func genScope() *rapid.Generator[policy.Scope] {
	return rapid.Custom(func(t *rapid.T) policy.Scope {
		if rapid.IntRange(0, 9).Draw(t, "unscoped") == 0 {
			return policy.Unscoped()
		}
		return scope(t, rapid.SliceOfN(genEntry(), 0, 5).Draw(t, "entries")...)
	})
}

// genRaw draws what somebody may write for a path, mostly nonsense.
func genRaw() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
			"a", "b", "/", "/", "\\", ".", "..", "~", "C:", " ", "\u212a:", "e\u0301", "\u2100", "*", "\n", "\u202e", "\xff", ".git",
		}), 0, 8).Draw(t, "parts"), "")
	})
}

// 11. Normalizing is idempotent, and a scope stores what it normalized: reading
// it back gives the same scope.
func TestPropertyNormalizeIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := genRaw().Draw(t, "raw")
		once, err := policy.NormalizeEntry(raw)
		if err == nil {
			twice, err := policy.NormalizeEntry(once)
			require.NoError(t, err, "%q", once)
			require.Equal(t, once, twice)
			require.True(t, scope(t, raw).Equal(scope(t, once)))
			require.True(t, scope(t, raw).Admits(once), "an entry admits itself")
		}
		s := genScope().Draw(t, "s")
		if s.Stated() {
			require.Equal(t, s, scope(t, s.Entries()...))
		}
	})
}

// 12. A meet admits a path if and only if both sides do, and lies within both;
// within means that nothing is admitted beyond the other.
func TestPropertyAdmitsIsMonotoneUnderMeet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genScope().Draw(t, "a"), genScope().Draw(t, "b")
		p := genEntry().Draw(t, "path")
		m := a.Meet(b)
		require.Equal(t, a.Admits(p) && b.Admits(p), m.Admits(p))
		require.True(t, m.Within(a) && m.Within(b))
		if a.Within(b) && a.Admits(p) {
			require.True(t, b.Admits(p))
		}
		require.Equal(t, a.Admits(p), a.Want(p) == "")
	})
}

// 13. Scopes form a meet-semilattice with Unscoped on top, and within is its
// order; so a chain of delegations can be met in any order.
func TestPropertyScopeMeetLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := genScope().Draw(t, "a"), genScope().Draw(t, "b"), genScope().Draw(t, "c")
		require.True(t, a.Meet(b).Equal(b.Meet(a)))
		require.True(t, a.Meet(b).Meet(c).Equal(a.Meet(b.Meet(c))))
		require.True(t, a.Meet(a).Equal(a) && a.Meet(policy.Unscoped()).Equal(a))
		require.Equal(t, a.Within(b), a.Meet(b).Equal(a))
		require.Equal(t, c.Within(a) && c.Within(b), c.Within(a.Meet(b)))
		require.LessOrEqual(t, len(a.Meet(b).Entries()), len(a.Entries())+len(b.Entries()))
		require.True(t, a.Meet(b).IsEmpty() || !a.Meet(b).Stated() || a.Overlaps(b), "whoever meets overlaps")
	})
}

// 14. A deny covers at least what the same entry would admit, protected places
// included: folding only adds. Denials never shrink.
func TestPropertyDenyCoversMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOfN(genEntry(), 0, 4).Draw(t, "entries")
		more := rapid.SliceOfN(genEntry(), 0, 4).Draw(t, "more")
		p := genEntry().Draw(t, "path")
		d, err := policy.ParseDenyPaths(entries)
		require.NoError(t, err)
		e, err := policy.ParseDenyPaths(more)
		require.NoError(t, err)
		_, denied := d.Covers(p)
		if scope(t, entries...).Admits(p) {
			require.True(t, denied)
		}
		_, upper := d.Covers(strings.ToUpper(p))
		if clean, err := policy.Target("", "", strings.ToUpper(p)); err == nil && denied && clean != "" {
			require.True(t, upper, "%q denied in one case only", p)
		}
		_, both := d.Union(e).Covers(p)
		_, other := e.Covers(p)
		require.Equal(t, denied || other, both)
	})
}

// 15. A target, once found, is found again unchanged, holds nothing that was
// not in the call, and never leads up.
func TestPropertyTargetNeverRewrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := genRaw().Draw(t, "raw")
		for _, style := range []string{policy.PathStylePosix, policy.PathStyleWindows} {
			root := map[string]string{policy.PathStylePosix: "/a", policy.PathStyleWindows: `C:\a`}[style]
			target, err := policy.Target(root, style, raw)
			if err != nil {
				require.ErrorIs(t, err, policy.ErrOutside)
				continue
			}
			again, err := policy.Target("", policy.PathStylePosix, "./"+target)
			require.NoError(t, err)
			require.Equal(t, target, again)
			if target != "." {
				for segment := range strings.SplitSeq(target, "/") {
					require.NotContains(t, []string{"", ".", ".."}, segment)
					require.Contains(t, raw, segment)
				}
			}
		}
	})
}

func FuzzNormalizeEntry(f *testing.F) {
	for _, s := range []string{"src", "./~", "a/../b", "\u212a:/x", "a / ", `C:\x`, "e\u0301", "\xff", "./ /x", strings.Repeat("./ ", 400)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := policy.NormalizeEntry(s)
		if err != nil {
			require.ErrorIs(t, err, policy.ErrInvalid)
			require.Less(t, len(err.Error()), 2000)
			return
		}
		again, err := policy.NormalizeEntry(e)
		require.NoError(t, err)
		require.Equal(t, e, again)
		require.LessOrEqual(t, len(e), policy.MaxEntryBytes)
		sc := scope(t, e)
		require.True(t, sc.Admits(e))
		require.False(t, sc.Admits(e+"x"))
		require.False(t, sc.Admits(e+"/../x"))
		d, err := policy.ParseDenyPaths([]string{e})
		require.NoError(t, err)
		_, ok := d.Covers(e + "/x")
		require.True(t, ok)
	})
}

func FuzzTarget(f *testing.F) {
	for _, s := range []string{"src", "/w/a", "//w//a", "a\\b", "../x", `C:\w\a`, "e\u0301", " a", "/w/../w/a", "~", strings.Repeat("/", 5000)} {
		f.Add("/w", s)
		f.Add(`C:\w`, s)
		f.Add("", s)
	}
	f.Fuzz(func(t *testing.T, root, raw string) {
		target, err := policy.Target(root, "", raw)
		if err != nil {
			require.True(t, errorsIsAny(err, policy.ErrOutside, policy.ErrInvalid), "%v", err)
			require.Less(t, len(err.Error()), 20000)
			return
		}
		require.NotEmpty(t, target)
		require.LessOrEqual(t, len(target), len(raw)+1)
		require.True(t, policy.Unscoped().Admits(target), "%q", target)
		require.False(t, scope(t).Admits(target))
		require.NotContains(t, "/"+target+"/", "/../")
		require.False(t, strings.HasPrefix(target, "/"))
	})
}
