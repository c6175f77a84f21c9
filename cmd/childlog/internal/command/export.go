package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/redact"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// exportRun is what is to be exported.
type exportRun struct {
	sessions []uuid.UUID // nil: the whole store
	progress func(done, of uint64)
	contents bool           // see exportFormat
	filter   *redact.Filter // nil: none
	counts   redact.Counts
}

// text is the filter as a function, nil without one.
func (x *exportRun) text() func([]byte) []byte {
	if x.filter == nil {
		return nil
	}
	return func(b []byte) []byte { return x.filter.Bytes(b, x.counts) }
}

func newExportCmd(a *app) *cobra.Command {
	var format, file string
	var recursive, contents bool
	var filter filterFlags
	var about strings.Builder
	for _, f := range exportFormats {
		fmt.Fprintf(&about, "  %-9s %s\n", f.name, f.about)
	}
	cmd := &cobra.Command{
		Use:     "export [ID...]",
		GroupID: groupAudit,
		Short:   "Hand logs on: a bundle that proves itself, lines, page, traces",
		Long: long(`
Write sessions, or without ID the whole store, in one of these formats:

` + about.String() + `
A bundle holds what an auditor needs who has nothing but a public key: the
frames byte for byte, the contents with their salts, the signed checkpoint of
the store, and the hashes that prove each frame to be in the tree that was
signed. It always holds the store's own session, where purges and rollbacks are
recorded. The same state of the store gives the same bytes.

A line has every field of an event's header in words, the header itself and the
salt of the content, so digests can be computed from lines alone; that they are
all there were is proven by a bundle only.

otel is OTLP JSON: a span invoke_agent for each session and execute_tool for
each call, with the decision as childlog.decision.*. receipts and actions have
the bodies of draft-nelson-agent-delegation-receipts and
draft-sahu-agent-action-receipts, which are Internet-Drafts of individuals. They
are unsigned, as each line says, and carry the whole childlog record beside the
body. actions is one chain for the whole output.

--contents adds the texts of calls to otel: arguments and results. For receipts
and actions it is on unless --contents=false, so that nothing is lost. The
store's own session, which is no agent's, is in bundles and lines only.

--redact replaces what the detectors of secrets know: keys, tokens, private
keys, passwords, connection strings; and home directories by <root:home>. For
html and otel it is on unless --redact=false. For receipts and actions it is off
unless asked for: with it a line has no facts byte for byte, and no prompt in
which something was found. In lines what was found is replaced, and a content
that was rewritten has no salt any more. A bundle leaves such a content out as a
whole, with its salt, and still proves the rest; home directories stay in it.
What the detectors do not know stays.

-o names the file, which must be new; it is there as a whole or not at all, and
only its owner can read it. Without -o the data goes to stdout. Exporting
changes nothing in the store; for a bundle a checkpoint is signed first, if the
last one does not cover all there is and the store can be written. A log that is
damaged is not handed on (exit 6), except by html and otel, which say where.`),
		Example: `  childlog export -o store.bundle
  childlog export 0a1b2c3d --recursive -o family.bundle
  childlog export 0a1b2c3d --format jsonl | head -3
  childlog export 0a1b2c3d --recursive --format otel -o traces.jsonl`,
		Args: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("--format", format, exportFormatNames()...); err != nil {
				return err
			}
			if recursive && len(args) == 0 {
				return usagef("--recursive goes with ID; without it the whole store is exported")
			}
			f := exportFormats[slices.Index(exportFormatNames(), format)]
			if file == "" && f.bytes && a.out.Rich() {
				return usagef("a %s is no text for a terminal; name a file with -o", f.name)
			}
			x, err := filter.read(a, cmd, &f)
			if err != nil {
				return err
			}
			if x.contents = f.contents; cmd.Flags().Changed("contents") {
				if !f.mayLack {
					return usagef("--contents goes with --format otel, receipts or actions; %s leaves no choice", f.name)
				}
				x.contents = contents
			}
			return a.export(cmd.Context(), f, x, args, recursive, file)
		},
	}
	f := cmd.Flags()
	f.StringVar(&format, "format", exportFormats[0].name, "how: "+strings.Join(exportFormatNames(), ", "))
	f.BoolVar(&recursive, "recursive", false, "with ID: all descendants too")
	f.BoolVar(&contents, "contents", false, "otel: the texts of calls, too (receipts, actions: unless --contents=false)")
	f.StringVarP(&file, "output", "o", "", "the file to write, which must be new (default: stdout)")
	complete(cmd, "format", exportFormatNames()...)
	filter.add(cmd)
	return cmd
}

func (a *app) export(ctx context.Context, f exportFormat, x *exportRun, ids []string, recursive bool, file string) error {
	var v wire.Exported
	if f.sign {
		if err := a.signAll(ctx); err != nil {
			return err
		}
	}
	err := a.read(ctx, func(s *eventlog.Store) error {
		var err error
		if x.sessions, err = selected(ctx, s, ids, recursive); err != nil {
			return err
		}
		update, done := a.bar("exporting", "positions")
		defer done()
		x.progress = func(at, of uint64) { update(int(at), int(of)) }
		return a.writeNew(file, func(w io.Writer) error {
			sum := sha256.New()
			if v, err = f.write(ctx, s, x, io.MultiWriter(w, sum)); err == nil {
				v.SHA256 = hex.EncodeToString(sum.Sum(nil))
			}
			return err
		})
	})
	if err != nil {
		return exportHint(err)
	}
	v.Format, v.Path, v.Filtered, v.Replaced = f.name, file, x.filter != nil, x.counts
	if file == "" { // stdout is for the data
		if f.none != "" && v.Events == 0 {
			a.msg.Println(term.Dim(f.none))
		}
		if x.filter != nil {
			a.msg.Println(term.Dim(x.counts.Summary()))
		}
		return nil
	}
	return a.show(v, func() { a.exported(&f, &v) })
}

// signAll makes the store's checkpoint one of all that it holds, if it is not and
// can be written. What stands in the way is told and keeps nobody from exporting.
func (a *app) signAll(ctx context.Context) error {
	all := false
	err := a.read(ctx, func(s *eventlog.Store) error {
		last, ok := s.Signed()
		all = ok && last.Size == s.Durable()
		return nil
	})
	if err != nil || all {
		return err
	}
	err = a.write(ctx, func(s *eventlog.Store) error {
		_, err := s.Checkpoint(ctx)
		return err
	})
	for _, passed := range []error{eventlog.ErrReadOnly, eventlog.ErrNotFound, eventlog.ErrNoSpace, fs.ErrPermission, syscall.EROFS} {
		if errors.Is(err, passed) {
			a.msg.Println(term.Warn("childlog: warning: "), term.Plain("no checkpoint was made of what is newest: ", err.Error()))
			return nil
		}
	}
	return err
}

// selected finds the sessions that are meant, nil for all.
func selected(ctx context.Context, s *eventlog.Store, ids []string, recursive bool) ([]uuid.UUID, error) {
	var out []uuid.UUID
	seen := map[uuid.UUID]bool{}
	for _, text := range ids {
		id, err := resolve(ctx, s, text)
		if err != nil {
			return nil, err
		}
		for todo := []uuid.UUID{id}; len(todo) > 0; todo = todo[1:] {
			if id := todo[0]; !seen[id] { // imported logs may name each other in a circle
				seen[id] = true
				out = append(out, id)
				if recursive {
					children, err := s.Children(id)
					if err != nil {
						return nil, err
					}
					todo = append(todo, children...)
				}
			}
		}
	}
	return out, nil
}

// writeNew writes a file that must be new, as a whole or not at all; without a
// name it writes to stdout.
func (a *app) writeNew(name string, fn func(io.Writer) error) error {
	if name == "" {
		return fn(a.stdout)
	}
	f, err := a.files.Create(name)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w: %s", eventlog.ErrExists, name)
	case err != nil:
		return usagef("%v", err)
	}
	if err := fn(f); err != nil {
		f.Discard()
		return err
	}
	if err := f.Commit(); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s", eventlog.ErrExists, name)
	} else if err != nil {
		return err
	}
	return nil
}

func exportHint(err error) error {
	switch {
	case errors.Is(err, eventlog.ErrExists):
		return withHint(err, "nothing is ever overwritten; name a file that is not there")
	case errors.Is(err, eventlog.ErrCorrupt):
		return withHint(err, salvageHint)
	}
	return err
}

// exported tells what was written.
func (a *app) exported(f *exportFormat, v *wire.Exported) {
	a.out.Println(term.Good(v.Format+" "), term.Bold(v.Path))
	of := "a selection"
	if v.Whole {
		of = "the whole store"
	}
	rows := []term.Row{{Name: "sessions", Value: term.Plain(grouped(v.Sessions)), Note: term.Dim(of)}}
	switch {
	case v.Frames > 0:
		rows = append(rows, term.Row{Name: "events", Value: term.Plain(grouped(v.Events))},
			term.Row{Name: "contents", Value: term.Plain(grouped(v.Contents)), Note: term.Dim(without(v.Withheld, v.Absent))})
	case f.none != "":
		row := term.Row{Name: "lines", Value: term.Plain(grouped(v.Events))}
		if v.Events == 0 {
			row.Note = term.Dim(f.none)
		}
		rows = append(rows, row)
	}
	a.out.Rows(append(rows, term.Row{Name: "sha256", Value: term.Plain(v.SHA256)})...)
	if v.Filtered {
		a.out.Println(term.Dim(redact.Counts(v.Replaced).Summary()))
	}
}

// without says which contents are not there, "" if all are.
func without(withheld, absent uint64) string {
	var parts []string
	if withheld > 0 {
		parts = append(parts, grouped(withheld)+" rewritten or left out by the filter")
	}
	if absent > 0 {
		parts = append(parts, grouped(absent)+" erased before")
	}
	return strings.Join(parts, ", ")
}
