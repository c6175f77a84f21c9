package service_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/internal/tokens"
)

// needs says for each path which roles are let in, written down by hand: h, o
// and a for the roles, - for a request without a token. Where it depends on the
// request there is a line for each kind. S stands for a session, C for a child
// of it. A new path without a line fails.
const needs = `
/v1/root           ho   {"label":"x"}
/v1/root           o    {"external":"claude-code-guard:s1","sandbox":{"mode":"danger-full-access"}}
/v1/root           o    {"external":"codex-guard:s1"}
/v1/root           ho   {"external":"claude-code:s1"}
/v1/delegate       ho   {"parent":"S"}
/v1/append         ho   {"session":"S","events":[{"type":"user/message","content_text":"x"}]}
/v1/switch         o    {"session":"S","sandbox":{"mode":"read-only"}}
/v1/switch         ho   {"session":"S","epoch":9,"sandbox":{"mode":"read-only"}}
/v1/narrow         o    {"session":"S","sandbox":{"mode":"read-only"},"reason":"x"}
/v1/narrow         o    {"all":true,"sandbox":{"mode":"read-only"},"reason":"x"}
/v1/send           ho   {"session":"C","by":"S","text":"x"}
/v1/send           o    {"session":"C","by":"operator","text":"x"}
/v1/interrupt      ho   {"session":"C","by":"S"}
/v1/interrupt      o    {"session":"C","by":"operator"}
/v1/inbox          hoa  {"session":"C"}
/v1/claim          ho   {"session":"C","epoch":1}
/v1/activate       ho   {"session":"C","by":"S"}
/v1/activate       o    {"session":"C","by":"operator"}
/v1/end            ho   {"session":"C","epoch":1}
/v1/settle         ho   {"session":"C","epoch":1,"outcome":"completed"}
/v1/settle         o    {"session":"C","outcome":"completed"}
/v1/close          o    {"session":"C"}
/v1/notices        hoa  {"session":"S"}
/v1/consume        ho   {"session":"S","child":"C"}
/v1/policy         hoa  {"session":"S"}
/v1/resume         hoa  {"session":"C","by":"S"}
/v1/resume         hoa  {"session":"C","by":"operator"}
/v1/check          hoa  {"session":"S","call":{"call":"c","tool":"read_file","args":{"path":"a"}}}
/v1/check          ho   {"session":"S","record":true,"call":{"call":"c","tool":"read_file","args":{"path":"a"}}}
/v1/check_batch    hoa  {"session":"S","calls":[{"call":"c","tool":"read_file","args":{"path":"a"}}]}
/v1/check_batch    ho   {"session":"S","record":true,"calls":[{"call":"c","tool":"read_file","args":{"path":"a"}}]}
/v1/ask            ho   {"session":"S","call":{"call":"q","tool":"read_file","args":{"path":"a"},"ask":"a1"}}
/v1/asks           hoa  {}
/v1/answer         o    {"session":"S","ask":"a1","allow":true}
/v1/explain_field  hoa  {"session":"S","field":"sandbox.mode"}
/v1/explain_all    hoa  {"session":"S"}
/v1/explain_call   hoa  {"session":"S","call":{"call":"c","tool":"read_file","args":{"path":"a"}}}
/v1/explain_event  hoa  {"session":"S","seq":1}
/v1/diff           hoa  {"session":"S"}
/v1/show           hoa  {"session":"S"}
/v1/list           hoa  {}
/v1/tree           hoa  {}
/v1/log            hoa  {"session":"S"}
/v1/search         hoa  {"text":"x"}
/v1/head           hoa  {}
/v1/rules          hoa  {}
/v1/set_rules      o    {"rules":{}}
/v1/stats          hoa  {}
/v1/verify         hoa  {}
/v1/follow         hoa
/metrics           oa
/healthz           hoa-
/readyz            hoa-
/openapi.json      hoa-
/openapi.yaml      hoa-
/docs              hoa-
/docs/style.css    hoa-
`

// TestEveryRouteForEveryRole: who is let in is let in, and who is not is told
// so, and no event comes of it.
func TestEveryRouteForEveryRole(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{Failures: 1e6, OpenRate: -1}})
	session, child := v.root(), ""
	a := v.post("/v1/delegate", tokens.Harness, `{"parent":"`+session+`","child":{"id":"22222222-0000-4000-8000-000000000001"}}`)
	require.Equal(t, http.StatusOK, a.status, a.body)
	child = "22222222-0000-4000-8000-000000000001"
	replace := strings.NewReplacer(`"S"`, `"`+session+`"`, `"C"`, `"`+child+`"`)

	told := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(needs)) {
		parts := append(strings.Fields(line), "")
		path, letIn := parts[0], parts[1]
		_, body, _ := strings.Cut(line, "{")
		told[path] = true
		paths := service.Paths()
		i := slices.IndexFunc(paths, func(p service.Path) bool { return p.Path == path })
		require.NotEqual(t, -1, i, path)
		for _, role := range append(tokens.Roles(), "") {
			mark := "-"
			if role != "" {
				mark = string(role[0])
			}
			before := v.store.Durable()
			what := fmt.Sprintf("%s as %q", line, role)
			if path == harness.FollowPath && strings.Contains(letIn, mark) {
				require.Equal(t, http.StatusOK, v.streamStatus(role), what)
				continue
			}
			method, text := paths[i].Method, ""
			if method == http.MethodPost {
				text = replace.Replace("{" + body)
			}
			a := v.do(method, path, v.tokens[role], text, nil)
			switch {
			case strings.Contains(letIn, mark):
				require.NotContains(t, a.body, "needs the role", what)
				require.NotEqual(t, http.StatusUnauthorized, a.status, what)
				require.Less(t, a.status, http.StatusInternalServerError, "%s: %s", what, a.body)
			case role == "":
				require.Equal(t, http.StatusUnauthorized, a.status, what)
				require.Equal(t, "unauthorized", a.code(t), what)
				require.NotEmpty(t, a.header.Get("WWW-Authenticate"), what)
				require.Equal(t, before, v.store.Durable(), what)
			default:
				require.Equal(t, http.StatusForbidden, a.status, "%s: %s", what, a.body)
				require.Equal(t, "unauthorized", a.code(t), what)
				require.Contains(t, a.body, "the role", what)
				require.Equal(t, before, v.store.Durable(), what)
			}
		}
	}
	for _, p := range service.Paths() {
		require.True(t, told[p.Path], "%s has no line", p.Path)
	}
	for _, r := range harness.Routes() {
		require.True(t, told[r.Path], "%s of package harness is not served", r.Path)
	}
}

// streamStatus opens a stream and leaves it.
func (v *served) streamStatus(role tokens.Role) int {
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.url+harness.FollowPath, nil)
	require.NoError(v.t, err)
	r.Header.Set("Authorization", "Bearer "+v.tokens[role])
	resp, err := v.client.Do(r)
	require.NoError(v.t, err)
	resp.Body.Close()
	return resp.StatusCode
}

// TestSocketPeersAreOperators: the handler of the socket asks for no token.
func TestSocketPeersAreOperators(t *testing.T) {
	v := serve(t, service.Options{})
	id := v.root()
	a := v.direct(v.service.Socket(), http.MethodPost, "/v1/narrow", `{"session":"`+id+`","sandbox":{"mode":"read-only"},"reason":"x"}`)
	require.Equal(t, http.StatusOK, a.status, a.body)
	a = v.direct(v.service.Socket(), http.MethodGet, "/metrics", "")
	require.Equal(t, http.StatusOK, a.status)
	a = v.direct(v.service.TCP(), http.MethodGet, "/metrics", "")
	require.Equal(t, http.StatusUnauthorized, a.status, "the same without the socket")
}
