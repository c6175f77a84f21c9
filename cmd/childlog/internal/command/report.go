package command

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/filter"
	"childlog/cmd/childlog/internal/review"
	"childlog/eventlog"
)

// Formats of a report.
const (
	formatTable = "table"
	formatCSV   = "csv"
	formatJSON  = "json"
)

var reportFormats = []string{formatTable, formatCSV, formatJSON}

func newReportCmd(a *app) *cobra.Command {
	var f filter.Filter
	q := review.Query{}
	format := formatTable
	cmd := &cobra.Command{
		Use:     "report",
		GroupID: groupAudit,
		Short:   "List what is out of the ordinary, over a period or a subtree",
		Long: long(`
Look for the exceptions of review in all sessions, or in those that the flags
pick, and count what a sample can be drawn from: sessions, delegations, calls,
decisions, denials by code and exceptions by kind.

--since and --until bound the time by the events' own times, which are claims:
sessions that were at work in it are the population, and only what happened in
it is counted.

--list says what is listed with ids and seqs beside the totals:

  ` + strings.Join(review.Lists, ", ") + `

The order is always the same: that of the sessions' creation, then of seqs.
--sample N lists N of them, picked by a hash of --seed and of what names each:
the same seed picks the same, and nobody picks by hand.

--format csv prints the list alone, or with --list totals the totals; cells that
a spreadsheet would run are made text by a leading '. --format json (or --json)
is one object a line, and {"totals"} at the end. The whole store is checked; if
a part of it can't be read the report says of how many sessions, and the exit
code is 6.`),
		Example: `  childlog report
  childlog report --since 2026-11-01 --until 2026-11-30 --role implement
  childlog report --list denials --sample 25 --seed q4 --format csv > sample.csv
  childlog report --subtree 0a1b2c3d --json`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := compileFilter(&f); err != nil {
				return err
			}
			if err := oneOf("--format", format, reportFormats...); err != nil {
				return err
			}
			if err := oneOf("--list", q.List, review.Lists...); err != nil {
				return err
			}
			switch {
			case q.Sample < 0:
				return usagef("--sample: want 0 or more, got %d", q.Sample)
			case q.Seed != "" && q.Sample == 0:
				return usagef("--seed picks a sample; give --sample too")
			case a.json && cmd.Flags().Changed("format") && format != formatJSON:
				return usagef("--json and --format %s: which of them?", format)
			}
			if a.json {
				format = formatJSON
			}
			ctx := cmd.Context()
			var r *review.Report
			var short ids
			update, done := a.bar("reviewing", "sessions")
			err := a.read(ctx, func(s *eventlog.Store) (err error) {
				q.Sessions, err = f.Sessions(ctx, s, func(text string) (uuid.UUID, error) { return resolve(ctx, s, text) })
				if err != nil {
					return err
				}
				if short, err = shortOf(ctx, s); err != nil {
					return err
				}
				q.Within, q.Progress = f.Within, update
				r, err = q.Build(ctx, s)
				return err
			})
			done()
			if err != nil {
				return err
			}
			t := &r.Totals
			if since, until := f.Period(); f.Bounded() {
				t.Since, t.Until = periodText(since), periodText(until)
			}
			switch format {
			case formatCSV:
				err = a.reportCSV(r)
			case formatJSON:
				err = a.reportJSON(r)
			default:
				a.reportTable(r, short)
				err = a.out.Err()
			}
			if err != nil {
				return err
			}
			if t.Incomplete > 0 || t.Findings > 0 {
				return withHint(fmt.Errorf("%w: the check of the store found %s, and %s of the report can't be read in full", eventlog.ErrCorrupt, plural(int(t.Findings), "problem"), plural(int(t.Incomplete), "session")),
					"what can be read is reported; `childlog verify` lists what is wrong")
			}
			return nil
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&format, "format", formatTable, "how to print it: "+strings.Join(reportFormats, ", "))
	fs.StringVar(&q.List, "list", review.ListExceptions, "what to list beside the totals: "+strings.Join(review.Lists, ", "))
	fs.IntVar(&q.Sample, "sample", 0, "list only so many, picked by --seed")
	fs.StringVar(&q.Seed, "seed", "", "any text that picks the sample; the same text always picks the same")
	f.SessionFlags(fs)
	f.PeriodFlags(fs)
	completeFilter(cmd)
	complete(cmd, "format", reportFormats...)
	complete(cmd, "list", review.Lists...)
	return cmd
}
