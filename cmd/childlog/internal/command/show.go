package command

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/replay"
)

func newShowCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		GroupID: groupSessions,
		Short:   "Show everything small about one session",
		Long: long(`
Show one session: what it is, where it stands, what it may do, what is open and
pending. A damaged session is shown as far as it can be read, with the damage.
For its events see log, for its policy alone policy.`),
		Example: `  childlog show 0a1b2c3d
  childlog show codex:thread-17 --json`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			var row eventlog.Row
			var v wire.Detail
			var e replay.Effective
			err := a.read(ctx, func(s *eventlog.Store) error {
				id, err := resolve(ctx, s, args[0])
				if err != nil {
					return err
				}
				v, row, e, err = ops.Show(ctx, s, id)
				return err
			})
			if err != nil {
				return err
			}
			return a.show(v, func() { a.detail(&v, &row, &e) })
		},
	}
}

func (a *app) detail(v *wire.Detail, row *eventlog.Row, e *replay.Effective) {
	a.out.Println(term.Bold(v.Session.Session), term.Plain("  ", quoted(row.Label)))
	switch {
	case v.Policy != nil:
		a.policyRows(e, term.Row{Name: "status", Value: term.Bold(v.Status)})
	case v.PolicyError == nil:
		a.out.Rows(
			term.Row{Name: "kind", Value: term.Plain("the store's own session: no agent, and without a policy")},
			term.Row{Name: "rules", Value: term.Plain("`childlog rules show`")},
		)
	default:
		a.out.Rows(
			term.Row{Name: "kind", Value: term.Plain(v.Kind)},
			term.Row{Name: "status", Value: term.Bold(v.Status)},
			term.Row{Name: "policy", Value: term.Cat(term.Bad("unreadable, nothing may be granted: "), term.Plain(*v.PolicyError))},
		)
	}
	a.out.Println()
	rows := []term.Row{
		{Name: "created", Value: term.Plain(v.Created)},
		{Name: "last activity", Value: term.Plain(v.LastActivity)},
		{Name: "head", Value: term.Plain(fmt.Sprintf("seq %d, %s", v.Head.Seq, v.Head.Hash))},
	}
	add := func(name string, value term.Text) { rows = append(rows, term.Row{Name: name, Value: value}) }
	if v.External != nil {
		add("external id", term.Plain(externalText(row)))
	}
	if v.WorkspaceRoot != nil {
		add("workspace", term.Plain(*v.WorkspaceRoot))
	}
	if row.Cwd != "" && row.Cwd != row.WorkspaceRoot {
		add("directory", term.Plain(row.Cwd))
	}
	if v.Epoch > 0 {
		state := term.Plain("ended")
		if v.Activation.Open {
			state = term.Warn("open")
		}
		add("activation", term.Cat(term.Plain(fmt.Sprintf("epoch %d, ", v.Epoch)), state))
	}
	add("counts", term.Plain(fmt.Sprintf("%s, %s, %s, %s", plural(int(v.Events), "event"), plural(int(v.Turns), "turn"), plural(int(v.Steps), "step"), plural(int(v.Calls), "call"))))
	if v.SeedLen > 0 {
		from := term.Plain("the parent")
		if v.SeedFrom != nil && (v.Parent == nil || *v.SeedFrom != *v.Parent) {
			from = term.Cat(term.Bold(*v.SeedFrom), term.Plain(", evidence that was adopted"))
		}
		add("seed", term.Cat(term.Plain(plural(int(v.SeedLen), "event"), " copied from "), from))
	}
	if u := v.Usage; u.Records > 0 {
		add("usage", term.Plain(fmt.Sprintf("%s in, %s out, %s cost micros in %s", grouped(u.Input), grouped(u.Output), grouped(u.CostMicros), plural(int(u.Records), "record"))))
	}
	if len(v.Denials) > 0 {
		add("denials", term.Warn(counts(v.Denials)))
	}
	if v.OpenTurn != nil {
		add("open turn", term.Warn(strconv.FormatUint(*v.OpenTurn, 10)))
	}
	for _, c := range v.OpenCalls {
		add("open call", term.Warn(fmt.Sprintf("%s %s at seq %d", c.Tool, c.Call, c.Seq)))
	}
	for _, q := range v.OpenAsks {
		add("open question", term.Warn(fmt.Sprintf("%s at seq %d", q.Ask, q.Seq)))
	}
	for _, s := range v.Settles {
		add("settled", term.Plain(fmt.Sprintf("%s at seq %d", s.Outcome, s.Seq)))
	}
	for i, c := range v.Children {
		name := ""
		if i == 0 {
			name = "children"
		}
		text := term.Plain(c)
		if slices.Contains(v.Purged, c) {
			text = term.Cat(text, term.Warn("  purged"))
		}
		add(name, text)
	}
	for _, h := range v.Holds {
		scope := ""
		if h.Subtree {
			scope = ", with all below it"
		}
		add("legal hold", term.Cat(term.Warn(h.Hold), term.Plain(fmt.Sprintf(": %s, by %s, seq %d%s", h.Code, h.By, h.Seq, scope))))
	}
	if v.Redactions > 0 {
		add("redacted", term.Warn(plural(int(v.Redactions), "content")))
	}
	for _, d := range v.Damage {
		add("damage", term.Cat(term.Bad("seq "+seqRange(d.From, d.To)), term.Plain(": ", d.Error)))
	}
	if v.Unknown != nil {
		add("unknown", term.Warn(fmt.Sprintf("%s at seq %d was written by a newer version", v.Unknown.Type, v.Unknown.Seq)))
	}
	a.out.Rows(rows...)
	if len(v.Inbox) > 0 {
		a.out.Println()
		a.out.Println(term.Plain(plural(len(v.Inbox), "message"), " pending:"))
		a.messages(v.Inbox)
	}
}
