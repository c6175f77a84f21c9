package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newProveCmd(a *app) *cobra.Command {
	var (
		out                          string
		consistency, content, saltOK bool
	)
	cmd := &cobra.Command{
		Use:     "prove ID SEQ | --consistency OLD [NEW]",
		GroupID: groupAudit,
		Short:   "Write a proof that needs no store",
		Long: long(`
Write a proof that the event SEQ of session ID stands in the logs under a signed
checkpoint. One file shows it to somebody who has the key and nothing else, with
verify-proof FILE --key KEY. It holds this event's header and facts and no other
event; its content only with --with-content. --with-salt puts in what is needed
to hold the content against the proof, for somebody who has it already; a short
content can be guessed with it.

With --consistency, OLD and NEW are checkpoint files (NEW: the store's own): the
proof that the logs only grew in between.

The file is a C2SP tlog-proof. It goes to stdout, or to the file of -o.`),
		Example: `  childlog prove 0a1b2c3d 7 -o event.tlog-proof
  childlog prove 0a1b2c3d 7 --with-content > event.tlog-proof
  childlog prove --consistency january.checkpoint -o grown.proof`,
		Args: func(cmd *cobra.Command, args []string) error {
			if consistency {
				return between(1, "OLD", "NEW")(cmd, args)
			}
			return exactly("ID", "SEQ")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if consistency && (content || saltOK) {
				return usagef("--with-content and --with-salt are of an event; --consistency proves none")
			}
			v := wire.Proof{Kind: "event"}
			var file []byte
			err := a.read(cmd.Context(), func(s *eventlog.Store) (err error) {
				if consistency {
					v.Kind = "consistency"
					file, err = a.proveConsistency(cmd.Context(), s, args)
					return err
				}
				id, err := resolve(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				seq, err := strconv.ParseUint(args[1], 10, 64)
				if err != nil {
					return usagef("SEQ: got %q, want a number from 1", args[1])
				}
				p, err := s.Prove(cmd.Context(), id, seq, eventlog.ProveOptions{Content: content, Salt: saltOK})
				if _, ok := s.Signed(); !ok && errors.Is(err, eventlog.ErrNotFound) && s.VerifierKey() == "" {
					return withHint(err, "`childlog checkpoint` signs what there is")
				}
				if err != nil {
					return err
				}
				file, err = p.Marshal()
				return err
			})
			if err != nil {
				return err
			}
			if out != "" && out != "-" {
				if err := files.Write(a.files, out, file); err != nil {
					return err
				}
				v.File = &out
				return a.show(v, func() {
					a.out.Println(term.Good("written "), term.Bold(out), term.Dim(fmt.Sprintf(", %s", bytesText(int64(len(file))))))
					a.out.Println(term.Dim("next: "), term.Plain("childlog verify-proof ", out, " --key KEY"))
				})
			}
			if a.json {
				text := string(file)
				v.Proof = &text
				return a.emit(v)
			}
			_, err = a.stdout.Write(file)
			return err
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the proof to this file (default: stdout)")
	cmd.Flags().BoolVar(&consistency, "consistency", false, "prove that the logs only grew between two checkpoints")
	cmd.Flags().BoolVar(&content, "with-content", false, "put the event's content into the proof")
	cmd.Flags().BoolVar(&saltOK, "with-salt", false, "put the salt of the content into the proof")
	return cmd
}

func (a *app) proveConsistency(ctx context.Context, s *eventlog.Store, files []string) ([]byte, error) {
	old, err := a.readCheckpointFile(files[0])
	if err != nil {
		return nil, err
	}
	is, ok := s.Signed()
	if len(files) == 2 {
		if is, err = a.readCheckpointFile(files[1]); err != nil {
			return nil, err
		}
	} else if !ok {
		return nil, withHint(fmt.Errorf("%w: nothing in this store is signed", eventlog.ErrNotFound), "`childlog checkpoint` signs what there is")
	}
	p, err := s.ProveConsistency(ctx, old, is)
	if err != nil {
		return nil, err
	}
	return p.Marshal(), nil
}

// readCheckpointFile reads a checkpoint that was kept elsewhere.
func (a *app) readCheckpointFile(path string) (eventlog.Checkpoint, error) {
	text, err := a.readFile(path)
	if err != nil {
		return eventlog.Checkpoint{}, asUsage(err)
	}
	c, err := eventlog.ParseCheckpoint(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return c, err
}
