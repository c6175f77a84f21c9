package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/failure"
	"childlog/eventlog"
)

// ErrorBody is what an operation that failed is answered with. Code is stable
// and stands for a sentinel of package eventlog; message and hint are for people.
type ErrorBody struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail is the error. Of the facts those are there that a caller decides
// by.
type ErrorDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`

	Conflict  *ConflictFacts  `json:"conflict,omitzero"`
	Duplicate *DuplicateFacts `json:"duplicate,omitzero"`
	Fenced    *FencedFacts    `json:"fenced,omitzero"`
	TooLarge  *TooLargeFacts  `json:"too_large,omitzero"`
	Locked    *LockedFacts    `json:"locked,omitzero"`
}

// ConflictFacts are those of an [eventlog.ConflictError].
type ConflictFacts struct {
	Session  uuid.UUID `json:"session"`
	Expected uint64    `json:"expected"`
	Actual   uint64    `json:"actual"`
}

// DuplicateFacts are those of an [eventlog.DuplicateError].
type DuplicateFacts struct {
	Session uuid.UUID `json:"session"`
	ID      uuid.UUID `json:"id"`
	Seq     uint64    `json:"seq"`
	Field   string    `json:"field"`
}

// FencedFacts are those of an [eventlog.FencedError].
type FencedFacts struct {
	Session uuid.UUID `json:"session"`
	Got     uint64    `json:"got"`
	Open    uint64    `json:"open"`
}

// TooLargeFacts are those of an [eventlog.TooLargeError].
type TooLargeFacts struct {
	What  string `json:"what"`
	Limit uint64 `json:"limit"`
	Size  uint64 `json:"size"`
}

// LockedFacts are those of an [eventlog.LockedError].
type LockedFacts struct {
	Path     string    `json:"path"`
	PID      int       `json:"pid"`
	Command  string    `json:"command"`
	Since    time.Time `json:"since"`
	WaitedMS int64     `json:"waited_ms"`
}

// Failed is the body that says of an error what a client needs to know.
func Failed(err error) ErrorBody {
	f := failure.Of(err)
	d := ErrorDetail{Code: f.Code, Message: err.Error(), Hint: f.API}
	var (
		conflict  *eventlog.ConflictError
		duplicate *eventlog.DuplicateError
		fenced    *eventlog.FencedError
		large     *eventlog.TooLargeError
		locked    *eventlog.LockedError
	)
	switch {
	case errors.As(err, &conflict):
		d.Conflict = &ConflictFacts{conflict.Session, conflict.Expected, conflict.Actual}
	case errors.As(err, &duplicate):
		d.Duplicate = &DuplicateFacts{duplicate.Session, duplicate.ID, duplicate.Seq, duplicate.Field}
	case errors.As(err, &fenced):
		d.Fenced = &FencedFacts{fenced.Session, fenced.Got, fenced.Open}
	case errors.As(err, &large):
		d.TooLarge = &TooLargeFacts{large.What, large.Limit, large.Size}
	case errors.As(err, &locked):
		d.Locked = &LockedFacts{locked.Path, locked.PID, locked.Command, locked.Since, locked.Waited.Milliseconds()}
	}
	return ErrorBody{d}
}

// Status is the HTTP status of an error with a code.
func Status(code string) int {
	switch code {
	case "too_large":
		return http.StatusRequestEntityTooLarge
	case "purged":
		return http.StatusGone
	case "interrupted":
		return http.StatusServiceUnavailable
	}
	switch failure.ExitOf(code) {
	case failure.ExitUsage:
		return http.StatusBadRequest
	case failure.ExitRefused:
		return http.StatusForbidden
	case failure.ExitConflict:
		return http.StatusConflict
	case failure.ExitNotFound:
		return http.StatusNotFound
	case failure.ExitUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// RemoteError is an error that a service answered with. errors.Is finds the
// sentinel that its code stands for, and errors.As the typed error behind the
// facts; the message is the service's.
type RemoteError struct {
	Status int // of the HTTP answer; 0: of an event stream
	ErrorDetail
}

func (e *RemoteError) Error() string { return e.Message }

// Unwrap returns the typed error, else the sentinel, else nil.
func (e *RemoteError) Unwrap() error {
	switch {
	case e.Conflict != nil:
		return &eventlog.ConflictError{Session: e.Conflict.Session, Expected: e.Conflict.Expected, Actual: e.Conflict.Actual}
	case e.Duplicate != nil:
		return &eventlog.DuplicateError{Session: e.Duplicate.Session, ID: e.Duplicate.ID, Seq: e.Duplicate.Seq, Field: e.Duplicate.Field}
	case e.Fenced != nil:
		return &eventlog.FencedError{Session: e.Fenced.Session, Got: e.Fenced.Got, Open: e.Fenced.Open}
	case e.TooLarge != nil:
		return &eventlog.TooLargeError{What: e.TooLarge.What, Limit: e.TooLarge.Limit, Size: e.TooLarge.Size}
	case e.Locked != nil:
		return &eventlog.LockedError{Path: e.Locked.Path, PID: e.Locked.PID, Command: e.Locked.Command, Since: e.Locked.Since, Waited: time.Duration(e.Locked.WaitedMS) * time.Millisecond}
	}
	if is := failure.Sentinel(e.Code); !errors.Is(is, context.Canceled) { // it is the service that was stopped, not the caller
		return is
	}
	return fmt.Errorf("%w: the service was stopped", eventlog.ErrStoreClosed)
}
