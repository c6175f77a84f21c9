package service_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/internal/tokens"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// failing is a harness whose Show fails as it is told.
type failing struct {
	harness.Harness
	show func(ctx context.Context) (wire.Detail, error)
}

func (f *failing) Show(ctx context.Context, _ harness.SessionRequest) (wire.Detail, error) {
	return f.show(ctx)
}

func (f *failing) Append(ctx context.Context, _ harness.AppendRequest) (wire.Written, error) {
	_, err := f.show(ctx)
	return wire.Written{}, err
}

// with serves a store whose Show and Append do what fn does.
func with(t *testing.T, l service.Limits, fn func(context.Context) (wire.Detail, error)) *served {
	return serve(t, service.Options{Limits: l, On: func(s *eventlog.Store) harness.Harness { return &failing{harness.On(s), fn} }})
}

// TestEveryErrorHasItsStatus: by the exit code of the command.
func TestEveryErrorHasItsStatus(t *testing.T) {
	var next error
	v := with(t, service.Limits{}, func(context.Context) (wire.Detail, error) {
		return wire.Detail{}, fmt.Errorf("while testing: %w", next)
	})
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{eventlog.ErrInvalid, 400, "invalid"},
		{&eventlog.TooLargeError{What: "x", Limit: 1, Size: 2}, 413, "too_large"},
		{eventlog.ErrUnauthorized, 403, "unauthorized"},
		{eventlog.ErrWidening, 403, "widening"},
		{eventlog.ErrNotResumable, 403, "not_resumable"},
		{eventlog.ErrEvidence, 403, "evidence"},
		{eventlog.ErrStaleCapture, 403, "stale_capture"},
		{eventlog.ErrDepth, 403, "depth"},
		{eventlog.ErrOpenTurn, 403, "open_turn"},
		{eventlog.ErrSessionClosed, 403, "session_closed"},
		{eventlog.ErrHeld, 403, "held"},
		{&eventlog.ConflictError{Expected: 1, Actual: 2}, 409, "conflict"},
		{&eventlog.DuplicateError{Seq: 3}, 409, "duplicate"},
		{&eventlog.FencedError{Got: 1, Open: 2}, 409, "fenced"},
		{eventlog.ErrExists, 409, "exists"},
		{eventlog.ErrNotFound, 404, "not_found"},
		{eventlog.ErrAmbiguous, 404, "ambiguous"},
		{eventlog.ErrWithheld, 404, "withheld"},
		{eventlog.ErrPurged, 410, "purged"},
		{&eventlog.CorruptError{Reason: "r"}, 500, "corrupt"},
		{eventlog.ErrStoreLost, 500, "store_lost"},
		{eventlog.ErrRollback, 500, "rollback"},
		{eventlog.ErrPolicyUnreadable, 500, "policy_unreadable"},
		{eventlog.ErrUnknownType, 500, "unknown_type"},
		{eventlog.ErrUnverified, 500, "unverified"},
		{eventlog.ErrNewerFormat, 500, "newer_format"},
		{&eventlog.LockedError{Path: "p", PID: 7}, 503, "locked"},
		{eventlog.ErrOutcomeUnknown, 503, "outcome_unknown"},
		{eventlog.ErrReadOnly, 503, "read_only"},
		{eventlog.ErrNoSpace, 503, "no_space"},
		{eventlog.ErrStoreClosed, 503, "store_closed"},
		{os.ErrPermission, 503, "permission"},
		{errors.New("pass" + "word in /secret"), 500, "internal"},
	} {
		next = c.err
		a := v.post("/v1/show", tokens.Auditor, `{"session":"x"}`)
		require.Equal(t, c.status, a.status, "%v: %s", c.err, a.body)
		require.Equal(t, c.code, a.code(t), "%v", c.err)
		require.Equal(t, c.status == 503, a.header.Get("Retry-After") != "", "%v", c.err)
		require.NotContains(t, a.body, "/secret", "an error of no kind is not told")
	}
	require.NotContains(t, v.log.String(), "/secret", "nor logged")
	require.Contains(t, v.log.String(), "code=internal")
	next = &os.PathError{Op: "read", Path: "store.db", Err: syscall.EIO}
	require.Equal(t, "internal", v.post("/v1/show", tokens.Auditor, `{"session":"x"}`).code(t))
	require.Contains(t, v.log.String(), "input/output error", "what the system says is logged")
}

// TestAPanicIsAnsweredAndLogged: without detail to the client, with the stack
// and without the value to the log, and the service goes on.
func TestAPanicIsAnsweredAndLogged(t *testing.T) {
	v := with(t, service.Limits{}, func(context.Context) (wire.Detail, error) { panic("the secret value") })
	for range 3 {
		a := v.post("/v1/show", tokens.Auditor, `{"session":"x"}`)
		require.Equal(t, http.StatusInternalServerError, a.status)
		require.Equal(t, "internal", a.code(t))
		require.NotContains(t, a.body, "secret")
	}
	require.Contains(t, v.log.String(), "errors_test.go", "the stack")
	require.NotContains(t, v.log.String(), "the secret value")
	require.Equal(t, http.StatusOK, v.get("/healthz", "").status)
	require.Contains(t, v.get("/metrics", tokens.Auditor).body, "childlog_panics_total 3\n")
}

// TestTheTimeForAnOperationEnds: of a write nobody knows then whether it was done.
func TestTheTimeForAnOperationEnds(t *testing.T) {
	v := with(t, service.Limits{WorkTime: 1}, func(ctx context.Context) (wire.Detail, error) {
		<-ctx.Done()
		return wire.Detail{}, ctx.Err()
	})
	a := v.post("/v1/show", tokens.Auditor, `{"session":"x"}`)
	require.Equal(t, http.StatusGatewayTimeout, a.status)
	require.Equal(t, "timeout", a.code(t))
	a = v.post("/v1/append", tokens.Harness, `{"session":"x","events":[]}`)
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Equal(t, "outcome_unknown", a.code(t))
}

// TestAStoreThatIsNeededAlone: while a compaction has it, nothing was done and
// the service is not ready.
func TestAStoreThatIsNeededAlone(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{WorkTime: 1}, Use: func(ctx context.Context, _ func(*eventlog.Store) error) error {
		<-ctx.Done()
		return ctx.Err()
	}})
	a := v.post("/v1/append", tokens.Harness, `{"session":"x","events":[]}`)
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Equal(t, "locked", a.code(t))
	require.Equal(t, "locked", v.get("/readyz", "").code(t))
	require.Equal(t, http.StatusOK, v.get("/healthz", "").status)
}

// TestStrictInput: what JSON readers disagree about is refused with its place,
// and nothing is written.
func TestStrictInput(t *testing.T) {
	v := serve(t, service.Options{})
	id := v.root()
	before := v.store.Durable()
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for body, want := range map[string]string{
		``:                             "invalid",
		`null`:                         "want an object",
		`[]`:                           "want an object",
		`{"session":"` + id + `"} {}`:  "more after",
		`{"session":"` + id + `"`:      "invalid",
		`{"Session":"` + id + `"}`:     "/Session",
		`{"session":"a","session":""}`: "duplicate",
		`{"session":"a","sessio":1}`:   "/sessio",
		`{"session":7}`:                "/session",
		`{"session":"` + id + `","events":[{"type":"user/message","contenttext":"x"}]}`:        "/events/0/contenttext",
		`{"session":"` + id + `","events":[{"type":"user/message","content":{"a":1,"a":2}}]}`:  "duplicate",
		`{"session":"` + id + `","events":[{"type":"user/message","content_text":"\ud800"}]}`:  "/events/0",
		`{"session":"` + id + `","events":[{"type":"user/message","content":` + deep + `}]}`:   "nest",
		`{"session":"` + id + `","epoch":1.5,"events":[]}`:                                     "/epoch",
		`{"session":"` + id + `","epoch":-1,"events":[]}`:                                      "/epoch",
		`{"session":"` + id + `","epoch":18446744073709551616,"events":[]}`:                    "/epoch",
		"{\"session\":\"a\xff\",\"events\":[]}":                                                "UTF-8",
		`{"session":"` + id + `","events":[{"type":"delegation/granted","content_text":"x"}]}`: "delegation/granted",
	} {
		a := v.post("/v1/append", tokens.Harness, body)
		require.Contains(t, []int{400, 403, 413}, a.status, "%s: %s", body, a.body)
		require.Contains(t, a.body, want, body)
	}
	require.Equal(t, before, v.store.Durable())
	for _, media := range [][]string{nil, {"text/plain"}, {"application/x-www-form-urlencoded"}, {"application/json; charset=latin1"}, {"application/json", "text/plain"}, {"application/json; x=1"}, {"*/*"}} {
		a := v.do(http.MethodPost, "/v1/show", v.tokens[tokens.Auditor], `{"session":"`+id+`"}`, func(r *http.Request) {
			r.Header.Del("Content-Type")
			for _, m := range media {
				r.Header.Add("Content-Type", m)
			}
		})
		require.Equal(t, http.StatusUnsupportedMediaType, a.status, media)
	}
	require.Equal(t, http.StatusOK, v.do(http.MethodPost, "/v1/show", v.tokens[tokens.Auditor], `{"session":"`+id+`"}`,
		func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=UTF-8") }).status)
	require.Equal(t, http.StatusBadRequest, v.do(http.MethodPost, "/v1/show?session=x", v.tokens[tokens.Auditor], `{"session":"`+id+`"}`, nil).status)
	require.Equal(t, http.StatusUnsupportedMediaType, v.do(http.MethodPost, "/v1/show", v.tokens[tokens.Auditor], `{"session":"`+id+`"}`,
		func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }).status)
}

// TestVerdictsAreAnswers: a denial and a call that needs an approval are 200.
func TestVerdictsAreAnswers(t *testing.T) {
	v := serve(t, service.Options{})
	a := v.post("/v1/root", tokens.Harness, `{"id":"33333333-0000-4000-8000-000000000001"}`)
	require.Equal(t, http.StatusOK, a.status, a.body)
	const call = `{"call":"c1","tool":"write_file","args":{"path":"a"}}`
	a = v.post("/v1/check", tokens.Auditor, `{"session":"33333333","call":`+call+`}`)
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Contains(t, a.body, `"verdict":"deny"`)
	a = v.post("/v1/check", tokens.Auditor, `{"session":"33333333","call":{"call":"c2","tool":"write_file","args":{"path":"a"},"escalation":{"sandbox":{"mode":"danger-full-access"},"justification":"why"}}}`)
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Contains(t, a.body, `"verdict":"needs_approval"`)
	require.Contains(t, v.get("/metrics", tokens.Operator).body, "childlog_denials_total{code=")
}
