package command

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

const daysShown = 7 // to people; JSON has all

func newStatsCmd(a *app) *cobra.Command {
	var deep bool
	cmd := &cobra.Command{
		Use:     "stats",
		GroupID: groupStore,
		Short:   "Count sessions, events and bytes",
		Long: long(`
Count what the store holds and what it takes on disk, and name the largest
sessions. index_lag is how many frames the index does not cover yet: they are
read from the journal when a command starts, so a lag costs time and changes no
answer. The store's own session, which holds the operator rules, is not counted
among the sessions.

Free pages are room for what comes. Where they are many, compact_advised says
that ` + "`childlog compact`" + ` is worth its while.

--deep reads the whole journal, which takes as long as that, and tells what
takes the space and what was appended by day (by the times in the logs, which
are claims): the last 31 days with events, older ones together.`),
		Example: `  childlog stats
  childlog stats --deep
  childlog stats --json`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			var v wire.StoreStats
			var rows []eventlog.Row
			err := a.read(ctx, func(s *eventlog.Store) error {
				st, err := access.Stats(s)
				if err != nil {
					return err
				}
				v.Stats = wire.StatsOf(s.Identity(), access.Abs(a.place()), st)
				if rows, err = s.Largest(ctx, ops.LargestShown); err != nil || !deep {
					return err
				}
				update, done := a.bar("measuring", "frames")
				defer done()
				m, err := s.Measure(ctx, update)
				v.Measured = wire.MeasuredOf(m)
				return err
			})
			if err != nil {
				return err
			}
			v.Largest = []wire.Large{}
			for _, r := range rows {
				v.Largest = append(v.Largest, wire.Large{Session: r.Session.String(), Label: r.Label, Events: r.Head})
			}
			return a.show(v, func() {
				a.out.Rows(append(append(statsRows(&v.Stats), largestRows(rows)...), measuredRows(v.Measured)...)...)
				if v.CompactAdvised {
					a.out.Println(term.Dim("next: "), term.Plain("childlog compact"))
				}
			})
		},
	}
	cmd.Flags().BoolVar(&deep, "deep", false, "read the whole journal: what takes the space, and growth by day")
	return cmd
}

func statsRows(v *wire.Stats) []term.Row {
	n := func(n uint64) term.Text { return term.Plain(grouped(n)) }
	pages := func(n int) string { return bytesText(int64(n) * int64(v.PageSize)) }
	kind := ""
	if v.Backup {
		kind = ", a backup"
	}
	return []term.Row{
		{Name: "store", Value: term.Bold(v.Path)},
		{Name: "", Value: term.Dim(fmt.Sprintf("%s, format %d, incarnation %d%s", v.Store, v.Format, v.Incarnation, kind))},
		{Name: "sessions", Value: n(v.Sessions)},
		{Name: "events", Value: n(v.Events), Note: term.Dim(fmt.Sprintf("in %s frames", grouped(v.Frames)))},
		{Name: "journal", Value: term.Plain(bytesText(v.JournalBytes)), Note: term.Dim(fmt.Sprintf("store.db, %s in use, %s free", pages(v.Pages-v.FreePages), pages(v.FreePages)))},
		{Name: "index", Value: term.Plain(bytesText(v.IndexBytes)), Note: term.Dim(fmt.Sprintf("index.db, %s frames behind", grouped(v.IndexLag)))},
		signedRow(v),
	}
}

func signedRow(v *wire.Stats) term.Row {
	if v.Key == "" {
		return term.Row{Name: "signed", Value: term.Plain("nothing yet")}
	}
	return term.Row{Name: "signed", Value: term.Plain(fmt.Sprintf("%s of %s frames", grouped(v.Signed), grouped(v.Frames))), Note: term.Dim(v.Key)}
}

func largestRows(rows []eventlog.Row) (out []term.Row) {
	var all []uuid.UUID
	for _, r := range rows {
		all = append(all, r.Session)
	}
	short := shortIDs(all)
	for i, r := range rows {
		name := ""
		if i == 0 {
			name = "largest"
		}
		out = append(out, term.Row{Name: name, Value: term.Plain(short.of(r.Session)), Note: term.Dim(plural(int(r.Head), "event"), " ", quoted(r.Label))})
	}
	return out
}

func measuredRows(m *wire.Measured) []term.Row {
	if m == nil {
		return nil
	}
	row := func(name string, n, bytes uint64, what string) term.Row {
		return term.Row{Name: name, Value: term.Plain(bytesText(int64(bytes))), Note: term.Dim(grouped(n), " ", what)}
	}
	out := []term.Row{
		row("frames", m.Frames.Keys, m.Frames.Bytes, "frames"),
		row("contents", m.Contents.Keys, m.Contents.Bytes, "chunks"),
		row("tombstones", m.Tombstones.Keys, m.Tombstones.Bytes, "purged frames"),
	}
	for i, d := range m.Days {
		if i == daysShown {
			break
		}
		out = append(out, row(d.Date, d.Events, d.Bytes, "events"))
	}
	return out
}
