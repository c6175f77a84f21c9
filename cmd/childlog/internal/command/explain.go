package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

func newExplainCmd(a *app) *cobra.Command {
	var at, seq uint64
	var call string
	cmd := &cobra.Command{
		Use:     "explain ID [FIELD]",
		GroupID: groupPolicy,
		Short:   "Say why a session may do what it may, and what would change it",
		Long: long(`
Explain one field of a session's policy: the rule and the event that decided it,
what each session on the way down from the root held when it delegated (and what
it could hand on, where that is another value), and what would have to happen
for another value. Where another part of the policy leaves less than the field
says (a profile's shell and the grant, a grant and the sandbox), that is what is
effective, and it is shown with what cut it. Without FIELD all are listed.

--call explains the decision on a tool call, as 'childlog check' reads and makes
it: the rule, its origin, the session on the way down at which the right was
lost, and what would have to change. Nothing is recorded, and a denial is no
failure here.

--seq explains one event: a recorded decision, what an event of the policy
changed, or what the event is and which policy was in force after it.

Fields:

` + fieldList()),
		Example: `  childlog explain 0a1b2c3d
  childlog explain 0a1b2c3d grant.shell
  childlog explain 0a1b2c3d approvals --at 7 --json
  childlog explain 0a1b2c3d --call call.json
  childlog explain 0a1b2c3d --seq 12`,
		Args: between(1, "ID", "FIELD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			asked := 0
			for _, is := range []bool{len(args) == 2, call != "", cmd.Flags().Changed("seq")} {
				if is {
					asked++
				}
			}
			switch {
			case asked > 1:
				return usagef("one question at a time: give FIELD, --call or --seq")
			case cmd.Flags().Changed("at") && at == 0, cmd.Flags().Changed("seq") && seq == 0:
				return usagef("seqs begin at 1")
			case seq != 0 && at != 0:
				return usagef("--seq says as of when; it takes no --at")
			case call != "":
				return a.explainCall(cmd.Context(), args[0], call, at)
			case seq != 0:
				return a.explainEvent(cmd.Context(), args[0], seq)
			case len(args) == 2:
				return a.explainField(cmd.Context(), args[0], args[1], at)
			}
			return a.explainAll(cmd.Context(), args[0], at)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return replay.Fields, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&at, "at", 0, "as of this seq (default: the head)")
	f.StringVar(&call, "call", "", "explain the decision on the call in this file, - for stdin")
	f.Uint64Var(&seq, "seq", 0, "explain the event at this seq")
	return cmd
}

// fieldList lists the fields by group, for the help.
func fieldList() string {
	var b strings.Builder
	for _, g := range replay.FieldGroups {
		line := fmt.Sprintf("  %-10s", g.Name)
		for i, f := range g.Fields {
			if i > 0 && len(line)+1+len(f) > helpWidth {
				b.WriteString(strings.TrimRight(line, " ") + "\n")
				line = strings.Repeat(" ", 12)
			}
			if line = line + f; i < len(g.Fields)-1 {
				line += " "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func (a *app) explainField(ctx context.Context, session, field string, at uint64) error {
	var x replay.Explanation
	err := a.read(ctx, func(s *eventlog.Store) error {
		id, err := resolve(ctx, s, session)
		if err == nil {
			x, err = replay.Explain(ctx, s, id, field, at)
		}
		return err
	})
	if err != nil {
		return err
	}
	return a.show(wire.ExplanationOf(&x), func() { a.explained(&x) })
}

func (a *app) explainAll(ctx context.Context, session string, at uint64) error {
	var list []replay.Explanation
	err := a.read(ctx, func(s *eventlog.Store) error {
		id, err := resolve(ctx, s, session)
		if err == nil {
			list, err = replay.ExplainAll(ctx, s, id, at)
		}
		return err
	})
	if err != nil {
		return err
	}
	if !a.json {
		a.fields(list)
		return a.out.Err()
	}
	for _, line := range ops.FieldLines(list) {
		if err := a.emit(line); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) explained(x *replay.Explanation) {
	a.out.Println(term.Bold(x.Field), term.Plain(" of "), term.Bold(x.Session.String()), term.Plain(fmt.Sprintf(" as of seq %d", x.Seq)))
	value := term.Bold(x.Value)
	if x.Field == "approvals" {
		value = approvalsText(policy.Approval(x.Value))
	}
	rows := []term.Row{
		{Name: "value", Value: value},
		{Name: "set by", Value: term.Plain(string(x.By.Source), ", ", where(x.By.Origin, x.Session))},
	}
	if l := x.Effective; l != nil {
		less := term.Cat(term.Warn("less: "+l.Field+" is "), term.Bold(l.Value), term.Plain(" (", l.Rule, ")"))
		rows = append(rows[:1:1], append([]term.Row{{Name: "effective", Value: less}}, rows[1:]...)...)
	}
	if x.DecidedBy != "" {
		rows = append(rows, term.Row{Name: "rule", Value: term.Plain(string(x.DecidedBy))})
	}
	a.out.Rows(append(rows, term.Row{Name: "because", Value: term.Plain(x.Rule)}, term.Row{Name: "to change", Value: term.Plain(x.Change)})...)
	a.chain(x.Chain, -1)
	a.neverLegend(x.Value)
}

// chain prints what each session on the way down held; lost is the place of the
// one in which a right is gone first, -1 if none is.
func (a *app) chain(chain []replay.Step, lost int) {
	if len(chain) < 2 {
		return
	}
	a.out.Println()
	a.out.Println(term.Dim("from the root down, each as of its delegation:"))
	depths := make([]int, len(chain))
	all := make([]uuid.UUID, len(chain))
	for i := range chain {
		depths[i], all[i] = i, chain[i].Session
	}
	short, branches := shortIDs(all), a.out.Branches(depths)
	columns := []term.Column{{Title: "SESSION"}, {Title: "LABEL", Min: 8, Drop: 2}, {Title: "SEQ", Right: true}, {Title: "HELD", Min: 12}, {Title: "SET BY", Min: 12, Drop: 1}}
	handed := false
	for i := range chain {
		handed = handed || chain[i].Delegable != "" && i < len(chain)-1
	}
	if handed {
		columns = slices.Insert(columns, 4, term.Column{Title: "HANDED ON", Min: 9})
	}
	if lost >= 0 {
		columns = append(columns, term.Column{Title: ""})
	}
	rows := make([][]term.Text, len(chain))
	for i, step := range chain {
		held, by := term.Plain(step.Value), term.Dim(string(step.By.Source), ", ", where(step.By.Origin, step.Session))
		if step.Note != "" {
			held, by = term.Warn("unreadable: ", step.Note), nil
		}
		rows[i] = []term.Text{term.Cat(branches[i], term.Plain(short.of(step.Session))), term.Plain(step.Label), term.Plain(fmt.Sprint(step.Seq)), held}
		if handed {
			rows[i] = append(rows[i], term.Plain(step.Delegable))
		}
		rows[i] = append(rows[i], by)
		if i == lost {
			rows[i] = append(rows[i], term.Bad("lost here"))
		}
	}
	a.out.Table(columns, rows)
}

func (a *app) fields(list []replay.Explanation) {
	var rows [][]term.Text
	values, i := "", 0
	for _, g := range replay.FieldGroups {
		rows = append(rows, []term.Text{term.Accent(g.Name)})
		for range g.Fields {
			x := &list[i]
			if x.Field == "approvals" || x.Field == "defaults" {
				values += " " + x.Value
			}
			value := term.Bold(x.Value)
			if l := x.Effective; l != nil {
				value = term.Cat(value, term.Warn(", effective "+l.Field+" "+l.Value))
			}
			rows = append(rows, []term.Text{term.Plain("  ", x.Field), value, term.Dim(string(x.By.Source)), term.Dim(where(x.By.Origin, x.Session))})
			i++
		}
	}
	a.out.Table([]term.Column{{Title: "FIELD"}, {Title: "VALUE", Min: 16}, {Title: "SOURCE"}, {Title: "EVENT", Min: 8, Drop: 1}}, rows)
	a.neverLegend(values)
}

// neverLegend explains never wherever a value showed it.
func (a *app) neverLegend(shown string) {
	if strings.Contains(shown, string(policy.Never)) {
		a.out.Wrap(0, term.Bold(string(policy.Never)), term.Dim(" means ", policy.Never.Meaning()))
	}
}
