// Package failure is what people and programs are told of an error: one table
// of stable codes, exit codes and hints. The command prints it, the service
// sends it, and the client turns a code back into the error it stands for.
package failure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"childlog/eventlog"
	"childlog/policy"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitOther       = 1
	ExitUsage       = 2 // the command line, or input data that is not valid
	ExitRefused     = 3 // by policy
	ExitConflict    = 4
	ExitNotFound    = 5 // or ambiguous
	ExitCorrupt     = 6 // or lost, or unverifiable
	ExitUnavailable = 7 // locked, or can't be written now
	ExitApproval    = 8 // a call needs an approval first
	ExitInterrupted = 130
)

// Failure is what is made of an error.
type Failure struct {
	Is   error  // the sentinel that the row is of; the error itself where no row is
	Code string // stable, for programs
	Exit int
	Hint string // what a person at a command line can do
	API  string // what a program can do that calls an operation, or who runs it; never empty
}

// failures is the one table, in order: the first that an error wraps decides,
// so what wraps another sentinel comes before it. Where the last column is empty
// the hint is for programs as well: it names no command and no flag.
var failures = sync.OnceValue(func() []Failure {
	return []Failure{
		{eventlog.ErrOutcomeUnknown, "outcome_unknown", ExitUnavailable, "it may or may not be written; repeat it with the same event ids or key: a retry gets the original result", ""},
		{eventlog.ErrStaleCapture, "stale_capture", ExitRefused, "the parent changed since it was captured; delegate again", ""},
		{eventlog.ErrRollback, "rollback", ExitCorrupt, "nothing was changed; look for the newer copy. `childlog verify` compares what is here, `childlog log` and `show` read it; `childlog accept-rollback` goes on with it as it is, which the log then says", "nothing was changed; policies and logs can be read still; whoever runs the store looks for the newer copy of it"},
		{eventlog.ErrPolicyUnreadable, "policy_unreadable", ExitCorrupt, "nothing may be granted from this log; `childlog verify` says what is wrong, `childlog log` shows what can be read", "nothing may be granted from this log; verify says what is wrong, log shows what can be read"},
		{eventlog.ErrLocked, "locked", ExitUnavailable, "wait for it with --wait 10s, or end the process that holds the store", "repeat it in a moment; if that does not help, ask whoever runs the store what else holds it"},
		{eventlog.ErrNotFound, "not_found", ExitNotFound, "`childlog ls` lists the sessions, `childlog log` the seqs of one; --store or CHILDLOG_STORE says which store is meant", "list names the sessions, log the events of one, asks the questions that wait"},
		{eventlog.ErrAmbiguous, "ambiguous", ExitNotFound, "give more digits of the id", ""},
		{eventlog.ErrExists, "exists", ExitConflict, "leave the id out to get a new one, or use what exists", ""},
		{eventlog.ErrDuplicate, "duplicate", ExitConflict, "an event id names one event for ever: repeat it with the same body, or take a new id", ""},
		{eventlog.ErrFenced, "fenced", ExitConflict, "another activation holds the session; take over with `childlog activate`, then use its epoch", "another activation holds the session; take over with activate, then use its epoch"},
		{eventlog.ErrConflict, "conflict", ExitConflict, "someone else was first; look with `childlog show` and decide again", "someone else was first; look with show and decide again"},
		{eventlog.ErrPurged, "purged", ExitNotFound, "it can't be brought back from this store; `childlog log " + eventlog.StoreSession.String()[:8] + "` shows what is kept of it", "it can't be brought back from this store; log of session " + eventlog.StoreSession.String()[:8] + " shows what is kept of it"},
		{eventlog.ErrHeld, "held", ExitRefused, "nothing was erased; `childlog release` ends a hold, on the session that it was set on", "nothing was erased; a hold is ended on the session that it was set on"},
		{eventlog.ErrWidening, "widening", ExitRefused, "a session never gets more than its bound; for more, delegate again from a parent that holds it", ""},
		{policy.ErrOutside, "outside", ExitRefused, "name a place that the scope admits, as the answer says; only a new delegation widens a scope", ""},
		{eventlog.ErrUnauthorized, "unauthorized", ExitRefused, "name the parent that delegated, or act as --operator; events of childlog's own families are written by their own commands", "name the parent that delegated, or ask as an operator; events of childlog's own families are written by their own operations"},
		{eventlog.ErrNotResumable, "not_resumable", ExitRefused, "re-delegate: `childlog delegate` makes a fresh child", "re-delegate: delegate makes a fresh child"},
		{eventlog.ErrEvidence, "evidence", ExitRefused, "an imported log can be read, explained and verified; start a fresh root for new work", ""},
		{eventlog.ErrWithheld, "withheld", ExitNotFound, "the log was handed on without it; ask where the log came from", ""},
		{eventlog.ErrDepth, "depth", ExitRefused, "do the work in this session, or begin a root with a larger --max-depth", "do the work in this session, or begin a root with a larger max_depth"},
		{eventlog.ErrOpenTurn, "open_turn", ExitRefused, "fork at a seq where no turn is open; `childlog log` shows the turns", "fork at a seq where no turn is open; log shows the turns"},
		{eventlog.ErrSessionClosed, "session_closed", ExitRefused, "a closed session stays closed; delegate again or begin a new root", ""},
		{eventlog.ErrTooLarge, "too_large", ExitUsage, "split it, or keep the large part elsewhere and append a reference", ""},
		{eventlog.ErrStoreLost, "store_lost", ExitCorrupt, "a part of the store is gone; nothing was changed: if store.db is left `childlog salvage --dry-run` says what can be saved, else restore a backup", "a part of the store is gone and nothing was changed; whoever runs it restores a backup, or saves what is left"},
		{eventlog.ErrUnknownType, "unknown_type", ExitCorrupt, "use the version of childlog, or of the harness, that knows this type", ""},
		{eventlog.ErrUnverified, "unverified", ExitCorrupt, "nothing was changed; compare the key with the one that was printed when the store was made", ""},
		{eventlog.ErrNewerFormat, "newer_format", ExitCorrupt, "nothing was changed; use a version of childlog that knows the format", ""},
		{eventlog.ErrCorrupt, "corrupt", ExitCorrupt, "nothing was changed; keep a copy: `childlog verify` lists all damage, `childlog salvage --dry-run` says what can be saved", "nothing was changed; verify lists all damage; whoever runs the store keeps a copy of it before anything else"},
		{eventlog.ErrReadOnly, "read_only", ExitUnavailable, "the store can't be written now; open it again, and look at its files and their permissions", "the store can't be written now; repeat it in a moment, and ask whoever runs it if that does not help"},
		{eventlog.ErrNoSpace, "no_space", ExitUnavailable, "nothing was written; make room and repeat", ""},
		{eventlog.ErrStoreClosed, "store_closed", ExitUnavailable, "repeat it", ""},
		{eventlog.ErrInvalid, "invalid", ExitUsage, "nothing was written; mend the input as the message says", ""},
		{os.ErrPermission, "permission", ExitUnavailable, "the store belongs to another user, or its files may not be written", "whoever runs the store looks at the owner and the permissions of its files"},
		{context.Canceled, "interrupted", ExitInterrupted, "it was stopped by a signal", "the service is stopping; repeat it once it is back"},
	}
})

// usageError is a command line that does not fit.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// Usage makes an error one of the command line: exit 2, code usage.
func Usage(err error) error { return &usageError{err} }

// Usagef is [Usage] of a new error.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// hinted is an error that knows better than the table what to do.
type hinted struct {
	error
	hint, api string
}

func (e *hinted) Unwrap() error { return e.error }

// WithHint gives an error a hint of its own for people, which beats the table's.
func WithHint(err error, hint string) error { return &hinted{error: err, hint: hint} }

// WithAPIHint gives an error a hint of its own for programs.
func WithAPIHint(err error, hint string) error { return &hinted{error: err, api: hint} }

// Of finds an error's place in the table.
func Of(err error) Failure {
	f := Failure{Is: err, Code: "other", Exit: ExitOther, Hint: "see `childlog help`; if it makes no sense, report it with the message", API: "if it makes no sense, report it with the message"}
	if ue := (*usageError)(nil); errors.As(err, &ue) {
		f = Failure{Is: err, Code: "usage", Exit: ExitUsage, Hint: "see `childlog help` and `childlog COMMAND --help`", API: "mend the request as the message says"}
	} else {
		for _, row := range failures() {
			if errors.Is(err, row.Is) {
				f = row
				break
			}
		}
	}
	f.API = cmp.Or(f.API, f.Hint)
	fitted(err, &f)
	for _, own := range hints(err) {
		f.Hint, f.API = cmp.Or(own.hint, f.Hint), cmp.Or(own.api, f.API)
	}
	return f
}

// hints are the outermost hint for people and the outermost for programs that an
// error has of its own.
func hints(err error) (list []*hinted) {
	h := (*hinted)(nil)
	for errors.As(err, &h) {
		list = append(list, h)
		err = h.error
	}
	slices.Reverse(list)
	return list
}

// Sentinel is the error that a code stands for, nil if no row has the code.
func Sentinel(code string) error {
	for _, row := range failures() {
		if row.Code == code {
			return row.Is
		}
	}
	return nil
}

// ExitOf is the exit code of errors with a code; [ExitOther] if no row has it.
func ExitOf(code string) int {
	if code == "usage" {
		return ExitUsage
	}
	for _, row := range failures() {
		if row.Code == code {
			return row.Exit
		}
	}
	return ExitOther
}
