package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/forward"
	"childlog/eventlog"
)

// seat says where a command runs while another process holds the store.
type seat uint8

const (
	here   seat = iota // in the caller's process: it needs no store, or makes one, or opens one for itself
	reads              // in the holder; it writes nothing
	writes             // in the holder; if the connection is lost nobody knows what it wrote
)

// seats lists the commands that a holder runs for others. Any other runs here: a
// holder lends its caller the operations of the store and nothing else.
var seats = [...][]string{
	reads: {
		"ls", "tree", "show", "log", "search", "policy", "resume", "explain", "diff", "rules show", "asks", "review", "report",
		"who", "verify", "prove", "stats", "backup",
	},
	writes: {
		"root", "delegate", "adopt", "append", "switch", "narrow", "send", "interrupt", "inbox", "activate", "end", "settle", "close",
		"notices", "check", "rules set", "ask", "answer", "guard handle", "checkpoint", "redact", "hold", "release", "purge", "retention",
		"export", "import", "compact", "reindex",
	},
}

// seatOf is where a command runs. A flag may say that it needs no store.
func seatOf(cmd *cobra.Command) seat {
	if f := cmd.Flags().Lookup("bundle"); cmd.Name() == "verify" && f != nil && f.Changed {
		return here
	}
	name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	return seat(max(0, slices.IndexFunc(seats[:], func(names []string) bool { return slices.Contains(names, name) })))
}

// forward runs the command in the process that holds the store, if one does. It
// reports whether it did.
func (a *app) forward(ctx context.Context, cmd *cobra.Command) (done bool, err error) {
	where := seatOf(cmd)
	if a.env.Held != nil {
		if where == here {
			return true, usagef("%s is for the caller's own process; a holder of a store does not run it for others", cmd.CommandPath())
		}
		return false, nil
	}
	if where == here {
		return false, nil
	}
	call, err := a.dial(ctx)
	if errors.Is(err, forward.ErrNoHolder) {
		return false, nil
	}
	if err != nil {
		return true, heldError(err)
	}
	env := a.env.Env
	env.Version = version()
	env.Store = access.Abs(a.place())
	code, err := call.Run(ctx, env, a.args)
	if lost := (*forward.LostError)(nil); errors.As(err, &lost) {
		return true, a.lost(lost, where)
	}
	if errors.Is(err, forward.ErrStopped) {
		return true, fmt.Errorf("%w: %w", eventlog.ErrStoreClosed, err)
	}
	if err == nil && code != 0 {
		err = verdict(code)
	}
	return true, err
}

// A process that took the store to serve it answers in a moment: it opens the
// store first. One that takes longer is reported as the store's holder.
const (
	beginning = 5 * time.Second
	lookAgain = 20 * time.Millisecond
)

// dial finds who serves the store. Who took it to serve it is waited for, and
// with --wait whoever else has it: a program may begin to serve what it holds.
func (a *app) dial(ctx context.Context) (*forward.Call, error) {
	for start := time.Now(); ; {
		call, err := forward.Dial(ctx, a.store)
		if !errors.Is(err, forward.ErrNoHolder) || errors.Is(err, os.ErrPermission) { // another user's will not answer later
			return call, err
		}
		waited := time.Since(start)
		by := eventlog.HeldBy(a.store)
		if by == nil || waited >= a.wait && (by.Command != serveCommand || waited >= beginning) {
			if a.wait > 0 {
				a.wait, a.waited = max(0, a.wait-waited), waited
			}
			return nil, err
		}
		if err := sleep(ctx, lookAgain); err != nil {
			return nil, err
		}
	}
}

// lost says what it means that the holder went away.
func (a *app) lost(err *forward.LostError, where seat) error {
	if where == writes {
		return fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	}
	return fmt.Errorf("%w: %w", eventlog.ErrStoreClosed, err)
}

// heldError is what a holder answered that takes no command.
func heldError(err error) error {
	refused := (*forward.RefusedError)(nil)
	if !errors.As(err, &refused) {
		return err
	}
	is := failure.Sentinel(refused.Code)
	if is == nil {
		is = eventlog.ErrLocked
	}
	err = fmt.Errorf("%w: %w", is, err)
	if refused.Hint != "" {
		return withHint(err, refused.Hint)
	}
	return err
}
