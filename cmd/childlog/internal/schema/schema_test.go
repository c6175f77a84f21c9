package schema_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/schema"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

var at = policy.Origin{Session: uuid.MustParse("0a1b2c3d-0000-4000-8000-000000000001"), Seq: 3}

func validator(t *testing.T, name string) *jsonschema.Schema {
	text, err := schema.Get(name)
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft4) // so that it is the document that says which
	require.NoError(t, c.AddResource(schema.Base+name, doc))
	s, err := c.Compile(schema.Base + name)
	require.NoError(t, err)
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, doc []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	require.NoError(t, err)
	return s.Validate(v)
}

func line(t *testing.T, v any) []byte {
	b, err := wire.Line(v)
	require.NoError(t, err)
	return b
}

// Every schema stands alone, is closed at every object and explains itself.
func TestSchemas(t *testing.T) {
	require.Equal(t, []string{"authority", "call", "ceiling", "decision", "line", "profile", "receipt", "request", "rules"}, schema.Names())
	for _, name := range schema.Names() {
		validator(t, name)
		text, err := schema.Get(name)
		require.NoError(t, err)
		var s map[string]any
		require.NoError(t, json.Unmarshal(text, &s))
		require.Equal(t, "https://json-schema.org/draft/2020-12/schema", s["$schema"])
		require.Equal(t, schema.Base+name, s["$id"])
		require.Equal(t, schema.Title(name), s["title"])
		require.NotEmpty(t, s["description"])
		closed(t, name, s)
		for key, p := range s["properties"].(map[string]any) {
			require.NotEmpty(t, p, "%s/%s", name, key)
		}
	}
	for _, name := range []string{"defs", "", "Request", "../schema", "request.json"} {
		_, err := schema.Get(name)
		require.ErrorIs(t, err, eventlog.ErrInvalid, name)
		require.ErrorContains(t, err, "want authority, call")
	}
	require.Empty(t, schema.Title("no such"))
}

// closed looks for objects that would take any key. The arguments of a call are
// the tool's; the evidence of a receipt is by field.
func closed(t *testing.T, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if v["type"] == "object" && path != "call/properties/args" && path != "receipt/properties/evidence" {
			require.Equal(t, false, v["additionalProperties"], path)
		}
		for k, e := range v {
			closed(t, path+"/"+k, e)
		}
	case []any:
		for _, e := range v {
			closed(t, path, e)
		}
	}
}

// A role or an alias that policy learns must be learnt here too.
func TestRolesAreThoseOfPolicy(t *testing.T) {
	text, err := schema.Get("request")
	require.NoError(t, err)
	var s struct {
		Defs struct {
			Role struct {
				AnyOf []struct {
					Enum []string `json:"enum"`
				} `json:"anyOf"`
			} `json:"role"`
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(text, &s))
	var want []string
	for _, r := range policy.Roles() {
		want = append(append(want, string(r)), r.Aliases()...)
	}
	require.Equal(t, want, s.Defs.Role.AnyOf[0].Enum)
}

// What the encoders print is what the schemas describe.
func TestEncodersFit(t *testing.T) {
	o, err := policy.NewOperatorRules(at, []string{"chmod", "mcp__*"}, []string{"secrets"})
	require.NoError(t, err)
	none, err := policy.NameSetOf()
	require.NoError(t, err)
	tools, err := policy.ToolsList("read")
	require.NoError(t, err)
	s := validator(t, "authority")
	restricted := policy.TopAuthority().Under(o)
	restricted.Own.Profile.Tools, restricted.Delegable.Profile.Tools = tools, policy.ToolsNull()
	restricted.Own.Profile.Providers, restricted.Own.Grant.Scope = none, policy.Scope{}
	restricted.Own.Profile.Limits = policy.Limits{DeadlineMS: policy.MaxNumber, MaxSteps: policy.MaxNumber, MaxDepth: 8}
	restricted.Explicit = []policy.ExplicitGrant{{ID: "g", Issuer: at, ExpiresMS: 1, Uses: 1}, {ID: "h"}}
	for _, a := range []policy.Authority{policy.TopAuthority(), {}, restricted, restricted.Canonical()} {
		require.NoError(t, validate(t, s, line(t, wire.AuthorityOf(a))))
	}
	require.Error(t, validate(t, s, []byte(`{"own":{}}`)))

	s = validator(t, "decision")
	d := policy.Decision{Verdict: policy.VerdictDeny, Code: policy.CodeWriteScopeViolation, Rule: policy.RuleWriteScope, Origin: policy.RuleOrigin{Kind: policy.OriginSession, At: at},
		Tool: policy.Tool{Given: "edit", Canonical: "edit", Class: policy.ClassEdit, Known: true}, Targets: []string{"a"}, Outside: []policy.OutsidePath{{Path: "b", Want: "a"}},
		AlsoDeniedBy: []policy.Denial{{Code: policy.CodeApprovalNever, Origin: policy.RuleOrigin{Kind: policy.OriginPin}}}}
	judged := replay.Judgement{Decision: d, Session: at.Session, EvaluatedSeq: 3, Failure: eventlog.ErrCorrupt}
	require.NoError(t, validate(t, s, line(t, wire.JudgementOf(&judged, "c1"))))
	judged.Failure, judged.CallSeq, judged.DecisionSeq, judged.Grant = nil, 4, 5, &replay.OnceGrant{Decider: eventlog.DeciderHuman}
	v := wire.JudgementOf(&judged, "c1")
	v.Line = 7
	require.NoError(t, validate(t, s, line(t, v)))
	judged = replay.Judgement{Decision: policy.Decision{Verdict: policy.VerdictAllow, Code: policy.CodeAllowed, Tool: d.Tool}, Session: at.Session}
	good := line(t, wire.JudgementOf(&judged, "c1"))
	require.NoError(t, validate(t, s, good))
	for old, bad := range map[string]string{`"allow"`: `"maybe"`, `"allowed"`: `""`, `"edit","known"`: `"drawing","known"`, `"targets":[]`: `"targets":null`, `{"session"`: `{"extra":1,"session"`,
		`"recorded":null`: `"recorded":{}`, `"call":"c1",`: ``, `"rule","ref"`: `"nobody","ref"`} {
		text := strings.Replace(string(good), old, bad, 1)
		require.NotEqual(t, string(good), text)
		require.Error(t, validate(t, s, []byte(text)), text)
	}
}

// A receipt fits, as it is recorded now and with all that section by section
// may stand in it.
func TestReceipts(t *testing.T) {
	s := validator(t, "receipt")
	g := eventlog.Granted{Parent: at.Session, Child: uuid.New(), Root: at.Session, Depth: 1, MaxDepth: 3, ParentSeq: 3, ToolCall: "c1", Sandbox: &policy.Sandbox{Mode: policy.ReadOnly},
		Defaults: policy.Defaults{Sandbox: policy.Sandbox{Mode: policy.ReadOnly}, Approvals: policy.Never}, WorkspaceRoot: "/srv", SeedLen: 2, Key: eventlog.Hash{1}}
	g.Choices.Role = policy.RoleTest
	recorded, err := g.Facts()
	require.NoError(t, err)
	facts, err := recorded.JSON()
	require.NoError(t, err)
	require.NoError(t, validate(t, s, facts), "%s", facts)

	var m map[string]any
	require.NoError(t, json.Unmarshal(facts, &m))
	hash := strings.Repeat("ab", 32)
	half := `{"permissions":{"write":true,"network":false},"shell":"full","tools":null,"denied":[0],"deadline":5,"max_steps":7,"max_depth":3,"providers":[],"capabilities":["subagents"],
		"grant":{"files":"write","shell":"full","network":false,"surface":"inherited","spawn":true,"max_children":0,"write_scope":["src"]}}`
	authority := `{"own":` + half + `,"delegable":` + half + `}`
	for key, value := range map[string]string{
		"principal": `{"kind":"person","ref":"u:1"}`, "parent_receipt": `"` + hash + `"`, "ceiling": authority, "requested": authority, "granted": authority,
		"cuts": `[{"field":"shell","from":"full","to":"none","rule":"role_preset"}]`, "denied_tools": `[{"pattern":"x*","kind":"operator","session":"` + at.Session.String() + `","seq":3}]`,
		"lockdown": `["prompt_block_edit"]`, "operator": `{"digest":"` + hash + `","rules":[{"tool":"x","session":"` + at.Session.String() + `","seq":3}]}`, "merge_policy": `"read_only"`,
		"relied": `[{"id":"g","session":"` + at.Session.String() + `","seq":3,"expires":5,"uses":1}]`, "role": `"test"`, "model": `"m"`,
		"provider": `"p"`, "effort": `"high"`, "background": `true`, "palette": `{"digest":"` + hash + `","entries":[{"name":"x","class":"edit"}]}`, "class_table": `1`,
		"evidence": `{"role":"inferred"}`, "commitments": `{"request":"` + hash + `"}`, "fingerprint": `"` + hash + `"`, "inspection": `"tools:inspected"`,
	} {
		m[key] = jsontext.Value(value)
	}
	doc := line(t, m)
	require.NoError(t, validate(t, s, doc), "%s", doc)
	for key, bad := range map[string]string{"approvals": `"ask"`, "depth": `-1`, "prompt": `"text is content"`, "parent_head": `"xyz"`, "granted": `{"own":` + half + `}`,
		"evidence": `{"role":"guessed"}`, "parent_seq": `9007199254740993`, "tools": `[]`} {
		had, ok := m[key]
		m[key] = jsontext.Value(bad)
		require.Error(t, validate(t, s, line(t, m)), key)
		if m[key] = had; !ok {
			delete(m, key)
		}
	}
}
