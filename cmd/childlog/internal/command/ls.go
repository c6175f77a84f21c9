package command

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/filter"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newLsCmd(a *app) *cobra.Command {
	var f filter.Filter
	cmd := &cobra.Command{
		Use:     "ls",
		GroupID: groupSessions,
		Short:   "List sessions",
		Long: long(`
List the sessions of the store in the order of their creation (ties by id).
That order never changes, and looking changes nothing.

Status is derived: running (the process that activated it holds the store),
interrupted (its process is gone), settled, closed, idle, or evidence for an
imported log. Times are what the store's clock said; nothing is decided by them.
A session that is damaged, or whose policy can't be read so that nothing may be
granted to it, is marked.

What is asked for must all hold. --text is looked for in label, directory and
ids; --since and --until pick sessions that were at work in that time; --type,
--tool, --verdict, --code and --decider those whose log holds such an event in
that time (search shows the events).`),
		Example: `  childlog ls
  childlog ls --parent 9f8e7d6c --status settled
  childlog ls --subtree 9f8e7d6c --verdict deny --since 7d
  childlog ls --json`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := compileFilter(&f); err != nil {
				return err
			}
			ctx := cmd.Context()
			var rows []eventlog.Row
			var boot uuid.UUID
			var short ids
			unread := map[uuid.UUID]string{}
			err := a.read(ctx, func(s *eventlog.Store) (err error) {
				boot = s.Boot()
				if rows, err = ops.List(ctx, s, &f); err != nil {
					return err
				}
				short, err = shortOf(ctx, s)
				if err != nil {
					return err
				}
				for i := range rows {
					if err := ops.Unreadable(ctx, s, &rows[i]); err != nil {
						unread[rows[i].Session] = err.Error()
					}
				}
				return ctx.Err()
			})
			if err != nil {
				return err
			}
			if !a.json {
				a.list(rows, boot, short, unread)
				return a.out.Err()
			}
			for i := range rows {
				if err := a.emit(wire.ListedOf(&rows[i], boot, unread[rows[i].Session])); err != nil {
					return err
				}
			}
			return nil
		},
	}
	fs := cmd.Flags()
	f.SessionFlags(fs)
	f.EventFlags(fs)
	f.PeriodFlags(fs)
	fs.StringVar(&f.Text, "text", "", "only sessions with this in label, directory or ids, in any case")
	completeFilter(cmd)
	return cmd
}

// shortOf finds how many digits tell the ids of a store apart.
func shortOf(ctx context.Context, s *eventlog.Store) (ids, error) {
	var all []uuid.UUID
	err := s.EachRow(ctx, func(r *eventlog.Row) (bool, error) {
		if r.Session != eventlog.StoreSession { // no agent's
			all = append(all, r.Session)
		}
		return true, nil
	})
	return shortIDs(all), err
}

func (a *app) list(rows []eventlog.Row, boot uuid.UUID, short ids, unread map[uuid.UUID]string) {
	if len(rows) == 0 {
		a.out.Println(term.Dim("no sessions"))
		return
	}
	cells := make([][]term.Text, len(rows))
	for i := range rows {
		r := &rows[i]
		status := statusOf(r, boot)
		if unread[r.Session] != "" {
			status = term.Cat(status, term.Bad(", policy unreadable"))
		}
		cells[i] = []term.Text{term.Bold(short.of(r.Session)), term.Plain(r.Label), kindOf(r), status, term.Plain(grouped(r.Head)),
			term.Dim(short.of(r.Parent)), term.Dim(externalText(r)), term.Dim(shortTime(r.LastActivity()))}
	}
	a.out.Table([]term.Column{{Title: "SESSION"}, {Title: "LABEL", Min: 24}, {Title: "KIND"}, {Title: "STATUS"}, {Title: "EVENTS", Right: true, Drop: 1},
		{Title: "PARENT", Drop: 3}, {Title: "EXTERNAL", Min: 10, Drop: 4}, {Title: "LAST ACTIVITY", Drop: 2}}, cells)
}

func kindOf(r *eventlog.Row) term.Text {
	if r.Kind == eventlog.KindChild && r.Mode == eventlog.ModeOneShot {
		return term.Plain("child, one-shot")
	}
	return term.Plain(r.Kind)
}

// statusOf marks damage, which is more urgent than any status.
func statusOf(r *eventlog.Row, boot uuid.UUID) term.Text {
	t := statusText(r.Status(boot))
	if len(r.Damage) > 0 {
		t = term.Cat(term.Bad("damaged"), term.Plain(", "), t)
	}
	return t
}

func externalText(r *eventlog.Row) string {
	switch {
	case r.System == "":
		return ""
	case r.ExternalID == "":
		return r.System + ":(gone)"
	}
	return fmt.Sprintf("%s:%s", r.System, r.ExternalID)
}

// shortTime is for people: UTC, to the second.
func shortTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
