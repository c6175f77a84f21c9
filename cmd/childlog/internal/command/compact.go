package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newCompactCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "compact",
		GroupID: groupStore,
		Short:   "Rewrite the store without dead weight",
		Long: long(`
Copy what lives in store.db into a new file, which then takes its place. Free
pages are gone, and with them the last bytes of what was erased: until then
they lie in the file. No event, position or hash changes. ` + "`childlog stats`" + `
says when it is worth it.

Nobody may hold the store; who waits for it goes on with the new file. The copy
is proven, synced, read back and compared before it takes the old file's name:
a crash at any moment leaves the one or the other, whole, and the next command
that writes removes the rest. It needs room for the copy, and says how much
before it begins (exit 7).

A damaged store is refused with the place (exit 6): a copy would look sound and
what it could not read would be gone for good.`),
		Example: `  childlog compact
  childlog --wait 1m compact --json`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			update, done := a.bar("compacting", "frames")
			out, err := access.Compact(cmd.Context(), a.place(), update)
			done()
			if errors.Is(err, eventlog.ErrCorrupt) {
				return withHint(err, salvageHint)
			}
			if err != nil {
				return a.orInit(err)
			}
			v := wire.Compacted{Store: out.Identity.Store.String(), Path: access.Abs(a.place()), PageSize: out.PageSize, BytesBefore: out.Before, Copied: wire.CopiedOf(out.Copied)}
			return a.show(v, func() {
				a.out.Println(term.Good("compacted "), term.Bold(v.Path))
				a.out.Rows(
					term.Row{Name: "journal", Value: term.Plain(bytesText(v.Bytes)), Note: term.Dim("store.db, before ", bytesText(v.BytesBefore))},
					copiedRow(v.Copied),
				)
			})
		},
	}
}

// salvageHint is for operations that would carry damage on into a copy.
const salvageHint = "nothing was written; `childlog verify` lists all damage, `childlog salvage --to DIR` copies what can be read into a new store"

// copiedRow says what went into a copy.
func copiedRow(c wire.Copied) term.Row {
	note := fmt.Sprintf("in %s frames, with %s", grouped(c.Frames), plural(int(c.Contents), "content"))
	if c.Erased > 0 {
		note += fmt.Sprintf("; %s erased", grouped(c.Erased))
	}
	if c.Tombstones > 0 {
		note += fmt.Sprintf("; %s purged", plural(int(c.Tombstones), "frame"))
	}
	if c.Lost > 0 {
		note += fmt.Sprintf("; %s lost in a salvage before", plural(int(c.Lost), "frame"))
	}
	return term.Row{Name: "events", Value: term.Plain(grouped(c.Events)), Note: term.Dim(note)}
}
