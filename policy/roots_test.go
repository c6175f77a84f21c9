package policy_test

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRootsMeetTable(t *testing.T) {
	parse := func(s string) policy.Roots {
		switch s = strings.TrimSpace(s); s {
		case "absent":
			return policy.Roots{}
		case "none":
			return roots(t)
		}
		return roots(t, strings.Fields(s)...)
	}
	for _, line := range lines(t, "testdata/roots.txt") {
		left, rest, ok := strings.Cut(line, " ^ ")
		require.True(t, ok, line)
		right, want, ok := strings.Cut(rest, " = ")
		require.True(t, ok, line)

		l, r, w := parse(left), parse(right), parse(want)
		assert.Equal(t, w.List(), l.Meet(r).List(), line)
		assert.Equal(t, w.List(), r.Meet(l).List(), "swapped: "+line)
	}
}

func TestRootsOfStoresOneForm(t *testing.T) {
	for _, c := range []struct {
		given, want []string
	}{
		{[]string{"/"}, []string{"/"}},
		{[]string{"//", "/./", "/"}, []string{"/"}},
		{[]string{"/a", "/a/", "/a//", "/./a/."}, []string{"/a"}},
		{[]string{"/b", "/a"}, []string{"/a", "/b"}},
		{[]string{"/a/b", "/a-b", "/a"}, []string{"/a", "/a-b"}},
		{[]string{"/a", "/ab", "/a/b/c"}, []string{"/a", "/ab"}},
		{[]string{"/a", "/"}, []string{"/"}},
		{[]string{`C:/w/./x/`, `C:\w\\x`}, []string{`C:\w\x`}},
		{[]string{`c:\w`, `C:\w`}, []string{`C:\w`, `c:\w`}},
		{[]string{`C:/`}, []string{`C:\`}},
		{[]string{"/...", "/..a", "/a.."}, []string{"/...", "/..a", "/a.."}},
		{[]string{"/with space", "/ö", "/o\u0308"}, []string{"/o\u0308", "/with space", "/ö"}},
		{[]string{"/" + strings.Repeat("a", 4095)}, []string{"/" + strings.Repeat("a", 4095)}},
	} {
		r, err := policy.RootsOf(c.given...)
		require.NoError(t, err, "%q", c.given)
		assert.Equal(t, c.want, r.List(), "%q", c.given)
	}
}

func TestRootsOfRefuses(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"", "absolute"},
		{"a", "absolute"},
		{"./a", "absolute"},
		{"~/a", "absolute"},
		{`\a`, "absolute"},
		{`\\server\share`, "absolute"},
		{"C:", "absolute"},
		{"C:a", "absolute"},
		{"1:/a", "absolute"},
		{"/..", ".. segment"},
		{"/a/../b", ".. segment"},
		{"/a/..", ".. segment"},
		{`C:\a\..\b`, ".. segment"},
		{`C:/a/../b`, ".. segment"},
		{`/a\..\b`, ".. segment"},
		{"/a\x00b", "control"},
		{"/a\nb", "control"},
		{"/a\x7f", "control"},
		{"/a\u0085", "control"},
		{"/a\xff", "UTF-8"},
		{`C:\a.`, "final dot"},
		{`C:\a \b`, "final dot"},
		{`C:\a\...`, "final dot"},
		{`C:\a:stream`, "colon"},
		{"/" + strings.Repeat("a", 4096), "4097 bytes"},
	} {
		_, err := policy.RootsOf("/ok", c.path)
		require.ErrorIs(t, err, policy.ErrInvalid, "%.50q", c.path)
		assert.ErrorContains(t, err, c.want)
		assert.NotContains(t, err.Error(), "\n")
		assert.False(t, roots(t, "/", `C:\`).Contains(c.path), "%.50q", c.path)
	}
}

func numbered(format string, n int) []string {
	paths := make([]string, n)
	for i := range paths {
		paths[i] = fmt.Sprintf(format, i)
	}
	return paths
}

func TestRootsOfCountsBeforeDropping(t *testing.T) {
	_, err := policy.RootsOf(numbered("/%d", 256)...)
	require.NoError(t, err)

	same := make([]string, 257)
	for i := range same {
		same[i] = "/a"
	}
	_, err = policy.RootsOf(same...)
	require.ErrorIs(t, err, policy.ErrInvalid)
	assert.ErrorContains(t, err, "got 257, want at most 256")
}

// A meet can hold more roots than either side. Trimming it would make the meet
// depend on the order, so it stays exact, and recording it is refused.
func TestRootsMeetBeyondTheLimit(t *testing.T) {
	left := roots(t, append(numbered("/x/%d", 255), "/y")...)
	right := roots(t, append(numbered("/y/%d", 255), "/x")...)
	both := left.Meet(right)
	assert.Len(t, both.List(), 510)
	assert.True(t, both.Contains("/x/7/file") && both.Contains("/y/7/file"))

	s := policy.Sandbox{Mode: policy.WorkspaceWrite, Roots: both}
	require.ErrorIs(t, s.Validate(), policy.ErrInvalid)
	assert.ErrorContains(t, s.Validate(), "got 510 roots, want at most 256")
}

func TestAbsentRootsAreNotEmptyRoots(t *testing.T) {
	absent, none := policy.Roots{}, roots(t)

	assert.False(t, absent.Recorded())
	assert.Nil(t, absent.List())
	assert.True(t, none.Recorded())
	assert.NotNil(t, none.List())
	assert.Empty(t, none.List())

	assert.False(t, absent.Equal(none))
	assert.True(t, absent.Equal(policy.Roots{}))
	assert.False(t, absent.Contains("/"))
	assert.False(t, none.Contains("/"))
}

func TestRootsContain(t *testing.T) {
	r := roots(t, "/src", "/out/next", `C:\w`)
	for _, in := range []string{"/src", "/src/", "/src/a", "/src//a/./b", "/out/next/x", `C:\w`, `C:/w/a`, `/src/a\b`} {
		assert.True(t, r.Contains(in), in)
	}
	for _, out := range []string{"/", "/srcx", "/srcx/a", "/src-old", "/out", "/SRC", "src", `C:\`, `C:\wx`, `c:\w`, `D:\w`, `/src\a`, "/w"} {
		assert.False(t, r.Contains(out), out)
	}
	assert.True(t, roots(t, "/").Contains("/any/where"))
	assert.False(t, roots(t, "/").Contains(`C:\any`))
	assert.True(t, roots(t, `C:\`).Contains(`C:\any`))
}

func TestRootsShareNothing(t *testing.T) {
	given := []string{"/a", "/b"}
	r := roots(t, given...)
	given[0] = "/"
	r.List()[1] = "/"
	assert.Equal(t, []string{"/a", "/b"}, r.List())
}

// Whatever is given: no panic; what is accepted is absolute, clean, contains
// itself, is stored in order without nesting, and reads back as itself.
func FuzzRootsOf(f *testing.F) {
	for _, seed := range [][2]string{
		{"/", "/a"}, {"/a/../b", "/a"}, {`C:\w`, "C:/w/x"}, {"/a", "/a/b"}, {"/src", "/srcx"},
		{"", "rel"}, {"/a\x00", "/\xff"}, {`\\s\share`, "c:"}, {`C:\a.\b `, `/a\..`}, {"//a//", "/./."},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		r, err := policy.RootsOf(a, b)
		if err != nil {
			require.ErrorIs(t, err, policy.ErrInvalid)
			require.False(t, r.Recorded())
			return
		}
		require.True(t, r.Contains(a) && r.Contains(b))
		list := r.List()
		for i, dir := range list {
			slashed := dir
			if dir[0] != '/' {
				require.Regexp(t, `^[A-Za-z]:\\`, dir)
				require.NotContains(t, dir, "/")
				slashed = "/" + strings.ReplaceAll(dir[3:], `\`, "/")
			}
			require.Equal(t, path.Clean(slashed), slashed)
			require.NotContains(t, strings.Split(slashed, "/"), "..")
			if i > 0 {
				require.Less(t, list[i-1], dir)
				require.True(t, roots(t, list[i-1]).Meet(roots(t, dir)).Equal(roots(t)), "nested: %q", list)
			}
		}
		again, err := policy.RootsOf(list...)
		require.NoError(t, err)
		require.True(t, again.Equal(r))
		require.True(t, r.Meet(again).Equal(r))
	})
}
