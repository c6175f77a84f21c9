package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/internal/wire"
	"childlog/eventlog"
)

func newLsCmd(a *app) *cobra.Command {
	var parent, status, kind string
	cmd := &cobra.Command{
		Use:     "ls",
		GroupID: groupSessions,
		Short:   "List sessions",
		Long: long(`
List the sessions of the store in the order of their creation (ties by id).
That order never changes, and looking changes nothing.

Status is derived: running (the process that activated it holds the store),
interrupted (its process is gone), settled, closed, idle, or evidence for an
imported log. Times are what the store's clock said; nothing is decided by them.`),
		Example: `  childlog ls
  childlog ls --parent 9f8e7d6c --status settled
  childlog ls --json`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("--status", status, statuses...); err != nil {
				return err
			}
			if err := oneOf("--kind", kind, kinds...); err != nil {
				return err
			}
			var rows []eventlog.Row
			var boot, of uuid.UUID
			err := a.read(cmd.Context(), func(s *eventlog.Store) (err error) {
				if boot = s.Boot(); parent != "" {
					if of, err = resolve(cmd.Context(), s, parent); err != nil {
						return err
					}
				}
				rows, err = allRows(cmd.Context(), s)
				return err
			})
			if err != nil {
				return err
			}
			short := shortIDs(sessionsOf(rows))
			rows = slices.DeleteFunc(rows, func(r eventlog.Row) bool {
				return parent != "" && r.Parent != of || status != "" && r.Status(boot) != status || kind != "" && r.Kind != kind
			})
			if !a.json {
				a.list(rows, boot, short)
				return a.out.Err()
			}
			for i := range rows {
				if err := a.emit(wire.SessionOf(&rows[i], boot)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&parent, "parent", "", "only the children of this session")
	f.StringVar(&status, "status", "", "only sessions of this status")
	f.StringVar(&kind, "kind", "", "only sessions of this kind: root, child or stub")
	complete(cmd, "status", statuses...)
	complete(cmd, "kind", kinds...)
	return cmd
}

var (
	statuses = []string{eventlog.StatusIdle, eventlog.StatusRunning, eventlog.StatusInterrupted, eventlog.StatusSettled, eventlog.StatusClosed, eventlog.StatusEvidence}
	kinds    = []string{eventlog.KindRoot, eventlog.KindChild, eventlog.KindStub}
)

// allRows reads the row of every agent's session, in the order of creation and
// then of ids. The store's own session is no agent.
func allRows(ctx context.Context, s *eventlog.Store) ([]eventlog.Row, error) {
	var rows []eventlog.Row
	err := s.EachRow(ctx, func(r *eventlog.Row) (bool, error) {
		if r.Session != eventlog.StoreSession {
			rows = append(rows, *r)
		}
		return true, nil
	})
	slices.SortFunc(rows, func(x, y eventlog.Row) int {
		if c := cmp.Compare(x.FirstTime, y.FirstTime); c != 0 {
			return c
		}
		return bytes.Compare(x.Session[:], y.Session[:])
	})
	return rows, err
}

func sessionsOf(rows []eventlog.Row) []uuid.UUID {
	out := make([]uuid.UUID, len(rows))
	for i := range rows {
		out[i] = rows[i].Session
	}
	return out
}

func (a *app) list(rows []eventlog.Row, boot uuid.UUID, short ids) {
	if len(rows) == 0 {
		a.out.Println(term.Dim("no sessions"))
		return
	}
	cells := make([][]term.Text, len(rows))
	for i := range rows {
		r := &rows[i]
		cells[i] = []term.Text{term.Bold(short.of(r.Session)), term.Plain(r.Label), kindOf(r), statusOf(r, boot), term.Plain(grouped(r.Head)),
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
