package command

import (
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newHoldCmd(a *app) *cobra.Command {
	var r eventlog.HoldRequest
	cmd := &cobra.Command{
		Use:     "hold ID",
		GroupID: groupAudit,
		Short:   "Put a session under legal hold",
		Long: long(`
Keep a session as it is: until the hold is released nothing of it is redacted
or purged, by whatever command and however old it is (exit 3). The hold is
recorded in the session's log. Several may stand at a time; all have to be
released.

With --subtree it covers every descendant, those that are created later
included. Closed sessions and those imported from other systems can be held; a
log that came in a bundle or as jsonl takes no record of this store (exit 3). A
hold keeps nobody from appending, narrowing or closing.`),
		Example: `  childlog hold 0a1b2c3d --subtree --reason-code case-2024-17
  childlog hold 0a1b2c3d --id audit-q3 --reason-code audit --reason "Q3"`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.write(cmd.Context(), func(s *eventlog.Store) error {
				var err error
				if r.Session, err = resolve(cmd.Context(), s, args[0]); err != nil {
					return err
				}
				h, err := s.Hold(cmd.Context(), r)
				if err != nil {
					return foreignHint(err)
				}
				v := wire.HeldSession{Session: r.Session.String(), State: "held", Hold: h.ID, Seq: h.Seq}
				return a.show(v, func() {
					scope := ""
					if h.Subtree {
						scope = " and everything below it"
					}
					a.out.Println(term.Good("held "), term.Bold(v.Session), term.Plain(scope+", hold "), term.Bold(h.ID))
				})
			})
		},
	}
	orderFlags(cmd, &r.Order)
	f := cmd.Flags()
	f.BoolVar(&r.Subtree, "subtree", false, "every descendant too, also those to come")
	f.StringVar(&r.ID, "id", "", "an id for the hold, a code (default: one is made)")
	return cmd
}
