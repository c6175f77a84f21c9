package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/internal/wire"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
)

// Exit codes.
const (
	exitOK          = 0
	exitOther       = 1
	exitUsage       = 2 // the command line, or input data that is not valid
	exitRefused     = 3 // by policy
	exitConflict    = 4
	exitNotFound    = 5 // or ambiguous
	exitCorrupt     = 6 // or lost, or unverifiable
	exitUnavailable = 7 // locked, or can't be written now
	exitApproval    = 8 // a call needs an approval first
	exitInterrupted = 130
)

// failure is what the command makes of an error: an exit code, a stable code
// for programs and what a person can do.
type failure struct {
	is   error
	code string
	exit int
	hint string
}

// failures is the one table, in order: the first that an error wraps decides,
// so what wraps another sentinel comes before it.
var failures = []failure{
	{eventlog.ErrOutcomeUnknown, "outcome_unknown", exitUnavailable, "it may or may not be written; repeat it with the same event ids or key: a retry gets the original result"},
	{eventlog.ErrStaleCapture, "stale_capture", exitRefused, "the parent changed since it was captured; delegate again"},
	{eventlog.ErrRollback, "rollback", exitCorrupt, "nothing was changed; look for the newer copy. `childlog verify` compares what is here, `childlog log` and `show` read it; `childlog accept-rollback` goes on with it as it is, which the log then says"},
	{eventlog.ErrPolicyUnreadable, "policy_unreadable", exitCorrupt, "nothing may be granted from this log; `childlog verify` says what is wrong, `childlog log` shows what can be read"},
	{eventlog.ErrLocked, "locked", exitUnavailable, "wait for it with --wait 10s, or end the process that holds the store"},
	{eventlog.ErrNotFound, "not_found", exitNotFound, "`childlog ls` lists the sessions, `childlog log` the seqs of one; --store or CHILDLOG_STORE says which store is meant"},
	{eventlog.ErrAmbiguous, "ambiguous", exitNotFound, "give more digits of the id"},
	{eventlog.ErrExists, "exists", exitConflict, "leave the id out to get a new one, or use what exists"},
	{eventlog.ErrDuplicate, "duplicate", exitConflict, "an event id names one event for ever: repeat it with the same body, or take a new id"},
	{eventlog.ErrFenced, "fenced", exitConflict, "another activation holds the session; take over with `childlog activate`, then use its epoch"},
	{eventlog.ErrConflict, "conflict", exitConflict, "someone else was first; look with `childlog show` and decide again"},
	{eventlog.ErrPurged, "purged", exitNotFound, "it can't be brought back from this store; `childlog log " + eventlog.StoreSession.String()[:8] + "` shows what is kept of it"},
	{eventlog.ErrHeld, "held", exitRefused, "nothing was erased; `childlog release` ends a hold, on the session that it was set on"},
	{eventlog.ErrWidening, "widening", exitRefused, "a session never gets more than its bound; for more, delegate again from a parent that holds it"},
	{policy.ErrOutside, "outside", exitRefused, "name a place that the scope admits, as the answer says; only a new delegation widens a scope"},
	{eventlog.ErrUnauthorized, "unauthorized", exitRefused, "name the parent that delegated, or act as --operator; events of childlog's own families are written by their own commands"},
	{eventlog.ErrNotResumable, "not_resumable", exitRefused, "re-delegate: `childlog delegate` makes a fresh child"},
	{eventlog.ErrEvidence, "evidence", exitRefused, "an imported log can be read, explained and verified; start a fresh root for new work"},
	{eventlog.ErrWithheld, "withheld", exitNotFound, "the log was handed on without it; ask where the log came from"},
	{eventlog.ErrDepth, "depth", exitRefused, "do the work in this session, or begin a root with a larger --max-depth"},
	{eventlog.ErrOpenTurn, "open_turn", exitRefused, "fork at a seq where no turn is open; `childlog log` shows the turns"},
	{eventlog.ErrSessionClosed, "session_closed", exitRefused, "a closed session stays closed; delegate again or begin a new root"},
	{eventlog.ErrTooLarge, "too_large", exitUsage, "split it, or keep the large part elsewhere and append a reference"},
	{eventlog.ErrStoreLost, "store_lost", exitCorrupt, "a part of the store is gone; nothing was changed: if store.db is left `childlog salvage --dry-run` says what can be saved, else restore a backup"},
	{eventlog.ErrUnknownType, "unknown_type", exitCorrupt, "use the version of childlog, or of the harness, that knows this type"},
	{eventlog.ErrUnverified, "unverified", exitCorrupt, "nothing was changed; compare the key with the one that was printed when the store was made"},
	{eventlog.ErrNewerFormat, "newer_format", exitCorrupt, "nothing was changed; use a version of childlog that knows the format"},
	{eventlog.ErrCorrupt, "corrupt", exitCorrupt, "nothing was changed; keep a copy: `childlog verify` lists all damage, `childlog salvage --dry-run` says what can be saved"},
	{eventlog.ErrReadOnly, "read_only", exitUnavailable, "the store can't be written now; open it again, and look at its files and their permissions"},
	{eventlog.ErrNoSpace, "no_space", exitUnavailable, "nothing was written; make room and repeat"},
	{eventlog.ErrStoreClosed, "store_closed", exitUnavailable, "repeat it"},
	{eventlog.ErrInvalid, "invalid", exitUsage, "nothing was written; mend the input as the message says"},
	{os.ErrPermission, "permission", exitUnavailable, "the store belongs to another user, or its files may not be written"},
	{context.Canceled, "interrupted", exitInterrupted, "it was stopped by a signal"},
}

// verdict is an answer that was printed and is no failure: only its exit code is
// left to give.
type verdict int

func (v verdict) Error() string { return fmt.Sprintf("exit code %d", int(v)) }

// usageError is a command line that does not fit.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func asUsage(err error) error { return &usageError{err} }

func usagef(format string, args ...any) error { return asUsage(fmt.Errorf(format, args...)) }

// hinted is an error that knows better than the table what to do.
type hinted struct {
	error
	hint string
}

func (e *hinted) Unwrap() error { return e.error }

func withHint(err error, hint string) error { return &hinted{err, hint} }

// classify finds an error's place in the table.
func classify(err error) failure {
	f := failure{err, "other", exitOther, "see `childlog help`; if it makes no sense, report it with the message"}
	if ue := (*usageError)(nil); errors.As(err, &ue) {
		f = failure{err, "usage", exitUsage, "see `childlog help` and `childlog COMMAND --help`"}
	} else {
		for _, row := range failures {
			if errors.Is(err, row.is) {
				f = row
				break
			}
		}
	}
	if fe := (*eventlog.FencedError)(nil); errors.As(err, &fe) {
		f.hint = fencedHint(fe, f.hint)
	}
	if be := (*eventlog.BackupError)(nil); errors.As(err, &be) {
		f.hint = "nothing was written; `childlog --store NEW restore " + be.Path + "` makes a store of it"
	}
	f.hint = authorityHint(err, f.hint)
	if h := (*hinted)(nil); errors.As(err, &h) {
		f.hint = h.hint
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

// ownSession says of an error that it was the store's own session that was
// asked for something that only an agent's has.
func ownSession(err error) error {
	if err == nil {
		return nil
	}
	return withHint(err, "the store's own session holds the operator rules; `childlog rules show` prints them")
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

// report prints an error and returns the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	if v := verdict(0); errors.As(err, &v) {
		return int(v)
	}
	f := classify(err)
	message := strings.TrimSpace(err.Error())
	a.msg.Println(term.Bad("childlog: error: "), term.Plain(message))
	a.msg.Println(term.Dim("hint: "), term.Plain(f.hint))
	if a.json {
		if b, err := wire.Line(wire.Failure{Error: wire.FailureBody{Code: f.code, Message: message, Hint: f.hint}}); err == nil {
			_, _ = a.stderr.Write(b) // there is nowhere left to complain
		}
	}
	return f.exit
}
