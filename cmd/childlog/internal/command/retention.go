package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/retention"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// retainable are the states that a retention may be told to look for. What runs is
// none of them.
var retainable = []string{eventlog.StatusSettled, eventlog.StatusClosed, eventlog.StatusIdle, eventlog.StatusInterrupted, eventlog.StatusEvidence}

// retentionRun is one run of the command.
type retentionRun struct {
	*app
	rule        retention.Rule
	age, preset string
	belowFloor  bool
	sum         wire.Retention
	items       []retention.Item
	failed      error
}

func newRetentionCmd(a *app) *cobra.Command {
	r := &retentionRun{app: a}
	cmd := &cobra.Command{
		Use:     "retention",
		GroupID: groupAudit,
		Short:   "Redact or purge what is past its time",
		Long: long(`
Find the sessions that had no activity for some time and are in one of the
states of --status, and redact their contents (--class contents, the default)
or purge them (--class sessions). Times in a log are claims of whoever wrote it.

Contents that outlive the others are named by --keep: decisions (the records of
decisions and questions, with the arguments they repeat) and receipts; none is
"". Seed copies live as long as the session that holds them. A session is purged
only with everything below it, so only if all of that is past its time too.

A preset is a floor of 6 or 12 months, and the age if --older-than names none.
An age below the floor is refused (exit 3) unless --below-floor is given with a
--reason-code of its own; the record of what was erased then says so.

Legal holds, open activations and damage keep a session, and it is listed with
the reason; so is, for its contents, a log that came in a bundle or as jsonl.
The others go on. --dry-run decides the same and changes nothing:
look at it first.`),
		Example: `  childlog retention --dry-run
  childlog retention --older-than 1y --class sessions --preset 12m
  childlog retention --older-than 30d --below-floor --reason-code dpo-8`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.check(cmd); err != nil {
				return err
			}
			return r.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.age, "older-than", "", "without activity for this long: a number and h, d, w, m (months) or y (default: the preset)")
	f.StringVar(&r.preset, "preset", retention.SixMonths, "the floor: "+retention.SixMonths+" or "+retention.TwelveMonths)
	f.BoolVar(&r.belowFloor, "below-floor", false, "the age may be below the floor; needs --reason-code")
	f.StringSliceVar(&r.rule.Status, "status", []string{eventlog.StatusSettled, eventlog.StatusClosed}, "states, of "+strings.Join(retainable, ", "))
	f.StringVar(&r.rule.Class, "class", retention.Contents, "what goes: "+retention.Contents+" or "+retention.Sessions)
	f.StringSliceVar(&r.rule.Keep, "keep", []string{retention.KeepDecisions, retention.KeepReceipts}, "contents that stay, of "+retention.KeepDecisions+", "+retention.KeepReceipts)
	f.StringVar(&r.rule.Code, "reason-code", "retention", "why, a code for the record")
	f.StringVar(&r.rule.Reason, "reason", "", "why, in words; kept as content")
	f.StringVar(&r.rule.By, "by", "", "who ordered it, an opaque reference (default operator)")
	f.BoolVar(&r.rule.DryRun, "dry-run", false, "only say what would go")
	complete(cmd, "preset", retention.SixMonths, retention.TwelveMonths)
	complete(cmd, "class", retention.Contents, retention.Sessions)
	return cmd
}

func (r *retentionRun) check(cmd *cobra.Command) error {
	if err := oneOf("--preset", r.preset, retention.SixMonths, retention.TwelveMonths); err != nil {
		return err
	}
	if err := oneOf("--class", r.rule.Class, retention.Contents, retention.Sessions); err != nil {
		return err
	}
	for _, status := range r.rule.Status {
		if !slices.Contains(retainable, status) {
			return usagef("--status: got %q, want some of %s", status, strings.Join(retainable, ", "))
		}
	}
	for _, keep := range r.rule.Keep {
		if keep != retention.KeepDecisions && keep != retention.KeepReceipts {
			return usagef("--keep: got %q, want %s, %s or both", keep, retention.KeepDecisions, retention.KeepReceipts)
		}
	}
	if r.rule.Class == retention.Sessions && cmd.Flags().Changed("keep") {
		return usagef("--keep is for --class %s: a session is purged whole", retention.Contents)
	}
	if r.belowFloor && !cmd.Flags().Changed("reason-code") {
		return usagef("--below-floor is an exception for the record; give its --reason-code")
	}
	return nil
}

func (r *retentionRun) run(cmd *cobra.Command) error {
	floor, err := retention.ParseAge(r.preset)
	if err != nil {
		return err
	}
	age := floor
	if r.age != "" {
		if age, err = retention.ParseAge(r.age); err != nil {
			return usagef("--older-than: %v", err)
		}
	}
	return r.write(cmd.Context(), func(s *eventlog.Store) error {
		now := s.Now()
		r.rule.Before, r.rule.Basis = age.Before(now), retention.Basis
		if r.rule.Before.After(floor.Before(now)) {
			if !r.belowFloor {
				return withHint(fmt.Errorf("%w: --older-than %s is below the floor of %s", eventlog.ErrUnauthorized, r.age, r.preset),
					"nothing was erased; an exception takes --below-floor with a --reason-code, and is recorded")
			}
			r.rule.Basis = retention.BasisBelow
		}
		r.sum = wire.Retention{DryRun: r.rule.DryRun, Class: r.rule.Class, Before: wire.Time(r.rule.Before), Floor: r.preset}
		if err := retention.Apply(cmd.Context(), s, r.rule, func(i retention.Item) error { return r.item(s, i) }); err != nil {
			return err
		}
		if err := r.app.show(r.sum, r.table); err != nil {
			return err
		}
		return r.failed
	})
}

// item takes what became of one session.
func (r *retentionRun) item(s *eventlog.Store, i retention.Item) error {
	r.sum.Contents += i.Contents
	r.sum.Bytes += i.Bytes
	switch i.Action {
	case retention.Skip:
		r.sum.Skipped++
	case retention.Fail:
		if r.sum.Failed++; r.failed == nil {
			r.failed = i.Err
		}
	default:
		r.sum.Sessions += i.Sessions
		r.sum.Events += i.Events
		if i.Sessions == 0 {
			return nil // nothing was left to erase
		}
	}
	if !r.json {
		r.items = append(r.items, i)
		return nil
	}
	v := wire.Retained{Session: i.Row.Session.String(), Label: i.Row.Label, Status: i.Row.Status(s.Boot()), Last: wire.Time(i.Row.LastActivity()), Action: i.Action,
		Sessions: i.Sessions, Events: i.Events, Contents: i.Contents, Bytes: i.Bytes}
	if i.Why != "" {
		v.Why = &i.Why
	}
	return r.emit(v)
}

func (r *retentionRun) table() {
	a := r.app
	if len(r.items) > 0 {
		all := make([]uuid.UUID, len(r.items))
		for i := range r.items {
			all[i] = r.items[i].Row.Session
		}
		short := shortIDs(all)
		rows := make([][]term.Text, len(r.items))
		for i := range r.items {
			it := &r.items[i]
			what := term.Plain(fmt.Sprintf("%s, %s", plural(it.Contents, "content"), bytesText(int64(it.Bytes))))
			switch it.Action {
			case retention.Purge:
				what = term.Plain(fmt.Sprintf("%s, %s", plural(it.Sessions, "session"), plural(int(it.Events), "event")))
			case retention.Skip:
				what = term.Dim(it.Why)
			case retention.Fail:
				what = term.Bad(it.Why)
			}
			rows[i] = []term.Text{term.Plain(short.of(it.Row.Session)), term.Plain(it.Row.Label), term.Plain(shortTime(it.Row.LastActivity())), term.Plain(it.Action), what}
		}
		a.out.Table([]term.Column{{Title: "SESSION"}, {Title: "LABEL", Min: 8, Drop: 2}, {Title: "LAST ACTIVITY", Drop: 1}, {Title: "ACTION"}, {Title: "WHAT", Min: 20}}, rows)
	}
	verb := term.Good("done: ")
	if r.rule.DryRun {
		verb = term.Warn("would do: ")
	}
	done := fmt.Sprintf("%s redacted in %s, %s", plural(r.sum.Contents, "content"), plural(r.sum.Sessions, "session"), bytesText(int64(r.sum.Bytes)))
	if r.rule.Class == retention.Sessions {
		done = fmt.Sprintf("%s purged, %s", plural(r.sum.Sessions, "session"), plural(int(r.sum.Events), "event"))
	}
	a.out.Println(verb, term.Plain(fmt.Sprintf("%s; %d skipped, %d failed", done, r.sum.Skipped, r.sum.Failed)))
	if !r.rule.DryRun && r.sum.Sessions > 0 {
		a.remains(remains)
	}
}
