package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newBackupCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "backup DIR",
		GroupID: groupStore,
		Short:   "Copy the store to a backup",
		Long: long(`
Write a copy of the store to DIR, which must be new or empty. It holds every
event, each checked on the way; not the index, not a signing key, and no byte of
what was erased. DIR is there as a whole or not at all; a run that is killed
leaves .DIR.backup-* beside it, which can be removed.

A backup is read like a store (` + "`childlog --store DIR verify`" + `) and never
written: ` + "`childlog restore`" + ` makes a store of it. It is made of what nobody
writes at that moment; a program that holds the store makes one through the
library while it goes on writing.

A damaged store is refused with the place (exit 6): the backup would take the
place of an older one that is sound.`),
		Example: `  childlog backup /mnt/backups/2026-03-04
  childlog --store ./agents backup ./agents.bak --json`,
		Args: exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var out eventlog.BackedUp
			err := a.read(cmd.Context(), func(s *eventlog.Store) (err error) {
				update, done := a.bar("backing up", "frames")
				defer done()
				out, err = a.backup(cmd.Context(), s, args[0], eventlog.BackupOptions{Progress: update})
				return err
			})
			if err != nil {
				return copyHint(err)
			}
			v := wire.BackedUp{Store: out.Identity.Store.String(), Path: out.Path, Incarnation: out.Identity.Incarnation, Copied: wire.CopiedOf(out.Copied)}
			return a.show(v, func() {
				a.out.Println(term.Good("backup "), term.Bold(v.Path))
				a.out.Rows(
					term.Row{Name: "store", Value: term.Plain(v.Store), Note: term.Dim(bytesText(v.Bytes))},
					copiedRow(v.Copied),
				)
				a.out.Println(term.Dim("next: "), term.Plain("childlog --store ", v.Path, " verify"))
			})
		},
	}
}

// backup makes a backup at a name of the caller's.
func (a *app) backup(ctx context.Context, s *eventlog.Store, name string, o eventlog.BackupOptions) (eventlog.BackedUp, error) {
	if a.env.Held == nil {
		return s.Backup(ctx, name, o)
	}
	d, err := a.files.Directory(name, "backup")
	if err != nil {
		return eventlog.BackedUp{}, fmt.Errorf("backup: %w", err)
	}
	within, err := d.Within()
	if err != nil {
		d.Discard()
		return eventlog.BackedUp{}, withHint(fmt.Errorf("backup: %w", err), "stop the process that holds the store, and repeat it")
	}
	out, err := s.BackupInto(ctx, within, o)
	if err != nil {
		d.Discard()
		return out, d.Renamed(err, within)
	}
	out.Path = d.Path
	return out, d.Commit()
}

// copyHint fits the ways in which a backup and a restore are refused.
func copyHint(err error) error {
	switch {
	case errors.Is(err, eventlog.ErrCorrupt):
		return withHint(err, salvageHint)
	case errors.Is(err, eventlog.ErrExists):
		return withHint(err, "nothing is ever overwritten; name a directory that is new or empty")
	}
	return err
}
