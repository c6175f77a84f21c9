package command

import (
	"errors"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

func newSwitchCmd(a *app) *cobra.Command {
	var (
		sandbox   sandboxFlags
		approvals string
		epoch     uint64
	)
	cmd := &cobra.Command{
		Use:     "switch ID",
		GroupID: groupSessions,
		Short:   "Change what a session sets for itself",
		Long: long(`
Switch a session's own sandbox or approvals, as a person does at run time. A
switch works within the session's bound and can be undone by another one. Beyond
the bound it is refused (exit 3): a child never gets more than its delegation
gave it, nor anyone more than a narrowing left.

A parent's switch never reaches children that exist. To lower them, narrow.`),
		Example: `  childlog switch 0a1b2c3d --sandbox read-only
  childlog switch 0a1b2c3d --sandbox workspace-write --network
  childlog switch 0a1b2c3d --approvals never`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := replay.Change{Epoch: epoch}
			var err error
			if c.Sandbox, err = sandbox.setting(); err != nil {
				return err
			}
			if approvals != "" {
				if c.Approvals, err = policy.ParseApproval(approvals); err != nil {
					return usagef("--approvals: %v", err)
				}
			}
			if c.Sandbox == nil && c.Approvals == "" {
				return usagef("switch what? give --sandbox, --approvals or both")
			}
			return a.write(cmd.Context(), func(s *eventlog.Store) error {
				id, err := resolve(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				res, e, err := replay.Switch(cmd.Context(), s, id, c)
				if we := (*policy.WideningError)(nil); errors.Is(err, policy.ErrWidening) && !errors.As(err, &we) {
					return withHint(err, "a child's approvals stay never, which means "+policy.Never.Meaning())
				}
				if err != nil {
					return err
				}
				return a.show(wire.Switched{Written: wire.WrittenOf(res), Policy: wire.PolicyOf(&e)}, func() {
					a.out.Println(term.Good("switched "), term.Bold(id.String()))
					a.out.Rows(sandboxRows(&e, term.Row{})...)
				})
			})
		},
	}
	sandbox.add(a, cmd, "the new sandbox")
	cmd.Flags().StringVar(&approvals, "approvals", "", "ask, or never (never ask, always reject)")
	cmd.Flags().Uint64Var(&epoch, "epoch", 0, "switch as the activation of this epoch (default: as an operator)")
	complete(cmd, "approvals", string(policy.Never), string(policy.Ask))
	return cmd
}
