package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"childlog/cmd/childlog/internal/tokens"
	"childlog/eventlog"
)

// record is one request as its log line and the metrics tell it: who asked for
// which route, what came of it, how long it took and how much went back and
// forth. Never what: paths, queries, headers, bodies and messages are not in it.
type record struct {
	http.ResponseWriter
	begun  time.Time
	method string
	route  string // as in the table; "" if the request named none
	peer   string // unix or tcp
	token  string // id
	role   tokens.Role

	wrote  bool
	status int
	code   string // of the error that was answered
	in     int64  // bytes of the body that were read
	out    int64  // bytes of the answer
	cause  error  // of a 500
}

// WriteHeader notes the status.
func (w *record) WriteHeader(status int) {
	if !w.wrote {
		w.wrote, w.status = true, status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes.
func (w *record) Write(b []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(b)
	w.out += int64(n)
	return n, err
}

// Unwrap lets deadlines be set on the connection.
func (w *record) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// send answers with a whole body.
func (w *record) send(status int, mediaType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that went away has no use for it
}

// finish writes the line, and answers what panicked. The stack goes to the log
// alone: it names types and functions and no values.
func (s *Service) finish(w *record, r *http.Request) {
	if p := recover(); p != nil {
		if p == http.ErrAbortHandler {
			panic(p)
		}
		err := s.panicked(w)
		if w.wrote {
			w.code = "internal"
			s.note(r.Context(), w)
			panic(http.ErrAbortHandler) // closes the connection: half an answer is never taken for a whole one
		}
		w.Header().Set("Connection", "close")
		s.fail(w, err)
	}
	s.note(r.Context(), w)
}

// panicked notes that an answer panicked, and returns what is told of it.
func (s *Service) panicked(w *record) error {
	s.metrics.panicked()
	w.cause = nil
	s.log.Error("panic", "route", w.route, "stack", string(debug.Stack()))
	return refuse(http.StatusInternalServerError, internalError.Error.Code, internalError.Error.Message, internalError.Error.Hint)
}

func (s *Service) note(ctx context.Context, w *record) {
	took := s.now().Sub(w.begun)
	status := w.status
	if !w.wrote || ctx.Err() != nil && w.code == "interrupted" {
		status = statusGone
	}
	route := w.route
	if route == "" {
		route = "none"
	}
	s.metrics.request(route, status, took)
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError && status != http.StatusServiceUnavailable {
		level = slog.LevelError
	}
	if !s.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("method", method(w.method)), slog.String("route", route), slog.Int("status", status),
		slog.Duration("took", took.Round(time.Microsecond)), slog.String("peer", w.peer), slog.Int64("in", w.in), slog.Int64("out", w.out)}
	if w.code != "" {
		attrs = append(attrs, slog.String("code", w.code))
	}
	if w.token != "" {
		attrs = append(attrs, slog.String("token", w.token))
	}
	if w.cause != nil {
		attrs = append(attrs, slog.String("error", traced(w.cause)))
	}
	s.log.LogAttrs(ctx, level, "request", attrs...)
}

// traced is what the log tells of an error that is the service's or the store's
// own: damage and failures of the system in their words, of anything else only
// the type, since its text may repeat what a client sent.
func traced(err error) string {
	if ce := (*eventlog.CorruptError)(nil); errors.As(err, &ce) {
		return ce.Error()
	}
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return pe.Error()
	}
	if no := syscall.Errno(0); errors.As(err, &no) {
		return no.Error()
	}
	return fmt.Sprintf("%T", err)
}

// method keeps what a client made up out of the log.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return m
	}
	return "other"
}
