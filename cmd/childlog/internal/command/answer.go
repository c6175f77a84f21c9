package command

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/replay"
)

func newAnswerCmd(a *app) *cobra.Command {
	var (
		allow, reject, operator, host bool
		ref                           string
	)
	cmd := &cobra.Command{
		Use:     "answer ID ASK --allow|--reject --operator|--host",
		GroupID: groupPolicy,
		Short:   "Answer a question that a session asked",
		Long: long(`
Allow or reject the one call that a session asked about. An allowance is bound
to that call with its very arguments, to the policy that was asked under and to
the open turn; it is used once.

--operator answers as a person, --host as a program that answers for the
deployment; the record says which. --ref adds an opaque reference to either.

One question has one decision. The same answer again is answered with it,
another one is a conflict (exit 4). An answer that comes after the end of the
turn, or an allowance after the policy changed, is recorded as cancelled (exit
3). A question that a guard left to its harness is answered there and nowhere
else (exit 3).`),
		Example: `  childlog asks
  childlog answer 0a1b2c3d a1 --allow --operator
  childlog answer 0a1b2c3d a1 --reject --host --ref rule-17`,
		Args: exactly("ID", "ASK"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if allow == reject {
				return usagef("what is the answer? give --allow or --reject")
			}
			if operator == host {
				return usagef("who answers? give --operator for a person or --host for a program")
			}
			r := replay.AnswerRequest{Ask: args[1], Answer: replay.AllowOnce, Decider: eventlog.DeciderHuman, Ref: ref}
			if reject {
				r.Answer = replay.Reject
			}
			if host {
				r.Decider = eventlog.DeciderHost
			}
			var ruling replay.Ruling
			err := a.write(ctx, func(s *eventlog.Store) (err error) {
				if r.Session, err = resolve(ctx, s, args[0]); err == nil {
					ruling, err = replay.Respond(ctx, s, r)
				}
				return err
			})
			if err != nil {
				return err
			}
			v := wire.RulingOf(r.Session.String(), &ruling)
			if err := a.show(v, func() { a.ruled(v.Session, &ruling) }); err != nil {
				return err
			}
			if ruling.Outcome == eventlog.AskCancelled {
				return verdict(failure.ExitRefused)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&allow, "allow", false, "the call may be made, once")
	f.BoolVar(&reject, "reject", false, "it may not")
	f.BoolVar(&operator, "operator", false, "a person answers")
	f.BoolVar(&host, "host", false, "a program answers for the deployment")
	f.StringVar(&ref, "ref", "", "an opaque reference of whoever answers, a code")
	return cmd
}

func newAsksCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "asks [ID]",
		GroupID: groupPolicy,
		Short:   "List the questions that wait for an answer",
		Long: long(`
List the questions that wait for an answer, of one session or of all: which call
is asked about, under which sandbox the session is, and what is wanted beyond
it.`),
		Example: `  childlog asks
  childlog asks 0a1b2c3d --json`,
		Args: between(0, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			var list []replay.Waiting
			err := a.read(ctx, func(s *eventlog.Store) (err error) {
				id := uuid.Nil
				if len(args) == 1 {
					if id, err = resolve(ctx, s, args[0]); err != nil {
						return err
					}
				}
				list, err = ops.Asks(ctx, s, id)
				return err
			})
			if err != nil {
				return err
			}
			if !a.json && len(list) == 0 {
				a.out.Println(term.Dim("no question waits for an answer"))
			}
			for i := range list {
				w := &list[i]
				if err := a.show(wire.QuestionOf(w), func() { a.waiting(w) }); err != nil {
					return err
				}
			}
			return a.out.Err()
		},
	}
}

// waiting prints a question.
func (a *app) waiting(w *replay.Waiting) {
	a.out.Println(term.Bold(w.Ask), term.Plain(fmt.Sprintf(": call %s of tool %s in ", w.Call, w.Tool)), term.Bold(w.Session.String()))
	rows := []term.Row{{Name: "asked", Value: term.Plain(fmt.Sprintf("%s, seq %d", shortTime(w.Time), w.Seq))}}
	if w.Text != "" {
		rows = append(rows, term.Row{Name: "question", Value: term.Plain(w.Text)})
	}
	if len(w.Args) > 0 {
		rows = append(rows, term.Row{Name: "arguments", Value: term.Plain(string(w.Args))})
	}
	rows = append(rows, term.Row{Name: "sandbox", Value: modeText(w.Sandbox.Mode)})
	if e := w.Escalation; e != nil {
		rows = append(rows, term.Row{Name: "wants", Value: modeText(e.Sandbox.Mode)})
		if e.Justification != "" {
			rows = append(rows, term.Row{Name: "because", Value: term.Plain(e.Justification)})
		}
	}
	if w.Elsewhere != "" {
		rows = append(rows, term.Row{Name: "answered", Value: term.Warn("in "+w.Elsewhere, ", by its own person, and not here")})
	}
	if w.Gone != nil {
		rows = append(rows, term.Row{Name: "texts", Value: term.Bad("gone: ", w.Gone.Error())})
	}
	a.out.Rows(rows...)
}
