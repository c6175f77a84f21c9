package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/internal/wire"
	"childlog/eventlog"
	"childlog/replay"
)

// What a check says if it found nothing. A log that was cut at its end and is
// consistent looks like one that ended there: only a hash that was kept
// elsewhere could tell.
const (
	statementOK  = "intact, completeness unproven: no outside anchor"
	statementBad = "not intact"
)

// findingPolicy is a finding of this command: a policy that can't be read.
const findingPolicy = "policy"

func newVerifyCmd(a *app) *cobra.Command {
	var file, key, checkpoint string
	cmd := &cobra.Command{
		Use:     "verify [ID]",
		GroupID: groupAudit,
		Short:   "Check the whole store, or one session",
		Long: long(`
Read everything and compare everything with everything: the pages of the file,
the checksum of each frame, the hash chain of each session, the links between
policy events, atomic units, each content against its commitment, what parents
and children say of each other, the index against the journal; and rebuild every
session's policy. All processors are used. Nothing is written and nothing
repaired. With ID only what concerns that session counts: its own findings, and
damage of the store in which events of it may have been lost.

Findings make the exit code 6. Notes are remarks on evidence (an imported log
that lacks the approval pin, say) and no findings.

--bundle checks a file that ` + "`childlog export`" + ` wrote, and needs no store: with
--key that the store's key signed the tree that the frames are in, and with
--checkpoint that it is the tree of which you kept a signed checkpoint.

"Completeness unproven" is meant: without a hash kept elsewhere nobody can tell
a log that ends here from one whose end was cut off.`),
		Example: `  childlog verify
  childlog verify 0a1b2c3d
  childlog verify --bundle audit.bundle --key store.pub
  childlog verify --json`,
		Args: between(0, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if file != "" {
				if len(args) > 0 {
					return usagef("--bundle is checked as a whole; leave ID out")
				}
				return a.verifyBundle(ctx, file, key, checkpoint)
			}
			if key != "" || checkpoint != "" {
				return usagef("--key and --checkpoint go with --bundle")
			}
			v := wire.Verified{Findings: []wire.Finding{}, Notes: []wire.Finding{}}
			var took time.Duration
			var own term.Text
			opened := false
			err := a.read(ctx, func(s *eventlog.Store) error {
				opened = true
				o := eventlog.CheckOptions{}
				if len(args) == 1 {
					var err error
					if o.Session, err = resolve(ctx, s, args[0]); err != nil {
						return err
					}
				}
				start := time.Now()
				update, done := a.bar("verifying", "frames")
				o.Progress = update
				report, err := s.Check(ctx, o)
				done()
				if err != nil {
					return err
				}
				v.Sessions, v.Events, v.Frames, v.Contents, v.Bytes = report.Sessions, report.Events, report.Frames, report.Contents, report.Bytes
				found(&v, &report)
				if _, err := s.Row(eventlog.StoreSession); err == nil && len(args) == 0 {
					own = term.Dim("one is the store's own, of its rules")
				}
				err = checkPolicies(ctx, s, o.Session, &v)
				took = time.Since(start)
				return err
			})
			if errors.Is(err, eventlog.ErrCorrupt) {
				if !opened { // a store that can't be opened has pages all the same
					report, pageErr := eventlog.CheckPages(ctx, a.store)
					if pageErr != nil && !errors.Is(pageErr, eventlog.ErrCorrupt) {
						return errors.Join(err, pageErr)
					}
					found(&v, &report)
				}
				v.Findings = append(v.Findings, findingOf(eventlog.FindPages, uuid.Nil, err))
				err = nil
			}
			if err != nil {
				return err
			}
			v.OK, v.Statement = len(v.Findings) == 0, statementOK
			if !v.OK {
				v.Statement = statementBad
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
	f := cmd.Flags()
	f.StringVar(&file, "bundle", "", "check this bundle instead of the store; - reads stdin")
	f.StringVar(&key, "key", "", "the store's verifier key, or a file that holds it")
	f.StringVar(&checkpoint, "checkpoint", "", "a signed checkpoint that was kept outside of the store")
	return cmd
}

// verifyHint says what can be done about the findings.
func verifyHint(v *wire.Verified) string {
	if v.More == 0 && !slices.ContainsFunc(v.Findings, func(f wire.Finding) bool { return f.Kind != eventlog.FindIndex }) {
		return "the logs are whole; `childlog reindex` builds the index anew"
	}
	return "nothing was changed; keep a copy of the store as it is; `childlog log` shows what can be read of a session, `childlog salvage --dry-run` what can be saved; or restore a backup"
}

func found(v *wire.Verified, report *eventlog.CheckReport) {
	v.More = report.More
	for _, f := range report.Findings {
		v.Findings = append(v.Findings, wire.FindingOf(f))
	}
}

// findingOf makes a finding of an error that says where something is wrong.
func findingOf(kind string, session uuid.UUID, err error) wire.Finding {
	f := eventlog.Finding{Kind: kind, Session: session, Detail: err.Error()}
	if ce := (*eventlog.CorruptError)(nil); errors.As(err, &ce) {
		f.Seq, f.Position = ce.Seq, ce.Position
	}
	return wire.FindingOf(f)
}

// checkPolicies rebuilds the policy of every session, or of one; of the store's
// own, which has none, the rules.
func checkPolicies(ctx context.Context, s *eventlog.Store, only uuid.UUID, v *wire.Verified) error {
	return s.EachRow(ctx, func(r *eventlog.Row) (bool, error) {
		if only != uuid.Nil && r.Session != only {
			return true, nil
		}
		var e replay.Effective
		var err error
		if r.Session == eventlog.StoreSession {
			_, err = replay.Rules(ctx, s)
		} else {
			e, err = replay.Policy(ctx, s, r.Session, 0)
		}
		if errors.Is(err, context.Canceled) {
			return false, err
		}
		if err != nil {
			v.Findings = append(v.Findings, findingOf(findingPolicy, r.Session, err))
			return true, nil
		}
		for _, f := range e.Findings {
			v.Notes = append(v.Notes, wire.Finding{Kind: f.Code, Session: wire.ID(r.Session), Seq: f.Seq, Detail: f.Detail})
		}
		return true, nil
	})
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
	statement := term.Bad(v.Statement)
	if v.OK {
		statement = term.Good(v.Statement)
	}
	a.out.Println(statement)
	a.out.Rows(
		term.Row{Name: "sessions", Value: term.Plain(grouped(v.Sessions)), Note: own},
		term.Row{Name: "events", Value: term.Plain(grouped(v.Events))},
		term.Row{Name: "contents", Value: term.Plain(grouped(v.Contents))},
	)
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
