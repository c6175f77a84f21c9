// Package failure is what people and programs are told of an error: one table
// of stable codes, exit codes and hints. The command prints it, the service
// sends it, and the client turns a code back into the error it stands for.
package failure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"childlog/eventlog"
	"childlog/materialize"
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
	Hint string // what a person can do
}

// failures is the one table, in order: the first that an error wraps decides,
// so what wraps another sentinel comes before it.
var failures = sync.OnceValue(func() []Failure {
	return []Failure{
		{eventlog.ErrOutcomeUnknown, "outcome_unknown", ExitUnavailable, "it may or may not be written; repeat it with the same event ids or key: a retry gets the original result"},
		{eventlog.ErrStaleCapture, "stale_capture", ExitRefused, "the parent changed since it was captured; delegate again"},
		{eventlog.ErrRollback, "rollback", ExitCorrupt, "nothing was changed; look for the newer copy. `childlog verify` compares what is here, `childlog log` and `show` read it; `childlog accept-rollback` goes on with it as it is, which the log then says"},
		{eventlog.ErrPolicyUnreadable, "policy_unreadable", ExitCorrupt, "nothing may be granted from this log; `childlog verify` says what is wrong, `childlog log` shows what can be read"},
		{eventlog.ErrLocked, "locked", ExitUnavailable, "wait for it with --wait 10s, or end the process that holds the store"},
		{eventlog.ErrNotFound, "not_found", ExitNotFound, "`childlog ls` lists the sessions, `childlog log` the seqs of one; --store or CHILDLOG_STORE says which store is meant"},
		{eventlog.ErrAmbiguous, "ambiguous", ExitNotFound, "give more digits of the id"},
		{eventlog.ErrExists, "exists", ExitConflict, "leave the id out to get a new one, or use what exists"},
		{eventlog.ErrDuplicate, "duplicate", ExitConflict, "an event id names one event for ever: repeat it with the same body, or take a new id"},
		{eventlog.ErrFenced, "fenced", ExitConflict, "another activation holds the session; take over with `childlog activate`, then use its epoch"},
		{eventlog.ErrConflict, "conflict", ExitConflict, "someone else was first; look with `childlog show` and decide again"},
		{eventlog.ErrPurged, "purged", ExitNotFound, "it can't be brought back from this store; `childlog log " + eventlog.StoreSession.String()[:8] + "` shows what is kept of it"},
		{eventlog.ErrHeld, "held", ExitRefused, "nothing was erased; `childlog release` ends a hold, on the session that it was set on"},
		{eventlog.ErrWidening, "widening", ExitRefused, "a session never gets more than its bound; for more, delegate again from a parent that holds it"},
		{policy.ErrOutside, "outside", ExitRefused, "name a place that the scope admits, as the answer says; only a new delegation widens a scope"},
		{eventlog.ErrUnauthorized, "unauthorized", ExitRefused, "name the parent that delegated, or act as --operator; events of childlog's own families are written by their own commands"},
		{eventlog.ErrNotResumable, "not_resumable", ExitRefused, "re-delegate: `childlog delegate` makes a fresh child"},
		{eventlog.ErrEvidence, "evidence", ExitRefused, "an imported log can be read, explained and verified; start a fresh root for new work"},
		{eventlog.ErrWithheld, "withheld", ExitNotFound, "the log was handed on without it; ask where the log came from"},
		{eventlog.ErrDepth, "depth", ExitRefused, "do the work in this session, or begin a root with a larger --max-depth"},
		{eventlog.ErrOpenTurn, "open_turn", ExitRefused, "fork at a seq where no turn is open; `childlog log` shows the turns"},
		{eventlog.ErrSessionClosed, "session_closed", ExitRefused, "a closed session stays closed; delegate again or begin a new root"},
		{eventlog.ErrTooLarge, "too_large", ExitUsage, "split it, or keep the large part elsewhere and append a reference"},
		{eventlog.ErrStoreLost, "store_lost", ExitCorrupt, "a part of the store is gone; nothing was changed: if store.db is left `childlog salvage --dry-run` says what can be saved, else restore a backup"},
		{eventlog.ErrUnknownType, "unknown_type", ExitCorrupt, "use the version of childlog, or of the harness, that knows this type"},
		{eventlog.ErrUnverified, "unverified", ExitCorrupt, "nothing was changed; compare the key with the one that was printed when the store was made"},
		{eventlog.ErrNewerFormat, "newer_format", ExitCorrupt, "nothing was changed; use a version of childlog that knows the format"},
		{eventlog.ErrCorrupt, "corrupt", ExitCorrupt, "nothing was changed; keep a copy: `childlog verify` lists all damage, `childlog salvage --dry-run` says what can be saved"},
		{eventlog.ErrReadOnly, "read_only", ExitUnavailable, "the store can't be written now; open it again, and look at its files and their permissions"},
		{eventlog.ErrNoSpace, "no_space", ExitUnavailable, "nothing was written; make room and repeat"},
		{eventlog.ErrStoreClosed, "store_closed", ExitUnavailable, "repeat it"},
		{eventlog.ErrInvalid, "invalid", ExitUsage, "nothing was written; mend the input as the message says"},
		{os.ErrPermission, "permission", ExitUnavailable, "the store belongs to another user, or its files may not be written"},
		{context.Canceled, "interrupted", ExitInterrupted, "it was stopped by a signal"},
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
	hint string
}

func (e *hinted) Unwrap() error { return e.error }

// WithHint gives an error a hint of its own, which beats the table's.
func WithHint(err error, hint string) error { return &hinted{err, hint} }

// Of finds an error's place in the table.
func Of(err error) Failure {
	f := Failure{err, "other", ExitOther, "see `childlog help`; if it makes no sense, report it with the message"}
	if ue := (*usageError)(nil); errors.As(err, &ue) {
		f = Failure{err, "usage", ExitUsage, "see `childlog help` and `childlog COMMAND --help`"}
	} else {
		for _, row := range failures() {
			if errors.Is(err, row.Is) {
				f = row
				break
			}
		}
	}
	if fe := (*eventlog.FencedError)(nil); errors.As(err, &fe) {
		f.Hint = fencedHint(fe, f.Hint)
	}
	if be := (*eventlog.BackupError)(nil); errors.As(err, &be) {
		f.Hint = "nothing was written; `childlog --store NEW restore " + be.Path + "` makes a store of it"
	}
	f.Hint = authorityHint(err, f.Hint)
	if h := (*hinted)(nil); errors.As(err, &h) {
		f.Hint = h.hint
	}
	return f
}

// authorityHint fits the ways in which a delegation is refused.
func authorityHint(err error, hint string) string {
	if re := (*policy.RefusedError)(nil); errors.As(err, &re) {
		switch re.Rule {
		case policy.RuleSpawn, policy.RuleMaxChildren:
			return "nothing was made; delegate from a session that may, `childlog policy` shows which of its limits stands in the way"
		case policy.RuleCapability:
			return "nothing was made; the parent needs the capability subagents for that contract, or leave the merge policy out"
		case policy.RuleRequest:
			return "nothing was made; the request, its role included, contradicts itself: ask for what goes together, or under another role"
		case policy.RuleProviderList:
			return "nothing was made; name a provider of the list"
		}
		return "nothing was made; ask for less, or delegate from a parent that can hand it on (`childlog policy` shows what it hands on)"
	}
	if ue := (*policy.UnknownRoleError)(nil); errors.As(err, &ue) {
		var names []string
		for _, r := range policy.Roles() {
			names = append(append(names, string(r)), r.Aliases()...)
		}
		return "nothing was written; roles and their other names: " + strings.Join(names, ", ")
	}
	if le := (*materialize.LockdownError)(nil); errors.As(err, &le) {
		return "nothing was made; a child may not hold tools that edit its own prompt: build it without them"
	}
	return hint
}

// fencedHint: nobody else need hold the session.
func fencedHint(fe *eventlog.FencedError, hint string) string {
	switch {
	case fe.Open == 0:
		return "leave --epoch out, or begin an activation with `childlog activate` and use its epoch"
	case fe.Got == fe.Open:
		return "begin another activation with `childlog activate`, then use its epoch"
	case fe.Got > fe.Open:
		return fmt.Sprintf("use the epoch that `childlog activate` gave; `childlog show` names the last, %d", fe.Open)
	}
	return hint
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
