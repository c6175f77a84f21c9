package command

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/filter"
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
