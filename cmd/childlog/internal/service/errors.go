package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/failure"
	"childlog/eventlog"
)

// refusal is an answer to a request that reached no operation, or whose
// operation did not end. Those of operations are in package failure.
type refusal struct {
	status              int
	code, message, hint string
	again               time.Duration // when it is worth to come again; 0: nothing is said
}

func (e *refusal) Error() string { return e.message }

func refuse(status int, code, message, hint string) error {
	return &refusal{status: status, code: code, message: message, hint: hint}
}

// wrongRole says that a token's role does not suffice.
func wrongRole(format string, args ...any) error {
	err := fmt.Errorf("%w: %s", eventlog.ErrUnauthorized, fmt.Sprintf(format, args...))
	return failure.WithAPIHint(err, "ask with a token of that role, which whoever runs the service makes")
}

// retryAfter is told with every 503 that does not know better.
const retryAfter = time.Second

// statusGone is logged where the client went away before it had its answer. No
// client sees it.
const statusGone = 499

// answerTo says what a client is told of an error. What is in no table is told
// without its text, which nobody wrote for the outside.
func answerTo(err error) (status int, body harness.ErrorBody, again time.Duration) {
	if re := (*refusal)(nil); errors.As(err, &re) {
		return re.status, harness.ErrorBody{Error: harness.ErrorDetail{Code: re.code, Message: re.message, Hint: re.hint}}, re.again
	}
	body = harness.Failed(err)
	if failure.ExitOf(body.Error.Code) == failure.ExitOther {
		return http.StatusInternalServerError, internalError, 0
	}
	return harness.Status(body.Error.Code), body, 0
}

// internalError is told of what the service itself did wrong.
var internalError = harness.ErrorBody{Error: harness.ErrorDetail{Code: "internal", Message: "internal error",
	Hint: "the service's log says more; repeat the request with the same ids or key"}}

// expired turns the end of the time for an operation into what it means: of
// one that began to write nobody knows yet whether it did.
func expired(err error, ctx context.Context, begun, writes bool) error {
	switch {
	case !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil:
		return err
	case !begun:
		return errBusy
	case writes:
		return fmt.Errorf("%w: the operation took longer than it may: %w", eventlog.ErrOutcomeUnknown, err)
	}
	return &refusal{status: http.StatusGatewayTimeout, code: "timeout", message: "the operation took longer than it may", hint: "ask for less at a time"}
}

// stopping is told to who comes while the service ends.
func stopping() error {
	return refuse(http.StatusServiceUnavailable, "store_closed", "store closed: the service is stopping", "repeat the request with the same ids or key once it is back")
}

// errBusy is told while something needs the store alone, such as a compaction.
var errBusy = fmt.Errorf("%w: the store is being worked on by something that needs it alone; nothing was done", eventlog.ErrLocked)

// failure notes an error, and returns what is answered to it.
func (w *record) failure(err error) (status int, text []byte, again time.Duration) {
	status, body, again := answerTo(err)
	w.code = body.Error.Code
	if status == http.StatusInternalServerError {
		w.cause = err
	}
	text, encodeErr := harness.Encode(body)
	if encodeErr != nil { // of strings and numbers
		text = []byte(`{"error":{"code":"internal","message":"internal error","hint":""}}`)
	}
	return status, text, again
}

// fail answers with an error.
func (s *Service) fail(w *record, err error) {
	status, b, again := w.failure(err)
	if w.wrote {
		return // a stream has begun; its end is all that can be told
	}
	if again == 0 && status == http.StatusServiceUnavailable {
		again = retryAfter
	}
	h := w.Header()
	if again > 0 {
		h.Set("Retry-After", strconv.Itoa(int(max(1, (again+time.Second-1)/time.Second))))
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="childlog"`)
	}
	w.send(status, "application/json", append(b, '\n'))
}
