package main

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/internal/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

func newExplainCmd(a *app) *cobra.Command {
	var at uint64
	cmd := &cobra.Command{
		Use:     "explain ID [FIELD]",
		GroupID: groupPolicy,
		Short:   "Say why a policy field has its value, and what would change it",
		Long: long(`
Explain one field of a session's policy: the event that decided it, what each
session on the way down from the root held when it delegated, and what would
have to happen for another value. Without FIELD all fields are listed.

Fields:

  ` + strings.Join(replay.Fields, "\n  ")),
		Example: `  childlog explain 0a1b2c3d
  childlog explain 0a1b2c3d sandbox.mode
  childlog explain 0a1b2c3d approvals --at 7 --json`,
		Args: between(1, "ID", "FIELD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			fields := replay.Fields
			if len(args) == 2 {
				fields = args[1:]
			}
			var list []replay.Explanation
			err := a.read(ctx, func(s *eventlog.Store) error {
				id, err := resolve(ctx, s, args[0])
				if err != nil {
					return err
				}
				for _, field := range fields {
					x, err := replay.Explain(ctx, s, id, field, at)
					if err != nil {
						return err
					}
					list = append(list, x)
				}
				return nil
			})
			if err != nil {
				return err
			}
			if len(args) == 2 {
				return a.show(wire.ExplanationOf(&list[0]), func() { a.explained(&list[0]) })
			}
			if !a.json {
				a.fields(list)
				return a.out.Err()
			}
			for i := range list {
				x := &list[i]
				if err := a.emit(wire.Field{Field: x.Field, Value: x.Value, Cause: wire.CauseOf(x.By)}); err != nil {
					return err
				}
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return replay.Fields, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().Uint64Var(&at, "at", 0, "as of this seq (default: the head)")
	return cmd
}

func (a *app) explained(x *replay.Explanation) {
	a.out.Println(term.Bold(x.Field), term.Plain(" of "), term.Bold(x.Session.String()), term.Plain(fmt.Sprintf(" as of seq %d", x.Seq)))
	value := term.Bold(x.Value)
	if x.Field == "approvals" {
		value = approvalsText(policy.Approval(x.Value))
	}
	a.out.Rows(
		term.Row{Name: "value", Value: value},
		term.Row{Name: "set by", Value: term.Plain(string(x.By.Source), ", ", where(x.By.Origin, x.Session))},
		term.Row{Name: "because", Value: term.Plain(x.Rule)},
		term.Row{Name: "to change", Value: term.Plain(x.Change)},
	)
	if len(x.Chain) > 1 {
		a.out.Println()
		a.out.Println(term.Dim("from the root down, each as of its delegation:"))
		depths := make([]int, len(x.Chain))
		all := make([]uuid.UUID, len(x.Chain))
		for i := range x.Chain {
			depths[i], all[i] = i, x.Chain[i].Session
		}
		short, branches := shortIDs(all), a.out.Branches(depths)
		rows := make([][]term.Text, len(x.Chain))
		for i, step := range x.Chain {
			held, by := term.Plain(step.Value), term.Dim(string(step.By.Source), ", ", where(step.By.Origin, step.Session))
			if step.Note != "" {
				held, by = term.Warn("unreadable: ", step.Note), nil
			}
			rows[i] = []term.Text{term.Cat(branches[i], term.Plain(short.of(step.Session))), term.Plain(step.Label), term.Plain(fmt.Sprint(step.Seq)), held, by}
		}
		a.out.Table([]term.Column{{Title: "SESSION"}, {Title: "LABEL", Min: 8, Drop: 2}, {Title: "SEQ", Right: true}, {Title: "HELD", Min: 12}, {Title: "SET BY", Drop: 1}}, rows)
	}
	a.neverLegend(x.Value)
}

func (a *app) fields(list []replay.Explanation) {
	rows := make([][]term.Text, len(list))
	values := ""
	for i := range list {
		x := &list[i]
		values += " " + x.Value
		rows[i] = []term.Text{term.Plain(x.Field), term.Bold(x.Value), term.Dim(string(x.By.Source)), term.Dim(where(x.By.Origin, x.Session))}
	}
	a.out.Table([]term.Column{{Title: "FIELD"}, {Title: "VALUE", Min: 16}, {Title: "SOURCE"}, {Title: "EVENT", Drop: 1}}, rows)
	a.neverLegend(values)
}

// neverLegend explains never wherever a value showed it.
func (a *app) neverLegend(shown string) {
	if strings.Contains(shown, string(policy.Never)) {
		a.out.Wrap(0, term.Bold(string(policy.Never)), term.Dim(" means ", policy.Never.Meaning()))
	}
}

func newDiffCmd(a *app) *cobra.Command {
	var from, to uint64
	cmd := &cobra.Command{
		Use:     "diff ID",
		GroupID: groupPolicy,
		Short:   "Compare a session's policy at two points of its log",
		Long: long(`
Compare what a session might do as of two seqs, and name the event behind each
change. Without --from the comparison begins where the policy was first whole
(a child's approval pin, a root's creation), without --to it ends at the head.`),
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
			v := wire.Diff{Session: after.Session.String(), From: before.Seq, To: after.Seq, Changes: []wire.FieldChange{}}
			for _, c := range changes {
				v.Changes = append(v.Changes, wire.FieldChange{Field: c.Field, From: c.From, To: c.To, Cause: wire.CauseOf(c.By)})
			}
			return a.show(v, func() { a.diff(&v, changes) })
		},
	}
	cmd.Flags().Uint64Var(&from, "from", 0, "the earlier seq (default: where the policy was first whole)")
	cmd.Flags().Uint64Var(&to, "to", 0, "the later seq (default: the head)")
	return cmd
}

func (a *app) diff(v *wire.Diff, changes []replay.FieldChange) {
	a.out.Println(term.Bold(v.Session), term.Plain(fmt.Sprintf("  seq %d to %d", v.From, v.To)))
	if len(changes) == 0 {
		a.out.Println(term.Dim("the policy is the same"))
		return
	}
	rows := make([][]term.Text, len(changes))
	shown := ""
	for i, c := range changes {
		shown += c.From + " " + c.To
		rows[i] = []term.Text{term.Plain(c.Field), term.Plain(c.From), term.Bold(c.To), term.Dim(string(c.By.Source), fmt.Sprintf(", seq %d", c.By.Origin.Seq))}
	}
	a.out.Table([]term.Column{{Title: "FIELD"}, {Title: "FROM", Min: 12}, {Title: "TO", Min: 12}, {Title: "BY", Drop: 1}}, rows)
	a.neverLegend(shown)
}
