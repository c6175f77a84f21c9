package service_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/internal/tokens"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// slow is a harness whose verifications take as long as they may. Each says that
// it began and why it ended.
type slow struct {
	harness.Harness
	began chan struct{}
	ended chan error
}

func (h *slow) Verify(ctx context.Context, _ harness.VerifyRequest) (wire.Verified, error) {
	h.began <- struct{}{}
	<-ctx.Done()
	h.ended <- ctx.Err()
	return wire.Verified{}, ctx.Err()
}

func serveSlow(t *testing.T, l service.Limits) (*served, *slow) {
	h := &slow{began: make(chan struct{}, 8), ended: make(chan error, 8)}
	l.Recheck = time.Millisecond
	return serve(t, service.Options{Limits: l, On: func(s *eventlog.Store) harness.Harness { h.Harness = harness.On(s); return h }}), h
}

// verify asks for a verification that ctx ends, and returns what will come of it.
func (v *served) verify(ctx context.Context, token string) <-chan answer {
	out := make(chan answer, 1)
	go func() {
		defer close(out)
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, v.url+"/v1/verify", strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := v.client.Do(r)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		if b, err := io.ReadAll(resp.Body); err == nil {
			out <- answer{resp.StatusCode, resp.Header, string(b)}
		}
	}()
	return out
}

// TestVerify: a sound store is verified, by whoever may read.
func TestVerify(t *testing.T) {
	v := serve(t, service.Options{})
	id := v.root()
	v.appendText(id, 3)
	stats, err := v.store.Stats()
	require.NoError(t, err)
	var got wire.Verified
	for _, body := range []string{`{}`, `{"session":"` + id + `"}`} {
		a := v.post("/v1/verify", tokens.Auditor, body)
		require.Equal(t, http.StatusOK, a.status, a.body)
		require.NoError(t, json.Unmarshal([]byte(a.body), &got))
		require.True(t, got.OK)
		require.Equal(t, stats.Events, got.Events)
	}
	require.Equal(t, "invalid", v.post("/v1/verify", tokens.Auditor, `{"anchors":["x"]}`).code(t))
	require.Equal(t, "not_found", v.post("/v1/verify", tokens.Auditor, `{"session":"77777777"}`).code(t))
}

// TestOneVerificationAtATime: others are told to come again, and can once the
// client of the first has left.
func TestOneVerificationAtATime(t *testing.T) {
	v, h := serveSlow(t, service.Limits{})
	ctx, leave := context.WithCancel(t.Context())
	first := v.verify(ctx, v.tokens[tokens.Auditor])
	<-h.began
	a := v.post("/v1/verify", tokens.Operator, `{}`)
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Equal(t, "busy", a.code(t))
	require.NotEmpty(t, a.header.Get("Retry-After"))
	v.root() // the others go on
	leave()
	require.ErrorIs(t, <-h.ended, context.Canceled)
	_, answered := <-first
	require.False(t, answered)
	ctx, leave = context.WithCancel(t.Context())
	for began := false; !began; { // the first gives its place back once it has ended
		again := v.verify(ctx, v.tokens[tokens.Auditor])
		select {
		case <-h.began:
			began = true
		case a := <-again:
			require.Equal(t, "busy", a.code(t))
		}
	}
	leave()
	<-h.ended
}

// TestWhatEndsAVerification, and what its client is told.
func TestWhatEndsAVerification(t *testing.T) {
	t.Run("its time", func(t *testing.T) {
		v, _ := serveSlow(t, service.Limits{VerifyTime: 1})
		require.Equal(t, "timeout", v.post("/v1/verify", tokens.Auditor, `{}`).code(t))
	})
	t.Run("its token", func(t *testing.T) {
		v, h := serveSlow(t, service.Limits{})
		token, secret, err := tokens.New(v.store.Dir(), tokens.Request{Role: tokens.Auditor, Now: time.Now()})
		require.NoError(t, err)
		out := v.verify(t.Context(), secret)
		<-h.began
		_, err = tokens.Revoke(v.store.Dir(), token.ID)
		require.NoError(t, err)
		a := <-out
		require.Equal(t, http.StatusUnauthorized, a.status, a.body)
		require.Equal(t, "unauthorized", a.code(t))
	})
	t.Run("the service", func(t *testing.T) {
		v, h := serveSlow(t, service.Limits{})
		out := v.verify(t.Context(), v.tokens[tokens.Auditor])
		<-h.began
		require.NoError(t, v.stop())
		a := <-out
		require.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
		require.Equal(t, "store_closed", a.code(t))
	})
}

// TestABatchOfChecks: answers stand in the places of their calls, and those that
// are denied are counted.
func TestABatchOfChecks(t *testing.T) {
	v := serve(t, service.Options{})
	id := v.root()
	a := v.post("/v1/check_batch", tokens.Harness, `{"session":"`+id+`","record":true,"calls":[{"call":"c1","tool":"read_file","args":{"path":"a"}},`+
		`{"call":"c1","tool":"read_file","args":{"path":"b"}},{"call":"c2","tool":"write_file","args":{"path":"/etc/x"}}]}`)
	require.Equal(t, http.StatusOK, a.status, a.body)
	var got harness.Items[wire.Checked]
	require.NoError(t, json.Unmarshal([]byte(a.body), &got))
	require.Len(t, got.Items, 3)
	require.Equal(t, "allow", got.Items[0].Judgement.Verdict)
	require.Equal(t, "conflict", got.Items[1].Error.Code)
	require.Equal(t, "deny", got.Items[2].Judgement.Verdict)
	require.Contains(t, v.get("/metrics", tokens.Operator).body, `childlog_denials_total{code="`+got.Items[2].Judgement.Code+`"} 1`)
	a = v.post("/v1/check_batch", tokens.Harness, `{"session":"`+id+`","calls":[{"call":"c1","tool":"read_file","args":{}},{"call":"c2"}]}`)
	require.Equal(t, "invalid", a.code(t))
	require.Contains(t, a.body, "/calls/1")
}

// TestQueries: a parameter that a path does not take is refused by its name,
// whatever the path.
func TestQueries(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{OpenRate: -1}})
	for _, p := range service.Paths() {
		body := ""
		if p.Method == http.MethodPost {
			body = "{}"
		}
		a := v.do(p.Method, p.Path+"?wrong=1&after=1", v.tokens[tokens.Operator], body, nil)
		require.Equal(t, http.StatusBadRequest, a.status, p.Path)
		require.Equal(t, "invalid", a.code(t))
		name := `\"after\"`
		if p.Path == harness.FollowPath {
			name = `\"wrong\"`
		}
		require.Contains(t, a.body, "query parameter "+name+": unknown; want ", p.Path)
	}
}
