package main

import (
	"context"
	"errors"
	"fmt"
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
	return &cobra.Command{
		Use:     "verify [ID]",
		GroupID: groupAudit,
		Short:   "Check the whole store, or one session",
		Long: long(`
Read everything and compare everything with everything: the pages of the file,
the checksum of each frame, the hash chain of each session, the links between
policy events, atomic units, each content against its commitment, the index
against the journal; and rebuild every session's policy. Nothing is written and
nothing repaired. With ID only that session's findings count.

Findings make the exit code 6. Notes are remarks on evidence (an imported log
that lacks the approval pin, say) and no findings.

"Completeness unproven" is meant: without a hash kept elsewhere nobody can tell
a log that ends here from one whose end was cut off.`),
		Example: `  childlog verify
  childlog verify 0a1b2c3d
  childlog verify --json`,
		Args: between(0, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			var v wire.Verified
			var took time.Duration
			err := a.read(ctx, func(s *eventlog.Store) error {
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
				v = wire.Verified{Sessions: report.Sessions, Events: report.Events, Frames: report.Frames, Contents: report.Contents, More: report.More,
					Findings: []wire.Finding{}, Notes: []wire.Finding{}}
				for _, f := range report.Findings {
					v.Findings = append(v.Findings, wire.FindingOf(f))
				}
				err = checkPolicies(ctx, s, o.Session, &v)
				took = time.Since(start)
				return err
			})
			if err != nil {
				return err
			}
			v.OK, v.Statement = len(v.Findings) == 0, statementOK
			if !v.OK {
				v.Statement = statementBad
			}
			if err := a.show(v, func() { a.verified(&v, took) }); err != nil {
				return err
			}
			if !v.OK {
				return fmt.Errorf("%w: verify found %s", eventlog.ErrCorrupt, plural(len(v.Findings)+int(v.More), "problem"))
			}
			return nil
		},
	}
}

// checkPolicies rebuilds the policy of every session, or of one.
func checkPolicies(ctx context.Context, s *eventlog.Store, only uuid.UUID, v *wire.Verified) error {
	return s.EachRow(ctx, func(r *eventlog.Row) (bool, error) {
		if only != uuid.Nil && r.Session != only {
			return true, nil
		}
		e, err := replay.Policy(ctx, s, r.Session, 0)
		if errors.Is(err, context.Canceled) {
			return false, err
		}
		if err != nil {
			f := eventlog.Finding{Kind: findingPolicy, Session: r.Session, Detail: err.Error()}
			if ce := (*eventlog.CorruptError)(nil); errors.As(err, &ce) {
				f.Seq, f.Position = ce.Seq, ce.Position
			}
			v.Findings = append(v.Findings, wire.FindingOf(f))
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

func (a *app) verified(v *wire.Verified, took time.Duration) {
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
		term.Row{Name: "sessions", Value: term.Plain(grouped(v.Sessions))},
		term.Row{Name: "events", Value: term.Plain(grouped(v.Events))},
		term.Row{Name: "contents", Value: term.Plain(grouped(v.Contents))},
	)
	if a.msg.Rich() {
		a.msg.Println(term.Dim(fmt.Sprintf("checked in %s, %s events/s", took.Round(time.Millisecond), grouped(uint64(float64(v.Events)/max(took.Seconds(), 1e-3))))))
	}
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
