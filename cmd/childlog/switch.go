package main

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/internal/wire"
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
					a.policyRows(&e, term.Row{})
				})
			})
		},
	}
	sandbox.add(cmd, "the new sandbox")
	cmd.Flags().StringVar(&approvals, "approvals", "", "ask, or never (never ask, always reject)")
	cmd.Flags().Uint64Var(&epoch, "epoch", 0, "switch as the activation of this epoch (default: as an operator)")
	complete(cmd, "approvals", string(policy.Never), string(policy.Ask))
	return cmd
}

func newNarrowCmd(a *app) *cobra.Command {
	var (
		sandbox sandboxFlags
		n       replay.Narrowing
	)
	cmd := &cobra.Command{
		Use:     "narrow ID --sandbox MODE --reason TEXT",
		GroupID: groupSessions,
		Short:   "Lower what a session may do, for ever",
		Long: long(`
Narrow a session, and with --subtree everything below it, in one commit: all of
it or nothing. A narrowing meets a ceiling into the bound; no switch, resume or
later event undoes it. Children that are being created meanwhile are born
narrow.

Sessions that hold no more than the ceiling already are skipped, and so are
closed ones; they are listed with the reason.`),
		Example: `  childlog narrow 0a1b2c3d --sandbox read-only --reason "incident 12" --subtree
  childlog narrow 0a1b2c3d --sandbox workspace-write --writable-root docs \
    --reason "docs only"`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			setting, err := sandbox.setting()
			if err != nil {
				return err
			}
			if setting == nil {
				return usagef("--sandbox: want a mode")
			}
			n.Sandbox = setting
			return a.write(cmd.Context(), func(s *eventlog.Store) error {
				if n.Session, err = resolve(cmd.Context(), s, args[0]); err != nil {
					return err
				}
				done, err := replay.Narrow(cmd.Context(), s, n)
				if err != nil {
					return err
				}
				if !a.json {
					a.narrowed(s, done)
					return a.out.Err()
				}
				for i := range done {
					if err := a.emit(narrowedOf(&done[i])); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	sandbox.add(cmd, "the ceiling")
	cmd.Flags().Lookup("writable-root").Usage = "with --sandbox workspace-write: a directory that stays writable, instead of the workspace (may be repeated)"
	cmd.Flags().StringVar(&n.Reason, "reason", "", "why, for the record (required)")
	cmd.Flags().BoolVar(&n.Subtree, "subtree", false, "every descendant too")
	_ = cmd.MarkFlagRequired("sandbox") // both fail for a flag that does not exist
	_ = cmd.MarkFlagRequired("reason")
	return cmd
}

func narrowedOf(d *replay.Narrowed) wire.Narrowed {
	v := wire.Narrowed{Session: d.Session.String(), Seq: d.Seq, Changed: d.Skipped == ""}
	if d.Skipped != "" {
		v.Skipped = &d.Skipped
	}
	if d.Skipped != replay.SkipUnreadable {
		before, after := wire.SandboxOf(d.Before.Canonical()), wire.SandboxOf(d.After.Canonical())
		v.Before, v.After = &before, &after
	}
	return v
}

func (a *app) narrowed(s *eventlog.Store, done []replay.Narrowed) {
	all := make([]uuid.UUID, len(done))
	for i := range done {
		all[i] = done[i].Session
	}
	short := shortIDs(all)
	changed := 0
	rows := make([][]term.Text, len(done))
	for i := range done {
		d := &done[i]
		row, err := s.Row(d.Session)
		if err != nil {
			row.Label = ""
		}
		result := term.Good(fmt.Sprintf("narrowed at seq %d", d.Seq))
		if d.Skipped != "" {
			result = term.Dim("skipped: ", d.Skipped)
		} else {
			changed++
		}
		before, after := term.Plain(d.Before.String()), term.Plain(d.After.String())
		if d.Skipped == replay.SkipUnreadable {
			before, after = nil, nil
		}
		rows[i] = []term.Text{term.Plain(short.of(d.Session)), term.Plain(row.Label), result, before, after}
	}
	a.out.Table([]term.Column{{Title: "SESSION"}, {Title: "LABEL", Min: 8, Drop: 2}, {Title: "RESULT"}, {Title: "BEFORE", Min: 18, Drop: 1}, {Title: "AFTER", Min: 18}}, rows)
	a.out.Println(term.Plain(fmt.Sprintf("%d narrowed, %d skipped", changed, len(done)-changed)))
}
