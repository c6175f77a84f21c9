package command

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/guard"
	"childlog/eventlog"
)

// newGuardHandleCmd is the part of a guard that runs where the store is held. The
// rest stays in the hook's process: what reads its files, and what answers if the
// connection is lost.
func newGuardHandleCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "handle",
		Hidden: true, // guards call it
		Short:  "Carry out what a guard asks of the process that holds the store",
		Long: long(`
Carry out what a guard asks of the process that holds the store. Guards call it
by themselves: an order comes on stdin, a line of JSON and the hook's event, and
the outcome goes back on stdout. The guard makes of it what a harness reads.`),
		Example: `  childlog guard handle < order`,
		Args:    between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			b, err := interruptible(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(a.stdin, guard.MaxOrder+1)) })
			if err != nil {
				return err
			}
			outcome, err := a.handleOrder(ctx, b)
			if err != nil {
				return err
			}
			if b, err = outcome.Encode(); err == nil {
				_, err = a.stdout.Write(b)
			}
			return err
		},
	}
}

func (a *app) handleOrder(ctx context.Context, b []byte) (outcome guard.Outcome, err error) {
	order, err := guard.ParseOrder(b)
	if err != nil {
		return outcome, err
	}
	one, err := order.Guard(a.files)
	if err != nil {
		return outcome, err
	}
	ev, err := guard.Parse(order.Event)
	if err != nil {
		return outcome, err
	}
	err = a.write(ctx, func(s *eventlog.Store) (err error) {
		outcome, err = one.Handle(ctx, s, ev)
		return err
	})
	return outcome, err
}
