package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/internal/wire"
	"childlog/eventlog"
)

func newInitCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "init",
		GroupID: groupStore,
		Short:   "Create an empty store",
		Long: long(`
Create an empty store. A store is a directory that belongs to you alone: one
file holds every log, one is an index that can always be rebuilt. The place is
--store, else CHILDLOG_STORE, else childlog in your data directory.

A store that exists is left as it is (exit 4).`),
		Example: `  childlog init
  childlog --store ./agents init --json`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := access.Init(cmd.Context(), a.place())
			switch {
			case errors.Is(err, eventlog.ErrExists) && access.Exists(a.place()):
				return withHint(err, "nothing was changed; use it as it is (`childlog ls`), or name another place with --store or CHILDLOG_STORE")
			case errors.Is(err, eventlog.ErrExists):
				return withHint(err, "nothing was changed; a store begins in a directory that is new or empty: name one with --store or CHILDLOG_STORE")
			case err != nil:
				return err
			}
			v := wire.Store{Store: id.Store.String(), Path: access.Abs(a.place()), Format: id.Format, Incarnation: id.Incarnation, Created: wire.Time(id.Created)}
			return a.show(v, func() {
				a.out.Println(term.Good("created "), term.Bold(v.Path))
				a.out.Rows(
					term.Row{Name: "store", Value: term.Plain(v.Store)},
					term.Row{Name: "format", Value: term.Plain(strconv.Itoa(v.Format))},
				)
				a.out.Println(term.Dim("next: "), term.Plain("childlog root --sandbox workspace-write --cwd . --label \"my agent\""))
			})
		},
	}
}

func newStatsCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "stats",
		GroupID: groupStore,
		Short:   "Count sessions, events and bytes",
		Long: long(`
Count what the store holds and what it takes on disk. index_lag is how many
frames the index does not cover yet: they are read from the journal when a
command starts, so a lag costs time and changes no answer. The store's own
session, which holds the operator rules, is not counted among the sessions.`),
		Example: `  childlog stats
  childlog stats --json`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var v wire.Stats
			err := a.read(cmd.Context(), func(s *eventlog.Store) error {
				st, err := access.Stats(s)
				v = statsOf(s.Identity(), s.Dir(), st)
				return err
			})
			if err != nil {
				return err
			}
			return a.show(v, func() { a.stats(v) })
		},
	}
}

func newReindexCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "reindex",
		GroupID: groupStore,
		Short:   "Rebuild the index from the journal",
		Long: long(`
Drop the index and build it anew from the journal. The index only makes
commands start faster: no answer rests on it, and policy is never read from it.
Do this when verify finds that the index and the journal differ.`),
		Example: `  childlog reindex
  childlog --wait 30s reindex`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, st, err := access.Reindex(cmd.Context(), a.place())
			if err != nil {
				return err
			}
			v := statsOf(id, access.Abs(a.place()), st)
			return a.show(v, func() { a.stats(v) })
		},
	}
}

func statsOf(id eventlog.Identity, dir string, st eventlog.Stats) wire.Stats {
	return wire.Stats{Store: id.Store.String(), Path: dir, Format: st.Format, Incarnation: st.Incarnation, Sessions: st.Sessions, Events: st.Events,
		Frames: st.Frames, JournalBytes: st.JournalBytes, IndexBytes: st.IndexBytes, FreePages: st.FreePages, PageSize: st.PageSize, IndexLag: st.Lag}
}

func (a *app) stats(v wire.Stats) {
	n := func(n uint64) term.Text { return term.Plain(grouped(n)) }
	a.out.Rows(
		term.Row{Name: "store", Value: term.Bold(v.Path)},
		term.Row{Name: "", Value: term.Dim(fmt.Sprintf("%s, format %d, incarnation %d", v.Store, v.Format, v.Incarnation))},
		term.Row{Name: "sessions", Value: n(v.Sessions)},
		term.Row{Name: "events", Value: n(v.Events), Note: term.Dim(fmt.Sprintf("in %s frames", grouped(v.Frames)))},
		term.Row{Name: "journal", Value: term.Plain(bytesText(v.JournalBytes)), Note: term.Dim(fmt.Sprintf("store.db, %s of it in free pages", bytesText(int64(v.FreePages)*int64(v.PageSize))))},
		term.Row{Name: "index", Value: term.Plain(bytesText(v.IndexBytes)), Note: term.Dim(fmt.Sprintf("index.db, %s frames behind", grouped(v.IndexLag)))},
	)
}

// grouped writes a number in groups of three digits.
func grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
