package eventlog

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"childlog/policy"
)

// Sentinels, grouped by when they happen. Every error of this module wraps
// exactly one of them, so that errors.Is decides what a caller does next and
// a command maps it to one exit code.
var (
	// Addressing.
	ErrNotFound  = errors.New("not found")
	ErrAmbiguous = errors.New("ambiguous")
	ErrExists    = errors.New("already exists")
	ErrPurged    = errors.New("purged") // there was such a session, and it was removed on record

	// Order and identity of appends.
	ErrConflict  = errors.New("conflict")
	ErrDuplicate = errors.New("duplicate event")

	// Refusals.
	ErrFenced        = errors.New("fenced")
	ErrUnauthorized  = errors.New("unauthorized")
	ErrNotResumable  = errors.New("not resumable")
	ErrEvidence      = errors.New("evidence is never authority")
	ErrStaleCapture  = errors.New("stale capture")
	ErrWithheld      = errors.New("content withheld") // left out when the log was handed on, or erased before
	ErrDepth         = policy.ErrDepth
	ErrOpenTurn      = errors.New("open turn")
	ErrSessionClosed = errors.New("session closed")
	ErrWidening      = policy.ErrWidening
	ErrHeld          = errors.New("under legal hold")

	// Input.
	ErrInvalid     = policy.ErrInvalid
	ErrTooLarge    = errors.New("too large")
	ErrUnknownType = errors.New("unknown type")

	// The store itself.
	ErrCorrupt          = errors.New("corrupt")
	ErrStoreLost        = errors.New("store lost")
	ErrRollback         = errors.New("rollback")
	ErrUnverified       = errors.New("unverified") // a signature, a proof, or the key for it
	ErrLocked           = errors.New("locked")
	ErrOutcomeUnknown   = errors.New("outcome unknown")
	ErrReadOnly         = errors.New("read only")
	ErrNoSpace          = errors.New("no space")
	ErrStoreClosed      = errors.New("store closed")
	ErrPolicyUnreadable = errors.New("policy unreadable")
	ErrNewerFormat      = errors.New("newer format") // of the store's layout
)

// ConflictError says that an append expected another head. Expected and
// Actual are sequence numbers, 0 meaning an empty log.
type ConflictError struct {
	Session          uuid.UUID
	Expected, Actual uint64
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("conflict: session %s: expected head seq %d, actual %d", e.Session, e.Expected, e.Actual)
}

func (e *ConflictError) Unwrap() error { return ErrConflict }

// DuplicateError says that the event id is stored already with another body.
type DuplicateError struct {
	Session, ID uuid.UUID
	Seq         uint64
	Field       string // the first part that differs: type, facts, content, place
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("duplicate event: id %s is stored at seq %d of session %s with another %s", e.ID, e.Seq, e.Session, e.Field)
}

func (e *DuplicateError) Unwrap() error { return ErrDuplicate }

// FencedError says that the caller's epoch is not the open activation's.
// Got 0 means that the caller named none. Open is the last activation's epoch,
// 0 if there never was one; if it is Got, that activation has ended.
type FencedError struct {
	Session   uuid.UUID
	Got, Open uint64
}

func (e *FencedError) Error() string {
	switch {
	case e.Got == 0:
		return fmt.Sprintf("fenced: session %s is held by activation %d and the append carries no epoch", e.Session, e.Open)
	case e.Open == 0:
		return fmt.Sprintf("fenced: session %s: got epoch %d, but the session was never activated", e.Session, e.Got)
	case e.Got == e.Open:
		return fmt.Sprintf("fenced: session %s: the activation of epoch %d has ended", e.Session, e.Got)
	case e.Got > e.Open:
		return fmt.Sprintf("fenced: session %s: got epoch %d, the last activation is %d", e.Session, e.Got, e.Open)
	}
	return fmt.Sprintf("fenced: session %s: epoch %d is superseded by %d", e.Session, e.Got, e.Open)
}

func (e *FencedError) Unwrap() error { return ErrFenced }

// TooLargeError names the limit that an input passed. Limit and Size share
// the unit named in What (bytes or a count).
type TooLargeError struct {
	What        string
	Limit, Size uint64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("too large: %s: limit %d, got %d", e.What, e.Limit, e.Size)
}

func (e *TooLargeError) Unwrap() error { return ErrTooLarge }

// LockedError names the process that holds the store, as far as it said so.
type LockedError struct {
	Path    string
	PID     int
	Command string
	Since   time.Time
	Waited  time.Duration
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("pid %d (%s) since %s", e.PID, e.Command, e.Since.UTC().Format(time.RFC3339))
	}
	if e.Waited > 0 {
		return fmt.Sprintf("locked: store %s is held by %s; waited %s", e.Path, who, e.Waited.Round(100*time.Millisecond))
	}
	return fmt.Sprintf("locked: store %s is held by %s", e.Path, who)
}

func (e *LockedError) Unwrap() error { return ErrLocked }

// CorruptError locates damage. Fields that are not known are zero; Position
// is meaningful only if HasPosition.
type CorruptError struct {
	Session     uuid.UUID
	Seq         uint64
	Position    uint64
	HasPosition bool
	Type        string
	Field       string
	Reason      string
}

func (e *CorruptError) Error() string {
	s := "corrupt"
	if e.Session != uuid.Nil {
		s += fmt.Sprintf(": session %s", e.Session)
	}
	if e.Seq != 0 {
		s += fmt.Sprintf(": seq %d", e.Seq)
	}
	if e.HasPosition {
		s += fmt.Sprintf(": position %d", e.Position)
	}
	if e.Type != "" {
		s += fmt.Sprintf(": type %s", e.Type)
	}
	if e.Field != "" {
		s += fmt.Sprintf(": field %s", e.Field)
	}
	return s + ": " + e.Reason
}

func (e *CorruptError) Unwrap() error { return ErrCorrupt }

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

func corruptf(position uint64, format string, args ...any) error {
	return &CorruptError{Position: position, HasPosition: true, Reason: fmt.Sprintf(format, args...)}
}
