package policy_test

import (
	"errors"
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func scope(t require.TestingT, entries ...string) policy.Scope {
	s, err := policy.ParseScope(entries)
	require.NoError(t, err)
	return s
}

// admits asks for a target as a call gives it, in the workspace /w.
func admits(s policy.Scope, raw string) bool {
	target, err := policy.Target("/w", policy.PathStylePosix, raw)
	return err == nil && s.Admits(target)
}

func TestNormalizeEntry(t *testing.T) {
	for _, c := range []struct{ given, want string }{
		{"src", "src"},
		{"  src\t\n", "src"},
		{`src\a`, "src/a"},
		{`.\src\`, "src"},
		{"src//a/./b/", "src/a/b"},
		{"./././a", "a"},
		{"a /b", "a /b"},
		{"a / ", "a"},     // only tidy once the slash is gone
		{"./ ./ a/", "a"}, // three passes
		{"src/~x", "src/~x"},
		{"src/C:", "src/C:"},
		{"...", "..."},
		{"..a/b..", "..a/b.."},
		{"e\u0301", "\u00e9"},
		{".git", ".git"},
		{"a\u200bb", "a\u200bb"},
		{strings.Repeat("a", 240), strings.Repeat("a", 240)},
		{" " + strings.Repeat("\u00e9", 240) + " ", strings.Repeat("\u00e9", 240)},
	} {
		got, err := policy.NormalizeEntry(c.given)
		require.NoError(t, err, "%q", c.given)
		assert.Equal(t, c.want, got, "%q", c.given)
	}
	for _, c := range []struct{ given, want string }{
		{"", "want a path"},
		{" \t ", "want a path"},
		{"/", "relative to the workspace"},
		{"/src", "relative to the workspace"},
		{`\src`, "relative to the workspace"},
		{`\\server\share`, "relative to the workspace"},
		{"~", "no leading ~"},
		{"~/src", "no leading ~"},
		{"./~", "no leading ~"},
		{"C:", "no drive letter"},
		{"c:/src", "no drive letter"},
		{`C:\src`, "no drive letter"},
		{"./C:/src", "no drive letter"},
		{"\u212a:/src", "no drive letter"}, // a Kelvin sign is a K in NFC
		{"./ /src", "relative to the workspace"},
		{".", "below the workspace"},
		{"./.", "below the workspace"},
		{"./", "below the workspace"},
		{"..", "no .. segment"},
		{"../src", "no .. segment"},
		{"a/../b", "no .. segment"},
		{"a/..", "no .. segment"},
		{`a\..\b`, "no .. segment"},
		{"src/*", "without wildcards"},
		{"src/?", "without wildcards"},
		{"src/[a]", "without wildcards"},
		{"a\x00b", "no control or bidi"},
		{"a\nb", "no control or bidi"},
		{"a\u0085b", "no control or bidi"},
		{"a\u202eb", "no control or bidi"},
		{"a\u2066b", "no control or bidi"},
		{"a\u061cb", "no control or bidi"},
		{"a\xffb", "valid UTF-8"},
		{strings.Repeat("a", 241), "at most 240 characters"},
		{strings.Repeat("a/", 120) + "b", "at most 240 characters"}, // as written
		{strings.Repeat("\U0001d400", 257), "at most 1024 bytes"},
		{strings.Repeat("\u0958", 150), "at most 240 characters"}, // NFC takes it apart
		{strings.Repeat("a", 1024), "at most 240 characters"},
		{strings.Repeat("a", 1025), "at most 1024 bytes"},
		{strings.Repeat("a", 1<<20), "at most 1024 bytes"},
	} {
		got, err := policy.NormalizeEntry(c.given)
		require.ErrorIs(t, err, policy.ErrInvalid, "%q", c.given)
		assert.ErrorContains(t, err, c.want, "%q", c.given)
		assert.Empty(t, got)
		assert.Less(t, len(err.Error()), 1500)
		assert.NotContains(t, err.Error(), "\n")
	}
}

func TestTarget(t *testing.T) {
	const posix, windows = policy.PathStylePosix, policy.PathStyleWindows
	for _, c := range []struct{ root, style, raw, want string }{
		{"/w", posix, "src/a", "src/a"},
		{"/w", posix, "./src//a/", "src/a"},
		{"/w", posix, ".", "."},
		{"/w", posix, "/w", "."},
		{"/w", posix, "/w/", "."},
		{"/w", posix, "/w/src/a", "src/a"},
		{"/w", posix, "/w//src/./a", "src/a"},
		{"/w", posix, "//w/./src", "src"},
		{"/", posix, "/src", "src"},
		{"/w/", posix, "/w/src", "src"},
		{"/w/e\u0301", posix, "/w/e\u0301/a", "a"}, // only the rest is ours to judge
		{"/w", posix, "a b/ c /d", "a b/ c /d"},
		{"/w", posix, "src/~x", "src/~x"},
		{"/w", posix, "..a", "..a"},
		{"/w", posix, "a*?[", "a*?["}, // a real name, though no entry can say it
		{"/w", "", "src", "src"},
		{"", posix, "src", "src"},
		{"", "", "src", "src"},
		{`C:\w`, windows, `src\a`, "src/a"},
		{`C:\w`, windows, `src/a`, "src/a"},
		{`C:\w`, windows, `C:\w\src\.\a`, "src/a"},
		{`C:/w`, "", `C:/w//src`, "src"},
		{`C:\`, windows, `C:\src`, "src"},
		{`C:\w`, windows, `C:\w`, "."},
		{"", windows, `src\a`, "src/a"},
	} {
		got, err := policy.Target(c.root, c.style, c.raw)
		require.NoError(t, err, "%+v", c)
		assert.Equal(t, c.want, got, "%+v", c)
	}
	for _, c := range []struct{ root, style, raw, want string }{
		{"/w", posix, "", "want a path"},
		{"/w", posix, " src", "no outer spaces"},
		{"/w", posix, "src\u00a0", "no outer spaces"},
		{"/w", posix, "./ src", "no outer spaces"},
		{"/w", posix, "/w/ src", "no outer spaces"},
		{"/w", posix, "src\n", "no outer spaces"},
		{"/w", posix, "s\nrc", "no control"},
		{"/w", posix, "s\x7frc", "no control"},
		{"/w", posix, "s\u0085rc", "no control"},
		{"/w", posix, "s\u202erc", "no control"},
		{"/w", posix, `src\a`, `no \`},
		{"/w", posix, "src/..", "no .. segment"},
		{"/w", posix, "../w/src", "no .. segment"},
		{"/w", posix, "/w/../w/src", "no .. segment"},
		{"/w", posix, "/x/../w/src", "no .. segment"},
		{"/w", posix, "e\u0301", "a name in NFC"},
		{"/w", posix, "/w/e\u0301", "a name in NFC"},
		{"/w", posix, "\u212b", "a name in NFC"},
		{"/w", posix, "a\xff", "valid UTF-8"},
		{"/w", posix, "~/src", "no leading ~"},
		{"/w", posix, "C:/src", "no drive letter"},
		{"/w", posix, "c:src", "no drive letter"},
		{"/w", posix, "/x/src", "in the workspace"},
		{"/w", posix, "/wx/src", "in the workspace"},
		{"/w", posix, "/", "in the workspace"},
		{"", posix, "/w/src", "relative to the workspace"},
		{"/w", posix, strings.Repeat("a/", 3000), "at most 4096 bytes"},
		{`C:\w`, windows, `D:\w\src`, "in the workspace"},
		{`C:\w`, windows, `c:\w\src`, "in the workspace"}, // compared exactly
		{`C:\w`, windows, `C:src`, "no drive letter"},
		{`C:\w`, windows, `C:`, "no drive letter"},
		{`C:\w`, windows, `\w\src`, "in the workspace"},
		{`C:\w`, windows, `\\server\share\src`, "in the workspace"},
		{`C:\w`, windows, `\\?\C:\w\src`, "no colon"},
		{`C:\w`, windows, `src\..\x`, "no .. segment"},
		{`C:\w`, windows, `C:\w\..\x`, "no .. segment"},
		{`C:\w`, windows, `src\a:stream`, "no colon"},
		{`C:\w`, windows, `src.\a`, "no colon and no final dot"},
		{`C:\w`, windows, `src \a`, "no colon and no final dot"},
	} {
		got, err := policy.Target(c.root, c.style, c.raw)
		require.ErrorIs(t, err, policy.ErrOutside, "%+v", c)
		var e *policy.TargetError
		require.ErrorAs(t, err, &e)
		assert.Equal(t, c.raw, e.Target)
		assert.ErrorContains(t, err, c.want, "%+v", c)
		assert.Empty(t, got)
		assert.Less(t, len(err.Error()), 1500)
	}
	for _, c := range []struct{ root, style string }{
		{"w", posix}, {"/w/../x", posix}, {"/w", windows}, {`C:\w`, posix}, {"/w", "dos"}, {"", "dos"}, {"/w\x00", ""},
	} {
		_, err := policy.Target(c.root, c.style, "src")
		assert.ErrorIs(t, err, policy.ErrInvalid, "%+v", c)
	}
}

func TestCase37_TraversalOutOfTheScope(t *testing.T) {
	s := scope(t, "out/")
	for _, refused := range []string{"out/../a", "out/./../a", "/out/a", `C:\out\a`, `out\..\a`} {
		assert.False(t, admits(s, refused), refused)
		assert.False(t, s.Admits(refused), refused)
		_, err := policy.NormalizeEntry(refused)
		assert.ErrorIs(t, err, policy.ErrInvalid, refused)
	}
	assert.True(t, admits(s, "out/./a"))
	assert.True(t, s.Admits("out/./a"))
	entry, err := policy.NormalizeEntry("out/./a")
	require.NoError(t, err)
	assert.Equal(t, "out/a", entry)
}

func TestCase39_OnlyWholeSegmentsMatch(t *testing.T) {
	s := scope(t, "src")
	for _, refused := range []string{"srcx/a", "src-old", "srcx", "SRC/a", "sr", "a/src", "\uff53rc/a", "src\u200b/a"} {
		assert.False(t, admits(s, refused), refused)
	}
	for _, admitted := range []string{"src", "src/a", "src/a/b", "/w/src/a", "src/a*"} {
		assert.True(t, admits(s, admitted), admitted)
	}
}

func TestCase40_OneStoredForm(t *testing.T) {
	for _, spelling := range []string{"a", "a/", "a//", "./a/", " a ", `a\`} {
		assert.Equal(t, []string{"a"}, scope(t, spelling).Entries(), spelling)
	}
	assert.Equal(t, []string{"a"}, scope(t, "a", "a/", "a//", "./a/").Entries())

	d, err := policy.ParseDenyPaths([]string{"./a/"})
	require.NoError(t, err)
	for _, denied := range []string{"a", "a/b", "A/b", "a/", "\uff41/b", "\u200ba"} {
		entry, ok := d.Covers(denied)
		assert.True(t, ok, denied)
		assert.Equal(t, "a", entry)
	}
	_, ok := d.Covers("ab")
	assert.False(t, ok)
	_, ok = d.Covers("b/a")
	assert.False(t, ok)
}

func TestCase44_EntriesOfAContract(t *testing.T) {
	assert.NoError(t, policy.CheckEntries([]string{"src"}))
	assert.NoError(t, policy.CheckEntries(numbered("p%d", 16)))
	for _, entries := range [][]string{nil, {}, numbered("p%d", 17), append(numbered("p%d", 8), numbered("p%d", 9)...)} {
		err := policy.CheckEntries(entries)
		require.ErrorIs(t, err, policy.ErrInvalid)
		assert.ErrorContains(t, err, "want 1 to 16, counted before duplicates are dropped")
	}
	same := make([]string, 17)
	for i := range same {
		same[i] = "src"
	}
	assert.ErrorContains(t, policy.CheckEntries(same), "got 17 paths")
	assert.ErrorIs(t, policy.CheckEntries([]string{"src", "../x"}), policy.ErrInvalid)
}

func TestScopeForms(t *testing.T) {
	var zero policy.Scope
	none, unscoped := scope(t), policy.Unscoped()
	assert.True(t, zero.Equal(none) && !none.Equal(unscoped))
	assert.True(t, none.Stated() && none.IsEmpty())
	assert.False(t, unscoped.Stated() || unscoped.IsEmpty())
	assert.Equal(t, []string{}, none.Entries())
	assert.Nil(t, unscoped.Entries())
	assert.False(t, none.Admits("a"))
	assert.True(t, unscoped.Admits("a") && unscoped.Admits("."))
	assert.False(t, unscoped.Admits("../a"))
	assert.Equal(t, []string{"no path", "any path"}, []string{none.String(), unscoped.String()})

	s := scope(t, "src/b", "docs", "src", "src-old", "src/b/c", "docs")
	assert.Equal(t, []string{"docs", "src", "src-old"}, s.Entries())
	s.Entries()[0] = "x"
	assert.True(t, s.Admits("docs"), "a copy was handed out")
	assert.Equal(t, `docs, src, src-old`, s.String())
	assert.Equal(t, `"a b", "a\u200bb"`, scope(t, "a b", "a\u200bb").String())
	assert.False(t, s.Admits("."), "the workspace itself is in no scope")

	_, err := policy.ParseScope(numbered("p%d", 257))
	assert.ErrorIs(t, err, policy.ErrInvalid)
	_, err = policy.ParseScope([]string{"a", ".."})
	assert.ErrorIs(t, err, policy.ErrInvalid)

	assert.Empty(t, s.Want("src/a"))
	assert.Equal(t, "a path within docs, src, src-old", s.Want("x"))
	assert.Contains(t, s.Want("src/.git/config"), "need an entry of their own")
	assert.Equal(t, "no .. segment", policy.Unscoped().Want("../x"))
}

func TestScopeMeetAndWithin(t *testing.T) {
	for _, c := range []struct{ a, b, want []string }{
		{[]string{"src"}, []string{"src"}, []string{"src"}},
		{[]string{"src"}, []string{"src/a"}, []string{"src/a"}},
		{[]string{"src/a"}, []string{"src/b"}, []string{}},
		{[]string{"src"}, []string{"srcx"}, []string{}},
		{[]string{"src", "docs"}, []string{"docs/x", "src/a", "src/b", "other"}, []string{"docs/x", "src/a", "src/b"}},
		{[]string{"src"}, []string{}, []string{}},
		{nil, []string{"src"}, []string{"src"}},
		{[]string{"src"}, []string{"SRC"}, []string{}}, // an allow compares exactly
	} {
		a, b, want := stated(t, c.a), stated(t, c.b), stated(t, c.want)
		assert.True(t, a.Meet(b).Equal(want), "%v ^ %v = %v", a, b, a.Meet(b))
		assert.True(t, b.Meet(a).Equal(want))
		assert.True(t, a.Meet(b).Within(a) && a.Meet(b).Within(b))
	}
	assert.False(t, policy.Unscoped().Meet(policy.Unscoped()).Stated())
	assert.False(t, policy.Unscoped().Within(scope(t, "src")))
	assert.True(t, policy.Unscoped().Within(policy.Unscoped()))
	assert.True(t, scope(t).Within(scope(t)))
	assert.False(t, scope(t, "src").Within(scope(t, "src/a")))
}

// stated is scope, with nil for a scope that is not stated.
func stated(t require.TestingT, entries []string) policy.Scope {
	if entries == nil {
		return policy.Unscoped()
	}
	return scope(t, entries...)
}

// A place that configures what runs next is outside unless named, by whatever
// spelling some file system opens it, and cannot be handed on by who was not
// handed it.
func TestProtectedPlaces(t *testing.T) {
	for _, protected := range []string{
		".git", ".git/config", "a/.git/hooks/pre-commit", ".codex/x", "a/b/.claude", ".GIT/x", ".Claude",
		".g\u200cit/x", "\uff0egit/x", "git~1/x", "CLAUDE~1", ".git./x", ".git /x", "a/.childlog/guard.json", ".ChildLog", "CHILDL~1",
	} {
		assert.True(t, policy.Protected(protected), "%q", protected)
	}
	for _, free := range []string{"", "a", ".github/x", ".gitignore", "git", "a.git", "codex", "git~x", "~1", ".gi\u0442", "childlog", ".childlogs", "CHILDLOG~1"} {
		assert.False(t, policy.Protected(free), "%q", free)
	}

	src := scope(t, "src")
	assert.False(t, src.Admits("src/.git"))
	assert.False(t, src.Admits("src/sub/.GIT/hooks/x"))
	granted := scope(t, "src", "src/.git")
	assert.Equal(t, []string{"src", "src/.git"}, granted.Entries())
	assert.True(t, granted.Admits("src/.git/config") && granted.Admits("src/a"))
	assert.False(t, granted.Admits("src/.git/modules/x/.git"))
	assert.False(t, granted.Admits("src/.claude/settings.json"))

	assert.False(t, granted.Within(src), "containment knows the exception as well")
	assert.True(t, src.Meet(scope(t, "src/.git")).IsEmpty())
	assert.True(t, granted.Meet(scope(t, "src/.git/hooks")).Equal(scope(t, "src/.git/hooks")))
	assert.True(t, src.Overlaps(scope(t, "src/.git")), "in doubt siblings conflict")
}

func TestDenyPaths(t *testing.T) {
	deny := func(entries ...string) policy.DenyPaths {
		d, err := policy.ParseDenyPaths(entries)
		require.NoError(t, err)
		return d
	}
	d := deny("secrets/", "a/b", "Stra\u00dfe", "\u00e9")
	for _, denied := range []string{
		"secrets/key", "SECRETS/key", "a/b", "A/B/c", "strasse/x", "STRASSE", "\u00c9/x",
		"se\u200bcrets/key", "\uff53ecrets", "secret\u017f/x", "a\ufe0f/b", "\u2062a/b",
		"../x", "/w", "", "a\xff", // no target at all
	} {
		_, ok := d.Covers(denied)
		assert.True(t, ok, "%q", denied)
	}
	for _, free := range []string{"secretsx", "a", "a/bc", "x/secrets", "e", ".", "s\u0435crets"} {
		_, ok := d.Covers(free)
		assert.False(t, ok, "%q", free)
	}
	// A compatibility character can hide a separator.
	_, ok := deny("a").Covers("\u2100/x")
	assert.True(t, ok)
	// Folding can take two rounds: the sign is capitals only once it is letters.
	for entry, target := range map[string]string{"tm": "\u2122", "\u03cd": "\u03d3"} {
		_, ok = deny(entry).Covers(target)
		assert.True(t, ok, "%q", target)
	}
	// A name of nothing but invisible characters does not become its parent.
	_, ok = deny("x/\u200b").Covers("x/y")
	assert.False(t, ok)
	_, ok = deny("x/\u200b").Covers("x/\u200b/y")
	assert.True(t, ok)

	entry, _ := deny("b", "a/b", "a").Covers("a/b/c")
	assert.Equal(t, "a", entry, "the first in path order")
	_, ok = policy.DenyPaths{}.Covers("../x")
	assert.False(t, ok)
	assert.Equal(t, []string{}, policy.DenyPaths{}.Entries())
	both := deny("b", "a").Union(deny("a", "c"))
	assert.Equal(t, []string{"a", "b", "c"}, both.Entries())
	_, ok = both.Covers("C/x")
	assert.True(t, ok)
	_, err := policy.ParseDenyPaths([]string{"a", "*"})
	assert.ErrorIs(t, err, policy.ErrInvalid)
}

func TestTargetErrorMessage(t *testing.T) {
	cause := errors.New("no such device")
	e := &policy.TargetError{Target: "a\x1b[2J", Resolved: "b", Want: "c", Err: cause}
	assert.EqualError(t, e, `outside: target: got "a\x1b[2J" (really "b"), want c: no such device`)
	assert.ErrorIs(t, e, policy.ErrOutside)
	assert.ErrorIs(t, e, cause)
	assert.ErrorIs(t, &policy.TargetError{}, policy.ErrOutside)
}

// The questions asked on every call must not allocate.
func TestScopeAllocatesNothing(t *testing.T) {
	w, err := policy.NewWorkspace("/home/dev/project", policy.PathStylePosix)
	require.NoError(t, err)
	s := scope(t, numbered("dir%d/sub", 15)...)
	d, err := policy.ParseDenyPaths(numbered("Dir%d/secret", 100))
	require.NoError(t, err)
	for _, raw := range []string{"dir14/sub/file.go", "/home/dev/project/dir14/sub/file.go", "x/y"} {
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			target, err := w.Target(raw)
			if err != nil {
				t.Fatal(err)
			}
			s.Admits(target)
			d.Covers(target)
		}), raw)
	}
}
