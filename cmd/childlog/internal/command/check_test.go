package command

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/schema"
)

// decisionSchema is the schema of what check prints.
func decisionSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := schema.Get("decision")
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource(schema.Base+"decision", doc))
	s, err := c.Compile(schema.Base + "decision")
	require.NoError(t, err)
	return s
}

// TestCheckPrintsTheSchema: what check prints, for one call and for many, is
// what schema decision describes: allowed, denied, an approval needed, recorded,
// and a name that is none.
func TestCheckPrintsTheSchema(t *testing.T) {
	s := decisionSchema(t)
	store := filepath.Join(t.TempDir(), "store")
	run := func(want int, stdin string, args ...string) string {
		t.Helper()
		var out, msg bytes.Buffer
		require.Equal(t, want, Run(context.Background(), append([]string{"--store", store, "--json"}, args...), strings.NewReader(stdin), &out, &msg), msg.String())
		return out.String()
	}
	const root, child = "11111111-0000-4000-8000-000000000000", "22222222-0000-4000-8000-000000000000"
	run(failure.ExitOK, "", "init")
	run(failure.ExitOK, "", "root", "--id", root, "--sandbox", "workspace-write", "--cwd", t.TempDir())
	run(failure.ExitOK, "", "delegate", "--parent", root, "--id", child)
	calls := map[string]int{
		`{"call":"c1","tool":"edit","args":{"path":"a"}}`:                                                                                  failure.ExitOK,
		`{"call":"c2","tool":"edit","args":{"path":"/etc/hosts"}}`:                                                                         failure.ExitRefused,
		`{"call":"c3","tool":"bash","args":{"command":"make"},"escalation":{"sandbox":{"mode":"danger-full-access"},"justification":"j"}}`: failure.ExitApproval,
		`{"call":"c4","tool":"no such name","args":{}}`:                                                                                    failure.ExitRefused,
		`{"call":"c5","tool":"never_declared","args":{}}`:                                                                                  failure.ExitRefused,
		`{"call":"c6","tool":"prompt_block_edit","args":{}}`:                                                                               failure.ExitRefused,
	}
	batch := ""
	for call, code := range calls {
		batch += call + "\n"
		for _, args := range [][]string{{"check", root}, {"check", root, "--record"}} {
			line := run(code, call, args...)
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
			require.NoError(t, err)
			require.NoError(t, s.Validate(v), line)
		}
	}
	lines := strings.Split(strings.TrimSpace(run(failure.ExitRefused, batch, "check", child, "--batch", "--record", "--advisory")), "\n")
	require.Len(t, lines, len(calls))
	for _, line := range lines {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		require.NoError(t, err)
		require.NoError(t, s.Validate(v), line)
	}
}

// TestBatchExitCodes: one number says the worst that a batch held.
func TestBatchExitCodes(t *testing.T) {
	ok, deny, ask := `{"call":"a","tool":"read","args":{}}`, `{"call":"b","tool":"edit","args":{"path":"/x"}}`,
		`{"call":"c","tool":"bash","args":{},"escalation":{"sandbox":{"mode":"danger-full-access"},"justification":"j"}}`
	store := filepath.Join(t.TempDir(), "store")
	run := func(stdin string, args ...string) (int, string) {
		var out, msg bytes.Buffer
		return Run(context.Background(), append([]string{"--store", store, "--json"}, args...), strings.NewReader(stdin), &out, &msg), out.String()
	}
	code, _ := run("", "init")
	require.Zero(t, code)
	const root = "11111111-0000-4000-8000-000000000000"
	code, _ = run("", "root", "--id", root, "--sandbox", "workspace-write", "--cwd", t.TempDir())
	require.Zero(t, code)
	for input, want := range map[string]int{ok: failure.ExitOK, ok + "\n" + ask: failure.ExitApproval, ask + "\n" + deny + "\n" + ok: failure.ExitRefused, "{}\n" + deny: failure.ExitUsage, ok + "\n{}": failure.ExitUsage} {
		code, out := run(input, "check", root, "--batch")
		require.Equal(t, want, code, input)
		require.Equal(t, strings.Count(input, "\n")+1, strings.Count(out, "\n"), "a line for each")
	}
}
