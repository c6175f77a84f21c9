package service

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
)

// operation is the route of an operation of package harness, whose request is
// at most limit bytes of JSON.
func operation[Q harness.Request, A any](op harness.Operation[Q, A], limit int64) route {
	told := about{op.Name, op.Short, op.Do, reflect.TypeFor[Q](), reflect.TypeFor[A]()}
	run := func(s *Service, ctx context.Context, c caller, body []byte) ([]byte, error) {
		q, err := harness.Decode[Q](body)
		if err != nil {
			return nil, err
		}
		if need := q.Level(); !may(c.role, need) {
			s.metrics.refuse("role")
			return nil, wrongRole("the request needs the role %s, the token's is %s", need, c.role)
		}
		var answer A
		begun := false
		err = s.with(ctx, func(_ *eventlog.Store, h harness.Harness) (err error) {
			begun = true
			answer, err = op.Do(h, ctx, q)
			return err
		})
		if err != nil {
			return nil, expired(err, ctx, begun, op.Writes)
		}
		s.judged(answer)
		return harness.Encode(answer)
	}
	return route{path: op.Path(), method: http.MethodPost, limit: limit, about: told, serve: (*Service).serveOperation, run: run}
}

// serveOperation answers a request to the route of an operation.
func (s *Service) serveOperation(w *record, r *http.Request, c caller) error {
	way := s.routes[r.URL.Path]
	body, done, err := s.body(w, r, way.limit)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(way.time, s.limits.WorkTime))
	defer cancel()
	b, err := way.run(s, ctx, c, body)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.limits.WriteTime)) // a test's recorder has none
	if err != nil {
		return err
	}
	w.send(http.StatusOK, "application/json", append(b, '\n'))
	return nil
}

// judged counts the calls that were not allowed. They are answers: the status
// of a denial and of a call that needs an approval is 200, and the verdict says
// what it is.
func (s *Service) judged(answer any) {
	switch v := answer.(type) {
	case wire.Judgement:
		s.judgedOne(&v)
	case harness.Items[wire.Checked]:
		for _, one := range v.Items {
			if one.Judgement != nil {
				s.judgedOne(one.Judgement)
			}
		}
	}
}

func (s *Service) judgedOne(j *wire.Judgement) {
	if j.Verdict != string(policy.VerdictAllow) {
		s.metrics.denied(j.Code)
	}
}

// plainBody is how large a body may be before its bytes are counted against the
// memory that all bodies share.
const plainBody = 64 << 10

// body reads the body of a request whole. done gives the memory back. It is
// refused before it is read if its length is told and too large; one that comes
// in pieces of no told length is cut off at the limit.
func (s *Service) body(w *record, r *http.Request, limit int64) (body []byte, done func(), err error) {
	if err := checkMedia(r); err != nil {
		return nil, nil, err
	}
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close")
		return nil, nil, &eventlog.TooLargeError{What: "request in bytes", Limit: uint64(limit), Size: uint64(r.ContentLength)}
	}
	done = func() {}
	if r.ContentLength < 0 || r.ContentLength > plainBody {
		weight := limit
		if r.ContentLength >= 0 {
			weight = r.ContentLength
		}
		ctx, cancel := context.WithTimeout(r.Context(), s.limits.HeaderTime)
		err := s.bodies.Acquire(ctx, weight)
		cancel()
		if err != nil {
			w.Header().Set("Connection", "close")
			return nil, nil, &refusal{status: http.StatusServiceUnavailable, code: "busy", message: "too many large requests at a time; nothing was done", hint: "repeat the request"}
		}
		done = func() { s.bodies.Release(weight) }
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.limits.BodyTime)) // a test's recorder has none
	body, err = readBody(w, r, limit)
	w.in = int64(len(body))
	if err != nil {
		done()
		w.Header().Set("Connection", "close")
		return nil, nil, unread(err)
	}
	// The body is here. Without this the server would take the end of the time for
	// it for that of the connection, and end the operation.
	_ = control.SetReadDeadline(time.Time{})
	return body, done, nil
}

// readBody takes memory as the bytes come, not as the header promises them.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(max(r.ContentLength, bytes.MinRead), plainBody)))
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	return b.Bytes(), err
}

// unread says why a body could not be read.
func unread(err error) error {
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return &eventlog.TooLargeError{What: "request in bytes, at least", Limit: uint64(large.Limit), Size: uint64(large.Limit) + 1}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse(http.StatusRequestTimeout, "slow_request", "the request did not come in time; nothing was done", "send it faster, or less of it")
	}
	return fmt.Errorf("%w: the request ended before its time", eventlog.ErrInvalid)
}

// checkMedia takes JSON as it is. A form or a text, which a browser sends for
// another site without asking first, is refused, and so is a compressed body,
// which could be any size.
func checkMedia(r *http.Request) error {
	if types := r.Header.Values("Content-Type"); len(types) == 1 {
		mediaType, params, err := mime.ParseMediaType(types[0])
		charset, other := params["charset"], len(params) > 1
		if err == nil && mediaType == "application/json" && !other && (charset == "" && len(params) == 0 || strings.EqualFold(charset, "utf-8")) && r.Header.Get("Content-Encoding") == "" {
			return nil
		}
	}
	return refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "want a body of Content-Type: application/json, not compressed", docsHint)
}
