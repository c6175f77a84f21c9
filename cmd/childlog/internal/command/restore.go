package command

import (
	"errors"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newRestoreCmd(a *app) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:     "restore BACKUP",
		GroupID: groupStore,
		Short:   "Make a store from a backup",
		Long: long(`
Make a store from the directory that ` + "`childlog backup`" + ` wrote. The store is made
where --to says, else where --store says, and only where there is nothing:
nothing is ever overwritten. BACKUP stays as it is.

Every event is checked on the way; any damage refuses the restore with its
place (exit 6). The logs keep their ids and hashes. The store keeps its id and
begins a new incarnation, so that it is never mistaken for the one that the
backup was made of. Sessions that were running then are interrupted.`),
		Example: `  childlog --store ./agents restore /mnt/backups/2026-03-04
  childlog restore ./agents.bak --to ./again --json`,
		Args: exactly("BACKUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			place := a.place()
			if to != "" {
				place.Dir = to
			}
			update, done := a.bar("restoring", "frames")
			out, err := access.Restore(cmd.Context(), args[0], place, update)
			done()
			switch {
			case errors.Is(err, eventlog.ErrNotFound):
				return withHint(err, "name the directory that `childlog backup` wrote")
			case errors.Is(err, eventlog.ErrInvalid):
				return withHint(err, "nothing was written; `childlog --store "+args[0]+" backup DIR` makes a backup of a store, which can be restored")
			case err != nil:
				return copyHint(err)
			}
			v := wire.Restored{Store: out.Identity.Store.String(), Path: out.Path, Incarnation: out.Identity.Incarnation, Backup: out.Backup,
				BackupIncarnation: out.From.Incarnation, Copied: wire.CopiedOf(out.Copied)}
			return a.show(v, func() {
				a.out.Println(term.Good("restored "), term.Bold(v.Path))
				a.out.Rows(
					term.Row{Name: "store", Value: term.Plain(v.Store), Note: term.Dim(bytesText(v.Bytes))},
					term.Row{Name: "incarnation", Value: term.Plain(grouped(v.Incarnation)), Note: term.Dim("of the backup: ", grouped(v.BackupIncarnation))},
					copiedRow(v.Copied),
				)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the new store's directory (default: the store that --store names)")
	return cmd
}
