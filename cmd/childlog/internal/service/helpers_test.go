package service_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/cmd/childlog/internal/tokens"
	"childlog/eventlog"
)

// served is a store with a service on a free port of loopback. The store is
// checked in full when the test ends.
type served struct {
	t       testing.TB
	store   *eventlog.Store
	service *service.Service
	url     string
	tokens  map[tokens.Role]string
	log     *logBuffer
	stop    func() error // ends the server, once
	client  *http.Client
}

// logBuffer is what was logged so far.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func serve(t testing.TB, o service.Options) *served {
	t.Helper()
	return serveAt(t, o, service.Address{Listen: "127.0.0.1:0"})
}

func serveAt(t testing.TB, o service.Options, a service.Address) *served {
	t.Helper()
	v := &served{t: t, store: storetest.New(t), tokens: map[tokens.Role]string{}, log: &logBuffer{}}
	for _, role := range tokens.Roles() {
		v.tokens[role] = v.token(role)
	}
	if o.Use == nil {
		o.Use = service.Lend(v.store)
	}
	o.Dir = v.store.Dir()
	o.Log, o.Listen = slog.New(slog.NewTextHandler(v.log, nil)), a.Listen
	var err error
	v.service, err = service.New(o)
	require.NoError(t, err)
	server, err := v.service.Listen(t.Context(), a)
	require.NoError(t, err)
	v.url = server.URL()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, 10*time.Second) }()
	v.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	v.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(t, v.stop())
	})
	return v
}

func (v *served) token(role tokens.Role) string {
	_, secret, err := tokens.New(v.store.Dir(), tokens.Request{Role: role, Now: time.Now()})
	require.NoError(v.t, err)
	return secret
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// code is that of the error, "" of an answer that is none.
func (a answer) code(t testing.TB) string {
	t.Helper()
	if a.status == http.StatusOK {
		return ""
	}
	var b harness.ErrorBody
	require.NoError(t, json.Unmarshal([]byte(a.body), &b), "%d: %s", a.status, a.body)
	require.NotEmpty(t, b.Error.Code, a.body)
	require.NotEmpty(t, b.Error.Message, a.body)
	require.NotEmpty(t, b.Error.Hint, a.body)
	for _, local := range []string{"`childlog", "--", "CHILDLOG_"} {
		require.NotContains(t, b.Error.Hint, local, "a client has no command line")
		require.NotContains(t, b.Error.Message, local)
	}
	return b.Error.Code
}

// do sends a request; change may alter it, for which the token is set already.
func (v *served) do(method, path, token, body string, change func(*http.Request)) answer {
	v.t.Helper()
	r, err := http.NewRequest(method, v.url+path, strings.NewReader(body))
	require.NoError(v.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(r)
	}
	resp, err := v.client.Do(r)
	require.NoError(v.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(v.t, err)
	return answer{resp.StatusCode, resp.Header, string(b)}
}

func (v *served) post(path string, role tokens.Role, body string) answer {
	v.t.Helper()
	return v.do(http.MethodPost, path, v.tokens[role], body, nil)
}

func (v *served) get(path string, role tokens.Role) answer {
	v.t.Helper()
	return v.do(http.MethodGet, path, v.tokens[role], "", nil)
}

// root makes a root session and returns its id.
func (v *served) root() string {
	v.t.Helper()
	id := uuid.NewString()
	a := v.post("/v1/root", tokens.Harness, `{"id":"`+id+`","approvals":"never","sandbox":{"mode":"workspace-write"},"workspace":"/srv/p"}`)
	require.Equal(v.t, http.StatusOK, a.status, a.body)
	return id
}

// appendText appends n events with a text each.
func (v *served) appendText(id string, n int) {
	v.t.Helper()
	for range n {
		a := v.post("/v1/append", tokens.Harness, `{"session":"`+id+`","events":[{"type":"user/message","content_text":"hello"}]}`)
		require.Equal(v.t, http.StatusOK, a.status, a.body)
	}
}

// direct asks a handler without a network.
func (v *served) direct(h http.Handler, method, path, body string) answer {
	v.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "localhost"
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

func mustID(text string) uuid.UUID { return uuid.MustParse(text) }
