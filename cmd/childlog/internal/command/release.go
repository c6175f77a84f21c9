package command

import (
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newReleaseCmd(a *app) *cobra.Command {
	var r eventlog.ReleaseRequest
	cmd := &cobra.Command{
		Use:     "release ID --hold HOLD",
		GroupID: groupAudit,
		Short:   "End a legal hold",
		Long: long(`
End a legal hold, on the session that it was set on, and record it there. What
the hold covered can be redacted and purged again, unless another hold covers
it. ` + "`childlog show`" + ` lists the holds of a session.`),
		Example: `  childlog release 0a1b2c3d --hold audit-q3 --reason-code audit-closed`,
		Args:    exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.write(cmd.Context(), func(s *eventlog.Store) error {
				var err error
				if r.Session, err = resolve(cmd.Context(), s, args[0]); err != nil {
					return err
				}
				seq, err := s.Release(cmd.Context(), r)
				if err != nil {
					return foreignHint(err)
				}
				v := wire.HeldSession{Session: r.Session.String(), State: "released", Hold: r.ID, Seq: seq}
				return a.show(v, func() { a.out.Println(term.Good("released "), term.Bold(v.Hold), term.Plain(" of "+v.Session)) })
			})
		},
	}
	orderFlags(cmd, &r.Order)
	cmd.Flags().StringVar(&r.ID, "hold", "", "the hold (required)")
	_ = cmd.MarkFlagRequired("hold") // fails for a flag that does not exist
	return cmd
}
