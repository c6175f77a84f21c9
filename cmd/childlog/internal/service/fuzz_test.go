package service_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/internal/tokens"
)

// schema is the part of JSON Schema that requests are made of.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Items      *schema            `json:"items"`
	Minimum    *float64           `json:"minimum"`
}

// api is the document as a generator of requests and a judge of answers.
type api struct {
	schemas map[string]*schema
	paths   []service.Path
	request map[string]*schema            // by path
	answer  map[string]*jsonschema.Schema // by path
	texts   []string
}

func readAPI(t testing.TB, texts []string) *api {
	raw, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	type body struct {
		Content map[string]struct {
			Schema *schema `json:"schema"`
		} `json:"content"`
	}
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody body            `json:"requestBody"`
			Responses   map[string]body `json:"responses"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]*schema `json:"schemas"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal(raw, &doc))
	var whole any
	require.NoError(t, json.Unmarshal(raw, &whole))
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("mem:openapi.json", whole))
	a := &api{schemas: doc.Components.Schemas, request: map[string]*schema{}, answer: map[string]*jsonschema.Schema{}, texts: texts}
	for _, p := range service.Paths() {
		if p.Name == "" {
			continue
		}
		op := doc.Paths[p.Path]["post"]
		a.paths = append(a.paths, p)
		a.request[p.Path] = op.RequestBody.Content["application/json"].Schema
		a.answer[p.Path], err = c.Compile("mem:openapi.json" + op.Responses["200"].Content["application/json"].Schema.Ref)
		require.NoError(t, err)
	}
	return a
}

const refPrefix = "#/components/schemas/"

// value draws a value of a schema. Objects get their required keys and some of
// the others; what is deep gets the required ones only.
func (a *api) value(t *rapid.T, s *schema, depth int) any {
	if name, ok := strings.CutPrefix(s.Ref, refPrefix); ok {
		s = a.schemas[name]
	}
	kind, _ := s.Type.(string)
	if kinds, ok := s.Type.([]any); ok {
		kind = kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "kind")].(string)
	}
	switch kind {
	case "object":
		v := map[string]any{}
		for _, key := range sortedKeys(s.Properties) {
			if slices.Contains(s.Required, key) || depth < 3 && rapid.IntRange(0, 2).Draw(t, key) == 0 {
				v[key] = a.value(t, s.Properties[key], depth+1)
			}
		}
		return v
	case "array":
		v := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			v = append(v, a.value(t, s.Items, depth+1))
		}
		return v
	case "string":
		if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			return rapid.String().Draw(t, "text")
		}
		return rapid.SampledFrom(a.texts).Draw(t, "text")
	case "integer":
		return rapid.OneOf(rapid.SampledFrom([]int64{0, 1, 2, 3, 8, 1 << 53, -1, 1<<63 - 1}), rapid.Int64Range(0, 20)).Draw(t, "number")
	case "boolean":
		return rapid.Bool().Draw(t, "flag")
	case "null":
		return nil
	}
	return rapid.SampledFrom([]any{map[string]any{"path": "a", "command": "ls"}, map[string]any{}, []any{1.5, nil, "x"}, "text", 7, nil, true}).Draw(t, "any")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// mutated makes a request that no service may accept: an unknown, duplicate or
// differently cased key, another type, a missing brace.
func mutated(t *rapid.T, body string) string {
	switch rapid.IntRange(0, 5).Draw(t, "mutation") {
	case 0:
		return strings.Replace(body, "{", `{"no_such_key":1,`, 1)
	case 1:
		return strings.Replace(body, "{", `{"session":"a","session":"b",`, 1)
	case 2:
		return strings.Replace(body, "{", `{"SESSION":"a",`, 1)
	case 3:
		return "[" + body + "]"
	case 4:
		return body[:len(body)-1]
	}
	return body + body
}

// TestFuzzFromTheDocument: requests that the document describes, and some that
// it does not. Nothing makes the service panic or fail without a code, every
// answer is as the document says, and the store is sound at the end.
func TestFuzzFromTheDocument(t *testing.T) {
	v := serve(t, service.Options{})
	id := v.root()
	v.appendText(id, 3)
	a := v.post("/v1/delegate", tokens.Harness, `{"parent":"`+id+`","child":{"label":"c"}}`)
	require.Equal(t, http.StatusOK, a.status, a.body)
	var made struct {
		Session string `json:"session"`
	}
	require.NoError(t, json.Unmarshal([]byte(a.body), &made))
	texts := []string{id, id, id, made.Session, made.Session, id[:8], "operator", "read-only", "workspace-write", "danger-full-access", "ask", "never", "user/message", "plugin/note",
		"turn/start", "delegation/granted", "read_file", "write_file", "exec_shell", "explore", "implement", "none", "full", "one-shot", "/srv/p", "src", "c1", "completed",
		"2026-01-02T03:04:05Z", "7d", "", "x", "sandbox.mode", "grant.shell", "person", "read", "aGVsbG8=", "codex:s1", "..", "\u202e"}
	doc := readAPI(t, texts)
	socket := v.service.Socket()
	answered := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		p := rapid.SampledFrom(doc.paths).Draw(rt, "path")
		raw, err := json.Marshal(doc.value(rt, doc.request[p.Path], 0), json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
		require.NoError(rt, err)
		body, bad := string(raw), rapid.IntRange(0, 3).Draw(rt, "bad") == 0
		before := v.store.Durable()
		if bad {
			body = mutated(rt, body)
		}
		a := v.direct(socket, http.MethodPost, p.Path, body)
		answered[p.Path]++
		if bad {
			require.Equal(rt, http.StatusBadRequest, a.status, "%s %s: %s", p.Path, body, a.body)
			require.Equal(rt, before, v.store.Durable())
		}
		if a.status != http.StatusOK {
			require.Contains(rt, []int{400, 403, 404, 409, 413}, a.status, "%s %s: %s", p.Path, body, a.body)
			require.NotEmpty(rt, a.code(t))
			return
		}
		got, err := jsonschema.UnmarshalJSON(strings.NewReader(a.body))
		require.NoError(rt, err)
		require.NoError(rt, doc.answer[p.Path].Validate(got), "%s %s: %s", p.Path, body, a.body)
	})
	require.Contains(t, v.get("/metrics", tokens.Auditor).body, "childlog_panics_total 0\n")
	require.NotContains(t, v.log.String(), "panic")
}
