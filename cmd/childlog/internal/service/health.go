package service

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// MetricsPath is where the metrics are. They are for auditors and operators: a
// scraper gets a token like everybody else.
const MetricsPath = "/metrics"

// Health is the answer of /healthz: the process answers.
type Health struct {
	Alive bool `json:"alive"`
}

// Readiness is the answer of /readyz: the store is open and takes appends. It
// tells nothing that a stranger may not know; why the service is not ready is
// in its log and in the code of the error.
type Readiness struct {
	Ready    bool   `json:"ready"`
	IndexLag uint64 `json:"index_lag"` // frames that the index does not cover yet; it costs time and changes no answer
}

func (s *Service) serveHealth(w *record, _ *http.Request, _ caller) error {
	return sendJSON(w, Health{Alive: true})
}

func (s *Service) serveReady(w *record, r *http.Request, _ caller) error {
	if s.stopped() {
		return notReady("store_closed")
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTime)
	defer cancel()
	var st eventlog.Stats
	begun := false
	err := s.with(ctx, func(store *eventlog.Store, _ harness.Harness) (err error) {
		if begun, err = true, store.Writable(); err == nil {
			st, err = store.Stats()
		}
		return err
	})
	if err == nil {
		return sendJSON(w, Readiness{Ready: true, IndexLag: st.Lag})
	}
	err = expired(err, ctx, begun, false)
	_, body, _ := answerTo(err)
	w.cause = err
	return notReady(body.Error.Code)
}

// readyTime is how long the store may be busy before it is not ready.
const readyTime = time.Second

func notReady(code string) error {
	return &refusal{status: http.StatusServiceUnavailable, code: code, message: "not ready", hint: "the service's log says more", again: retryAfter}
}

func (s *Service) serveMetrics(w *record, r *http.Request, c caller) error {
	if !readsMetrics(c.role) {
		s.metrics.refuse("role")
		return wrongRole("the metrics need the role auditor or operator, the token's is %s", c.role)
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.WorkTime)
	defer cancel()
	var f storeFigures
	begun := false
	err := s.with(ctx, func(store *eventlog.Store, _ harness.Harness) error {
		begun = true
		st, err := store.Stats()
		f = storeFigures{sessions: st.Sessions, events: st.Events, frames: st.Frames, indexLag: st.Lag, journalBytes: st.JournalBytes,
			freeBytes: st.FreeBytes(), indexBytes: st.IndexBytes, writable: store.Writable() == nil}
		if durable := store.Durable(); durable > st.Signed {
			f.signedLag = durable - st.Signed
		}
		return err
	})
	if err != nil {
		return expired(err, ctx, begun, false)
	}
	var b bytes.Buffer
	s.metrics.write(&b, &f)
	w.send(http.StatusOK, metricsType, b.Bytes())
	return nil
}

func sendJSON(w *record, v any) error {
	b, err := wire.Line(v)
	if err == nil {
		w.send(http.StatusOK, "application/json", b)
	}
	return err
}
