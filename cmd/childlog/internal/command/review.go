package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/review"
	"childlog/eventlog"
)

func newReviewCmd(a *app) *cobra.Command {
	moments := shownMoments
	cmd := &cobra.Command{
		Use:     "review ID",
		GroupID: groupAudit,
		Short:   "Show one delegation as an auditor asks about it",
		Long: long(`
Show on one screen, in this order: who delegated what to whom, for whom and
until when; how far the log can be believed; what is out of the ordinary; what
could be handed on, what was asked and what was granted; how the policy moved;
what was denied; what happened; what was used; what was erased; and the receipts
up to the root.

The log is checked for it, which reads the whole store. Trust is one of

  verified    every check passed, and nothing was erased
  redacted    whole, and contents were erased with a marker
  claimed     an imported log, or an authority from outside of the store
  incomplete  something can't be read, or does not agree (exit code 6)

and says up to which seq the store's checkpoint covers the log: without one that
is kept elsewhere nobody can tell a log that ends here from one whose end was
cut off. "enforced" means that each call was decided here, as far as the harness
obeys; "observed" that none was.

Exceptions are facts to look at, no verdicts. "none found" names the checks that
were run and how many of the calls had a decision. No content is shown: for that
there is log, and search.`),
		Example: `  childlog review 0a1b2c3d
  childlog review 0a1b2c3d --timeline 100
  childlog review 0a1b2c3d --json`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if moments < 0 {
				return usagef("--timeline: want 0 or more, got %d", moments)
			}
			ctx := cmd.Context()
			var r review.Review
			update, done := a.bar("checking", "frames")
			err := a.read(ctx, func(s *eventlog.Store) error {
				id, err := resolve(ctx, s, args[0])
				if err != nil {
					return err
				}
				o := review.Options{Progress: update}
				if cmd.Flags().Changed("timeline") || !a.json {
					o.Moments = max(moments, 1)
				}
				r, err = review.Build(ctx, s, id, o)
				return err
			})
			done()
			if err != nil {
				return err
			}
			if moments == 0 {
				r.Timeline.Entries = []review.Moment{}
			}
			if err := a.show(&r, func() { a.review(&r) }); err != nil {
				return err
			}
			if r.Trust.Incomplete {
				return withHint(fmt.Errorf("%w: the log of session %s is incomplete", eventlog.ErrCorrupt, r.Session.Session),
					"`childlog verify "+r.Session.Session[:8]+"` lists what is wrong, `childlog log` shows what can be read")
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&moments, "timeline", shownMoments, "at most this many entries of the timeline; with --json 200 unless given")
	return cmd
}

// shownMoments is how many entries of a timeline people are shown.
const shownMoments = 14
