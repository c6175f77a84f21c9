package command

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/filter"
	"childlog/cmd/childlog/internal/logwalk"
	"childlog/eventlog"
)

// completeFilter offers the values of the flags that a command has of a filter.
func completeFilter(cmd *cobra.Command) {
	for flag, values := range map[string][]string{"verdict": filter.Verdicts, "decider": filter.Deciders, "status": filter.Statuses, "kind": filter.Kinds, "sandbox": filter.Modes} {
		if cmd.Flags().Lookup(flag) != nil {
			complete(cmd, flag, values...)
		}
	}
}

// compileFilter checks a filter before a store is opened.
func compileFilter(f *filter.Filter) error { return usage(f.Compile(time.Now())) }

// usage makes an error of the command line of one that a filter refused.
func usage(err error) error {
	if ue := (*filter.UsageError)(nil); errors.As(err, &ue) {
		return asUsage(err)
	}
	return err
}

// picked reads the rows of the sessions that a filter picks. Where it picks events
// too, only sessions that hold one.
func picked(ctx context.Context, s *eventlog.Store, f *filter.Filter) ([]eventlog.Row, error) {
	rows, err := f.Sessions(ctx, s, func(text string) (uuid.UUID, error) { return resolve(ctx, s, text) })
	if err != nil || !f.PicksEvents() {
		return rows, err
	}
	var out []eventlog.Row
	for i := range rows {
		held, err := holds(ctx, s, f, rows[i].Session)
		if err != nil {
			return nil, err
		}
		if held {
			out = append(out, rows[i])
		}
	}
	return out, nil
}

var errHeld = errors.New("an event was found")

// holds reports whether a log has an event that a filter picks. What can't be read
// holds none.
func holds(ctx context.Context, s *eventlog.Store, f *filter.Filter, session uuid.UUID) (bool, error) {
	m := f.Events()
	err := logwalk.Each(ctx, s, session, false, func(ev *eventlog.Event) error {
		if m.Picks(ev) {
			return errHeld
		}
		return nil
	}, func(logwalk.Gap) error { return nil })
	if errors.Is(err, errHeld) {
		return true, nil
	}
	return false, err
}
