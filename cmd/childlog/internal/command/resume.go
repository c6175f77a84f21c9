package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

func newResumeCmd(a *app) *cobra.Command {
	var (
		caller   callerFlags
		defaults defaultFlags
		role     string
		known    []string
	)
	cmd := &cobra.Command{
		Use:     "resume ID --parent ID|--operator",
		GroupID: groupPolicy,
		Short:   "Rebuild a session from its log alone, and append nothing",
		Long: long(`
Resume a session cold: read and verify its whole log, and answer with everything
that a process which knows nothing of it needs to go on. The policy is rebuilt
purely by replay. Nothing is appended, whatever the environment, the directory,
the clock, the deployment's defaults or the parent's present policy are: resume
it three times and its hash and last activity are the same.

Differences to the present are reported as drift and have no effect: another
default in force, or a parent that has since tightened. To go on, activate.

Refused (exit 3): a caller that is not the recorded parent, one-shot children,
closed sessions, evidence, and another --role than the recorded one:
re-delegate.
Refused (exit 6): a damaged log, or one that a newer version wrote.

With --know only these event types of a harness's own are known; any other,
unless marked ignorable, refuses the resume.`),
		Example: `  childlog resume 0a1b2c3d --parent 9f8e7d6c
  childlog resume 0a1b2c3d --operator --json
  childlog resume 0a1b2c3d --operator --know plan/note,plan/done`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := caller.required(); err != nil {
				return err
			}
			ctx := cmd.Context()
			var res replay.Resumption
			var v wire.Resumption
			err := a.read(ctx, func(s *eventlog.Store) error {
				id, by, err := target(ctx, s, args[0], &caller)
				if err != nil {
					return err
				}
				r := replay.Request{Session: id, By: by, Role: role}
				if cmd.Flags().Changed("know") {
					r.Known = append([]string{}, known...)
				}
				if r.Present, err = defaults.present(ctx, s, id); err != nil {
					return err
				}
				if v, res, err = ops.Resume(ctx, s, r); id == eventlog.StoreSession {
					err = ownSession(err)
				}
				return err
			})
			if err != nil {
				return err
			}
			return a.show(v, func() { a.resumed(&v, &res) })
		},
	}
	caller.add(cmd)
	f := cmd.Flags()
	f.StringVar(&role, "role", "", "the role to resume it in; another than the recorded one is refused: re-delegate")
	completeRole(cmd)
	f.StringSliceVar(&known, "know", nil, "types of open families that the harness knows (default: it takes any)")
	defaults.add(a, cmd)
	return cmd
}

// redactedShown bounds the redactions that people are shown; all are in --json.
const redactedShown = 5

func (a *app) resumed(v *wire.Resumption, res *replay.Resumption) {
	e := &res.Policy
	a.out.Println(term.Good("resumed "), term.Bold(v.Session), term.Plain("  ", quoted(res.Row.Label)), term.Dim("  nothing was appended"))
	a.policyRows(e, term.Row{Name: "status", Value: statusText(v.Status)})
	a.out.Println()
	rows := []term.Row{
		{Name: "head", Value: term.Plain(fmt.Sprintf("seq %d, %s", v.Head.Seq, v.Head.Hash))},
		{Name: "last activity", Value: term.Plain(shortTime(res.Row.LastActivity()))},
		{Name: "conversation", Value: term.Plain(fmt.Sprintf("seq %s, %d steps used", seqRange(v.Conversation.From, v.Conversation.To), v.Steps))},
	}
	for _, d := range v.Drift {
		text := term.Cat(term.Warn(d.Detail), term.Plain(": ", d.Field, " recorded ", d.Recorded, ", present ", d.Present))
		if d.Field == "defaults.approvals" {
			text = term.Cat(text, term.Dim(" (never: ", shortMeaning(policy.Never), ")"))
		}
		rows = append(rows, term.Row{Name: "drift", Value: text})
	}
	if len(v.Drift) == 0 {
		rows = append(rows, term.Row{Name: "drift", Value: term.Plain("none")})
	}
	for _, c := range v.OpenCalls {
		state := "asked about, not started"
		if c.Started {
			state = "started"
		}
		rows = append(rows, term.Row{Name: "open call", Value: term.Plain(fmt.Sprintf("%s %s at seq %d, %s, no result", c.Tool, c.Call, c.Seq, state))})
	}
	for _, s := range v.Skipped {
		kind := "ignorable"
		if s.Required {
			kind = "required"
		}
		rows = append(rows, term.Row{Name: "not understood", Value: term.Plain(fmt.Sprintf("%s, %s, %d from seq %d on; kept as they are", s.Type, kind, s.Count, s.FirstSeq))})
	}
	for i, e := range res.Redacted {
		if i == redactedShown {
			rows = append(rows, term.Row{Name: "redacted", Value: term.Warn(fmt.Sprintf("and %d more; `childlog log` shows them", len(res.Redacted)-i))})
			break
		}
		rows = append(rows, term.Row{Name: "redacted", Value: term.Cat(term.Plain(fmt.Sprintf("seq %d %s ", e.Seq, e.Type)), redactedText(&e.Redaction))})
	}
	a.out.Rows(rows...)
	if len(v.Inbox) > 0 {
		a.out.Println()
		a.out.Println(term.Plain(plural(len(v.Inbox), "message"), " pending:"))
		a.messages(v.Inbox)
	}
	a.out.Println()
	a.out.Println(term.Dim("for the model:"))
	a.out.Wrap(2, term.Plain(v.RuntimeContext))
}
