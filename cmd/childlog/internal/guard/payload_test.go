package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

const readCall = `{"session_id":"s","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Read","tool_use_id":"t","tool_input":{"file_path":"/w/a"}}`

func TestParse(t *testing.T) {
	ev, err := Parse([]byte(readCall))
	require.NoError(t, err)
	require.Equal(t, KindCall, ev.Kind)
	require.Equal(t, []string{"s", "/w", "Read", "t"}, []string{ev.Session, ev.Cwd, ev.Tool, ev.Call})
	require.Equal(t, `{"file_path":"/w/a"}`, string(ev.ArgsJSON))
	require.Equal(t, map[string]any{"file_path": "/w/a"}, ev.Args)

	t.Run("a tool that takes one text", func(t *testing.T) {
		ev, err := Parse([]byte(strings.Replace(readCall, `{"file_path":"/w/a"}`, `"*** Begin Patch"`, 1)))
		require.NoError(t, err)
		require.Equal(t, map[string]any{"input": "*** Begin Patch"}, ev.Args)
	})
	t.Run("an id that is no code", func(t *testing.T) {
		ev, err := Parse([]byte(strings.Replace(readCall, `"t"`, `"a b"`, 1)))
		require.NoError(t, err)
		require.True(t, eventlog.IsCode(ev.Call))
	})
	t.Run("what is not known is passed over, and not known by another case", func(t *testing.T) {
		ev, err := Parse([]byte(strings.Replace(readCall, `{"session_id"`, `{"Agent_ID":"x","nested":{"agent_id":"y"},"error":{"x":1},"session_id"`, 1)))
		require.NoError(t, err)
		require.Empty(t, ev.Agent)
	})
	t.Run("null is none", func(t *testing.T) {
		ev, err := Parse([]byte(strings.Replace(readCall, `{"session_id"`, `{"agent_id":null,"transcript_path":null,"session_id"`, 1)))
		require.NoError(t, err)
		require.Empty(t, ev.Agent)
	})
}

func TestParseRefuses(t *testing.T) {
	for name, doc := range map[string]string{
		"nothing":             "",
		"no object":           `"PreToolUse"`,
		"half an object":      readCall[:len(readCall)-1],
		"more than one":       readCall + readCall,
		"a key twice":         strings.Replace(readCall, `{"session_id"`, `{"session_id":"x","session_id"`, 1),
		"a key twice, deep":   strings.Replace(readCall, `{"file_path":"/w/a"}`, `{"a":[{"b":1,"b":2}]}`, 1),
		"half a character":    strings.Replace(readCall, `/w/a`, `/w/\ud800`, 1),
		"no UTF-8":            strings.Replace(readCall, `/w/a`, "/w/\xff", 1),
		"no event":            strings.Replace(readCall, "hook_event_name", "hook_event", 1),
		"no session":          strings.Replace(readCall, `"session_id":"s"`, `"session_id":""`, 1),
		"a null session":      strings.Replace(readCall, `"session_id":"s"`, `"session_id":null`, 1),
		"a list as session":   strings.Replace(readCall, `"session_id":"s"`, `"session_id":["s"]`, 1),
		"no tool":             strings.Replace(readCall, `"tool_name":"Read",`, "", 1),
		"no call":             strings.Replace(readCall, `"tool_use_id":"t",`, "", 1),
		"no arguments":        strings.Replace(readCall, `,"tool_input":{"file_path":"/w/a"}`, "", 1),
		"a long session":      strings.Replace(readCall, `"s"`, `"`+strings.Repeat("s", maxName+1)+`"`, 1),
		"a long agent":        strings.Replace(readCall, `{"session_id"`, `{"agent_id":"`+strings.Repeat("s", maxName+1)+`","session_id"`, 1),
		"an agent of no name": `{"session_id":"s","cwd":"/w","hook_event_name":"SubagentStart","agent_type":"Explore"}`,
		"deep":                strings.Replace(readCall, `"/w/a"`, strings.Repeat("[", 70)+strings.Repeat("]", 70), 1),
	} {
		_, err := Parse([]byte(doc))
		require.Error(t, err, name)
		require.True(t, isInvalid(err), "%s: %v", name, err)
	}
}

func isInvalid(err error) bool {
	return strings.HasPrefix(err.Error(), eventlog.ErrInvalid.Error()) || strings.HasPrefix(err.Error(), eventlog.ErrTooLarge.Error())
}

func TestReadIsBounded(t *testing.T) {
	_, err := Read(endless{})
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
}

// endless is a pipe into which somebody writes for ever.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// FuzzParse: whatever comes in, nothing panics, and what is taken is whole.
func FuzzParse(f *testing.F) {
	f.Add([]byte(readCall))
	f.Add([]byte(`{"session_id":"s","cwd":"/w","hook_event_name":"SubagentStart","agent_id":"a","agent_type":"Explore","turn_id":null}`))
	f.Add([]byte(`{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"x","tool_use_id":"y","tool_response":[1]}`))
	f.Add([]byte(`{"session_id":"s","hook_event_name":"PostToolUseFailure","tool_name":"x","tool_use_id":"y","error":"e","is_interrupt":true}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		ev, err := Parse(doc)
		if err != nil {
			a := Failed(ev, err.Error())
			require.Equal(t, ExitBlocked, a.Exit)
			require.NotEmpty(t, strings.TrimSpace(a.Stderr))
			return
		}
		require.NotEmpty(t, ev.Name)
		require.NotEmpty(t, ev.Session)
		if ev.Kind == KindCall {
			require.NotEmpty(t, ev.Tool)
			require.True(t, eventlog.IsCode(ev.Call))
			require.NotNil(t, ev.Args)
		}
		for _, h := range Harnesses() {
			for _, v := range []Verb{Pass, Deny, Ask, Approve} {
				sound(t, h, ev, v, h.Answer(ev, Outcome{Verb: v, Reason: ev.Tool, Context: ev.Prompt, Notice: ev.Cwd}))
			}
		}
	})
}

// TestSamples: the inputs that real sessions sent are understood.
func TestSamples(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(shared(t, "hooks"), "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		ev, err := Parse(b)
		require.NoError(t, err, name)
		require.NotEqual(t, KindUnknown, ev.Kind, name)
	}
}

// TestCodexInputs: a document of each input schema is taken, with every property
// or with the required ones only, and none with an agent acts for the session.
func TestCodexInputs(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(shared(t, "hooks", "codex-schemas"), "*.input.schema.json"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		var schema struct {
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
		}
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, &schema), name)
		value := func(property string) any {
			p, isObject := schema.Properties[property].(map[string]any)
			switch {
			case !isObject: // true: anything
				return map[string]any{"command": "ls"}
			case p["const"] != nil:
				return p["const"]
			case p["enum"] != nil:
				return p["enum"].([]any)[0]
			case p["type"] == "boolean":
				return true
			}
			return "x-" + property
		}
		all, required := map[string]any{}, map[string]any{}
		for property := range schema.Properties {
			all[property] = value(property)
		}
		for _, property := range schema.Required {
			required[property] = value(property)
		}
		for _, doc := range []map[string]any{all, required} {
			b, err := json.Marshal(doc)
			require.NoError(t, err)
			ev, err := Parse(b)
			require.NoError(t, err, name)
			require.NotEqual(t, KindUnknown, ev.Kind, name)
			require.Equal(t, doc["agent_id"] != nil, ev.Agent != "", name)
		}
	}
}
