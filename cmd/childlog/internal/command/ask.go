package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/replay"
)

func newAskCmd(a *app) *cobra.Command {
	c := &askRun{app: a}
	cmd := &cobra.Command{
		Use:     "ask ID [FILE|-]",
		GroupID: groupPolicy,
		Short:   "Ask whether one call may be made, for somebody else to answer",
		Long: long(`
Put the question whether a session may make one call, once. The call is read as
for 'childlog check', from a file or from stdin; its "ask" is the id of the
question, a new one if it has none. Somebody answers with 'childlog answer', in
any process; 'childlog asks' lists what waits.

  exit 0  allowed, once      exit 3  rejected, or not decided by anybody
  exit 8  it waits for its answer

Nobody is asked where a rule decides: a child is rejected by its pin (never ask,
always reject), and so is a root whose approvals are never, a call outside of an
open turn (append turn/start begins one), and what goes beyond a narrowing. To
use an allowance, let the same document be decided by 'childlog check --record'.
It lifts the sandbox only as far as the "escalation" of the document asks, and
nothing else: a question about a call that would stay denied is not put (exit
3), and the error says which escalation it takes, if one would help.

The question is recorded once: the same document and --question under the same
id get the answer, or wait on, and anything else under the id is a conflict
(exit 4). An allowance that was used up, or that the policy or the end of its
turn has overtaken, is none (exit 3).

--wait-answer waits that long and leaves the store to others meanwhile. A
question without an answer stays open; the next activation closes it as
unavailable.`),
		Example: `  childlog ask 0a1b2c3d call.json --question "May I install it?"
  childlog ask 0a1b2c3d call.json --epoch 2 --wait-answer 5m --json`,
		Args: between(1, "ID", "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.waitAnswer < 0 {
				return usagef("--wait-answer: want 0 or more, got %s", c.waitAnswer)
			}
			name := "-"
			if len(args) == 2 {
				name = args[1]
			}
			return c.run(cmd.Context(), args[0], name)
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&c.Epoch, "epoch", 0, "the activation that asks")
	f.StringVar(&c.Question, "question", "", "what to show to whoever answers")
	f.DurationVar(&c.waitAnswer, "wait-answer", 0, "how long to wait for the answer, such as 30s")
	return cmd
}

// askRun is one run of ask.
type askRun struct {
	*app
	ops.AskOptions
	waitAnswer time.Duration
}

// answerPause is the time between two looks for an answer: a person gives it.
const answerPause = 200 * time.Millisecond

func (c *askRun) run(ctx context.Context, session, name string) error {
	doc, err := c.document(ctx, name, manifest.MaxCall)
	if err != nil {
		return err
	}
	call, err := parseCall(doc)
	if err != nil {
		return err
	}
	var id uuid.UUID
	var ruling replay.Ruling
	pose := func() error {
		return c.write(ctx, func(s *eventlog.Store) (err error) {
			if id, err = resolve(ctx, s, session); err == nil {
				ruling, err = ops.Ask(ctx, s, id, call, c.AskOptions)
			}
			return err
		})
	}
	if err := pose(); err != nil {
		return err
	}
	if ruling.Waits() && c.waitAnswer > 0 {
		call.Ask = ruling.Ask
		if decided, err := c.await(ctx, id, ruling.Ask); err != nil {
			return err
		} else if decided { // what it is worth now is said where nothing can come between
			if err := pose(); err != nil {
				return err
			}
		}
	}
	v := wire.RulingOf(id.String(), &ruling)
	if err := c.show(v, func() { c.ruled(v.Session, &ruling) }); err != nil {
		return err
	}
	switch {
	case ruling.Waits():
		return verdict(failure.ExitApproval)
	case !ruling.Allowed():
		return verdict(failure.ExitRefused)
	}
	return nil
}

// await looks for the answer until there is one or the wait is over. The store is
// given back between two looks, and one that others hold is looked at again.
func (c *askRun) await(ctx context.Context, id uuid.UUID, ask string) (decided bool, err error) {
	end := time.NewTimer(c.waitAnswer)
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-end.C:
			return false, nil
		case <-time.After(answerPause):
		}
		err := c.read(ctx, func(s *eventlog.Store) error {
			r, err := replay.RulingOf(ctx, s, id, ask)
			decided = !r.Waits()
			return err
		})
		if err != nil && !errors.Is(err, eventlog.ErrLocked) || decided {
			return err == nil, err
		}
	}
}

// ruled prints a ruling.
func (a *app) ruled(session string, r *replay.Ruling) {
	if r.Waits() {
		a.out.Println(term.Warn("waits for an answer: "), term.Plain("ask "), term.Bold(r.Ask))
		a.out.Rows(term.Row{Name: "asked", Value: term.Plain(fmt.Sprintf("at seq %d", r.Seq))},
			term.Row{Name: "to answer", Value: term.Plain("childlog answer ", session, " ", r.Ask, " --operator --allow, or --reject")})
		return
	}
	head := term.Bad(string(r.Outcome))
	if r.Allowed() {
		head = term.Good("allowed, once")
	} else if r.Void != nil {
		head = term.Bad("void")
	}
	a.out.Println(head, term.Plain(": ask "), term.Bold(r.Ask))
	decided := "by " + string(r.Decider)
	if r.Ref != "" {
		decided += " " + r.Ref
	}
	if r.Rule != "" {
		decided += ", rule " + r.Rule
	}
	rows := []term.Row{{Name: "decided", Value: term.Plain(fmt.Sprintf("%s, at seq %d", decided, r.DecidedSeq))}}
	if r.Void != nil {
		rows = append(rows, term.Row{Name: "why", Value: term.Plain(r.Void.Error())})
	}
	if r.Existing {
		rows = append(rows, term.Row{Name: "recorded", Value: term.Warn("before; nothing was written")})
	}
	a.out.Rows(rows...)
}
