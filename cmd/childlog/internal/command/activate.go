package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/replay"
)

func newActivateCmd(a *app) *cobra.Command {
	var by callerFlags
	cmd := &cobra.Command{
		Use:     "activate ID",
		GroupID: groupSessions,
		Short:   "Take a session up for work, under a new epoch",
		Long: long(`
Begin an activation: record that a process goes on with the session, under the
next epoch. It supersedes one that is open, whose appends are fenced from then
on (exit 4). Use the epoch with append, end and settle.

Before that, and once only, it closes what a crash left open: a call without a
result is recorded as outcome-unknown, a call that never started as not-started,
an undecided question as unavailable, the turn as interrupted. It also claims
the messages that are pending.

A resume appends nothing; this does. Status says running only while the process
that activated holds the store, so after this command it says interrupted: the
epoch is what counts.

Without --parent you act as an operator.`),
		Example: `  childlog activate 0a1b2c3d
  childlog activate 0a1b2c3d --parent 9f8e7d6c --json`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := by.check(); err != nil {
				return err
			}
			ctx := cmd.Context()
			return a.write(ctx, func(s *eventlog.Store) error {
				id, caller, err := target(ctx, s, args[0], &by)
				if err != nil {
					return err
				}
				v, run, err := ops.Activate(ctx, s, id, caller)
				if err != nil {
					return err
				}
				return a.show(v, func() { a.activated(&v, &run) })
			})
		},
	}
	by.add(cmd)
	return cmd
}

func (a *app) activated(v *wire.Activated, run *replay.Activation) {
	a.out.Println(term.Good("activated "), term.Bold(v.Session), term.Plain(fmt.Sprintf(" under epoch %d", v.Epoch)))
	for _, c := range v.Closed {
		a.out.Println(term.Plain("  a crash had left "), term.Bold(c.Kind, " ", c.ID), term.Plain(" open, now "), term.Warn(c.Outcome))
	}
	a.policyRows(&run.Policy, term.Row{})
	if len(v.Inbox) > 0 {
		a.out.Println()
		a.out.Println(term.Plain(plural(len(v.Inbox), "message"), " claimed:"))
		a.messages(v.Inbox)
	}
}

func newEndCmd(a *app) *cobra.Command {
	var (
		epoch  uint64
		reason string
	)
	cmd := &cobra.Command{
		Use:     "end ID --epoch N",
		GroupID: groupSessions,
		Short:   "Let go of a session without settling it",
		Long: long(`
End an activation: its process lets go of a session that it, or another, will go
on with. To record how a run ended, settle it instead.`),
		Example: `  childlog end 0a1b2c3d --epoch 2
  childlog end 0a1b2c3d --epoch 2 --reason shutdown`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if epoch == 0 {
				return usagef("--epoch: epochs begin at 1")
			}
			return a.write(cmd.Context(), func(s *eventlog.Store) error {
				id, err := resolve(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				res, err := replay.End(cmd.Context(), s, id, epoch, reason)
				return a.wrote(res, err, "activation ended")
			})
		},
	}
	cmd.Flags().Uint64Var(&epoch, "epoch", 0, "the activation to end (required)")
	cmd.Flags().StringVar(&reason, "reason", ops.Released, "a code: letters, digits or _.:/@+#=-")
	_ = cmd.MarkFlagRequired("epoch") // fails for a flag that does not exist
	return cmd
}

func newSettleCmd(a *app) *cobra.Command {
	var (
		epoch   uint64
		outcome string
	)
	cmd := &cobra.Command{
		Use:     "settle ID --outcome CODE",
		GroupID: groupSessions,
		Short:   "Record how a run of a session ended",
		Long: long(`
Settle a session: record the outcome, what was denied and what was used. The
parent has a notice pending from then on, exactly once, until it consumes it.

A one-shot child is closed by settling. A continuable one takes follow-ups: send
it a message and activate it again. Give --epoch as the activation that settles;
without it you act as an operator.`),
		Example: `  childlog settle 0a1b2c3d --outcome completed --epoch 2
  childlog settle 0a1b2c3d --outcome failed`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.write(cmd.Context(), func(s *eventlog.Store) error {
				id, err := resolve(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				res, err := replay.Settle(cmd.Context(), s, id, epoch, outcome)
				return a.wrote(res, err, "settled")
			})
		},
	}
	cmd.Flags().StringVar(&outcome, "outcome", "", "a code such as completed, failed or cancelled (required)")
	cmd.Flags().Uint64Var(&epoch, "epoch", 0, "the activation that settles (default: as an operator)")
	complete(cmd, "outcome", "completed", "failed", "cancelled")
	_ = cmd.MarkFlagRequired("outcome") // fails for a flag that does not exist
	return cmd
}

func newCloseCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "close ID",
		GroupID: groupSessions,
		Short:   "End a session for good",
		Long: long(`
Close a session: nothing is appended to it and nothing delegated from it any
more. Its log stays as it is. Children that exist are not closed by it.`),
		Example: `  childlog close 0a1b2c3d
  childlog close 0a1b2c3d --json`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.write(cmd.Context(), func(s *eventlog.Store) error {
				id, err := resolve(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				res, err := replay.Close(cmd.Context(), s, id)
				return a.wrote(res, err, "closed")
			})
		},
	}
}
