package manifest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/internal/schema"
	"childlog/eventlog"
	"childlog/policy"
)

// full is a request with everything in it.
const full = `{
  "role": "builder", "permissions": {"write": true}, "shell": "read_only", "tools": ["read", "Edit", "read"],
  "denied_tools": ["exec_shell*", "*"], "max_depth": 3, "max_children": 0, "wall_ms": 7200000,
  "deadline": "2026-03-01T12:00:00.25Z", "max_steps": 0, "model": "m-1", "effort": "high", "background": false,
  "providers": [], "capabilities": ["subagents"], "spawn": true, "write_scope": ["./src/", "docs\\api"],
  "merge_policy": "transactional_write",
  "delegable": {"tools": null, "write_scope": ["src/a"], "max_depth": 0},
  "explicit_grants": [{"id": "g1", "expires": "2026-03-01T12:00:00Z", "uses": 2}, {"id": "g2"}],
  "id": "0A1b2c3d-0000-4000-8000-000000000001", "key": "run 4, call 7", "label": "", "prompt": "go \u00e9",
  "mode": "one-shot", "fork": 9007199254740992, "workspace": "/srv/app", "tool_call": "call_1",
  "provider": {"name": "deepseek", "in_process": false}, "palette": [{"name": "mcp__x", "class": "edit"}],
  "foreign_palette": true, "lockdown": ["prompt_block_rewrite"]
}`

func TestFullRequest(t *testing.T) {
	r := request(t, full)
	require.Equal(t, "builder", r.Role)
	require.Equal(t, policy.Permissions{Write: true}, *r.Permissions)
	require.Equal(t, policy.ShellReadOnly, *r.Shell)
	require.Equal(t, []string{"read", "Edit"}, r.Tools.List())
	require.Equal(t, []string{"exec_shell*", "*"}, r.DeniedTools)
	require.Equal(t, []any{3, 0, int64(7200000), uint64(0)}, []any{*r.MaxDepth, *r.MaxChildren, *r.WallMS, *r.MaxSteps})
	require.EqualValues(t, 1772366400250, *r.DeadlineMS)
	require.Equal(t, []string{"m-1", "high", "deepseek"}, []string{r.Model, r.Effort, r.Provider})
	require.False(t, *r.Background)
	require.True(t, r.Providers.Recorded())
	require.Empty(t, r.Providers.List())
	require.Equal(t, []string{"subagents"}, r.Capabilities.List())
	require.True(t, *r.Spawn)
	require.Equal(t, []string{"./src/", `docs\api`}, *r.WriteScope, "as declared: policy tidies and counts")
	require.Equal(t, policy.MergeTransactionalWrite, r.MergePolicy)
	require.Equal(t, policy.StateNull, r.Delegable.Tools.State())
	require.Equal(t, []string{"src/a"}, *r.Delegable.WriteScope)
	require.Equal(t, 0, *r.Delegable.MaxDepth)
	require.Equal(t, []policy.ExplicitGrant{{ID: "g1", ExpiresMS: 1772366400000, Uses: 2}, {ID: "g2"}}, r.ExplicitGrants)
	require.Equal(t, uuid.MustParse("0a1b2c3d-0000-4000-8000-000000000001"), r.ID)
	require.Equal(t, []string{"run 4, call 7", "", "go é", "one-shot", "/srv/app", "call_1"}, []string{r.Key, r.Label, r.Prompt, r.Mode, r.Workspace, r.ToolCall})
	require.EqualValues(t, 1<<53, r.Fork)
	require.Equal(t, eventlog.Provider{Name: "deepseek"}, r.RunBy)
	require.Equal(t, []policy.PaletteEntry{{Name: "mcp__x", Class: policy.ClassEdit}}, r.Palette.Entries())
	require.True(t, r.Foreign)
	require.Equal(t, []string{"prompt_block_rewrite"}, r.Lockdown)
}

// Nothing stated is the zero value everywhere: the parent decides.
func TestEmptyRequest(t *testing.T) {
	require.Equal(t, &manifest.Request{}, request(t, ` {} `))
	r := request(t, `{"denied_tools":[],"lockdown":[],"palette":[],"explicit_grants":[],"write_scope":[],"permissions":{},"delegable":{}}`)
	require.NotNil(t, r.Lockdown)
	require.NotNil(t, r.Palette)
	require.Equal(t, &[]string{}, r.WriteScope)
	require.Equal(t, &policy.Permissions{}, r.Permissions)
	require.Equal(t, &policy.Wish{}, r.Delegable)
	require.Equal(t, eventlog.Provider{Name: "x", InProcess: true}, request(t, `{"provider":{"name":"x"}}`).RunBy)
}

// good are documents that parser and schema both accept.
var good = map[string][]string{
	"request": {full, `{}`, `{"role":" Code-Review "}`, `{"tools":[]}`, `{"tools":null}`, `{"write_scope":[]}`, `{"merge_policy":"read_only"}`,
		`{"merge_policy":"read_only","delegable":{}}`, `{"workspace":"C:\\src"}`, `{"write_scope":["a..b","..c/d","x/ .. /y"," a\n"]}`, `{"explicit_grants":[]}`,
		`{"provider":{"name":"x"}}`, `{"max_depth":0}`, `{"merge_policy":"transactional_write","write_scope":["a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a"]}`},
	"profile": {`{}`, `{"principal":{"kind":"person","ref":"u:17"},"role":"general","own":{"permissions":{},"tools":["subagent"],"spawn":true},
		"delegable":{"write_scope":["src"],"deadline":"2030-01-01T00:00:00Z"},"explicit_grants":[{"id":"edit-src","uses":3}]}`},
	"ceiling": {`{}`, `{"permissions":{"write":false},"shell":"none","max_depth":1}`, `{"tools":[]}`, `{"tools":null}`},
	"rules":   {`{}`, `{"deny_tools":["chmod","mcp__*"],"deny_paths":["secrets/","a//b"]}`},
	"call": {`{"call":"c1","tool":"bash","args":{}}`, `{"call":"c1","tool":"\u0432ash","args":{"command":"ls","n":[1.5,null]},"verdict":{"by":"codex","need":"inspect"},
		"escalation":{"sandbox":{"mode":"workspace-write","writable_roots":["/srv"],"network":true,"exclude_slash_tmp":true,"exclude_tmpdir_env_var":false},"justification":"to build"},"ask":"ask-1"}`},
}

func TestGoodDocuments(t *testing.T) {
	for kind, docs := range good {
		s := validator(t, kind)
		for _, doc := range docs {
			require.NoError(t, parsers[kind]([]byte(doc)), doc)
			require.NoError(t, valid(t, s, []byte(doc)), doc)
		}
	}
}

// bad are documents that the parser refuses, with the place that it names.
// beyond says that a schema cannot tell, or not without repeating policy.
var bad = []struct {
	kind, doc, want string
	beyond          bool
}{
	// keys
	{"request", `{"rolle":"x"}`, "/rolle: unknown key; want permissions, shell", false},
	{"request", `{"Role":"x"}`, "/Role: unknown key; keys are lower case: role", false},
	{"request", `{"wall_time":"2h"}`, "/wall_time: unknown key", false},
	{"request", `{"delegable":{"role":"test"}}`, "/delegable/role: unknown key", false},
	{"request", `{"delegable":{"wall_ms":1}}`, "/delegable/wall_ms: unknown key", false},
	{"request", `{"permissions":{"read":true}}`, "/permissions/read: unknown key; want write, network", false},
	{"request", `{"permissions":{"write":true,"Write":false}}`, "/permissions/Write: unknown key; keys are lower case: write", false},
	{"request", `{"explicit_grants":[{"id":"a","issuer":{}}],"delegable":{}}`, "/explicit_grants/0/issuer: unknown key", false},
	{"request", `{"permissions":{"write":true,"write":true}}`, "byte offset 29: /permissions/write: duplicate key", true},
	{"request", `{"tools":[],"tools":null}`, "/tools: duplicate key", true},
	// types and null
	{"request", `[]`, "byte offset 0: want an object, got an array", false},
	{"request", `null`, "want an object, got null", false},
	{"request", `{"role":null}`, "byte offset 8: /role: want a string, got null", false},
	{"request", `{"permissions":null}`, "/permissions: want an object, got null", false},
	{"request", `{"permissions":{"write":"yes"}}`, "/permissions/write: want true or false, got a string", false},
	{"request", `{"providers":null}`, "/providers: want an array, got null", false},
	{"request", `{"write_scope":null}`, "/write_scope: want an array, got null", false},
	{"request", `{"write_scope":"src"}`, "/write_scope: want an array, got a string", false},
	{"request", `{"denied_tools":null}`, "/denied_tools: want an array, got null", false},
	{"request", `{"delegable":null}`, "/delegable: want an object, got null", false},
	{"request", `{"delegable":{"tools":{}}}`, "/delegable/tools: want an array, got an object", false},
	{"request", `{"tools":["read",null]}`, "/tools/1: want a string, got null", false},
	{"request", `{"spawn":1}`, "/spawn: want true or false, got a number", false},
	{"request", `{"shell":true}`, "/shell: want a string, got a boolean", false},
	// words
	{"request", `{"shell":"Full"}`, `/shell: want none or read_only or full, got "Full"`, false},
	{"request", `{"shell":"inspect"}`, "/shell: want none", false},
	{"request", `{"role":"wizard"}`, `/role: role: got "wizard", want general, explore`, false},
	{"request", `{"role":""}`, "/role: ", false},
	{"request", `{"merge_policy":""}`, "/merge_policy: want read_only or transactional_write", false},
	{"request", `{"mode":"once"}`, "/mode: want one-shot or continuable", false},
	{"request", `{"model":"two words"}`, "/model: want 1 to 128 printable", false},
	{"request", `{"effort":""}`, "/effort: want 1 to 128", false},
	{"request", `{"key":""}`, "/key: got an empty text", false},
	{"request", `{"tool_call":"a b"}`, "/tool_call: want a code", false},
	{"request", `{"id":"0a1b2c3d"}`, "/id: got \"0a1b2c3d\", want a UUID", false},
	{"request", `{"id":"00000000-0000-0000-0000-000000000000"}`, "/id: ", true},
	{"request", `{"workspace":"src"}`, "/workspace: ", false},
	{"request", `{"workspace":"/a/../b"}`, "/workspace: ", true},
	{"request", `{"provider":{}}`, "/provider: missing: name", false},
	{"request", `{"provider":"deepseek"}`, "/provider: want an object", false},
	// numbers
	{"request", `{"max_steps":9007199254740993}`, "/max_steps: want an integer from 0 to 9007199254740992, got 9007199254740993", false},
	{"request", `{"max_steps":-1}`, "/max_steps: want an integer", false},
	{"request", `{"max_steps":1.5}`, "/max_steps: want an integer", false},
	{"request", `{"max_steps":1e3}`, "/max_steps: want an integer", true},
	{"request", `{"max_steps":"5"}`, "/max_steps: want a number, got a string", false},
	{"request", `{"max_depth":9}`, "/max_depth: want an integer from 0 to 8", false},
	{"request", `{"wall_ms":0}`, "/wall_ms: want an integer from 1", false},
	{"request", `{"fork":0}`, "/fork: want an integer from 1", false},
	{"request", `{"delegable":{},"explicit_grants":[{"id":"g","uses":0}]}`, "/explicit_grants/0/uses: want an integer from 1", false},
	// times
	{"request", `{"deadline":1772366400000}`, "/deadline: want a string, got a number", false},
	{"request", `{"deadline":"2026-03-01T12:00:00+01:00"}`, "/deadline: want a time after 1970 in UTC", false},
	{"request", `{"deadline":"2026-03-01T12:00:00.0001Z"}`, "/deadline: want a time", false},
	{"request", `{"deadline":"2026-03-01T12:00:00,5Z"}`, "/deadline: want a time", false},
	{"request", `{"deadline":"2026-02-30T12:00:00Z"}`, "/deadline: want a time", true},
	{"request", `{"deadline":"1969-12-31T23:59:59Z"}`, "/deadline: want a time", true},
	// names
	{"request", `{"tools":["re ad"]}`, "/tools/0: tool name: got", false},
	{"request", `{"tools":["B\u0430sh"]}`, `/tools/0: tool name: got "Bаsh", want letters`, false},
	{"request", `{"tools":["ba\u200bsh"]}`, `not '\u200b' at byte 2`, false},
	{"request", `{"tools":[""]}`, "/tools/0: tool name: got 0 bytes", false},
	{"request", `{"denied_tools":["a*b"]}`, "/denied_tools/0: ", false},
	{"request", `{"denied_tools":["x",""]}`, "/denied_tools/1: ", false},
	{"request", `{"lockdown":["*"]}`, "/lockdown/0: ", false},
	{"request", `{"palette":[{"name":"x"}]}`, "/palette/0: missing: name and class", false},
	{"request", `{"palette":[{"name":"bash","class":"read"}]}`, "/palette: ", true},
	// scopes and contracts
	{"request", `{"write_scope":["src","a/../b"]}`, `/write_scope/1: write scope: got "a/../b", want no .. segment`, false},
	{"request", `{"write_scope":["/etc"]}`, "/write_scope/0: ", false},
	{"request", `{"write_scope":["C:\\src"]}`, "/write_scope/0: ", false},
	{"request", `{"write_scope":["\\\\server\\share"]}`, "/write_scope/0: ", false},
	{"request", `{"write_scope":["src/*"]}`, "/write_scope/0: ", false},
	{"request", `{"write_scope":["a\u202eb"]}`, "/write_scope/0: ", true},
	{"request", `{"write_scope":["."]}`, "/write_scope/0: ", true},
	{"request", `{"merge_policy":"read_only","delegable":{"write_scope":[]}}`, "/delegable/write_scope: write scope: got 0 paths, want none", false},
	{"request", `{"explicit_grants":[{"id":"g"}]}`, "/explicit_grants: want none without a delegable half", false},
	{"request", `{"delegable":{},"explicit_grants":[{}]}`, "/explicit_grants/0: missing: id", false},
	{"request", `{"delegable":{},"explicit_grants":[{"id":"g"},{"id":"g"}]}`, "/explicit_grants/1: got grant g twice", true},
	// the others
	{"profile", `{"principal":{"kind":"robot","ref":"x"}}`, "/principal/kind: want person or service", false},
	{"profile", `{"principal":{"kind":"person"}}`, "/principal: missing: kind and ref", false},
	{"profile", `{"principal":{"kind":"person","ref":"Ann Example"}}`, "/principal/ref: want a code", false},
	{"profile", `{"own":{"max_depth":0}}`, "/own/max_depth: want an integer from 1 to 8, got 0", false},
	{"profile", `{"explicit_grants":[{"id":"x"}]}`, "/explicit_grants: want none", false},
	{"profile", `{"write_scope":[]}`, "/write_scope: unknown key", false},
	{"profile", `{"role":"wizard"}`, "/role: ", false},
	{"ceiling", `{"role":"test"}`, "/role: unknown key", false},
	{"ceiling", `{"max_depth":0}`, "/max_depth: want an integer from 1", false},
	{"ceiling", `{"own":{}}`, "/own: unknown key", false},
	{"rules", `{"allow_tools":["x"]}`, "/allow_tools: unknown key; want deny_tools, deny_paths", false},
	{"rules", `{"deny_tools":["?"]}`, "/deny_tools/0: ", false},
	{"rules", `{"deny_paths":[""]}`, "/deny_paths/0: ", false},
	{"rules", `{"deny_paths":["../x"]}`, "/deny_paths/0: ", false},
	{"rules", `["chmod"]`, "want an object", false},
	{"call", `{"tool":"bash","args":{}}`, "missing: call", false},
	{"call", `{"call":"c","args":{}}`, "missing: tool", false},
	{"call", `{"call":"c","tool":"x"}`, "missing: args", false},
	{"call", `{"call":"c","tool":"x","args":null}`, "/args: want an object, got null", false},
	{"call", `{"call":"c","tool":"x","args":"{}"}`, "/args: want an object, got a string", false},
	{"call", `{"call":"c","tool":"x","args":{"path":"a","path":"b"}}`, "/args/path: duplicate key", true},
	{"call", `{"call":"c","tool":"x","args":{"path":"\ud800"}}`, "/args", true},
	{"call", `{"call":"c","tool":"x","args":{},"verdict":{"by":"k","need":"full"}}`, "/verdict/need: want inspect or verify", false},
	{"call", `{"call":"c","tool":"x","args":{},"verdict":{"need":"inspect"}}`, "/verdict: missing: by and need", false},
	{"call", `{"call":"c","tool":"x","args":{},"escalation":{"sandbox":{"mode":"all"},"justification":"x"}}`, "/escalation/sandbox/mode: want read-only", false},
	{"call", `{"call":"c","tool":"x","args":{},"escalation":{"sandbox":{},"justification":"x"}}`, "/escalation/sandbox: missing: mode", false},
	{"call", `{"call":"c","tool":"x","args":{},"escalation":{"sandbox":{"mode":"read-only"},"justification":""}}`, "/escalation/justification: ", false},
	{"call", `{"call":"c","tool":"x","args":{},"escalation":{"sandbox":{"mode":"workspace-write","writable_roots":["src"]},"justification":"x"}}`, "/writable_roots/0: ", true},
	{"call", `{"call":"c d","tool":"x","args":{}}`, "/call: want a code", false},
}

func TestBadDocuments(t *testing.T) {
	for _, c := range bad {
		err := parsers[c.kind]([]byte(c.doc))
		require.ErrorIs(t, err, eventlog.ErrInvalid, c.doc)
		require.ErrorContains(t, err, c.want, c.doc)
		if s := validator(t, c.kind); c.beyond {
			if !strings.Contains(c.want, "duplicate") && !strings.Contains(c.doc, `\ud800`) { // which the validator's own reader may refuse
				require.NoError(t, valid(t, s, []byte(c.doc)), "%s: the schema can tell", c.doc)
			}
		} else {
			require.Error(t, valid(t, s, []byte(c.doc)), c.doc)
		}
	}
}

// A refusal keeps what it is about for programs.
func TestTypedCauses(t *testing.T) {
	_, err := manifest.ParseRequest([]byte(`{"role":"wizard"}`))
	var unknown *policy.UnknownRoleError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, "wizard", unknown.Got)

	big := `{"prompt":"` + strings.Repeat("x", manifest.MaxDocument) + `"}`
	_, err = manifest.ParseRequest([]byte(big))
	var large *eventlog.TooLargeError
	require.ErrorAs(t, err, &large)
	require.EqualValues(t, []uint64{manifest.MaxDocument, uint64(len(big))}, []uint64{large.Limit, large.Size})
	_, err = manifest.Read(strings.NewReader(big), manifest.MaxDocument)
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
	_, err = manifest.ParseCall([]byte(`{"call":"c","tool":"x","args":{"content":"` + strings.Repeat("x", 2<<20) + `"}}`))
	require.NoError(t, err, "a call may hold a file")
}

// TestSchemasHaveTheKeysOfTheParsers: a key that only one of them knows would
// be refused by the other. The parsers tell their keys when one is unknown.
func TestSchemasHaveTheKeysOfTheParsers(t *testing.T) {
	for kind, parse := range parsers {
		err := parse([]byte(`{"?":0}`))
		_, list, ok := strings.Cut(err.Error(), "want ")
		require.True(t, ok, err)
		keys := strings.Split(list, ", ")
		text, err := schema.Get(kind)
		require.NoError(t, err)
		var s struct {
			Properties map[string]any `json:"properties"`
		}
		require.NoError(t, json.Unmarshal(text, &s))
		require.ElementsMatch(t, keys, slices.Collect(maps.Keys(s.Properties)), kind)
	}
}
