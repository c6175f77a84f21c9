package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
)

// derive derives a child of a parent from a request document.
func derive(t require.TestingT, parent policy.Authority, doc string) (policy.Derived, error) {
	in := policy.DeriveInput{Depth: 1, NowMS: 1_700_000_000_000, Receipt: at, Issuer: at}
	return policy.Derive(parent, in, request(t, doc).Request)
}

// Tool scope absent, null, [], [read]: inherit, inherit, nothing, read only,
// and each is still told from the others in what is printed.
func TestCase6_ToolsInAndOut(t *testing.T) {
	list, err := policy.ToolsList("read", "bash")
	require.NoError(t, err)
	restricted := policy.TopAuthority()
	restricted.Own.Profile.Tools, restricted.Delegable.Profile.Tools = list, list
	for _, c := range []struct {
		doc             string
		state           policy.ToolState
		requested, open string // as printed: asked for, and granted by a parent that limits nothing
		under           string // granted by one that has read and bash
		read, bash      bool   // under an open parent
	}{
		{`{}`, policy.StateAbsent, ``, ``, `["read","bash"]`, true, true},
		{`{"tools":null}`, policy.StateNull, `null`, `null`, `["read","bash"]`, true, true},
		{`{"tools":[]}`, policy.StateList, `[]`, `[]`, `[]`, false, false},
		{`{"tools":["read"]}`, policy.StateList, `["read"]`, `["read"]`, `["read"]`, true, false},
		{`{"tools":["edit","read"]}`, policy.StateList, `["edit","read"]`, `["edit","read"]`, `["read"]`, true, false},
	} {
		require.Equal(t, c.state, request(t, c.doc).Tools.State(), c.doc)
		d, err := derive(t, policy.TopAuthority(), c.doc)
		require.NoError(t, err)
		require.Equal(t, c.requested, printedTools(t, d.Requested.Own), c.doc)
		require.Equal(t, c.open, printedTools(t, d.Granted.Own), c.doc)
		require.Equal(t, c.read, d.Granted.Own.Profile.Tools.Allows("read"), c.doc)
		require.Equal(t, c.bash, d.Granted.Own.Profile.Tools.Allows("bash"), c.doc)
		if d, err = derive(t, restricted, c.doc); err != nil {
			require.NoError(t, err)
		}
		require.Equal(t, c.under, printedTools(t, d.Granted.Own), c.doc)
	}
}

// printedTools is what stands behind the key of tools, "" if there is none.
func printedTools(t *testing.T, h policy.Half) string {
	line, err := wire.Line(wire.HalfOf(h))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(line), `"tools":`)
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(rest, `,"denied_tools"`)
	return value
}

// The gates of the merge contract: most are the parser's, whoever the parent
// is; the capability is the derivation's. Seventeen copies of one path are
// seventeen paths.
func TestCase44_MergeGates(t *testing.T) {
	paths := func(n int) string {
		return `["src"` + strings.Repeat(`,"./src/"`, n-1) + `]`
	}
	for _, c := range []struct{ doc, want string }{
		{`{"merge_policy":"read_only","write_scope":[]}`, "/write_scope: write scope: got 0 paths, want none stated with merge policy read_only"},
		{`{"write_scope":["src"],"merge_policy":"read_only"}`, "byte offset 15: /write_scope: write scope: got 1 paths, want none"},
		{`{"merge_policy":"transactional_write"}`, "byte offset 0: write scope: got none stated, want 1 to 16 paths"},
		{`{"merge_policy":"transactional_write","write_scope":[]}`, "/write_scope: write scope: got 0 paths, want 1 to 16"},
		{`{"merge_policy":"transactional_write","write_scope":` + paths(17) + `}`, "/write_scope: write scope: got 17 paths, want 1 to 16, counted before duplicates are dropped"},
		{`{"write_scope":` + paths(17) + `}`, "got 17 paths"},
		{`{"delegable":{"write_scope":` + paths(17) + `}}`, "/delegable/write_scope: write scope: got 17 paths"},
		{`{"write_scope":["` + strings.Repeat("a", 241) + `"]}`, "/write_scope/0: write scope: "},
		{`{"write_scope":["` + strings.Repeat("é", 240) + strings.Repeat("x", 800) + `"]}`, "/write_scope/0: write scope: "},
	} {
		_, err := manifest.ParseRequest([]byte(c.doc))
		require.ErrorIs(t, err, eventlog.ErrInvalid, "%.80s", c.doc)
		require.ErrorContains(t, err, c.want, "%.80s", c.doc)
	}

	doc := `{"merge_policy":"transactional_write","write_scope":` + paths(16) + `}`
	d, err := derive(t, policy.TopAuthority(), doc)
	require.NoError(t, err)
	require.Equal(t, []string{"src"}, d.Granted.Own.Grant.Scope.Entries())
	require.Equal(t, policy.MergeTransactionalWrite, d.Merge)

	d, err = derive(t, policy.TopAuthority(), `{"merge_policy":"read_only"}`)
	require.NoError(t, err)
	require.Equal(t, policy.FilesRead, d.Granted.Own.Grant.Files)

	// Whether the parent holds the capability is known only under one.
	lacking := policy.TopAuthority()
	lacking.Own.Profile.Capabilities, err = policy.NameSetOf("web")
	require.NoError(t, err)
	_, err = derive(t, lacking, doc)
	var refused *policy.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, policy.RuleCapability, refused.Rule)
	require.Contains(t, err.Error(), "subagents")
	_, err = derive(t, lacking, `{"write_scope":["src"]}`)
	require.NoError(t, err, "without a contract none is needed")
}

// The arguments keep their bytes, which records commit to, beside what they
// mean.
func TestCallKeepsItsBytes(t *testing.T) {
	args := "{ \"path\" : \"src\\/a\",\n\t\"n\": 1.50, \"z\":[ ] ,\"\\u0061\":null}"
	c, err := manifest.ParseCall([]byte(`{"call":"c1","tool":"edit","args":` + args + `,"ask":"a1","verdict":{"by":"codex","need":"verify"}}`))
	require.NoError(t, err)
	require.Equal(t, args, string(c.ArgsJSON))
	require.Equal(t, map[string]any{"path": "src/a", "n": 1.5, "z": []any{}, "a": nil}, c.Args)
	p, err := c.Policy("")
	require.NoError(t, err)
	require.Equal(t, policy.Call{ID: "c1", Tool: "edit", Paths: []string{"src/a"}, PathsKnown: true, Verdict: policy.Classified{By: "codex", Need: policy.GrantVerify}}, p)
	require.Equal(t, "a1", c.Ask)

	// An escalation means what the flags of a switch mean.
	c, err = manifest.ParseCall([]byte(`{"call":"c1","tool":"bash","args":{},"escalation":{"justification":"to build","sandbox":{"mode":"workspace-write","writable_roots":["/opt"]}}}`))
	require.NoError(t, err)
	p, err = c.Policy("/srv/app")
	require.NoError(t, err)
	require.Equal(t, []string{"/opt", "/srv/app"}, p.Escalation.Sandbox.Roots.List())
	require.Equal(t, "to build", p.Escalation.Justification)
	require.Equal(t, policy.GrantFull, p.Verdict.Shell(), "nobody classified it")
	c.Escalation.Sandbox.Mode = policy.ReadOnly
	_, err = c.Policy("/srv/app")
	require.ErrorIs(t, err, policy.ErrInvalid)
}

// A coordinator: its profile states what it may do and what its workers may.
func TestProfileAuthority(t *testing.T) {
	p, err := manifest.ParseProfile([]byte(`{"principal":{"kind":"service","ref":"ci"},"role":"planner",
		"own":{"permissions":{},"tools":["subagent"],"denied_tools":["chmod"]},
		"delegable":{"write_scope":["src"],"tools":null},"explicit_grants":[{"id":"edit-src","uses":1}]}`))
	require.NoError(t, err)
	require.Equal(t, eventlog.Principal{Kind: "service", Ref: "ci"}, p.Principal)
	require.Equal(t, policy.RolePlanner, p.Choices.Role)
	a, err := p.Authority(at)
	require.NoError(t, err)
	require.Equal(t, policy.FilesRead, a.Own.Grant.Files)
	require.Equal(t, policy.FilesWrite, a.Delegable.Grant.Files)
	require.Equal(t, []string{"src"}, a.Delegable.Grant.Scope.Entries())
	require.Equal(t, policy.StateNull, a.Delegable.Profile.Tools.State())
	require.Equal(t, []policy.ExplicitGrant{{ID: "edit-src", Issuer: at, Uses: 1}}, a.Explicit)
	require.Equal(t, at, a.Own.Profile.Denied.Entries()[0].Origin)

	d, err := derive(t, a, `{"role":"implement"}`)
	require.NoError(t, err)
	require.Equal(t, policy.FilesWrite, d.Granted.Own.Grant.Files)
	require.Equal(t, a.Explicit, d.Relied)
	require.Contains(t, fmt.Sprint(d.Granted.Own.Profile.Denied.Entries()), "chmod", "what the parent may not call its child may not")

	p, err = manifest.ParseProfile([]byte(`{}`))
	require.NoError(t, err)
	a, err = p.Authority(at)
	require.NoError(t, err)
	require.True(t, a.Equal(policy.TopAuthority()), "nothing stated limits nothing")
	p, err = manifest.ParseProfile([]byte(`{"own":{"write_scope":[]}}`))
	require.NoError(t, err)
	a, err = p.Authority(at)
	require.NoError(t, err)
	require.True(t, a.Delegable.Grant.Scope.IsEmpty(), "delegable is own unless stated")

	w, err := manifest.ParseCeiling([]byte(`{"shell":"read_only"}`))
	require.NoError(t, err)
	ceiling, err := w.Half(policy.DenyRequest, at)
	require.NoError(t, err)
	require.Equal(t, policy.GrantInspect, policy.TopAuthority().Narrow(ceiling).Own.Grant.Shell)

	rules, err := manifest.ParseRules([]byte(`{"deny_tools":["chmod"],"deny_paths":["./secrets/"]}`))
	require.NoError(t, err)
	o, err := rules.Operator(at)
	require.NoError(t, err)
	require.Equal(t, []policy.OperatorRule{{Tool: "chmod", Origin: at}, {Path: "secrets", Origin: at}}, o.Entries())
}

// What is left out of a result is read as writing anywhere, so that it
// conflicts and does not pass for harmless.
func TestMergeResults(t *testing.T) {
	results, err := manifest.ParseMerge([]byte(`[{"id":"a"},{"id":"b","write_scope":[]},{"id":"c","merge_policy":"read_only"},{"id":"d","merge_policy":"transactional_write","write_scope":["x/"]}]`))
	require.NoError(t, err)
	plan, err := policy.PlanMerge(results)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "d"}, plan.MutatingIDs)
	require.Equal(t, []string{"a", "d"}, plan.ConflictIDs)
	for doc, want := range map[string]string{
		`{}`:                      "want an array, got an object",
		`[{}]`:                    "/0: missing: id",
		`[{"id":""}]`:             "/0/id: ",
		`[{"id":"a"},{"ID":"b"}]`: "/1/ID: unknown key; keys are lower case: id",
		`[{"id":"a","scope":[]}]`: "/0/scope: unknown key",
		`[{"id":"a","write_scope":["x"],"merge_policy":"read_only"}]`: "/0: want no write_scope",
		`[{"id":"a","write_scope":["x",".."]}]`:                       "/0/write_scope/1: ",
		`[{"id":"a","write_scope":null}]`:                             "/0/write_scope: want an array, got null",
	} {
		_, err := manifest.ParseMerge([]byte(doc))
		require.ErrorContains(t, err, want, doc)
	}
}
