package command

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/review"
	"childlog/cmd/childlog/internal/term"
	"childlog/eventlog"
	"childlog/policy"
)

func newWhoCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "who ID SEQ",
		GroupID: groupAudit,
		Short:   "Say who is answerable for one event",
		Long: long(`
Follow one event of a session up to whoever is answerable for it: the decision
on the call that it belongs to, with its rule and its origin; then receipt by
receipt to the root, and the principal for whom that root works.

The trace stops where the logs stop: at a session whose authority is another
system's word it says "claimed", where two logs do not agree "broken", at a root
without a principal "unnamed". childlog authenticates nobody, so a name at the
end is the word of whoever made the root.`),
		Example: `  childlog who 0a1b2c3d 12
  childlog who 0a1b2c3d 12 --json`,
		Args: exactly("ID", "SEQ"),
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := strconv.ParseUint(args[1], 10, 64)
			if err != nil || seq == 0 {
				return usagef("SEQ: got %q, want a number from 1", args[1])
			}
			ctx := cmd.Context()
			var w review.Who
			err = a.read(ctx, func(s *eventlog.Store) error {
				id, err := resolve(ctx, s, args[0])
				if err == nil {
					w, err = review.Trace(ctx, s, id, seq)
				}
				return err
			})
			if err != nil {
				return err
			}
			return a.show(&w, func() { a.who(&w) })
		},
	}
}

func (a *app) who(w *review.Who) {
	if w.Operator != nil {
		a.out.Wrap(0, term.Bold("Done by an operator"), term.Plain(" (", *w.Operator, "), and not by the session, for which is answerable:"))
	}
	answer := term.Bold(w.Answer)
	if w.Ends != review.EndsPrincipal {
		answer = term.Cat(term.Warn(w.Ends), term.Plain(": "), answer)
	}
	a.out.Wrap(0, answer)
	a.out.Println()
	ev := &w.Event
	rows := []term.Row{
		{Name: "event", Value: term.Plain(fmt.Sprintf("seq %d of %s %s: %s", ev.Seq, w.Session.Session, quoted(w.Session.Label), ev.What))},
		{Name: "written", Value: term.Plain("by source ", ev.Source, ", at ", secondsOf(ev.Time), " by the clock of whoever wrote it")},
	}
	if ev.By != nil {
		rows = append(rows, term.Row{Name: "in the name of", Value: term.Plain(*ev.By)})
	}
	if ev.Call != nil {
		rows = append(rows, term.Row{Name: "call", Value: term.Plain(*ev.Call)})
	}
	if d := w.Decision; d != nil {
		decider := d.Decider.Kind
		if d.Decider.Ref != nil {
			decider += " " + *d.Decider.Ref
		}
		rows = append(rows,
			term.Row{Name: "decision", Value: term.Cat(verdictText(policy.Verdict(d.Verdict)), term.Plain(fmt.Sprintf(" (%s), seq %d, by %s, %s", d.Code, d.Seq, decider, d.Enforcement)))},
			term.Row{Name: "because", Value: term.Plain(*w.Reason)},
			term.Row{Name: "stated by", Value: term.Plain(*w.Origin)},
			term.Row{Name: "policy", Value: term.Plain(fmt.Sprintf("of seq %d, digest %s", d.EvaluatedSeq, d.PolicyDigest[:16]))},
		)
	}
	if q := w.Asked; q != nil {
		text := fmt.Sprintf("%s: %s by %s, seq %d", q.Ask, q.Outcome, q.Decider, q.Seq)
		if q.Rule != nil {
			text += ", rule " + *q.Rule
		}
		rows = append(rows, term.Row{Name: "question", Value: term.Plain(text)})
	}
	if w.Note != nil {
		rows = append(rows, term.Row{Name: "decision", Value: term.Warn(*w.Note)})
	}
	a.out.Rows(rows...)
	a.chainUp(w.Chain, w.Principal)
	a.out.Println()
	for _, u := range w.Unknown {
		a.out.Wrap(2, term.Dim(u))
	}
}
