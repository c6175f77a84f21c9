package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

func newCheckCmd(a *app) *cobra.Command {
	c := &checkRun{app: a}
	cmd := &cobra.Command{
		Use:     "check ID [FILE|-]",
		GroupID: groupPolicy,
		Short:   "Decide a tool call: may the session make it, and why",
		Long: long(`
Decide one tool call of a session, read as a JSON object from a file or from
stdin: the call's id, the tool as the harness names it, the final arguments, {}
if there are none.

  {"call": "c1", "tool": "write_file", "args": {"path": "docs/a.md"}}

More may be said: what the call asks for beyond the sandbox (escalation), a
classifier's verdict on a command, an approval (ask); see 'childlog schema
call'. The answer names the one rule that decided, where it was stated, what
else stands against the call (also), and what would have to change.

  exit 0  allowed        exit 3  denied        exit 8  needs an approval

Nothing is written unless --record is given: then tool/call with the arguments
and tool/decision are appended in one commit, decided on the policy that is in
force in it. An approval that the call names in "ask" is used up by that. What
can't be recorded because the session is closed, taken over by another
activation, imported or unreadable is denied (exit 3), with a warning that says
why; on every other failure there is no answer to act on.

A recorded call is safe to repeat: whoever lost the answer runs the same call
again and gets the decision that stands in the log ("existing"), never a second
record and never more than holds now. An allow that the policy, a deadline or
the end of its approval has overtaken is decided again instead. The same call id
with another tool, other arguments or another escalation is a conflict (exit 4).

--batch reads one call a line and answers one line each, in the same order.
Every call is decided, and recorded, by itself. A line that holds no call gets
an error with its number, and the run ends with exit 2; one whose call id stands
for another call, with exit 4; else 3 if any call was denied, else 8 if any
needs an approval. The input is read as a whole first. If
the store fails on the way, the lines without an answer were not decided.

--classify attaches the verdict of the classifier that comes with childlog, as
the guards do: which commands change nothing, and so may run under a shell of
inspect. It reads the argument command (or cmd) of a shell tool, a text for
bash, zsh or sh or a list of words; beside an argument that it does not know
nothing is admitted. Git is admitted in a directory that is named, by workdir or
git -C, if the configuration of its repository runs nothing. What is recorded
names the classifier and its version.

--at decides as of a seq: under the policy, the operator rules, the counters and
the time of that point, without approvals. It explains the past and grants
nothing.`),
		Example: `  childlog check 0a1b2c3d call.json
  echo '{"call":"c1","tool":"edit","args":{"path":"src/a.go"}}' |
    childlog check 0a1b2c3d --record --epoch 2 --json
  childlog check 0a1b2c3d --batch --json < calls.jsonl`,
		Args: between(1, "ID", "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") {
				switch {
				case c.at == 0:
					return usagef("--at: seqs begin at 1")
				case c.record || c.epoch != 0:
					return usagef("--at looks back; it takes no --record and no --epoch")
				}
			}
			if c.advisory && !c.record {
				return usagef("--advisory says how the harness takes what is recorded; give --record too")
			}
			name := "-"
			if len(args) == 2 {
				name = args[1]
			}
			return c.run(cmd.Context(), args[0], name)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&c.record, "record", false, "append the call and its decision, in one commit")
	f.Uint64Var(&c.epoch, "epoch", 0, "the activation that makes the call")
	f.BoolVar(&c.batch, "batch", false, "decide many calls, one JSON object a line")
	f.BoolVar(&c.advisory, "advisory", false, "with --record: the harness records the decision and does not obey it")
	f.BoolVar(&c.classify, "classify", false, "attach childlog's own verdict on the command of a shell call")
	f.Uint64Var(&c.at, "at", 0, "as of this seq (default: the head)")
	return cmd
}

// checkRun is one run of check.
type checkRun struct {
	*app
	record, batch, advisory bool
	classify                bool
	epoch, at               uint64
}

// checked is one call on its way from the input to the answer.
type checked struct {
	line     uint64
	call     *manifest.Call
	bad      error // the line holds no call that can be decided
	judged   *replay.Judgement
	origins  []string // in words: of what decided, then of the further reasons
	unwanted error    // why the decision was not recorded although it was asked for
}

func (c *checkRun) run(ctx context.Context, session, name string) error {
	calls, err := c.calls(ctx, name)
	if err != nil {
		return err
	}
	hold := c.read
	for i := range calls {
		if c.record || calls[i].call != nil && calls[i].call.Ask != "" && c.at == 0 {
			hold = c.write // an approval is looked up where nothing can come between
		}
	}
	if c.classify {
		for i := range calls {
			if err := c.classified(&calls[i]); err != nil {
				return err
			}
		}
	}
	err = hold(ctx, func(s *eventlog.Store) error {
		id, err := resolve(ctx, s, session)
		if err != nil {
			return err
		}
		return c.decide(ctx, s, id, calls)
	})
	// What was decided is told even if the rest failed: it may be recorded.
	if told := c.tell(calls); told != nil {
		return told
	}
	if err != nil {
		return err
	}
	return c.outcome(calls)
}

func (c *checkRun) decide(ctx context.Context, s *eventlog.Store, id uuid.UUID, calls []checked) error {
	row, err := s.Row(id)
	if err != nil {
		return err
	}
	authorizer := replay.NewAuthorizer(s, id)
	o := ops.CheckOptions{Record: c.record, Epoch: c.epoch, Advisory: c.advisory, At: c.at}
	for i := range calls {
		one := &calls[i]
		if one.bad != nil {
			continue
		}
		j, unwanted, err := ops.Check(ctx, s, authorizer, &row, one.call, o)
		one.unwanted = unwanted
		if taken := (*replay.CallError)(nil); errors.As(err, &taken) {
			err = withHint(err, ops.TakenHint)
		}
		if c.batch && err != nil && ops.OfOneCall(err, c.at) {
			one.bad = err
			continue
		}
		if err != nil {
			return err
		}
		one.judged = &j
		one.origins = []string{replay.OriginText(ctx, s, id, j.Origin)}
		for _, also := range j.AlsoDeniedBy {
			one.origins = append(one.origins, replay.OriginText(ctx, s, id, also.Origin))
		}
	}
	return nil
}

// tell prints the answers.
func (c *checkRun) tell(calls []checked) error {
	for i := range calls {
		one := &calls[i]
		if one.unwanted != nil {
			c.msg.Println(term.Warn("childlog: warning: "), term.Plain(c.prefix(one), "not recorded: ", one.unwanted.Error()))
		}
		switch {
		case one.bad != nil:
			v := wire.BadLine{Line: one.line, Error: ops.Undecided(one.bad)}
			if err := c.show(v, func() { c.out.Println(term.Bad(c.prefix(one), "error: "), term.Plain(one.bad.Error())) }); err != nil {
				return err
			}
		case one.judged != nil:
			v := wire.JudgementOf(one.judged, one.call.ID)
			v.Line = one.line
			err := c.show(v, func() {
				if c.batch {
					c.out.Println(term.Dim(c.prefix(one)), verdictText(one.judged.Verdict), term.Plain(afterVerdict(v.Reason), recordedText(v.Recorded)))
				} else {
					c.judged(one.judged, &v, one.origins)
				}
			})
			if err != nil {
				return err
			}
		}
	}
	return c.out.Err()
}

func (c *checkRun) prefix(one *checked) string {
	if !c.batch {
		return ""
	}
	return fmt.Sprintf("line %d: ", one.line)
}

// outcome is the exit code of the whole.
func (c *checkRun) outcome(calls []checked) error {
	bad, taken, denied, asks := 0, 0, false, false
	for i := range calls {
		switch one := &calls[i]; {
		case errors.Is(one.bad, eventlog.ErrConflict):
			taken++
		case one.bad != nil:
			bad++
		case one.judged.Verdict == policy.VerdictNeedsApproval:
			asks = true
		case !one.judged.Allowed():
			denied = true
		}
	}
	switch {
	case bad > 0:
		return withHint(fmt.Errorf("%w: %d of %s hold no call", eventlog.ErrInvalid, bad, plural(len(calls), "line")), "mend those lines and send them again; the others were decided")
	case taken > 0:
		return withHint(fmt.Errorf("%w: %d of %s have the id of another call", eventlog.ErrConflict, taken, plural(len(calls), "line")), "give those calls ids of their own and send them again; the others were decided")
	case denied:
		return verdict(failure.ExitRefused)
	case asks:
		return verdict(failure.ExitApproval)
	}
	return nil
}
