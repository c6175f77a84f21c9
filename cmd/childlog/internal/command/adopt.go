package command

import (
	"github.com/spf13/cobra"

	"childlog/eventlog"
)

func newAdoptCmd(a *app) *cobra.Command {
	var flags childFlags
	var from delegator
	cmd := &cobra.Command{
		Use:     "adopt ID --parent P",
		GroupID: groupSessions,
		Short:   "Go on from evidence: a native child with its conversation",
		Long: long(`
Make a child of the native session P that begins with the conversation of ID, a
log that was imported. It is an ordinary delegation: the child gets what P may
hand on, under P's policy as it is captured now, and its approvals are pinned to
never, which means never ask, always reject. Whatever ID says of its own rights
counts for nothing.

Copied are messages, tool calls and results, turns and steps, each marked with
the seq of ID that it was copied from; usage stays where it was counted. ID goes
as it is. --fork SEQ takes its conversation up to that seq only; inside an open
turn it is refused (exit 3), since the child would answer half a question. Of a
log that is damaged, or that came without a content, nothing is adopted.

All other flags are those of ` + "`childlog delegate`" + `.`),
		Example: `  childlog adopt 5e551041 --parent 0a1b2c3d --label "go on with it"
  childlog adopt codex:01a0b8c2 --parent 0a1b2c3d --fork 42 --role explore`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.childRequest(cmd, &flags)
			if err != nil {
				return err
			}
			return a.write(cmd.Context(), func(s *eventlog.Store) error {
				if r.Adopt, err = resolve(cmd.Context(), s, args[0]); err != nil {
					return err
				}
				return a.delegate(cmd.Context(), s, &from, &flags, r)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().Lookup("fork").Usage = "take ID's conversation up to this seq of its log (default: its head)"
	from.add(a, cmd)
	return cmd
}
