package policy_test

import (
	"strings"
	"testing"

	"childlog/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a sandbox holds of the paths of an edit, and the first rule against each.
func TestSandboxPaths(t *testing.T) {
	noTmp := func(s policy.Sandbox) policy.Sandbox {
		s.ExcludeSlashTmp = true
		return s
	}
	for _, c := range []struct {
		box   policy.Sandbox
		scope []string // nil: none stated
		path  string
		want  string // the rule of the sandbox, all reasons of a scope, or "" and the target below
		to    string
	}{
		{readOnly(), nil, "src/a", "sandbox", ""},
		{policy.Sandbox{Mode: "external-sandbox"}, nil, "src/a", "sandbox", ""},
		{write(t), nil, "src/a", "sandbox_roots", ""},
		{policy.Sandbox{Mode: policy.WorkspaceWrite}, nil, "src/a", "sandbox_roots", ""},
		{write(t, "/w"), nil, "src/a", "", "src/a"},
		{write(t, "/w"), nil, "/w/src//a", "", "src/a"},
		{write(t, "/w"), nil, ".", "", "."},
		{write(t, "/w/src"), nil, "src/a", "", "src/a"},
		{write(t, "/w/src"), nil, "srcx/a", "sandbox_roots", ""},
		{write(t, "/w/src"), nil, ".", "sandbox_roots", ""},
		{write(t, "/"), nil, "src/a", "", "src/a"},
		{write(t, "/"), nil, "/etc/passwd", "", "/etc/passwd"},
		{write(t, "/w", "/v"), nil, "/v/x", "", "/v/x"},
		{write(t, "/w", "/v"), nil, "/v", "", "/v"},
		{write(t, "/w", "/v"), nil, "//v/./x", "", "/v/x"},
		{write(t, "/w"), nil, "/v/x", "sandbox_roots", ""},
		{write(t, "/w"), nil, "/W/x", "sandbox_roots", ""},
		{write(t, "/w"), nil, "/", "sandbox_roots", ""},

		{write(t, "/w"), nil, "/tmp/x", "", "/tmp/x"},
		{write(t, "/w"), nil, "/tmpx", "sandbox_roots", ""},
		{noTmp(write(t, "/w")), nil, "/tmp/x", "sandbox_roots", ""},
		{write(t, "/w"), nil, "/var/folders/x", "sandbox_roots", ""},
		{write(t, "/w"), nil, "$TMPDIR/x", "", "$TMPDIR/x"}, // a directory of that odd name

		{write(t, "/w"), nil, ".git/hooks/pre-commit", "protected_name", ""},
		{write(t, "/w", "/tmp/.git"), nil, "/tmp/.git/x", "", "/tmp/.git/x"}, // in /tmp as well, which does not name it
		{write(t, "/w"), nil, "deep/down/.Claude/settings.json", "protected_name", ""},
		{write(t, "/w"), nil, "/tmp/.codex/x", "protected_name", ""},
		{write(t, "/w"), nil, ".github/workflows/x", "", ".github/workflows/x"},
		{write(t, "/w/.git"), nil, ".git/config", "", ".git/config"},
		{write(t, "/w/.git"), nil, ".git/modules/x/.git/config", "protected_name", ""},
		{write(t, "/w"), []string{".git"}, ".git/config", "", ".git/config"},
		{write(t, "/w"), []string{"src"}, "src/.git/config", "write_scope_violation:write_scope sandbox:protected_name", ""},
		{policy.Top(), nil, ".git/config", "", ".git/config"},
		{policy.Top(), []string{"src"}, "src/.git/config", "write_scope_violation:write_scope", ""},

		{policy.Top(), nil, "src/a", "", "src/a"},
		{policy.Top(), nil, "/etc/passwd", "", "/etc/passwd"},
		{policy.Top(), nil, "/", "", "/"},
		{policy.Top(), nil, "/etc/../passwd", "path_form", ""},
		{policy.Top(), nil, "src/../a", "path_form", ""},
		{policy.Top(), nil, "~/x", "path_form", ""},
		{policy.Top(), nil, `src\a`, "path_form", ""},
		{policy.Top(), nil, `C:\x`, "path_form", ""},
		{policy.Top(), nil, " a", "path_form", ""},
		{policy.Top(), nil, "a\n", "path_form", ""},
		{policy.Top(), nil, "a\u202eb", "path_form", ""},
		{policy.Top(), nil, "/v/a\x7f", "path_form", ""},
		{policy.Top(), nil, "e\u0301", "path_form", ""},
		{policy.Top(), nil, "/v/e\u0301", "path_form", ""},
		{policy.Top(), nil, "a\xff", "path_form", ""},

		{policy.Top(), nil, "/s/store/db", "store_directory", ""},
		{policy.Top(), nil, "/S/STORE/db", "store_directory", ""},
		{policy.Top(), nil, "/s", "store_directory", ""},
		{policy.Top(), nil, "/", "store_directory", ""},
		{policy.Top(), nil, "/s/storex", "", "/s/storex"},
		{policy.Top(), nil, ".childlog/IDENTITY", "store_directory", ""},
		{policy.Top(), nil, ".CHILDLOG", "store_directory", ""},
		{policy.Top(), nil, ".child\u200clog/x", "store_directory", ""},
		{policy.Top(), nil, ".", "store_directory", ""},
		{policy.Top(), []string{".childlog"}, ".childlog/x", "store_directory", ""},
		{write(t, "/w/.childlog"), nil, ".childlog/x", "store_directory", ""},
	} {
		h := policy.TopHalf()
		if c.scope != nil {
			h = scoped(t, c.scope...)
		}
		s := under(rootSubject(t, halved(h)), c.box)
		s.Bound = policy.Top()
		if c.want == "store_directory" || c.to == "/s/storex" {
			s.Protected = []string{"/s/store", "/w/.childlog"}
		}
		d := decided(t, s, callOf("write", c.path), policy.Moment{})
		switch {
		case strings.HasPrefix(c.want, "write_scope"):
			assert.Equal(t, c.want, allReasons(d), "%v: %q", c.box, c.path)
		case c.want == "":
			assert.Equal(t, "allowed", allReasons(d), "%v: %q", c.box, c.path)
			assert.Equal(t, []string{c.to}, d.Targets)
		default:
			assert.Equal(t, "sandbox:"+c.want, allReasons(d), "%v: %q", c.box, c.path)
			require.Len(t, d.Outside, 1)
			assert.Equal(t, c.path, d.Outside[0].Path)
			assert.NotEmpty(t, d.Outside[0].Want)
			assert.Empty(t, d.Targets)
		}
	}
}

// A session cannot name .git for itself: a switch to a root that does is within
// a bound that does not.
func TestProtectedNameNeedsTheBound(t *testing.T) {
	s := under(rootSubject(t, policy.TopAuthority()), write(t, "/w"))
	s.Sandbox = policy.Trace(write(t, "/w/.git"), switchAt)
	require.True(t, s.Sandbox.Value.Within(s.Bound), "as roots")
	assert.Equal(t, "sandbox:protected_name", allReasons(decided(t, s, callOf("write", ".git/config"), policy.Moment{})))
}

// A path of a windows workspace is compared in either spelling, and what only
// looks absolute there is nowhere.
func TestSandboxPathsOnWindows(t *testing.T) {
	s := under(rootSubject(t, policy.TopAuthority().Under(operatorRules(t, nil, []string{"secrets"}))), write(t, `C:\w`, `D:\v`))
	s.Workspace = workspace(t, `C:\w`)
	s.Protected = []string{`D:\v\store`}
	for path, want := range map[string]string{
		"src/a":         "allowed",
		`src\a`:         "allowed",
		`C:\w\src\a`:    "allowed",
		"C:/w/src/a":    "allowed",
		`D:\v\x`:        "allowed",
		`D:\v\store\x`:  "sandbox:store_directory",
		`d:\V\Store`:    "sandbox:store_directory",
		`C:\x`:          "sandbox:sandbox_roots",
		`c:\w\src`:      "sandbox:sandbox_roots",
		`c:\W\Secrets`:  "operator_deny:operator_path sandbox:sandbox_roots",
		`SECRETS\x`:     "operator_deny:operator_path",
		"/tmp/x":        "sandbox:path_form",
		`\\server\x`:    "sandbox:path_form",
		"C:x":           "sandbox:path_form",
		"src/a.":        "sandbox:path_form",
		`D:\v\x:stream`: "sandbox:path_form",
		`D:\v\GIT~1\x`:  "sandbox:protected_name",
	} {
		d := decided(t, s, callOf("write", path), policy.Moment{})
		assert.Equal(t, want, allReasons(d), path)
	}
}

// Where the workspace is at no known place, what depends on it is refused.
func TestUnanchoredWorkspace(t *testing.T) {
	s := rootSubject(t, policy.TopAuthority())
	s.Workspace = policy.Workspace{}
	assert.Equal(t, "allowed", allReasons(decided(t, s, callOf("write", "a", "/v/a"), policy.Moment{})))
	s = under(s, write(t, "/w"))
	assert.Equal(t, "sandbox:sandbox_roots", allReasons(decided(t, s, callOf("write", "a"), policy.Moment{})))
	assert.Equal(t, "allowed", allReasons(decided(t, s, callOf("write", "/w/a"), policy.Moment{})))
	s.Authority = s.Authority.Under(operatorRules(t, nil, []string{"secrets"}))
	assert.Equal(t, "operator_deny:operator_path", allReasons(decided(t, s, callOf("write", "/w/a"), policy.Moment{})))
}

// What is refused names every path once and says what would do instead.
func TestTargetsAndOutside(t *testing.T) {
	s := under(rootSubject(t, halved(scoped(t, "src", "docs"))), write(t, "/w/src"))
	d := decided(t, s, callOf("MultiEdit", "src/a", "./src/a", "/w/src/b", "docs/x", "../y", "z"), policy.Moment{})
	assert.Equal(t, "write_scope_violation:write_scope sandbox:sandbox_roots sandbox:path_form", allReasons(d))
	assert.Equal(t, []string{"src/a", "src/b"}, d.Targets)
	assert.Equal(t, []policy.OutsidePath{
		{Path: "docs/x", Want: "a path in /w/src or /tmp"}, {Path: "../y", Want: "no .. segment"}, {Path: "z", Want: "a path within docs, src"},
	}, d.Outside)
	assert.Equal(t, `deny: write_scope_violation: "MultiEdit" by write_scope, session; path "docs/x", want a path in /w/src or /tmp; path "../y", want no .. segment; path "z", want a path within docs, src; also denied by sandbox, sandbox`, d.Reason())

	many := callOf("write", numbered("src/%d", policy.MaxCallPaths+5)...)
	d = decided(t, s, many, policy.Moment{})
	assert.Equal(t, "path_unknown:write_scope", allReasons(d), "more than anyone reads")
	assert.Len(t, d.Targets, policy.MaxCallPaths)
}
