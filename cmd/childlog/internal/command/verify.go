package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newVerifyCmd(a *app) *cobra.Command {
	var bundleFile string
	var against againstFlags
	cmd := &cobra.Command{
		Use:     "verify [ID]",
		GroupID: groupAudit,
		Short:   "Check the whole store, or one session",
		Long: long(`
Read everything and compare everything with everything: the pages of the file,
the checksum of each frame, the hash chain of each session, the links between
policy events, atomic units, each content against its commitment, what parents
and children say of each other, the tree over all of it against what was signed,
the index against the journal; and rebuild every session's policy. All
processors are used. Nothing is written and nothing repaired. With ID only what
concerns that session counts: its own findings, and damage of the store in which
events of it may have been lost.

The first word says it, and "status" in the JSON: verified, verified with
redactions (what was erased is on record; exit 0 as well), incomplete (what is
missing was lost to damage, and a salvage stated it; exit 6) or failed (exit 6).
Notes are remarks on evidence and no findings.

"Completeness unproven" is meant: whoever can write the store can put an older
one back, signature and all. Give what was kept elsewhere: heads that checkpoint
wrote, or a note of how far a session's log was, as "SESSION SEQ HASH". Without
--key the store's own key is believed, which they can replace as well.

--bundle checks a file that ` + "`childlog export`" + ` wrote, and needs no store. It
takes --key and one --checkpoint.`),
		Example: `  childlog verify
  childlog verify 0a1b2c3d
  childlog verify --key KEY --checkpoint /mnt/elsewhere/agents.checkpoint
  childlog verify --bundle audit.bundle --key store.pub
  childlog verify --json`,
		Args: between(0, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if bundleFile != "" {
				if len(args) > 0 {
					return usagef("--bundle is checked as a whole; leave ID out")
				}
				return a.verifyBundle(ctx, bundleFile, &against)
			}
			var v wire.Verified
			var took time.Duration
			var own term.Text
			opened := false
			err := a.read(ctx, func(s *eventlog.Store) (err error) {
				opened = true
				o := ops.VerifyOptions{Key: against.key, Names: against.checkpoints}
				if o.Against, err = against.read(a); err != nil {
					return err
				}
				if len(args) == 1 {
					o.Session = args[0]
				} else if _, err := s.Row(eventlog.StoreSession); err == nil {
					own = term.Dim("one is the store's own, of its rules")
				}
				start := time.Now()
				update, done := a.bar("verifying", "frames")
				o.Progress = update
				v, err = ops.Verify(ctx, s, o)
				done()
				took = time.Since(start)
				return err
			})
			if errors.Is(err, eventlog.ErrCorrupt) && !opened { // it has pages all the same
				v, err = ops.VerifyUnopened(ctx, a.store, err)
			}
			if err != nil {
				return err
			}
			if err := a.show(v, func() { a.verified(&v, own, took) }); err != nil {
				return err
			}
			if !v.OK {
				return withHint(fmt.Errorf("%w: verify found %s", eventlog.ErrCorrupt, plural(len(v.Findings)+int(v.More), "problem")), verifyHint(&v))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&bundleFile, "bundle", "", "check this bundle instead of the store; - reads stdin")
	against.add(cmd)
	return cmd
}

// verifyHint says what can be done about the findings.
func verifyHint(v *wire.Verified) string {
	for _, f := range v.Findings {
		switch f.Kind {
		case eventlog.FindRollback, eventlog.FindTree, eventlog.FindTwoHeads:
			return "nothing was changed; look for a copy that holds what was signed; `childlog accept-rollback` goes on without it, which the log then says"
		case eventlog.FindSignature:
			return "nothing was changed; compare the key with the one that was printed when the store was made"
		}
	}
	if v.More == 0 && !slices.ContainsFunc(v.Findings, func(f wire.Finding) bool { return f.Kind != eventlog.FindIndex }) {
		return "the logs are whole; `childlog reindex` builds the index anew"
	}
	return "nothing was changed; keep a copy of the store as it is; `childlog log` shows what can be read of a session, `childlog salvage --dry-run` what can be saved; or restore a backup"
}

// bar makes a progress bar for a count that is known once it begins; on a
// terminal only, else update does nothing. done takes it away.
func (a *app) bar(what, unit string) (update func(at, of int), done func()) {
	if a.json || !a.msg.Rich() {
		return func(int, int) {}, func() {}
	}
	var bar *progressbar.ProgressBar
	update = func(at, of int) {
		if bar == nil {
			bar = progressbar.NewOptions(of, progressbar.OptionSetWriter(a.stderr), progressbar.OptionSetDescription(what),
				progressbar.OptionSetItsString(unit), progressbar.OptionShowIts(), progressbar.OptionShowCount(), progressbar.OptionSetWidth(20),
				progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		}
		_ = bar.Set(at) // a bar that can't be drawn is no reason to stop
	}
	return update, func() {
		if bar != nil {
			_ = bar.Finish()
		}
	}
}

func (a *app) verified(v *wire.Verified, own term.Text, took time.Duration) {
	if len(v.Findings) > 0 {
		a.findings("FINDING", v.Findings, term.Bad)
		if v.More > 0 {
			a.out.Println(term.Bad(fmt.Sprintf("and %s more", grouped(v.More))))
		}
	}
	if len(v.Notes) > 0 {
		a.findings("NOTE", v.Notes, term.Warn)
	}
	word := term.Bad
	switch v.Status {
	case eventlog.StatusVerified, eventlog.StatusRedacted:
		word = term.Good
	case eventlog.StatusIncomplete:
		word = term.Warn
	}
	a.out.Println(word(strings.ReplaceAll(v.Status, "_", " ")), term.Plain(": "+v.Statement))
	a.out.Rows(append([]term.Row{
		{Name: "sessions", Value: term.Plain(grouped(v.Sessions)), Note: own},
		{Name: "events", Value: term.Plain(grouped(v.Events))},
		{Name: "contents", Value: term.Plain(grouped(v.Contents)), Note: erasedNote(v)},
	}, signedRows(&v.Signed)...)...)
	if a.msg.Rich() {
		a.msg.Println(term.Dim("checked in " + rate(v, took)))
	}
}

// rate says how fast a check was, for people: it is never in the data.
func rate(v *wire.Verified, took time.Duration) string {
	seconds := max(took.Seconds(), 1e-3)
	return fmt.Sprintf("%s, %s events/s, %.1f MB/s", took.Round(time.Millisecond), grouped(uint64(float64(v.Events)/seconds)), float64(v.Bytes)/1e6/seconds)
}

func (a *app) findings(title string, list []wire.Finding, colour func(...string) term.Text) {
	rows := make([][]term.Text, len(list))
	for i, f := range list {
		session, seq := "the store", ""
		if f.Session != nil {
			session = *f.Session
		}
		if f.Seq > 0 {
			seq = fmt.Sprint(f.Seq)
		}
		rows[i] = []term.Text{colour(f.Kind), term.Plain(session), term.Plain(seq), term.Plain(f.Detail)}
	}
	a.out.Table([]term.Column{{Title: title}, {Title: "SESSION", Min: 8}, {Title: "SEQ", Right: true}, {Title: "DETAIL", Min: 30}}, rows)
}
