package service_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/internal/tokens"
)

const (
	parentID = "11111111-0000-4000-8000-000000000001"
	childID  = "22222222-0000-4000-8000-000000000002"
	grandID  = "33333333-0000-4000-8000-000000000003"
)

// ok sends a request as a harness and requires that it is answered.
func (v *served) ok(path, format string, args ...any) string {
	v.t.Helper()
	a := v.post(path, tokens.Harness, fmt.Sprintf(format, args...))
	require.Equal(v.t, http.StatusOK, a.status, a.body)
	return a.body
}

func (v *served) family(sandbox string) {
	v.t.Helper()
	v.ok("/v1/root", `{"id":%q,"workspace":"/srv/p","approvals":"ask","sandbox":{"mode":%q}}`, parentID, sandbox)
	v.ok("/v1/delegate", `{"parent":%q,"child":{"id":%q,"background":true}}`, parentID, childID)
	v.ok("/v1/delegate", `{"parent":%q,"child":{"id":%q,"background":true}}`, childID, grandID)
}

// TestCase5_DeniedAtOnce: a grandchild in the background asks; the denial is
// in its log within the call, and its turn goes on.
func TestCase5_DeniedAtOnce(t *testing.T) {
	v := serve(t, service.Options{})
	v.family("read-only")
	v.ok("/v1/append", `{"session":%q,"events":[{"type":"turn/start","facts":{"turn":1}}]}`, grandID)
	got := v.ok("/v1/check", `{"session":%q,"record":true,"call":{"call":"c1","tool":"write_file","args":{"path":"a"},"escalation":{"sandbox":{"mode":"workspace-write"},"justification":"why"}}}`, grandID)
	require.Contains(t, got, `"verdict":"deny"`)
	require.NotContains(t, got, `"recorded":null`)
	require.Contains(t, v.ok("/v1/log", `{"session":%q,"types":["tool/decision"]}`, grandID), `"call":"c1"`)
	v.ok("/v1/append", `{"session":%q,"events":[{"type":"assistant/message","content_text":"then without"}]}`, grandID)
}

// TestCase11_PermissiveReader: what the resuming process says of its own
// defaults has no effect.
func TestCase11_PermissiveReader(t *testing.T) {
	v := serve(t, service.Options{})
	v.family("read-only")
	got := v.ok("/v1/resume", `{"session":%q,"by":%q,"defaults":{"sandbox":{"mode":"danger-full-access"},"approvals":"ask"}}`, childID, parentID)
	require.Contains(t, got, `"mode":"read-only"`)
	require.Contains(t, v.ok("/v1/check", `{"session":%q,"call":{"call":"c","tool":"write_file","args":{"path":"a"}}}`, childID), `"verdict":"deny"`)
}

// TestCase23_TwoActivations: the older one is fenced, seqs stay gapless.
func TestCase23_TwoActivations(t *testing.T) {
	v := serve(t, service.Options{})
	v.family("read-only")
	v.ok("/v1/activate", `{"session":%q,"by":%q}`, childID, parentID)
	v.ok("/v1/append", `{"session":%q,"epoch":1,"events":[{"type":"user/message","content_text":"1"}]}`, childID)
	v.ok("/v1/activate", `{"session":%q,"by":%q}`, childID, parentID)
	a := v.post("/v1/append", tokens.Harness, fmt.Sprintf(`{"session":%q,"epoch":1,"events":[{"type":"user/message","content_text":"2"}]}`, childID))
	require.Equal(t, http.StatusConflict, a.status)
	require.Equal(t, "fenced", a.code(t))
	require.Contains(t, a.body, `"fenced":{"session":"`+childID+`","got":1,"open":2}`)
	v.ok("/v1/append", `{"session":%q,"epoch":2,"events":[{"type":"user/message","content_text":"3"}]}`, childID)
}

// TestCase55_ClosedFamilies: nothing of childlog's own gets in by the generic
// append, whoever sends it, and no source can be chosen.
func TestCase55_ClosedFamilies(t *testing.T) {
	v := serve(t, service.Options{})
	v.family("read-only")
	before := v.store.Durable()
	for _, event := range []string{`{"type":"delegation/granted"}`, `{"type":"approval/decided","facts":{"ask":"a","outcome":"allowed-once"}}`, `{"type":"sandbox/mode","facts":{"mode":"danger-full-access"}}`,
		`{"type":"user/message","source":"operator"}`, `{"type":"tool/decision"}`, `{"type":"policy/narrowed"}`} {
		for _, role := range []tokens.Role{tokens.Harness, tokens.Operator} {
			a := v.post("/v1/append", role, fmt.Sprintf(`{"session":%q,"events":[%s]}`, childID, event))
			require.Contains(t, []int{400, 403}, a.status, "%s: %s", event, a.body)
		}
	}
	require.Equal(t, before, v.store.Durable())
}

// TestCase58_ForeignShells: denied by class under whatever name.
func TestCase58_ForeignShells(t *testing.T) {
	v := serve(t, service.Options{})
	v.ok("/v1/root", `{"id":%q,"workspace":"/srv/p","sandbox":{"mode":"danger-full-access"},"approvals":"never"}`, parentID)
	v.ok("/v1/delegate", `{"parent":%q,"child":{"id":%q,"denied_tools":["exec_shell*"]}}`, parentID, childID)
	for _, tool := range []string{"Bash", "write_stdin", "exec_command", "BASH"} {
		got := v.ok("/v1/check", `{"session":%q,"call":{"call":"c","tool":%q,"args":{"command":"ls"}}}`, childID, tool)
		require.Contains(t, got, `"verdict":"deny"`, tool)
	}
}
