package policy

import (
	"errors"
	"fmt"
	"strconv"
)

// The ways a path or a child is refused by its scope, beside [ErrInvalid] for
// what states no scope at all. Errors wrap one of them; test with [errors.Is].
var (
	// ErrOutside marks a target that is not a place inside the workspace and
	// its scope. The call it belongs to is denied; nothing is wrong with the
	// policy.
	ErrOutside = errors.New("outside")

	// ErrPathUnknown marks a mutating call whose targets could not all be
	// read from its arguments, so that no scope can vouch for it.
	ErrPathUnknown = errors.New("path unknown")

	// ErrUnconfined marks a mutating child whose guard is absent or broader
	// than the scope that was declared for it. It must not be started.
	ErrUnconfined = errors.New("unconfined")
)

// The codes a decision carries when a scope refuses a call. They are recorded
// in logs, so they are never renamed or reused.
const (
	// CodeWriteScopeViolation: a target lies outside the scope, or the call
	// is of a kind that no scope can hold.
	CodeWriteScopeViolation = "write_scope_violation"

	// CodePathUnknown: a mutating call with no recognized path, or with one
	// that could not be read.
	CodePathUnknown = "path_unknown"
)

// TargetError says why one target of a call is outside. It unwraps to
// [ErrOutside] and, where the file system was asked, to what it answered.
type TargetError struct {
	Target   string // as given in the call, never rewritten
	Resolved string // where it really leads, relative to the workspace if inside; "" if not asked or not known
	Want     string // what would have been accepted, lower-case, for people
	Err      error  // the cause below, or nil
}

// Error renders target, resolution and want on one line. Long targets are cut,
// so a hostile one cannot make the message grow.
func (e *TargetError) Error() string {
	msg := fmt.Sprintf("%v: target: got %s", ErrOutside, quoted(e.Target))
	if e.Resolved != "" && e.Resolved != e.Target {
		msg += " (really " + quoted(e.Resolved) + ")"
	}
	if e.Want != "" {
		msg += ", want " + e.Want
	}
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg
}

// Unwrap returns [ErrOutside], and Err unless it is nil.
func (e *TargetError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrOutside}
	}
	return []error{ErrOutside, e.Err}
}

// quotedBytes is the most of a path that a message shows: longer than any
// entry of a scope may be in characters, shorter than a screen.
const quotedBytes = 256

// quoted renders a path for a message: escaped, so that it stays on one line
// and shows what is invisible, and cut when it is long.
func quoted(s string) string {
	if len(s) <= quotedBytes {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%s... (%d bytes)", strconv.Quote(s[:quotedBytes]), len(s))
}
