package codex

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/replay"
)

// TestPolicyShapes: what each way of writing a policy is worth.
func TestPolicyShapes(t *testing.T) {
	for name, c := range map[string]struct{ fields, sandbox, approvals, code string }{
		"read-only":            {`,"sandbox_policy":{"type":"read-only"},"approval_policy":"never"`, "read-only (network off)", "never", ""},
		"read-only, network":   {`,"sandbox_policy":{"type":"read-only","network_access":true},"approval_policy":"never"`, "read-only (network on)", "never", ""},
		"older mode":           {`,"sandbox_policy":{"mode":"workspace-write","network_access":true},"approval_policy":"untrusted"`, "workspace-write /w (network on)", "ask", replay.FindingForeignAsk},
		"a word":               {`,"sandbox_policy":"danger-full-access","approval_policy":"on-failure"`, "danger-full-access", "ask", replay.FindingForeignAsk},
		"roots":                {`,"workspace_roots":["/v"],"sandbox_policy":{"type":"workspace-write","writable_roots":["/x","/w/y"],"network_access":"restricted"},"approval_policy":"never"`, "workspace-write /v, /w, /x (network off)", "never", ""},
		"network in a word":    {`,"sandbox_policy":{"type":"workspace-write","network_access":"enabled"},"approval_policy":"never"`, "workspace-write /w (network on)", "never", ""},
		"network in another":   {`,"sandbox_policy":{"type":"workspace-write","network_access":"proxied"},"approval_policy":"never"`, "workspace-write /w (network off)", "never", codeForeignField},
		"root that is none":    {`,"sandbox_policy":{"type":"workspace-write","writable_roots":["x",7]},"approval_policy":"never"`, "workspace-write /w (network off)", "never", codeForeignField},
		"external":             {`,"sandbox_policy":{"type":"external-sandbox","network_access":"enabled"},"approval_policy":"never"`, "read-only (network off)", "never", replay.FindingForeignMode},
		"unknown mode":         {`,"sandbox_policy":{"type":"two words"},"approval_policy":"never"`, "read-only (network off)", "never", replay.FindingForeignMode},
		"no type":              {`,"sandbox_policy":{"x":1},"approval_policy":"never"`, "read-only (network off)", "never", importer.CodeMalformed},
		"a number":             {`,"sandbox_policy":7,"approval_policy":7`, "read-only (network off)", "never", importer.CodeMalformed},
		"granular":             {`,"sandbox_policy":{"type":"read-only"},"approval_policy":{"granular":{"sandbox_approval":true}}`, "read-only (network off)", "ask", replay.FindingForeignAsk},
		"profile alone":        {`,"permission_profile":{"type":"disabled"},"approval_policy":"never"`, "read-only (network off)", "never", replay.FindingForeignMode},
		"profile in a word":    {`,"permission_profile":"managed","approval_policy":"never"`, "read-only (network off)", "never", replay.FindingForeignMode},
		"profile beside":       {`,"permission_profile":{"type":"disabled"},"sandbox_policy":{"type":"read-only"},"approval_policy":"never"`, "read-only (network off)", "never", ""},
		"nothing":              {``, "read-only (network off)", "never", ""},
		"null":                 {`,"sandbox_policy":null,"approval_policy":null,"permission_profile":null`, "read-only (network off)", "never", ""},
		"temp dirs excluded":   {`,"sandbox_policy":{"type":"workspace-write","exclude_tmpdir_env_var":true,"exclude_slash_tmp":true},"approval_policy":"never"`, "workspace-write /w (network off, no $TMPDIR, no /tmp)", "never", ""},
		"too many roots":       {`,"sandbox_policy":{"type":"workspace-write","writable_roots":[` + manyRoots() + `]},"approval_policy":"never"`, "workspace-write no roots (network off)", "never", codeForeignField},
		"full access, no more": {`,"sandbox_policy":{"type":"danger-full-access","network_access":false},"approval_policy":"never"`, "danger-full-access", "never", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			report := load(t, s, importer.Options{}, lines(t, t.TempDir(), "a.jsonl", meta("x", ""), turnContext("t", c.fields), turnContext("t", c.fields)))
			got := report.SessionList[0]
			require.Contains(t, got.Sandbox, c.sandbox)
			require.Equal(t, c.approvals, got.Approvals)
			if c.code != "" {
				finding(t, report, c.code)
			} else {
				require.Empty(t, report.Findings)
			}
			require.LessOrEqual(t, len(events(t, s, got.ID)), 7, "the second turn states nothing new")
		})
	}
}

func manyRoots() string {
	var b strings.Builder
	for i := range 300 {
		b.WriteString(`"/r` + strconv.Itoa(i) + `",`)
	}
	return b.String() + `"/last"`
}

// TestOldVariant: files of 2025 have no types, and their policy is prose.
func TestOldVariant(t *testing.T) {
	s := newStore(t)
	report := load(t, s, importer.Options{}, "testdata/old")
	x := report.SessionList[0]
	require.Equal(t, "Rake the leaves.", x.Label)
	require.Contains(t, x.Sandbox, "workspace-write /srv/old (network off, no $TMPDIR, no /tmp)")
	require.Equal(t, "ask", x.Approvals)
	list := events(t, s, x.ID)
	require.Equal(t, []string{"session/created", "import/other session_meta", "import/other record_type/state", "user/message", "sandbox/mode", "approval/policy",
		"user/message", "import/other response_item/reasoning", "tool/call", "tool/call", "tool/result", "assistant/message", "import/other record_type/state", "import/source"}, types(list))
	require.Equal(t, claimedInferred, eventlog.Claimed(&list[4]))
	require.Equal(t, "with_escalated_permissions", list[9].Facts.Str("escalation"))
	require.Equal(t, "ok", list[10].Facts.Str("outcome"))
	require.Zero(t, report.Kept.Unknown)
	finding(t, report, codeUndecided)
}

// TestTurns: a turn ends as its log says, by its own id, or has no end.
func TestTurns(t *testing.T) {
	s := newStore(t)
	report := load(t, s, importer.Options{}, lines(t, t.TempDir(), "a.jsonl", meta("x", ""),
		msg("task_complete", `,"turn_id":"nobody's"`),
		msg("task_started", `,"turn_id":"a","started_at":1772355600`), msg("turn_aborted", `,"turn_id":"a","reason":"budget_limited"`),
		msg("task_started", `,"turn_id":"b","started_at":"2026-03-01T09:00:00Z"`),
		msg("task_started", ``), msg("task_complete", ``),
		msg("turn_started", `,"turn_id":"two words"`), msg("turn_aborted", `,"turn_id":"two words","reason":"said no"`),
		msg("task_started", `,"turn_id":"d"`)))
	var got []string
	for _, ev := range events(t, s, report.SessionList[0].ID) {
		if strings.HasPrefix(ev.Type, "turn/") {
			got = append(got, ev.Type+" "+strconv.FormatUint(ev.Facts.Uint("turn"), 10)+" "+ev.Facts.Str("reason"))
		}
	}
	require.Equal(t, []string{"turn/start 1 ", "turn/end 1 budget_limited", "turn/start 2 ", "turn/start 3 ", "turn/end 3 completed", "turn/start 4 ", "turn/end 4 ", "turn/start 5 "}, got)
	require.Contains(t, finding(t, report, codeUnterminated).Detail, "2 turns have no end")
}

// TestUsage: a total counts once; one that fell was counted anew.
func TestUsage(t *testing.T) {
	count := func(in, cached, out string, last string) string {
		return msg("token_count", `,"info":{"total_token_usage":{"input_tokens":`+in+`,"cached_input_tokens":`+cached+`,"output_tokens":`+out+`}`+last+`}`)
	}
	s := newStore(t)
	report := load(t, s, importer.Options{}, lines(t, t.TempDir(), "a.jsonl", meta("x", ""), msg("token_count", `,"info":null`), turnContext("t", `,"model":"gpt-x"`),
		count("100", "40", "10", ""), count("100", "40", "10", ""), count("150", "60", "15", ""), count("150", "60", "15", ""),
		count("30", "0", "5", `,"last_token_usage":{"input_tokens":20,"output_tokens":4}`), count("-1", "x", "null", "")))
	row, err := s.Row(report.SessionList[0].ID)
	require.NoError(t, err)
	require.EqualValues(t, 3, row.Usage.Of)
	require.EqualValues(t, 60+30+20, row.Usage.Input)
	require.EqualValues(t, 60, row.Usage.CacheRead)
	require.EqualValues(t, 15+4, row.Usage.Output)
	for _, ev := range events(t, s, report.SessionList[0].ID) {
		if ev.Type == eventlog.TypeUsageRecorded {
			require.Equal(t, "gpt-x", ev.Facts.Str("model"))
		}
	}
}

// TestCalls: what a call asks for and how it ended are facts; the texts are not.
func TestCalls(t *testing.T) {
	s := newStore(t)
	report := load(t, s, importer.Options{}, lines(t, t.TempDir(), "a.jsonl", meta("x", ""),
		item("function_call", `,"name":"exec_command","call_id":"c1","arguments":"{\"cmd\":\"ls\",\"sandbox_permissions\":\"use_default\"}"`),
		item("function_call_output", `,"call_id":"c1","output":"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nExit code: 9"`),
		item("function_call", `,"name":"exec_command","call_id":"c2","arguments":"{\"cmd\":\"ls\",\"sandbox_permissions\":\"require_escalated\",\"justification\":\"because\"}"`),
		item("function_call_output", `,"call_id":"c2","output":{"content":"no","success":false}`),
		item("custom_tool_call", `,"name":"exec","call_id":"c3","input":"tools.exec_command({cmd:\"x\",sandbox_permissions:\"require_escalated\"})"`),
		item("custom_tool_call_output", `,"call_id":"c3","output":[{"type":"input_text","text":"Script completed"}]`),
		item("function_call", `,"name":"spawn_agent","namespace":"collaboration","call_id":"c4","arguments":"{\"message\":\"gAAAAABx\",\"task_name\":\"t\"}"`),
		item("function_call_output", `,"call_id":"c4","output":"Output:\nExit code: 0"`),
		item("tool_search_call", `,"call_id":"c5","arguments":{"query":"q"}`), item("tool_search_output", `,"call_id":"c5","tools":[]`),
		item("function_call", `,"name":"shell"`), item("message", ``), item("function_call_output", ``)))
	var facts []string
	for _, ev := range events(t, s, report.SessionList[0].ID) {
		switch f := ev.Facts; ev.Type {
		case eventlog.TypeToolCall:
			facts = append(facts, f.Str("tool")+" "+f.Str("namespace")+" "+f.Str("escalation")+" "+strconv.FormatBool(f.Bool("justified"))+" "+f.Str("decision")+" "+strconv.FormatBool(f.Bool("encrypted")))
			require.NotContains(t, string(f), "because")
			require.NotContains(t, string(f), "gAAAA")
		case eventlog.TypeToolResult:
			facts = append(facts, f.Str("call")+" "+f.Str("outcome"))
		}
	}
	require.Equal(t, []string{"exec_command   false  false", "c1 ok", "exec_command  require_escalated true unrecorded false", "c2 error",
		"exec  in-script false unrecorded false", "c3 unrecorded", "spawn_agent collaboration  false  true", "c4 unrecorded", "tool_search   false  false", "c5 unrecorded"}, facts)
	require.EqualValues(t, 3, report.Kept.Malformed)
	undecided := 0
	for _, code := range codes(report) {
		if code == codeUndecided {
			undecided++
		}
	}
	require.Equal(t, 2, undecided)
}

// TestOddLines: a line that is none is kept and counted, whatever it is.
func TestOddLines(t *testing.T) {
	over := `{"type":"turn_context","payload":{"sandbox_policy":{"type":"danger-full-access"},"pad":"` + strings.Repeat("y", eventlog.MaxContent) + `"}}`
	odd := []string{``, `   `, `[]`, `7`, `{}`, `{"type":5}`, `{"type":""}`, `{"payload":{}}`, `{"type":"x","payload":7}`, `{"record_type":7}`, `{`, `{"a":1,"a":2}`, "\xff", over,
		`{"type":"new_thing","payload":{"type":"sub"}}`, `{"type":"event_msg","payload":{"type":"new_msg"}}`, `{"type":"response_item","payload":{"type":"new_item"}}`,
		`{"type":"event_msg"}`, `{"type":"two words","payload":{}}`, `{"type":"session_meta","payload":{"id":"other"}}`, `{"type":"import/source","payload":{"type":"x"}}`,
		`{"timestamp":"noon","type":"world_state","payload":null}`, `{"type":"compacted","payload":{"message":"m"}}`, strings.Repeat(`[`, 70)}
	s := newStore(t)
	path := lines(t, t.TempDir(), "a.jsonl", append([]string{meta("x", "")}, odd...)...)
	dry := load(t, s, importer.Options{DryRun: true}, path)
	report := load(t, s, importer.Options{}, path)
	require.Equal(t, dry.Events, report.Events)
	require.Equal(t, dry.Findings, report.Findings)
	require.Equal(t, importer.Kept{Blank: 2, NonObject: 2, Untyped: 5, Unreadable: 4, TooLong: 1, Unknown: 7}, report.Kept)
	list := events(t, s, report.SessionList[0].ID)
	require.Len(t, list, 1+1+len(odd)+1)
	for i, text := range odd {
		ev := list[i+2]
		if text == over {
			require.EqualValues(t, len(over), ev.Facts.Uint("bytes"))
			continue
		}
		require.Equal(t, text, string(ev.Content))
	}
	for _, ev := range list {
		if ev.Type == eventlog.TypeHistoryCompacted {
			require.Equal(t, ev.Seq-1, ev.Facts.Uint("to"))
		}
	}
	finding(t, report, importer.CodeTime)

	strict := load(t, newStore(t), importer.Options{Strict: true}, path)
	require.Equal(t, 1, strict.Refused)
	require.Zero(t, strict.Events)
	finding(t, strict, importer.CodeRefused)
}

// TestHeaders: what of a header counts when it can't be read.
func TestHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		header, kind string
		codes        []string
	}{
		"bare":           {`{"id":"x","timestamp":"2025-06-01T10:00:00Z"}`, "root", []string{}},
		"review":         {meta("x", `"source":{"subagent":"review"},`), "child", []string{importer.CodeParentMissing, "unpinned"}},
		"by parent":      {meta("x", `"parent_thread_id":"y",`), "child", []string{importer.CodeParentMissing, "unpinned"}},
		"own parent":     {meta("x", `"parent_thread_id":"x",`), "root", []string{codeHeader}},
		"internal":       {meta("x", `"source":{"internal":"title"},`), "root", []string{}},
		"forked by hand": {meta("x", `"forked_from_id":"y","source":"vscode",`), "root", []string{}},
		"odd fields": {`{"type":"session_meta","payload":{"id":"x","timestamp":7,"source":7,"cwd":"../x","agent_path":{},"subagent_history_start_ordinal":1.5}}`, "root",
			[]string{codeHeader, codeHeader, codeHeader, codeHeader}},
		"odd depth": {meta("x", `"source":{"subagent":{"thread_spawn":{"parent_thread_id":"y","depth":"deep"}}},`), "child", []string{codeHeader, importer.CodeParentMissing, "unpinned"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			report := load(t, s, importer.Options{}, lines(t, t.TempDir(), "a.jsonl", c.header))
			require.ElementsMatch(t, c.codes, codes(report))
			require.Equal(t, c.kind, report.SessionList[0].Kind)
		})
	}
	for _, first := range []string{"", "[]", "{", `{"type":"session_meta"}`, `{"type":"session_meta","payload":{"id":""}}`, `{"type":"event_msg","payload":{"id":"x"}}`, `{"id":"x"}`,
		`{"record_type":"state","id":"x","timestamp":"y"}`, `{"type":"session_meta","payload":{"id":"a","id":"b"}}`} {
		report := load(t, newStore(t), importer.Options{}, lines(t, t.TempDir(), "a.jsonl", first, msg("task_started", "")))
		require.Equal(t, 1, report.Skipped, "%q", first)
		require.Equal(t, []string{importer.CodeNoHeader}, codes(report), "%q", first)
	}
}

// FuzzCodexLine maps any bytes behind any header: the event is one that the
// store takes, and its content is the line.
func FuzzCodexLine(f *testing.F) {
	for _, path := range []string{"testdata/tree/a-fork.jsonl", "testdata/tree/b-child.jsonl", "testdata/tree/c-root.jsonl", "testdata/old/bare.jsonl"} {
		raw, err := os.ReadFile(path)
		require.NoError(f, err)
		for i, line := range bytes.Split(raw, []byte("\n")) {
			f.Add(line, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, kind uint8) {
		h := header{id: "x", depth: -1, bare: kind&1 > 0}
		if kind&2 > 0 {
			h.subagent, h.seedState, h.seedStart = true, stated, uint64(kind)
		}
		_, _ = parseHeader(raw)
		m := newMapper(&h, func(string, int64, string) {})
		m.zone = newZone(&h, func(string) bool { return kind&4 > 0 })
		n := newNotes()
		for number := int64(2); number < 5; number++ {
			out := m.next(importer.Line{Number: number, Bytes: raw, Len: int64(len(raw))})
			require.NotEmpty(t, out.parts)
			require.Equal(t, raw, append([]byte{}, out.parts[0].event.Content...))
			for _, p := range out.parts {
				require.NoError(t, eventlog.CheckType(p.event.Type))
				require.NoError(t, p.event.Facts.Check())
				require.True(t, eventlog.IsCore(p.event.Type))
				require.NotEqual(t, importer.TypeSource, p.event.Type)
			}
			if out.inherited {
				require.Len(t, out.parts, 1)
			}
			n.line(&out, uint64(number))
		}
		m.ended(4)
	})
}

// FuzzCodexImport imports any file: no panic, no error, a sound store, every
// line an event, and nothing to add the second time.
func FuzzCodexImport(f *testing.F) {
	for _, path := range []string{"testdata/tree/a-fork.jsonl", "testdata/tree/b-child.jsonl", "testdata/tree/c-root.jsonl", "testdata/old/bare.jsonl"} {
		raw, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(raw)
		f.Add(raw[:len(raw)/2])
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := newStore(t)
		dir := t.TempDir()
		path := lines(t, dir, "a.jsonl")
		require.NoError(t, os.WriteFile(path, raw, 0o600))
		dry := load(t, s, importer.Options{DryRun: true}, dir, "testdata/tree")
		first := load(t, s, importer.Options{}, dir, "testdata/tree")
		require.Equal(t, dry.Events, first.Events)
		second := load(t, s, importer.Options{}, dir, "testdata/tree")
		require.Zero(t, second.Events)
		for _, x := range first.SessionList {
			if x.File != path {
				continue
			}
			e := policyOf(t, s, x.ID)
			require.True(t, e.Evidence)
			kept := 0
			for _, ev := range events(t, s, x.ID) {
				if ev.Type != importer.TypeSource && ev.Type != eventlog.TypeSandboxMode && ev.Type != eventlog.TypeApprovalPolicy {
					kept++
				}
			}
			require.GreaterOrEqual(t, int64(kept), x.Lines+1)
		}
	})
}
