package command

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

func newNarrowCmd(a *app) *cobra.Command {
	var (
		sandbox sandboxFlags
		n       replay.Narrowing
		ceiling string
	)
	cmd := &cobra.Command{
		Use:     "narrow ID|--all --reason TEXT",
		GroupID: groupSessions,
		Short:   "Lower what a session may do, for ever",
		Long: long(`
Narrow a session, with --subtree everything below it too, or with --all every
session of the store, in one commit: all of it or nothing. A narrowing meets a
ceiling into the bound; no switch, resume or later event undoes it. Children
that are being created meanwhile are born narrow.

The ceiling is one of these, or several:

  --sandbox  of the sandbox
  --ceiling  of what it may do beside it: a JSON document, in which only what
             is stated narrows, such as {"shell": "none", "write_scope": []}
             (` + "`childlog schema ceiling`" + `)
  --rules    the operator rules that the store has now

Sessions that hold no more than the ceiling already are skipped, and so are
closed ones and evidence; they are listed with the reason.`),
		Example: `  childlog narrow 0a1b2c3d --sandbox read-only --reason "incident 12" --subtree
  childlog narrow 0a1b2c3d --sandbox workspace-write --writable-root docs \
    --reason "docs only"
  childlog narrow 0a1b2c3d --ceiling no-shell.json --reason "incident 13"
  childlog narrow --all --rules --reason "new rules"`,
		Args: between(0, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if n.All == (len(args) == 1) {
				return usagef("narrow whom? give an ID, or --all for every session")
			}
			if n.All && n.Subtree {
				return usagef("--all takes every session already; leave --subtree out")
			}
			var err error
			if n.Sandbox, err = sandbox.setting(); err != nil {
				return err
			}
			if n.Authority, err = a.ceiling(cmd.Context(), ceiling); err != nil {
				return err
			}
			if n.Sandbox == nil && n.Authority == nil && !n.Rules {
				return usagef("narrow to what? give --sandbox, --ceiling, --rules or several of them")
			}
			return a.write(cmd.Context(), func(s *eventlog.Store) error {
				if !n.All {
					if n.Session, err = resolve(cmd.Context(), s, args[0]); err != nil {
						return err
					}
				}
				done, err := replay.Narrow(cmd.Context(), s, n)
				if n.Session == eventlog.StoreSession {
					err = ownSession(err)
				}
				if err != nil {
					return err
				}
				if !a.json {
					a.narrowed(s, done)
					return a.out.Err()
				}
				for i := range done {
					if err := a.emit(ops.Narrowed(&done[i])); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	sandbox.add(a, cmd, "a ceiling of the sandbox")
	f := cmd.Flags()
	f.Lookup("writable-root").Usage = "with --sandbox workspace-write: a directory that stays writable, instead of the workspace (may be repeated)"
	f.StringVar(&ceiling, "ceiling", "", "a ceiling of the authority, a JSON document: a file, or - for stdin")
	f.BoolVar(&n.Rules, "rules", false, "the store's present operator rules, for sessions that captured others")
	f.StringVar(&n.Reason, "reason", "", "why, for the record (required)")
	f.BoolVar(&n.Subtree, "subtree", false, "every descendant too")
	f.BoolVar(&n.All, "all", false, "every session of the store that is not evidence")
	_ = cmd.MarkFlagRequired("reason") // fails for a flag that does not exist
	return cmd
}

// ceiling reads what an authority is narrowed to; nil if nothing was named.
func (a *app) ceiling(ctx context.Context, name string) (*policy.Wish, error) {
	if name == "" {
		return nil, nil
	}
	doc, err := a.document(ctx, name, manifest.MaxDocument)
	if err != nil {
		return nil, err
	}
	w, err := manifest.ParseCeiling(doc)
	if err != nil {
		return nil, withHint(fmt.Errorf("--ceiling: %w", err), "nothing was written; `childlog schema ceiling` describes the document")
	}
	return &w, nil
}

func (a *app) narrowed(s *eventlog.Store, done []replay.Narrowed) {
	if len(done) == 0 {
		a.out.Println(term.Dim("no sessions"))
		return
	}
	all := make([]uuid.UUID, len(done))
	for i := range done {
		all[i] = done[i].Session
	}
	short := shortIDs(all)
	changed := 0
	rows := make([][]term.Text, len(done))
	var lost [][]term.Text
	for i := range done {
		d := &done[i]
		row, err := s.Row(d.Session)
		if err != nil {
			row.Label = ""
		}
		result := term.Good(fmt.Sprintf("narrowed at seq %d", d.Seq))
		switch {
		case d.Skipped != "":
			result = term.Dim("skipped: ", d.Skipped)
		case d.Unread:
			result = term.Cat(result, term.Warn(", unread"))
		}
		if d.Skipped == "" {
			changed++
		}
		before, after := term.Plain(d.Before.String()), term.Plain(d.After.String())
		switch {
		case !ops.PolicyRead(d):
			before, after = nil, nil
		case d.Before.Equal(d.After):
			after = term.Dim("the same")
		}
		rows[i] = []term.Text{term.Plain(short.of(d.Session)), term.Plain(row.Label), result, before, after}
		for _, c := range d.Lost {
			lost = append(lost, []term.Text{term.Plain(short.of(d.Session)), term.Plain(c.Field), term.Plain(c.From), term.Bold(c.To)})
		}
	}
	a.out.Table([]term.Column{{Title: "SESSION"}, {Title: "LABEL", Min: 8, Drop: 2}, {Title: "RESULT"}, {Title: "SANDBOX", Min: 18, Drop: 1}, {Title: "NOW", Min: 18}}, rows)
	a.out.Println(term.Plain(fmt.Sprintf("%d narrowed, %d skipped", changed, len(done)-changed)))
	if len(lost) > 0 {
		a.out.Println()
		a.out.Println(term.Dim("taken from what they may do:"))
		a.out.Table([]term.Column{{Title: "SESSION"}, {Title: "FIELD"}, {Title: "BEFORE", Min: 10}, {Title: "NOW", Min: 10}}, lost)
	}
}
