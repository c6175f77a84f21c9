package service_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/internal/tokens"
)

// TestMetricsAreOfTheFormat: Prometheus' own parser reads them and its linter
// finds nothing, and they count what was done.
func TestMetricsAreOfTheFormat(t *testing.T) {
	v := serve(t, service.Options{})
	id := v.root()
	v.appendText(id, 3)
	require.Equal(t, 404, v.post("/v1/show", tokens.Auditor, `{"session":"77777777"}`).status)
	require.Equal(t, 404, v.post("/v1/a\"b", tokens.Auditor, `{}`).status)
	a := v.get("/metrics", tokens.Auditor)
	require.Equal(t, http.StatusOK, a.status)
	require.Equal(t, "text/plain; version=0.0.4; charset=utf-8", a.header.Get("Content-Type"))
	problems, err := promlint.New(strings.NewReader(a.body)).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(a.body))
	require.NoError(t, err)
	counted := map[string]float64{}
	for _, m := range families["childlog_requests_total"].GetMetric() {
		key := ""
		for _, l := range m.GetLabel() {
			key += l.GetValue() + " "
		}
		counted[key] = m.GetCounter().GetValue()
	}
	require.Equal(t, map[string]float64{"/v1/root 200 ": 1, "/v1/append 200 ": 3, "/v1/show 404 ": 1, "none 404 ": 1}, counted)
	for _, m := range families["childlog_request_duration_seconds"].GetMetric() {
		h := m.GetHistogram()
		require.Equal(t, h.GetSampleCount(), h.GetBucket()[len(h.GetBucket())-1].GetCumulativeCount())
		require.Positive(t, h.GetSampleSum())
	}
	st, err := v.store.Stats()
	require.NoError(t, err)
	require.Equal(t, float64(st.Events), families["childlog_appended_events_total"].GetMetric()[0].GetCounter().GetValue())
	require.Equal(t, float64(1), families["childlog_store_writable"].GetMetric()[0].GetGauge().GetValue())
	require.GreaterOrEqual(t, families["childlog_connections"].GetMetric()[0].GetGauge().GetValue(), float64(1))
	require.Equal(t, 400, v.do(http.MethodGet, "/metrics?x=1", v.tokens[tokens.Operator], "", nil).status)
}

// TestTheLogTellsNothingOfWhatIsStored: neither contents nor names, tokens,
// paths, queries and headers of a client are in it, whether the request was good
// or not.
func TestTheLogTellsNothingOfWhatIsStored(t *testing.T) {
	v := serve(t, service.Options{})
	id := v.root()
	const secret = "hunter2secret"
	v.post("/v1/append", tokens.Harness, `{"session":"`+id+`","events":[{"type":"user/message","content_text":"`+secret+`"}]}`)
	v.post("/v1/append", tokens.Harness, `{"session":"`+id+`","events":[{"type":"`+secret+`","`+secret+`":1}]}`)
	v.post("/v1/show", tokens.Harness, `{"session":"`+secret+`"}`)
	v.post("/v1/check", tokens.Harness, `{"session":"`+id+`","call":{"call":"c","tool":"`+secret+`","args":{"x":"`+secret+`"}}}`)
	v.do(http.MethodGet, "/"+secret, v.tokens[tokens.Harness], "", nil)
	v.do(http.MethodGet, "/v1/follow?session="+secret, v.tokens[tokens.Harness], "", nil)
	v.do(http.MethodPost, "/v1/list", secret, `{}`, func(r *http.Request) { r.Header.Set("User-Agent", secret) })
	v.do(secret, "/v1/list", v.tokens[tokens.Harness], "", nil)
	log := v.log.String()
	require.NotContains(t, log, secret)
	require.NotContains(t, log, id)
	require.NotContains(t, log, "clt_")
	require.NotContains(t, log, v.tokens[tokens.Harness][4:])
	list, err := tokens.List(v.store.Dir())
	require.NoError(t, err)
	require.Contains(t, log, "token="+list[0].ID, "who it was")
	line := regexp.MustCompile(`msg=request method=POST route=/v1/append status=400 took=\S+ peer=tcp in=\d+ out=\d+ code=invalid token=[0-9a-f]{8}\n`)
	require.Regexp(t, line, log)
	require.Contains(t, log, "method=other route=/v1/list status=405")
}

// TestThePageNeedsNothing: no script, nothing of another host, nothing inline,
// and every operation and type is on it, with links that lead somewhere.
func TestThePageNeedsNothing(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{OpenRate: -1}})
	a := v.get("/docs", "")
	require.Equal(t, http.StatusOK, a.status)
	csp := a.header.Get("Content-Security-Policy")
	require.Equal(t, "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", csp)
	require.NotContains(t, a.body, "<script")
	require.NotContains(t, a.body, "style=")
	require.NotRegexp(t, `(src|href)="?(https?:)?//`, a.body)
	require.NotRegexp(t, `\son\w+=`, a.body)
	for _, p := range service.Paths() {
		if p.Name != "" {
			require.True(t, strings.Contains(a.body, `<article id="`+p.Path+`">`), p.Path)
			require.True(t, strings.Contains(html.UnescapeString(a.body), p.Short+"."), p.Short)
		}
	}
	for _, link := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(a.body, -1) {
		target, err := url.PathUnescape(link[1])
		require.NoError(t, err)
		require.True(t, strings.Contains(a.body, `id="`+target+`"`), target)
	}
	require.Equal(t, "text/css; charset=utf-8", v.get("/docs/style.css", "").header.Get("Content-Type"))
	require.NotContains(t, v.get("/docs/style.css", "").body, "url(")
	for _, path := range []string{"/openapi.json", "/openapi.yaml"} {
		var doc map[string]any
		require.NoError(t, json.Unmarshal([]byte(v.get(path, "").body), &doc))
		require.Equal(t, "3.1.0", doc["openapi"])
	}
	for _, path := range []string{"/docs", "/openapi.json", "/healthz", "/metrics", "/nowhere"} {
		h := v.get(path, tokens.Operator).header
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
		require.Equal(t, "no-store", h.Get("Cache-Control"), path)
		require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'", path)
		require.Contains(t, h.Get("Content-Security-Policy"), "frame-ancestors 'none'", path)
	}
}

// TestHealth: ready says only that it is.
func TestHealth(t *testing.T) {
	v := serve(t, service.Options{})
	require.Equal(t, `{"alive":true}`+"\n", v.get("/healthz", "").body)
	require.Regexp(t, `^\{"ready":true,"index_lag":\d+\}\n$`, v.get("/readyz", "").body)
	require.NoError(t, v.store.Close())
	a := v.get("/readyz", "")
	require.Equal(t, 503, a.status)
	require.Equal(t, "store_closed", a.code(t))
	require.Equal(t, 503, v.post("/v1/list", tokens.Auditor, `{}`).status)
	require.Equal(t, 503, v.get("/metrics", tokens.Auditor).status)
	require.Equal(t, 200, v.get("/healthz", "").status)
}
