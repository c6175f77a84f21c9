package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newRedactCmd(a *app) *cobra.Command {
	var r eventlog.RedactRequest
	cmd := &cobra.Command{
		Use:     "redact ID SEQ...",
		GroupID: groupAudit,
		Short:   "Erase contents, on record",
		Long: long(`
Erase the contents of events, and their salts with them. SEQ is a seq or a
range such as 5-9. Headers and facts stay, so every hash, policy and decision
verifies as before; facts are never erased, which is why free text is no fact.
The log says in the content's place that it was redacted, when, by whom and for
which code. The reason is content too, and can be redacted in its turn.

A text may stand in several events, and all of them go: seed copies in every
session that was forked from here or adopted this one; the decision and the
question on a call, which repeat its arguments; the receipt, which repeats the
label. Events that may hold the same text and are left to you to judge are
listed.

Out of reach are backups and exports made before, the files that evidence was
imported from, and whoever read it. In the files of the store the bytes lie in
free pages until ` + "`childlog compact`" + `. Of an imported line the event's id and the
digests in import/source stay, and they are unsalted: whoever knows all of it
but a few digits can find those by trying. Only purge removes them.

A log that came in a bundle or as jsonl takes no record of this store and is
refused (exit 3): redact it where it came from, or purge it here.

A legal hold on any session that would lose something refuses all of it (exit
3). Redacting again is no error and writes nothing. A log that came from another
store (a bundle or lines) is kept as it was there, and can only be purged.`),
		Example: `  childlog redact 0a1b2c3d 12 --reason-code gdpr-17 --reason "asked for"
  childlog redact 0a1b2c3d 3 7-9 --reason-code secret-leaked --dry-run`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if r.Seqs, err = parseSeqs(args[1:]); err != nil {
				return err
			}
			return a.write(cmd.Context(), func(s *eventlog.Store) error {
				if r.Session, err = resolve(cmd.Context(), s, args[0]); err != nil {
					return err
				}
				out, err := s.Redact(cmd.Context(), r)
				if err != nil {
					return foreignHint(err)
				}
				left := remainsOf(s, r.Session)
				return a.show(wire.RedactedOf(&out, left), func() { a.redacted(&out, left) })
			})
		},
	}
	orderFlags(cmd, &r.Order)
	cmd.Flags().BoolVar(&r.DryRun, "dry-run", false, "only say what would be erased")
	return cmd
}

// foreignHint says what to do about a log of another store, which takes no order.
func foreignHint(err error) error {
	if errors.Is(err, eventlog.ErrEvidence) {
		return withHint(err, "nothing was changed; redact or hold it in the store that it came from, and import that into a store of its own; `childlog purge` removes it here, for good")
	}
	return err
}

// remains is what an erasure does not reach.
var remains = []string{
	"backups and exports made before, and copies in the hands of others",
	"files that evidence was imported from",
	"free pages of store.db and index.db, until `childlog compact`",
}

// unsalted is what a redaction of imported lines does not reach either.
const unsalted = "ids of imported lines and the digests in import/source: unsalted, only `childlog purge` removes them"

// remainsOf is what a redaction of a session does not reach.
func remainsOf(s *eventlog.Store, session uuid.UUID) []string {
	if row, err := s.Row(session); err == nil && row.Evidence {
		return append(slices.Clip(remains), unsalted)
	}
	return remains
}

// orderFlags say why something is erased or held, and for whom.
func orderFlags(cmd *cobra.Command, o *eventlog.Order) {
	f := cmd.Flags()
	f.StringVar(&o.Code, "reason-code", "", "why, a code for the record such as gdpr-17 (required)")
	f.StringVar(&o.Reason, "reason", "", "why, in words; kept as content")
	f.StringVar(&o.Basis, "basis", "", "what the order rests on, a code such as a paragraph or a policy")
	f.StringVar(&o.By, "by", "", "who ordered it, an opaque reference (default operator)")
	_ = cmd.MarkFlagRequired("reason-code") // fails for a flag that does not exist
}

// maxSeqs bounds what one command names.
const maxSeqs = 100_000

// parseSeqs reads seqs and ranges of them.
func parseSeqs(args []string) ([]uint64, error) {
	var out []uint64
	for _, arg := range args {
		first, last, ranged := strings.Cut(arg, "-")
		from, err := strconv.ParseUint(first, 10, 64)
		to := from
		if ranged && err == nil {
			to, err = strconv.ParseUint(last, 10, 64)
		}
		if err != nil || from == 0 || to < from {
			return nil, usagef("SEQ: want a seq such as 12, or a range such as 5-9, got %q", arg)
		}
		if to-from >= maxSeqs || len(out) > maxSeqs {
			return nil, usagef("SEQ: %s names more than %s events; erase them in parts", arg, grouped(maxSeqs))
		}
		for seq := from; seq <= to; seq++ {
			out = append(out, seq)
		}
	}
	return out, nil
}

func (a *app) redacted(out *eventlog.Redacted, left []string) {
	contents, bytes := out.Count()
	touched := 0
	for _, l := range out.Sessions {
		if len(l.Erased) > 0 {
			touched++
		}
	}
	verb := term.Good("redacted ")
	if out.DryRun {
		verb = term.Warn("would redact ")
	}
	a.out.Println(verb, term.Bold(plural(contents, "content")), term.Plain(", "+bytesText(int64(bytes))+", in "+plural(touched, "session")))
	all := make([]uuid.UUID, 0, len(out.Sessions)+len(out.Also))
	for _, l := range out.Sessions {
		all = append(all, l.Session)
	}
	for _, s := range out.Also {
		all = append(all, s.Session)
	}
	short := shortIDs(all)
	var rows [][]term.Text
	for _, l := range out.Sessions {
		for _, e := range l.Erased {
			rows = append(rows, []term.Text{term.Plain(short.of(l.Session)), term.Plain(fmt.Sprint(e.Seq)), term.Plain(e.Type), term.Plain(bytesText(int64(e.Length))), term.Plain(e.Why)})
		}
		for _, p := range l.Passed {
			rows = append(rows, []term.Text{term.Plain(short.of(l.Session)), term.Plain(fmt.Sprint(p.Seq)), term.Dim("nothing"), nil, term.Dim(p.Why)})
		}
	}
	if len(rows) > 0 {
		a.out.Table([]term.Column{{Title: "SESSION"}, {Title: "SEQ", Right: true}, {Title: "ERASED", Min: 12}, {Title: "SIZE", Right: true, Drop: 1}, {Title: "WHY", Min: 16}}, rows)
	}
	if len(out.Also) > 0 {
		a.out.Println(term.Warn("may hold the same text, look at it: "))
		rows = rows[:0]
		for _, s := range out.Also {
			seq := ""
			if s.Seq > 0 {
				seq = fmt.Sprint(s.Seq)
			}
			rows = append(rows, []term.Text{term.Plain(short.of(s.Session)), term.Plain(seq), term.Plain(s.Type), term.Plain(s.Why)})
		}
		a.out.Table([]term.Column{{Title: "SESSION"}, {Title: "SEQ", Right: true}, {Title: "TYPE", Min: 12}, {Title: "WHAT", Min: 16}}, rows)
	}
	if contents > 0 {
		a.remains(left)
	}
}

// remains says what an erasure does not reach.
func (a *app) remains(left []string) {
	a.out.Println(term.Dim("not reached:"))
	for _, r := range left {
		a.out.Println(term.Dim("  ", r))
	}
}
