package command

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/replay"
)

func newSendCmd(a *app) *cobra.Command {
	var by callerFlags
	cmd := &cobra.Command{
		Use:     "send ID --parent ID|--operator TEXT|-",
		GroupID: groupSessions,
		Short:   "Queue a follow-up message for a session",
		Long: long(`
Queue a message in a session's inbox, also while it runs or after it settled. A
running session gets it when its harness claims the inbox; a settled continuable
one with its next activation. Only the recorded parent or an operator may send.

TEXT is the message; - reads it from stdin, bytes as they are.`),
		Example: `  childlog send 0a1b2c3d --parent 9f8e7d6c "also check the tests"
  childlog send 0a1b2c3d --operator - < note.txt`,
		Args: exactly("ID", "TEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := by.required(); err != nil {
				return err
			}
			text, err := a.readText(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			return a.write(cmd.Context(), func(s *eventlog.Store) error {
				id, caller, err := target(cmd.Context(), s, args[0], &by)
				if err != nil {
					return err
				}
				res, message, err := replay.Send(cmd.Context(), s, id, caller, text)
				if err != nil {
					return err
				}
				return a.show(wire.Sent{Written: wire.WrittenOf(res), Message: message.String()}, func() {
					a.out.Println(term.Good("queued "), term.Plain(fmt.Sprintf("at seq %d of ", res.LastSeq)), term.Bold(id.String()))
					a.out.Rows(term.Row{Name: "message", Value: term.Plain(message.String())})
				})
			})
		},
	}
	by.add(cmd)
	return cmd
}

// target resolves a command's session and caller.
func target(ctx context.Context, s *eventlog.Store, text string, by *callerFlags) (uuid.UUID, replay.Caller, error) {
	id, err := resolve(ctx, s, text)
	if err != nil {
		return id, replay.Caller{}, err
	}
	caller, err := by.caller(ctx, s)
	return id, caller, err
}

func newInterruptCmd(a *app) *cobra.Command {
	var (
		by   callerFlags
		keep bool
	)
	cmd := &cobra.Command{
		Use:     "interrupt ID",
		GroupID: groupSessions,
		Short:   "Ask whatever runs a session to stop its turn",
		Long: long(`
Record a request to stop the current turn. The harness that follows the log
obeys; childlog stops nothing itself. Messages that nobody has claimed yet are
dropped, unless --keep-inbox. Without --parent you act as an operator.`),
		Example: `  childlog interrupt 0a1b2c3d
  childlog interrupt 0a1b2c3d --parent 9f8e7d6c --keep-inbox`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := by.check(); err != nil {
				return err
			}
			return a.write(cmd.Context(), func(s *eventlog.Store) error {
				id, caller, err := target(cmd.Context(), s, args[0], &by)
				if err != nil {
					return err
				}
				res, err := replay.Interrupt(cmd.Context(), s, id, caller, keep)
				return a.wrote(res, err, "interrupt recorded")
			})
		},
	}
	by.add(cmd)
	cmd.Flags().BoolVar(&keep, "keep-inbox", false, "keep the messages that nobody has claimed")
	return cmd
}

func newInboxCmd(a *app) *cobra.Command {
	var (
		claim bool
		epoch uint64
	)
	cmd := &cobra.Command{
		Use:     "inbox ID",
		GroupID: groupSessions,
		Short:   "List a session's pending messages, or claim them",
		Long: long(`
List the messages that were sent to a session and not claimed yet. With --claim
the activation of --epoch takes all of them, once: no message is claimed twice.
An activation that begins claims what is pending by itself.`),
		Example: `  childlog inbox 0a1b2c3d
  childlog inbox 0a1b2c3d --claim --epoch 3 --json`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if claim != (epoch != 0) {
				return usagef("--claim and --epoch go together: the activation that claims")
			}
			ctx := cmd.Context()
			var id uuid.UUID
			var list []wire.Message
			collect := func(s *eventlog.Store) (err error) {
				if id, err = resolve(ctx, s, args[0]); err != nil {
					return err
				}
				var pending []eventlog.Message
				if claim {
					pending, err = replay.Claim(ctx, s, id, epoch)
				} else {
					var row eventlog.Row
					row, err = s.Row(id)
					pending = row.Inbox
				}
				if err != nil {
					return err
				}
				list, err = ops.Messages(ctx, s, id, pending)
				return err
			}
			open := a.read
			if claim {
				open = a.write
			}
			if err := open(ctx, collect); err != nil {
				return err
			}
			if a.json {
				for _, m := range list {
					if err := a.emit(m); err != nil {
						return err
					}
				}
				return nil
			}
			if len(list) == 0 {
				a.out.Println(term.Dim("no message is pending"))
			}
			a.messages(list)
			return a.out.Err()
		},
	}
	cmd.Flags().BoolVar(&claim, "claim", false, "take them for the activation of --epoch")
	cmd.Flags().Uint64Var(&epoch, "epoch", 0, "the activation that claims")
	return cmd
}

// messages lists inbox messages for people.
func (a *app) messages(list []wire.Message) {
	if len(list) == 0 {
		return
	}
	rows := make([][]term.Text, len(list))
	for i, m := range list {
		from, text := term.Plain("operator"), term.Dim("(gone)")
		if m.From != nil {
			from = term.Plain(*m.From)
		}
		if m.ContentText != nil {
			text = term.Plain(*m.ContentText)
		}
		rows[i] = []term.Text{term.Plain(fmt.Sprint(m.Seq)), from, text}
	}
	a.out.Table([]term.Column{{Title: "SEQ", Right: true}, {Title: "FROM", Drop: 1}, {Title: "MESSAGE", Min: 12}}, rows)
}

// wrote answers a command that only writes.
func (a *app) wrote(res eventlog.Result, err error, what string) error {
	if err != nil {
		return err
	}
	return a.show(wire.WrittenOf(res), func() {
		a.out.Println(term.Good(what), term.Plain(fmt.Sprintf(" at seq %s of ", seqRange(res.FirstSeq, res.LastSeq))), term.Bold(res.Session.String()))
	})
}
