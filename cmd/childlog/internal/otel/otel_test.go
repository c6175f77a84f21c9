package otel

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/audittest"
	"childlog/cmd/childlog/internal/redact"
	"childlog/eventlog"
)

// read is a span as a reader sees it, attributes by key.
type read struct {
	span
	attr   map[string]any
	events []string
}

// export writes sessions and reads them back, each line held against the shape
// of OTLP JSON.
func export(t *testing.T, s *eventlog.Store, o Options, sessions ...uuid.UUID) (string, map[string]read) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(context.Background(), &b, s, sessions, o))
	schema := compiled(t)
	spans := map[string]read{}
	for line := range strings.Lines(b.String()) {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		require.NoError(t, err)
		require.NoError(t, schema.Validate(doc), line)
		var data tracesData
		require.NoError(t, json.Unmarshal([]byte(line), &data))
		for _, sp := range data.ResourceSpans[0].ScopeSpans[0].Spans {
			r := read{span: sp, attr: map[string]any{}}
			for _, kv := range sp.Attributes {
				require.NotContains(t, r.attr, kv.Key, "keys are unique")
				r.attr[kv.Key] = value(kv.Value)
			}
			for _, e := range sp.Events {
				r.events = append(r.events, e.Name)
			}
			start, err := strconv.ParseUint(sp.Start, 10, 64)
			require.NoError(t, err)
			end, err := strconv.ParseUint(sp.End, 10, 64)
			require.NoError(t, err)
			require.LessOrEqual(t, start, end)
			require.NotContains(t, spans, sp.SpanID, "span ids are unique")
			spans[sp.SpanID] = r
		}
	}
	return b.String(), spans
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	raw, err := os.ReadFile("testdata/traces.schema.json")
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("traces.json", doc))
	schema, err := c.Compile("traces.json")
	require.NoError(t, err)
	return schema
}

func value(v anyValue) any {
	switch {
	case v.String != nil:
		return *v.String
	case v.Bool != nil:
		return *v.Bool
	case v.Int != nil:
		return "int " + *v.Int
	}
	list := []any{}
	for _, e := range v.Array.Values {
		list = append(list, value(e))
	}
	return list
}

func agentOf(spans map[string]read, session uuid.UUID) read { return spans[spanID(session, uuid.Nil)] }

func callOf(t *testing.T, spans map[string]read, id string) read {
	t.Helper()
	for _, s := range spans {
		if s.attr["gen_ai.tool.call.id"] == id {
			return s
		}
	}
	require.Fail(t, "no span of call", id)
	return read{}
}

func TestTraceOfATree(t *testing.T) {
	s := audittest.Scene(t, audittest.Texts{Label: "write the notes", Prompt: "the prompt", Argument: "the argument", Result: "the result"})
	text, spans := export(t, s, Options{}, audittest.Root, audittest.Child, audittest.Grandchild)
	require.Len(t, spans, 3+6)

	root, child, grandchild := agentOf(spans, audittest.Root), agentOf(spans, audittest.Child), agentOf(spans, audittest.Grandchild)
	require.Equal(t, "invoke_agent write the notes", child.Name)
	require.Empty(t, root.ParentSpanID)
	require.Equal(t, root.SpanID, child.ParentSpanID)
	require.Equal(t, child.SpanID, grandchild.ParentSpanID)
	for _, sp := range spans {
		require.Equal(t, strings.ReplaceAll(audittest.Root.String(), "-", ""), sp.TraceID, "one tree is one trace")
	}
	for key, want := range map[string]any{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": audittest.Child.String(), "gen_ai.agent.name": "write the notes",
		"gen_ai.usage.input_tokens": "int 1000", "gen_ai.usage.output_tokens": "int 20", "childlog.kind": "child", "childlog.parent": audittest.Root.String(),
		"childlog.sandbox.mode": "read-only", "childlog.approvals": "never", "childlog.principal.ref": "u17", "childlog.role": "implement",
		"childlog.grant.write_scope": []any{"docs"}, "childlog.denied_tools": []any{"fetch_url"}, "childlog.receipt.tool_call": "r1", "childlog.denied": "int 3",
		"childlog.evidence": false, "childlog.enforced": true,
	} {
		require.Equal(t, want, child.attr[key], key)
	}
	require.Contains(t, child.events, eventlog.TypePolicyNarrowed)
	require.Contains(t, child.events, eventlog.TypeDelegationStarted)
	require.Contains(t, child.events, eventlog.TypeActivationStarted)

	c1, c2, c3, c4, c6 := callOf(t, spans, "c1"), callOf(t, spans, "c2"), callOf(t, spans, "c3"), callOf(t, spans, "c4"), callOf(t, spans, "c6")
	require.Equal(t, child.SpanID, c1.ParentSpanID)
	require.Equal(t, "execute_tool read_file", c1.Name)
	require.Equal(t, "execute_tool", c1.attr["gen_ai.operation.name"])
	require.Equal(t, "allow", c1.attr["childlog.decision.verdict"])
	require.Equal(t, "ok", c1.attr["childlog.result.outcome"])
	require.Nil(t, c1.Status)
	require.Equal(t, &status{Code: statusError, Message: "denied: write_scope_violation"}, c2.Status)
	require.Equal(t, "write_scope_violation", c2.attr["error.type"])
	require.Equal(t, "deny", c3.attr["childlog.decision.verdict"])
	require.Equal(t, "ok", c3.attr["childlog.result.outcome"], "denied, and yet a result")
	require.Equal(t, true, c4.attr["childlog.no_result"])
	require.Equal(t, true, c6.attr["childlog.undecided"])
	require.Equal(t, "failed", c6.attr["error.type"])

	for _, content := range []string{"the prompt", "the argument", "the result", "frozen"} {
		require.NotContains(t, text, content, "contents stay out unless asked for")
	}
	again, _ := export(t, s, Options{}, audittest.Root, audittest.Child, audittest.Grandchild)
	require.Equal(t, text, again, "the same state gives the same bytes")
	_, alone := export(t, s, Options{}, audittest.Child)
	require.Equal(t, child.span, agentOf(alone, audittest.Child).span, "a part of the tree names the same spans")

	_, spans = export(t, s, Options{Contents: true}, audittest.Child)
	c1 = callOf(t, spans, "c1")
	require.Contains(t, c1.attr["gen_ai.tool.call.arguments"], `"note":"the argument"`)
	require.Equal(t, "the result", c1.attr["gen_ai.tool.call.result"])

	require.ErrorIs(t, Write(context.Background(), &bytes.Buffer{}, s, []uuid.UUID{uuid.New()}, Options{}), eventlog.ErrNotFound)
	require.ErrorIs(t, Write(context.Background(), &bytes.Buffer{}, s, []uuid.UUID{eventlog.StoreSession}, Options{}), eventlog.ErrInvalid)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, Write(ctx, &bytes.Buffer{}, s, []uuid.UUID{audittest.Child}, Options{}), context.Canceled)
}

// TestCase35_TracesLackPlantedSecrets plants all the shapes in an argument, in
// a result and in a label.
func TestCase35_TracesLackPlantedSecrets(t *testing.T) {
	planted := audittest.Secrets()
	all := audittest.Texts{Argument: audittest.Joined(planted), Result: audittest.Joined(planted), Label: audittest.Joined(planted[:20])}
	s := audittest.Scene(t, all)
	f, err := redact.New(redact.Options{})
	require.NoError(t, err)
	for _, contents := range []bool{false, true} {
		counts := redact.Counts{}
		text, _ := export(t, s, Options{Contents: contents, Filter: f, Counts: counts}, audittest.Root, audittest.Child)
		for _, secret := range planted {
			secret.Lacks(t, text)
		}
		require.Positive(t, counts["github-token"])
	}
	text, _ := export(t, s, Options{Contents: true}, audittest.Child)
	require.Contains(t, text, planted[0].Part, "the test plants them where a trace shows them")
}

func TestManyCallsAreManyLines(t *testing.T) {
	s := audittest.Scene(t, audittest.Texts{})
	var results []eventlog.NewEvent
	for i := range spansALine {
		f, err := eventlog.MakeFacts(map[string]any{"call": "x" + strconv.Itoa(i), "outcome": "ok"})
		require.NoError(t, err)
		results = append(results, eventlog.NewEvent{Type: eventlog.TypeToolResult, Facts: f})
	}
	_, err := s.Append(context.Background(), eventlog.Batch{Session: audittest.Grandchild, Expect: eventlog.Any(), Events: results})
	require.NoError(t, err)
	text, spans := export(t, s, Options{}, audittest.Grandchild)
	require.Len(t, spans, spansALine+1)
	require.Equal(t, 2, strings.Count(text, "\n"))
}

func TestTimesAreClaims(t *testing.T) {
	var s span
	at := time.Unix(100, 7)
	require.True(t, s.period(at, at.Add(-time.Second)))
	require.Equal(t, s.Start, s.End)
	require.Equal(t, "100000000007", s.Start)
	require.False(t, s.period(time.Unix(-5, 0), at))
	require.Equal(t, "0", s.Start)
}
