package command

import (
	"fmt"

	"github.com/spf13/cobra"
	signednote "golang.org/x/mod/sumdb/note"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newVerifyProofCmd(a *app) *cobra.Command {
	var key, content string
	cmd := &cobra.Command{
		Use:     "verify-proof FILE --key KEY",
		GroupID: groupAudit,
		Short:   "Check a proof, without a store",
		Long: long(`
Check a file that prove wrote. No store is read: all it takes is KEY, the public
key that was printed when the store was made (or a file that holds it), got from
somebody you trust.

Of an event the answer is what was proven of it: session, seq, type, time and
facts, and which checkpoint vouches for it. With --content FILE also that the
bytes of that file are its content. Anything that does not fit makes the exit
code 6; a file that can't be read as a proof is invalid input, exit code 2.`),
		Example: `  childlog verify-proof event.tlog-proof --key KEY
  childlog verify-proof event.tlog-proof --key key.txt --content answer.txt
  childlog verify-proof grown.proof --key key.txt --json`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if key == "" {
				return usagef("--key: whose signature? give the key that was printed when the store was made")
			}
			verifier, err := a.verifierKey(key)
			if err != nil {
				return err
			}
			file, err := a.readFile(args[0])
			if err != nil {
				return asUsage(err)
			}
			parsed, err := eventlog.ParseProof(file)
			if err != nil {
				return err
			}
			if p, ok := parsed.(*eventlog.ConsistencyProof); ok {
				if content != "" {
					return usagef("--content is of an event; this is a proof of consistency")
				}
				return a.consistent(p, verifier)
			}
			return a.proven(parsed.(*eventlog.Proof), verifier, content)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the store's public key, or a file that holds it")
	cmd.Flags().StringVar(&content, "content", "", "hold the bytes of this file against the event's content")
	return cmd
}

// verifierKey reads a key, or the file that holds it.
func (a *app) verifierKey(text string) (signednote.Verifier, error) {
	key, err := eventlog.ParseVerifierKey(text)
	if err == nil {
		return key, nil
	}
	b, fileErr := a.readFile(text)
	if fileErr != nil {
		return nil, asUsage(fmt.Errorf("--key: %w", err))
	}
	if key, err = eventlog.ParseVerifierKey(string(b)); err != nil {
		return nil, asUsage(fmt.Errorf("--key %s: %w", text, err))
	}
	return key, nil
}

func (a *app) consistent(p *eventlog.ConsistencyProof, key signednote.Verifier) error {
	if err := p.Verify(key); err != nil {
		return err
	}
	v := wire.Consistent{OldOrigin: p.Old.Origin, OldSize: p.Old.Size, NewOrigin: p.New.Origin, NewSize: p.New.Size}
	return a.show(v, func() {
		a.out.Println(term.Good("proven: "), term.Plain(fmt.Sprintf("the logs only grew, from %s to %s frames", grouped(v.OldSize), grouped(v.NewSize))))
		a.out.Rows(
			term.Row{Name: "from", Value: term.Plain(v.OldOrigin)},
			term.Row{Name: "to", Value: term.Plain(v.NewOrigin)},
		)
	})
}

func (a *app) proven(p *eventlog.Proof, key signednote.Verifier, contentFile string) error {
	ev, err := p.Verify(key)
	if err != nil {
		return err
	}
	v := wire.Proven{Session: ev.Session.String(), Seq: ev.Seq, Type: ev.Type, ID: ev.ID.String(), Time: wire.Time(ev.Time), Source: ev.Source.String(),
		Hash: fmt.Sprintf("%x", ev.Hash[:]), Position: p.Position, Origin: p.Checkpoint.Origin, Size: p.Checkpoint.Size, Content: "absent", Imported: ev.Imported}
	if v.Facts, err = ev.Facts.JSON(); err != nil {
		return err
	}
	if ev.HasContent {
		v.Content = "not_given"
	}
	if p.Event.Content != nil {
		v.Content = "proven"
	}
	if contentFile != "" {
		b, err := a.readFile(contentFile)
		if err != nil {
			return asUsage(err)
		}
		if err := p.CheckContent(ev, b); err != nil {
			return withHint(err, "a proof that is to be held against a content is made with --with-content or --with-salt")
		}
		v.Content = "proven"
	}
	return a.show(v, func() {
		a.out.Println(term.Good("proven: "), term.Bold(fmt.Sprintf("seq %d of session %s", v.Seq, v.Session)))
		by := term.Dim("by ", v.Source)
		if v.Imported {
			by = term.Warn("by ", v.Source, " of another store: evidence there")
		}
		a.out.Rows(
			term.Row{Name: "type", Value: term.Plain(v.Type), Note: by},
			term.Row{Name: "time", Value: term.Plain(v.Time), Note: term.Dim("a claim of the store's clock")},
			term.Row{Name: "facts", Value: term.Plain(string(v.Facts))},
			term.Row{Name: "content", Value: contentText(v.Content)},
			term.Row{Name: "in", Value: term.Plain(v.Origin), Note: term.Dim(fmt.Sprintf("frame %s of %s", grouped(v.Position), grouped(v.Size)))},
		)
		if v.Content == "proven" && contentFile == "" {
			a.out.Println(term.Plain(string(p.Event.Content)))
		}
	})
}

func contentText(s string) term.Text {
	switch s {
	case "proven":
		return term.Good("proven")
	case "not_given":
		return term.Plain("not in the proof")
	}
	return term.Dim("none")
}
