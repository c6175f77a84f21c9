package command

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
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

It gets a key with which its state is signed whenever it is closed. The line
"key" is the public half: verify --key takes it, from whoever kept it. The
private half is the file KEY in the store, or the one that --key-file names,
where who can write the logs can't sign them anew.

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
			v := wire.Store{Store: id.Store.String(), Path: access.Abs(a.place()), Format: id.Format, Incarnation: id.Incarnation, Created: wire.Time(id.Created), Key: id.Key}
			return a.show(v, func() {
				a.out.Println(term.Good("created "), term.Bold(v.Path))
				a.out.Rows(
					term.Row{Name: "store", Value: term.Plain(v.Store)},
					term.Row{Name: "format", Value: term.Plain(strconv.Itoa(v.Format))},
					term.Row{Name: "key", Value: term.Plain(v.Key)},
				)
				a.out.Wrap(0, term.Dim(keepKey))
				a.out.Println(term.Dim("next: "), term.Plain("childlog root --sandbox workspace-write --cwd . --label \"my agent\""))
			})
		},
	}
}

// keepKey goes with the public key of a store that was made.
const keepKey = "keep this public key elsewhere: with it anybody can tell that the logs are yours, and whole"

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
				return a.orInit(err)
			}
			v := wire.StatsOf(id, access.Abs(a.place()), st)
			return a.show(v, func() { a.out.Rows(statsRows(&v)...) })
		},
	}
}

// grouped writes a number in groups of three digits.
func grouped(n uint64) string { return ops.Grouped(n) }

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
