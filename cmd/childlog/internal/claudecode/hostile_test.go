package claudecode

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
)

// TestWrongTypes puts a value of every kind at every place of a line, in turn.
func TestWrongTypes(t *testing.T) {
	values := []any{nil, true, 0, -1, 1e300, "", "x", " ", strings.Repeat("y", 5000), []any{}, []any{nil}, []any{map[string]any{}}, map[string]any{}, map[string]any{"type": []any{}}}
	var all []string
	var vary func(root, at any, set func(any))
	vary = func(root, at any, set func(any)) {
		for _, v := range values {
			set(v)
			b, err := json.Marshal(root)
			require.NoError(t, err)
			all = append(all, string(b))
		}
		set(at)
		switch at := at.(type) {
		case map[string]any:
			for name, v := range at {
				vary(root, v, func(v any) { at[name] = v })
			}
		case []any:
			for i, v := range at {
				vary(root, v, func(v any) { at[i] = v })
			}
		}
	}
	raw, err := os.ReadFile("testdata/tree/-srv-garden/" + garden + ".jsonl")
	require.NoError(t, err)
	shapes := strings.Split(strings.TrimSpace(string(raw)), "\n")
	numbers := []int{2, 4, 8, 10, 11, 15, 17, 18, 21, 23}
	if testing.Short() {
		numbers = []int{8, 15, 21}
	}
	for _, n := range numbers {
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(shapes[n-1]), &line))
		for name, v := range line {
			vary(line, v, func(v any) { line[name] = v })
		}
	}
	s := newStore(t)
	report := load(t, s, importer.Options{}, lines(t, t.TempDir(), garden+".jsonl", all...))
	require.EqualValues(t, len(all), report.Lines)
	kept := 0
	for _, x := range report.SessionList {
		kept += len(lineContents(events(t, s, x.ID)))
		require.Equal(t, policy.ReadOnly, policyOf(t, s, x.ID).Sandbox.Value.Mode)
	}
	require.Equal(t, len(all), kept)
}

// TestEqualAgentIDs: an agent's id is its session's alone.
func TestEqualAgentIDs(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	for _, sid := range []string{"s-1", "s-2"} {
		lines(t, dir, sid+"/subagents/agent-x.jsonl", fmt.Sprintf(`{"type":"user","uuid":"c-%[1]s","sessionId":%[1]q,"agentId":"x","isSidechain":true,"message":{"role":"user","content":"go"}}`, sid))
	}
	// The children come before their parents, in a run of their own.
	report := load(t, s, importer.Options{}, dir)
	require.Equal(t, 2, report.Sessions)
	require.Equal(t, []string{importer.CodeParentMissing, importer.CodeParentMissing}, codes(report))
	for _, sid := range []string{"s-1", "s-2"} {
		lines(t, dir, sid+".jsonl", fmt.Sprintf(`{"type":"assistant","uuid":"p-%[1]s","sessionId":%[1]q,"message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Task","input":{"prompt":"go"}}]}}`, sid))
	}
	report = load(t, s, importer.Options{}, dir)
	require.Equal(t, 2, report.NewSessions)
	for _, sid := range []string{"s-1", "s-2"} {
		row, err := s.Row(find(t, s, sid+"/x"))
		require.NoError(t, err)
		require.Equal(t, find(t, s, sid), row.Parent)
		require.Equal(t, row.Parent, delegation(t, report, row.Session).Parent)
		require.Equal(t, importer.Recorded, delegation(t, report, row.Session).ParentMark)
	}
}

// TestNestedByItsCall: without a .meta.json, the agent whose log holds the
// call is the parent.
func TestNestedByItsCall(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	lines(t, dir, "s.jsonl", `{"type":"assistant","uuid":"1","sessionId":"s","message":{"id":"m","content":[{"type":"tool_use","id":"t1","name":"Task","input":{"prompt":"outer"}}]}}`,
		`{"type":"user","uuid":"2","sessionId":"s","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]},"toolUseResult":{"status":"completed","agentId":"outer"}}`)
	lines(t, dir, "s/subagents/agent-outer.jsonl", `{"type":"user","uuid":"3","sessionId":"s","agentId":"outer","isSidechain":true,"message":{"role":"user","content":"outer"}}`,
		`{"type":"assistant","uuid":"4","sessionId":"s","agentId":"outer","isSidechain":true,"message":{"id":"n","content":[{"type":"tool_use","id":"t2","name":"Agent","input":{"prompt":"inner"}}]}}`)
	lines(t, dir, "s/subagents/agent-yinner.jsonl", `{"type":"user","uuid":"5","sessionId":"s","agentId":"yinner","isSidechain":true,"message":{"role":"user","content":"inner"}}`)
	report := load(t, s, importer.Options{}, dir)
	inner := find(t, s, "s/yinner")
	row, err := s.Row(inner)
	require.NoError(t, err)
	require.Equal(t, find(t, s, "s/outer"), row.Parent)
	require.Equal(t, find(t, s, "s"), row.Root)
	require.Equal(t, 2, row.Depth)
	require.Equal(t, importer.Inferred, delegation(t, report, inner).ParentMark)
}

// TestMissingAgents: a call that made an agent says so, whether its log is
// there or not; one that was denied made none.
func TestMissingAgents(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	call := func(id string) string {
		return fmt.Sprintf(`{"type":"assistant","uuid":"c-%[1]s","sessionId":"s","message":{"id":"m-%[1]s","content":[{"type":"tool_use","id":%[1]q,"name":"Task","input":{"prompt":%[1]q}}]}}`, id)
	}
	result := func(id, agent string, fails bool) string {
		return fmt.Sprintf(`{"type":"user","uuid":"r-%[1]s","sessionId":"s","message":{"content":[{"type":"tool_result","tool_use_id":%[1]q,"is_error":%[3]t}]},"toolUseResult":{"agentId":%[2]q}}`, id, agent, fails)
	}
	lines(t, dir, "s.jsonl", call("t1"), result("t1", "gone", false), call("t2"), result("t2", "", true), call("t3"), call("t4"), result("t4", "there", false))
	lines(t, dir, "s/subagents/agent-there.jsonl", `{"type":"user","uuid":"x","sessionId":"s","agentId":"there","message":{"content":"go"}}`)
	report := load(t, s, importer.Options{}, dir)
	require.Equal(t, []string{codeNoAgent, codeNoAgent}, codes(report))
	require.EqualValues(t, 1, report.Findings[0].Line)
	require.Contains(t, report.Findings[0].Detail, `agent "gone"`)
	require.EqualValues(t, 5, report.Findings[1].Line, "it has no result")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "s")))
	lines(t, dir, "s.jsonl", call("t1"), result("t1", "gone", false), call("t2"), result("t2", "", true), call("t3"), call("t4"), result("t4", "there", false), "{}")
	require.Equal(t, []string{codeNoAgent, codeNoAgent}, codes(load(t, s, importer.Options{}, dir)), "the other one's is in the store")
}

// TestCopiedSession: a copy of a session's file in the same run does not make
// its calls ambiguous.
func TestCopiedSession(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	main := `{"type":"assistant","uuid":"1","sessionId":"s","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Task","input":{"prompt":"go"}}]}}`
	lines(t, dir, "s.jsonl", main)
	lines(t, dir, "backup/s.jsonl", main, `{"type":"system","uuid":"2","sessionId":"s"}`)
	lines(t, dir, "s/subagents/agent-x.jsonl", `{"type":"user","uuid":"3","sessionId":"s","agentId":"x","isSidechain":true,"message":{"role":"user","content":"go"}}`)
	report := load(t, s, importer.Options{}, dir)
	require.ElementsMatch(t, []string{importer.CodeShorter, codeCallInferred}, codes(report))
	require.Equal(t, 2, report.Sessions)
}

// TestCircles: agents that name each other, or themselves, for parents.
func TestCircles(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	for agent, parent := range map[string]string{"a": "b", "b": "c", "c": "a", "self": "self"} {
		lines(t, dir, "s/subagents/agent-"+agent+".jsonl", fmt.Sprintf(`{"type":"user","uuid":"u-%[1]s","sessionId":"s","agentId":%[1]q,"message":{"content":"go"}}`, agent))
		lines(t, dir, "s/subagents/agent-"+agent+".meta.json", fmt.Sprintf(`{"parentAgentId":%q,"spawnDepth":1000000}`, parent))
	}
	report := load(t, s, importer.Options{}, dir)
	require.Equal(t, 4, report.Sessions)
	circles := 0
	for _, c := range codes(report) {
		if c == importer.CodeParentCycle {
			circles++
		}
	}
	require.Equal(t, 2, circles, "one link of each")
	for _, x := range report.SessionList {
		cur, steps := x.ID, 0
		for ; cur != uuid.Nil && steps < 10; steps++ {
			row, err := s.Row(cur)
			if err != nil {
				break
			}
			cur = row.Parent
		}
		require.Less(t, steps, 10)
	}
}

// TestForkCircle: sessions that say they are copies of each other.
func TestForkCircle(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	for id, from := range map[string]string{"s-1": "s-2", "s-2": "s-1", "s-3": "s-3"} {
		lines(t, dir, id+".jsonl", fmt.Sprintf(`{"type":"user","uuid":"u","sessionId":%q,"forkedFrom":{"sessionId":%q,"messageUuid":"u"},"message":{"content":"go"}}`, id, from))
	}
	report := load(t, s, importer.Options{}, dir)
	require.Equal(t, 3, report.Sessions)
	require.NotNil(t, events(t, s, find(t, s, "s-1"))[1].Inherited)
	require.Nil(t, events(t, s, find(t, s, "s-3"))[1].Inherited, "nobody is a copy of itself")
	require.Zero(t, load(t, s, importer.Options{}, dir).Events)
}

// TestDeepAndLong: nesting beyond what is read, a line of megabytes, one beyond
// the limit of a content, and more calls in a line than become events.
func TestDeepAndLong(t *testing.T) {
	deep := `{"type":"user","uuid":"deep","sessionId":"s","x":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + `}`
	long := `{"type":"user","uuid":"long","sessionId":"s","message":{"role":"user","content":"` + strings.Repeat("long ", 1<<20) + `"}}`
	tooLong, kept := `{"type":"user","uuid":"too","sessionId":"s","message":{"role":"user","content":"`+strings.Repeat("x", eventlog.MaxContent)+`"}}`, importer.Kept{Unreadable: 1, TooLong: 1}
	found := []string{importer.CodeUnreadable, importer.CodeTooLong, codeTooManyCalls, codeTooManyCalls}
	if testing.Short() { // sixteen megabytes take the race detector half a minute
		tooLong, long, kept, found = "{}", long[:1000]+`"}}`, importer.Kept{Unreadable: 1, Untyped: 1}, append(found[:1], found[2:]...)
	}
	var calls, results []string
	for i := range 500 {
		calls = append(calls, fmt.Sprintf(`{"type":"tool_use","id":"t%d","name":"Bash","input":{}}`, i))
		results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":"t%d","is_error":true,"content":"no"}`, i))
	}
	s := newStore(t)
	report := load(t, s, importer.Options{}, lines(t, t.TempDir(), "s.jsonl",
		`{"type":"user","uuid":"first","sessionId":"s","message":{"role":"user","content":"go"}}`, deep, long, tooLong,
		`{"type":"assistant","uuid":"c","sessionId":"s","message":{"id":"m","content":[`+strings.Join(calls, ",")+`]}}`,
		`{"type":"user","uuid":"r","sessionId":"s","toolDenialKind":"user-rejected","message":{"content":[`+strings.Join(results, ",")+`]}}`))
	require.Equal(t, kept, report.Kept)
	require.Equal(t, found, codes(report))
	list := events(t, s, find(t, s, "s"))
	require.Len(t, of(list, eventlog.TypeToolCall), maxParts)
	require.Len(t, of(list, eventlog.TypeToolResult), maxParts)
	require.Len(t, of(list, eventlog.TypeApprovalDecided), maxParts)
	row, err := s.Row(find(t, s, "s"))
	require.NoError(t, err)
	require.Empty(t, row.OpenCalls)
}

// TestManyChains: sidechains beyond the bound stay in the session's log, and
// calls beyond theirs are in the content of their lines alone.
func TestManyChains(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand sessions take seconds")
	}
	var all []string
	for i := range maxInline + 50 {
		all = append(all, fmt.Sprintf(`{"type":"user","uuid":"u-%d","sessionId":"s","isSidechain":true,"message":{"content":"%d"}}`, i, i))
	}
	for i := range maxOpen + 50 {
		all = append(all, fmt.Sprintf(`{"type":"assistant","uuid":"a-%d","sessionId":"s","message":{"id":"m-%d","content":[{"type":"tool_use","id":"t-%d","name":"Bash","input":{}}]}}`, i, i, i))
	}
	s := newStore(t)
	path := lines(t, t.TempDir(), "s.jsonl", all...)
	report := load(t, s, importer.Options{}, path)
	require.Equal(t, maxInline, report.Sessions)
	require.Contains(t, codes(report), codeTooManyChains)
	require.Contains(t, codes(report), codeTooManyOpen)
	list := events(t, s, find(t, s, "s"))
	require.Len(t, of(list, eventlog.TypeToolCall), maxOpen)
	require.Len(t, of(list, eventlog.TypeAssistantMessage), 50)
	require.Zero(t, load(t, s, importer.Options{}, path).Events)
}

// TestCase56_NativeSessions: nothing is attached to a native session, whatever
// a transcript names, and none is changed.
func TestCase56_NativeSessions(t *testing.T) {
	s := newStore(t)
	native, err := materialize.Root(t.Context(), s, materialize.RootRequest{Label: "native", System: System, External: "s-native"})
	require.NoError(t, err)
	dir := t.TempDir()
	lines(t, dir, "s-native/subagents/agent-x.jsonl", `{"type":"user","uuid":"1","sessionId":"s-native","agentId":"x","permissionMode":"bypassPermissions","message":{"content":"go"}}`)
	lines(t, dir, "s-native.jsonl", `{"type":"user","uuid":"2","sessionId":"s-native","message":{"content":"go"}}`)
	lines(t, dir, "fork.jsonl", `{"type":"user","uuid":"3","sessionId":"fork","forkedFrom":{"sessionId":"s-native","messageUuid":"2"},"message":{"content":"go"}}`)
	report := load(t, s, importer.Options{}, dir)
	require.Contains(t, codes(report), importer.CodeNativeID)
	row, err := s.Row(native.ID)
	require.NoError(t, err)
	require.False(t, row.Evidence)
	require.EqualValues(t, 1, row.Head)
	children, err := s.Children(native.ID)
	require.NoError(t, err)
	require.Empty(t, children)
	require.NotEqual(t, native.ID, events(t, s, find(t, s, "fork"))[1].Inherited.Session)
	child := find(t, s, "s-native/x")
	e := policyOf(t, s, child)
	require.True(t, e.Evidence)
	require.Equal(t, policy.Never, e.Approvals, "whatever an agent's own lines state")
	require.Len(t, report.Drift, 1)
	require.Equal(t, importer.Fact{Value: modeBypass, Mark: importer.Recorded, Seq: 4}, report.Drift[0].AtWork)
	require.Zero(t, load(t, s, importer.Options{}, dir).Events)
}

// TestSidecarFiles: what is no regular file is not opened.
func TestSidecarFiles(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	lines(t, dir, "s/subagents/agent-x.jsonl", `{"type":"user","uuid":"1","sessionId":"s","agentId":"x","message":{"content":"go"}}`)
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "s/subagents/agent-x.meta.json"), 0o600))
	report := load(t, s, importer.Options{}, dir)
	require.Contains(t, codes(report), codeSidecar)
	require.Equal(t, 1, report.Sessions)
}
