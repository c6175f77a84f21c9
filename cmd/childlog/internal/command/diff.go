package command

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

func newDiffCmd(a *app) *cobra.Command {
	var from, to uint64
	cmd := &cobra.Command{
		Use:     "diff ID",
		GroupID: groupPolicy,
		Short:   "Compare a session's policy at two points of its log",
		Long: long(`
Compare what a session might do as of two seqs, and name the event behind each
change. Without --from the comparison begins where the session's creation was
whole: at a child's approval pin, or at the last event that a root was created
with. Without --to it ends at the head.`),
		Example: `  childlog diff 0a1b2c3d
  childlog diff 0a1b2c3d --from 4 --to 12 --json`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var before, after replay.Effective
			var changes []replay.FieldChange
			err := a.read(cmd.Context(), func(s *eventlog.Store) error {
				id, err := resolve(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				before, after, changes, err = replay.Diff(cmd.Context(), s, id, from, to)
				return err
			})
			if err != nil {
				return err
			}
			v := ops.Diff(&before, &after, changes)
			return a.show(v, func() { a.diff(&v, after.Session, changes) })
		},
	}
	cmd.Flags().Uint64Var(&from, "from", 0, "the earlier seq (default: where its creation was whole)")
	cmd.Flags().Uint64Var(&to, "to", 0, "the later seq (default: the head)")
	return cmd
}

func (a *app) diff(v *wire.Diff, session uuid.UUID, changes []replay.FieldChange) {
	a.out.Println(term.Bold(v.Session), term.Plain(fmt.Sprintf("  seq %d to %d", v.From, v.To)))
	if len(changes) == 0 {
		a.out.Println(term.Dim("the policy is the same"))
		return
	}
	rows := make([][]term.Text, len(changes))
	shown := ""
	for i, c := range changes {
		shown += c.From + " " + c.To
		rows[i] = []term.Text{term.Plain(c.Field), term.Plain(c.From), term.Bold(c.To), changedBy(c.By, session)}
	}
	a.out.Table([]term.Column{{Title: "FIELD"}, {Title: "FROM", Min: 12}, {Title: "TO", Min: 12}, {Title: "BY", Drop: 1}}, rows)
	a.neverLegend(shown)
}

// changedBy names the cause of a change in a table, where room is short. The
// event behind it may be of another log than the one compared.
func changedBy(c policy.Cause, session uuid.UUID) term.Text {
	switch c.Origin.Session {
	case session:
		return by(c, session)
	case eventlog.StoreSession:
		return term.Dim(fmt.Sprintf("store, seq %d", c.Origin.Seq))
	}
	return term.Dim(fmt.Sprintf("seq %d of %s", c.Origin.Seq, short(c.Origin.Session)))
}
