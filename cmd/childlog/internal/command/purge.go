package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newPurgeCmd(a *app) *cobra.Command {
	var r eventlog.PurgeRequest
	cmd := &cobra.Command{
		Use:     "purge ID...",
		GroupID: groupAudit,
		Short:   "Remove whole sessions, on record",
		Long: long(`
Remove a session, and with --subtree everything below it, or nothing. What is
kept: ids, digests, counts, who, when and why, in the store's own session, and
at each place in the journal the hash of what stood there. The logs of others
stay as they are: a parent goes on naming the child it started.

The id, the key and the external id of a purged session are not used again.

Refused are a session that has children, without --subtree (exit 4), an open
activation (exit 4), a legal hold (exit 3) and damage (exit 6). With several
IDs each is tried, and the exit code is that of the first that was refused.

As with redact, backups and exports made before are out of reach, and the bytes
lie in free pages until ` + "`childlog compact`" + `. A purge that a crash interrupts is
finished by the next command that writes.`),
		Example: `  childlog purge 0a1b2c3d --subtree --reason-code retention
  childlog purge 0a1b2c3d 4d5e6f70 --reason-code test-data --dry-run`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.write(cmd.Context(), func(s *eventlog.Store) error {
				ids := make([]uuid.UUID, len(args))
				for i, arg := range args { // all are named before the first one goes
					var err error
					if ids[i], err = resolve(cmd.Context(), s, arg); err != nil {
						return err
					}
				}
				var first error
				for _, id := range ids {
					r.Session = id
					if err := a.purge(cmd.Context(), s, r); err != nil {
						if errors.Is(err, context.Canceled) || len(ids) == 1 {
							return err
						}
						a.msg.Println(term.Bad("not purged: "), term.Plain(err.Error()))
						if first == nil {
							first = err
						}
					}
				}
				return first
			})
		},
	}
	orderFlags(cmd, &r.Order)
	f := cmd.Flags()
	f.BoolVar(&r.Subtree, "subtree", false, "every descendant too")
	f.BoolVar(&r.DryRun, "dry-run", false, "only say what would go")
	return cmd
}

func (a *app) purge(ctx context.Context, s *eventlog.Store, r eventlog.PurgeRequest) error {
	out, err := s.Purge(ctx, r)
	line := wire.PurgeLine{Session: r.Session.String(), DryRun: r.DryRun, Purged: err == nil && !r.DryRun, Events: out.Events, Frames: out.Frames, Sessions: []wire.Purged{},
		Before: wire.PurgeCheckpointOf(out.Before), After: wire.PurgeCheckpointOf(out.After), Remains: remains}
	for i := range out.Sessions {
		line.Sessions = append(line.Sessions, wire.PurgedOf(&out.Sessions[i]))
	}
	if err != nil {
		text := err.Error()
		line.Error = &text
		if a.json {
			return errors.Join(err, a.emit(line))
		}
		return err
	}
	return a.show(line, func() {
		verb := term.Good("purged ")
		if r.DryRun {
			verb = term.Warn("would purge ")
		}
		a.out.Println(verb, term.Bold(line.Session), term.Plain(fmt.Sprintf(": %s, %s", plural(len(out.Sessions), "session"), plural(int(out.Events), "event"))))
		if len(out.Sessions) > 1 {
			for _, p := range out.Sessions[1:] {
				a.out.Println(term.Dim("  and below it "), term.Plain(p.Session.String()))
			}
		}
		if !r.DryRun {
			a.remains(remains)
		}
	})
}
