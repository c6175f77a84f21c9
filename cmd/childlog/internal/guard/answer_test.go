package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// outputKeys are the keys that both harnesses know, by the object that has them.
var outputKeys = map[string][]string{
	"":                   {"systemMessage", "hookSpecificOutput"},
	"hookSpecificOutput": {"hookEventName", "permissionDecision", "permissionDecisionReason", "additionalContext"},
}

// sound holds an answer to what must be true of all: two exit codes, a reason
// where it blocks, one object with known keys, and no leave that nobody gave.
func sound(t testing.TB, h Harness, ev *Event, v Verb, a Answer) {
	t.Helper()
	require.Contains(t, []int{ExitAnswered, ExitBlocked}, a.Exit)
	if a.Exit == ExitBlocked {
		require.NotEmpty(t, strings.TrimSpace(a.Stderr))
		require.Empty(t, a.Stdout)
		return
	}
	require.NotEqual(t, Deny, v, "what a profile prints before it must not make a denial leave")
	if len(a.Stdout) == 0 {
		return
	}
	require.Equal(t, 1, strings.Count(string(a.Stdout), "\n"))
	var out map[string]any
	require.NoError(t, json.Unmarshal(a.Stdout, &out), "%s", a.Stdout)
	var check func(path string, m map[string]any)
	check = func(path string, m map[string]any) {
		for key, value := range m {
			require.Contains(t, outputKeys[path], key)
			if sub, ok := value.(map[string]any); ok {
				check(strings.TrimPrefix(path+"/"+key, "/"), sub)
			}
		}
	}
	check("", out)
	specific, _ := out["hookSpecificOutput"].(map[string]any)
	if specific == nil {
		return
	}
	require.Equal(t, ev.Name, specific["hookEventName"])
	decision, _ := specific["permissionDecision"].(string)
	if decision == "allow" {
		require.Equal(t, Approve, v)
		require.Equal(t, ClaudeCode, h)
	}
	if h == Codex {
		require.Empty(t, decision)
	}
	if decision != "" {
		require.NotEmpty(t, strings.TrimSpace(specific["permissionDecisionReason"].(string)))
	}
}

// everyEvent makes one event of each name, and of one that nobody knows.
func everyEvent() (all []*Event) {
	names := []string{"SomethingNew"}
	for _, row := range eventRows {
		names = append(names, row.name)
	}
	for _, name := range names {
		all = append(all, &Event{Name: name, Kind: KindOf(name), Session: "s", Cwd: "/w", Tool: "Bash", Call: "t"})
	}
	return all
}

func TestAnswers(t *testing.T) {
	for _, h := range Harnesses() {
		for _, ev := range everyEvent() {
			for _, v := range []Verb{Pass, Deny, Ask, Approve} {
				for _, text := range []string{"", "because", "two\nlines \x00 <b>", "\xff", strings.Repeat("long ", 4000)} {
					sound(t, h, ev, v, h.Answer(ev, Outcome{Verb: v, Reason: text, Context: text, Notice: text}))
				}
			}
			require.Equal(t, Answer{}, h.Answer(ev, Outcome{}), "silence is nothing at all")
		}
	}
}

// TestFailed: a guard that can't do its work never says yes, and does no harm
// where there is nothing left to refuse.
func TestFailed(t *testing.T) {
	for _, reason := range []string{"", "the disk is on fire"} {
		a := Failed(nil, reason)
		require.Equal(t, ExitBlocked, a.Exit)
		require.NotEmpty(t, a.Stderr)
		for _, ev := range everyEvent() {
			a := Failed(ev, reason)
			sound(t, Codex, ev, Pass, a)
			switch ev.Name {
			case "PreToolUse", "PermissionRequest", "UserPromptSubmit", "SessionStart", "SubagentStart", "SomethingNew":
				require.Equal(t, ExitBlocked, a.Exit, ev.Name)
			default: // 2 would keep an agent from stopping, or stand for a result
				require.Equal(t, ExitAnswered, a.Exit, ev.Name)
				require.Contains(t, string(a.Stdout), "systemMessage", ev.Name)
			}
		}
	}
}

func TestObserved(t *testing.T) {
	for _, a := range []Answer{{}, {Stderr: "x", Exit: ExitBlocked}, {Stdout: []byte(`{"hookSpecificOutput":{}}` + "\n")}, Failed(nil, "x")} {
		for _, failed := range []bool{false, true} {
			o := Observed(a, failed)
			require.Zero(t, o.Exit)
			require.Empty(t, o.Stdout)
		}
	}
	require.NotEmpty(t, Observed(Failed(&Event{Name: "Stop", Kind: KindStop}, "x"), true).Stderr)
}

// TestCodexOutputs holds every answer to the schemas that Codex parses by.
func TestCodexOutputs(t *testing.T) {
	dir := shared(t, "hooks", "codex-schemas")
	files := map[string]string{"PreToolUse": "pre-tool-use", "PermissionRequest": "permission-request", "SessionStart": "session-start",
		"SubagentStart": "subagent-start", "SubagentStop": "subagent-stop"}
	compiler := jsonschema.NewCompiler()
	held := 0
	for _, ev := range everyEvent() {
		file := files[ev.Name]
		if file == "" {
			continue
		}
		path := filepath.Join(dir, file+".command.output.schema.json")
		_, err := os.Stat(path)
		require.NoError(t, err)
		schema, err := compiler.Compile(path)
		require.NoError(t, err)
		answers := []Answer{Failed(ev, "because")}
		for _, v := range []Verb{Pass, Deny, Ask, Approve} {
			answers = append(answers, Codex.Answer(ev, Outcome{Verb: v, Reason: "because", Context: "c", Notice: "n"}))
		}
		for _, a := range answers {
			if len(a.Stdout) == 0 {
				continue
			}
			out, err := jsonschema.UnmarshalJSON(strings.NewReader(string(a.Stdout)))
			require.NoError(t, err)
			require.NoError(t, schema.Validate(out), "%s: %s", ev.Name, a.Stdout)
			held++
		}
	}
	require.Greater(t, held, 10)
}

// TestEvents: what a guard has to be told of is known, and WorktreeCreate, whose
// hook has to make a worktree, is never asked for.
func TestEvents(t *testing.T) {
	for _, h := range Harnesses() {
		events := h.Events()
		require.Contains(t, events, "PreToolUse")
		require.Contains(t, events, "PermissionRequest")
		require.NotContains(t, events, "WorktreeCreate")
		require.True(t, slices.Equal(events, slices.Compact(slices.Clone(events))))
		for _, name := range events {
			require.NotContains(t, []Kind{KindOther, KindUnknown}, KindOf(name), name)
		}
	}
	require.NotContains(t, Codex.Events(), "PostToolUseFailure")
}
