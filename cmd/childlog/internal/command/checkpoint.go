package command

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newCheckpointCmd(a *app) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:     "checkpoint",
		GroupID: groupAudit,
		Short:   "Sign the present state and print the head",
		Long: long(`
Sign the head of the tree over all logs: the statement that they are, up to
here, exactly these. Commands that write do so by themselves; this one is for
taking the head away. Kept where nobody who can write the store can reach it, it
lets verify --checkpoint FILE find whatever is changed, removed or put back
afterwards, by whomever.

The head is a C2SP tlog-checkpoint, a text of a few lines (-o FILE writes it, -o
- prints nothing else). The key is the public half of what it is signed with:
keep both.`),
		Example: `  childlog checkpoint
  childlog checkpoint -o /mnt/elsewhere/agents.checkpoint
  childlog checkpoint --json`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var v wire.Checkpointed
			err := a.write(cmd.Context(), func(s *eventlog.Store) error {
				c, err := s.Checkpoint(cmd.Context())
				v = wire.Checkpointed{Checkpoint: wire.CheckpointOf(c), Key: s.VerifierKey()}
				return err
			})
			if errors.Is(err, eventlog.ErrNotFound) && access.Exists(a.place()) {
				return withHint(err, "name it with --key-file; it was made when the store was")
			}
			if err != nil {
				return err
			}
			if out == "-" && !a.json {
				_, err := fmt.Fprint(a.stdout, v.Note)
				return err
			}
			if out != "" && out != "-" {
				if err := files.Write(a.files, out, []byte(v.Note)); err != nil {
					return err
				}
			}
			return a.show(v, func() {
				a.out.Println(term.Good("signed "), term.Bold(v.Origin))
				a.out.Rows(
					term.Row{Name: "size", Value: term.Plain(grouped(v.Size)), Note: term.Dim("frames, in the order of their commits")},
					term.Row{Name: "root", Value: term.Plain(v.Root)},
					term.Row{Name: "key", Value: term.Plain(v.Key)},
				)
				if out == "" {
					a.out.Println(term.Dim("next: "), term.Plain("childlog checkpoint -o FILE"), term.Dim(", and keep FILE and the key elsewhere"))
				}
			})
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the checkpoint to this file, - for stdout alone")
	return cmd
}

func newAcceptRollbackCmd(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "accept-rollback",
		GroupID: groupAudit,
		Short:   "Go on with a store that is older than it was",
		Long: long(`
A store that is older than what was signed of it is not written and grants
nothing: an event that is gone may have been a narrowing. The way out is the
newer copy. If that is lost for good, this takes what is here as it is.

It can't be hidden: the log says so (store/rollback-accepted in the store's own
session, with the head that is contradicted), and everything signed from now on
is of another origin. Whoever keeps an older checkpoint finds the contradiction,
and who took it on.

A store that was not rolled back is left as it is (exit 2).`),
		Example: `  childlog accept-rollback --reason "the disk with the newer copy is gone"
  childlog accept-rollback --json`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := access.AcceptRollback(cmd.Context(), a.place(), reason)
			switch {
			case errors.Is(err, eventlog.ErrNotFound) && access.Exists(a.place()):
				return withHint(err, "name it with --key-file; without it nobody can go on under this store's name")
			case errors.Is(err, eventlog.ErrInvalid):
				return withHint(err, "nothing was changed; use the store as it is")
			case err != nil:
				return a.orInit(err)
			}
			v := wire.Accepted{Evidence: out.Was.Evidence, Origin: out.Was.Origin, Size: out.Was.Size, Found: out.Was.Found, NewOrigin: out.Identity.Origin(), Seq: out.Seq}
			return a.show(v, func() {
				a.out.Println(term.Warn("accepted "), term.Plain(out.Was.Error()))
				a.out.Rows(
					term.Row{Name: "was", Value: term.Plain(v.Origin), Note: term.Dim(grouped(v.Size), " frames, root ", hex.EncodeToString(out.Was.Root[:4]), "...")},
					term.Row{Name: "is", Value: term.Plain(v.NewOrigin), Note: term.Dim("from frame ", grouped(v.Found))},
					term.Row{Name: "logged", Value: term.Plain(fmt.Sprintf("seq %d of the store's own session", v.Seq))},
				)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people; kept as content of the event")
	return cmd
}
