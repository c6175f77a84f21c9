package harness_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
)

// handler serves a harness by the table of operations alone: what every service
// has to do at the least.
func handler(h harness.Harness) http.Handler {
	mux := http.NewServeMux()
	serve(mux, h, harness.OpRoot)
	serve(mux, h, harness.OpDelegate)
	serve(mux, h, harness.OpAppend)
	serve(mux, h, harness.OpSwitch)
	serve(mux, h, harness.OpNarrow)
	serve(mux, h, harness.OpSend)
	serve(mux, h, harness.OpInterrupt)
	serve(mux, h, harness.OpInbox)
	serve(mux, h, harness.OpClaim)
	serve(mux, h, harness.OpActivate)
	serve(mux, h, harness.OpEnd)
	serve(mux, h, harness.OpSettle)
	serve(mux, h, harness.OpClose)
	serve(mux, h, harness.OpNotices)
	serve(mux, h, harness.OpConsume)
	serve(mux, h, harness.OpPolicy)
	serve(mux, h, harness.OpResume)
	serve(mux, h, harness.OpCheck)
	serve(mux, h, harness.OpAsk)
	serve(mux, h, harness.OpAsks)
	serve(mux, h, harness.OpAnswer)
	serve(mux, h, harness.OpExplainField)
	serve(mux, h, harness.OpExplainAll)
	serve(mux, h, harness.OpExplainCall)
	serve(mux, h, harness.OpExplainEvent)
	serve(mux, h, harness.OpDiff)
	serve(mux, h, harness.OpShow)
	serve(mux, h, harness.OpList)
	serve(mux, h, harness.OpTree)
	serve(mux, h, harness.OpLog)
	serve(mux, h, harness.OpSearch)
	serve(mux, h, harness.OpHead)
	serve(mux, h, harness.OpRules)
	serve(mux, h, harness.OpSetRules)
	serve(mux, h, harness.OpStats)
	mux.HandleFunc("GET "+harness.FollowPath, func(w http.ResponseWriter, r *http.Request) { stream(w, r, h) })
	return mux
}

func serve[Q harness.Request, A any](mux *http.ServeMux, h harness.Harness, o harness.Operation[Q, A]) {
	mux.HandleFunc("POST "+o.Path(), func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, harness.MaxRequest+1))
		var q Q
		if err == nil {
			q, err = harness.Decode[Q](body)
		}
		var answer A
		if err == nil {
			answer, err = o.Do(h, r.Context(), q)
		}
		if err != nil {
			fail(w, err)
			return
		}
		text, err := harness.Encode(answer)
		if err != nil {
			fail(w, err)
			return
		}
		_, _ = w.Write(text)
	})
}

func fail(w http.ResponseWriter, err error) {
	body := harness.Failed(err)
	text, _ := harness.Encode(body)
	w.WriteHeader(harness.Status(body.Error.Code))
	_, _ = w.Write(text)
}

func stream(w http.ResponseWriter, r *http.Request, h harness.Harness) {
	q := r.URL.Query()
	f := harness.FollowRequest{Session: q.Get("session"), After: q.Get("after"), Types: q["types"], NoContent: q.Get("no_content") == "true"}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		f.After = last
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for v, err := range h.Follow(r.Context(), f) {
		if err != nil {
			text, _ := harness.Encode(harness.Failed(err))
			fmt.Fprintf(w, "event: error\ndata: %s\n\n", text)
			return
		}
		text, err := v.Line()
		if err != nil {
			return
		}
		fmt.Fprintf(w, ": heartbeat\nid: %s\ndata: %s\n", v.Cursor, text)
		w.(http.Flusher).Flush()
	}
}

// served is a client of a harness that is served on the loopback.
func served(t testing.TB, h harness.Harness) *harness.Client {
	t.Helper()
	srv := httptest.NewServer(handler(h))
	c, err := harness.Dial(context.Background(), srv.URL, harness.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		srv.CloseClientConnections()
		srv.Close()
	})
	return c
}

// both runs a test on the embedded store and on a client of it: what holds for
// one holds for the other.
func both(t *testing.T, test func(t *testing.T, h harness.Harness)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, embedded(t)) })
	t.Run("client", func(t *testing.T) { test(t, served(t, embedded(t))) })
}
