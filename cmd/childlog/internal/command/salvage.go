package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/term"
	"childlog/eventlog"
)

func newSalvageCmd(a *app) *cobra.Command {
	var to string
	var o eventlog.SalvageOptions
	cmd := &cobra.Command{
		Use:     "salvage --to DIR",
		GroupID: groupStore,
		Short:   "Save what is left of a damaged store into a new one",
		Long: long(`
Read a store that is damaged in any way, page by page, and write what is left
of it into a new store at --to, with a statement of what was lost. The damaged
store (--store) is only read; keep it. The statement is printed, and stands in
the new store as SALVAGE.json.

Events keep their places. What is lost stays a hole: a session that lost events
can be read in the new store but is granted nothing and takes nothing more, and
so is every session that may have lost its newest events. The others go on. If
the end of the journal is in doubt, every session may have lost its newest
events: then the new store can only be read. So it is of a store that was rolled
back: accept-rollback goes on with one, on record.

Exit code 0: nothing was lost. 6: something was, the statement says what; the
new store is there all the same.`),
		Example: `  childlog salvage --dry-run
  childlog --store ./damaged salvage --to ./saved
  childlog --store ./saved verify`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.DryRun == (to != "") {
				return usagef("where to? give --to DIR for the new store, or --dry-run for the statement alone")
			}
			update, done := a.stages()
			o.Progress = update
			r, err := access.Salvage(cmd.Context(), a.place(), to, o)
			done()
			switch {
			case errors.Is(err, eventlog.ErrExists):
				return withHint(err, "nothing was changed; name a directory for the new store that is new or empty")
			case err != nil:
				return a.orInit(err)
			}
			if err := a.show(r, func() { a.salvaged(r) }); err != nil {
				return err
			}
			if !r.Complete {
				return withHint(fmt.Errorf("%w: salvage: something was lost", eventlog.ErrCorrupt), goOnHint(r))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "directory of the new store; it must not exist, or be empty")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "write nothing, only print the statement")
	cmd.Flags().BoolVar(&o.IncludeTail, "include-tail", false, "take over events at the end that nothing proves to have been committed")
	return cmd
}

// goOnHint says how to go on after a salvage.
func goOnHint(r *eventlog.SalvageReport) string {
	switch {
	case r.Target == "":
		return "nothing was written; --to DIR writes the new store"
	case r.TailDoubt != "":
		return "the new store can be read, and nothing be granted from it: begin new roots in another store, or restore a backup"
	case r.RulesInDoubt:
		return "the operator rules may be lost, so no call can be decided in the new store: begin new roots in another store, or restore a backup"
	}
	return "keep the damaged store; sessions that are whole go on in the new one, delegate again where one is not"
}

// stages makes a progress bar for each stage in turn.
func (a *app) stages() (update func(stage string, at, of uint64), done func()) {
	now, end := "", func() {}
	var bar func(at, of int)
	return func(stage string, at, of uint64) {
		if stage != now {
			end()
			now = stage
			bar, end = a.bar(stage, "")
		}
		bar(int(at), int(of))
	}, func() { end() }
}

func (a *app) salvaged(r *eventlog.SalvageReport) {
	statement := term.Good("nothing was lost")
	if !r.Complete {
		statement = term.Bad("not everything could be saved")
	}
	a.out.Println(statement)
	n := func(n uint64) term.Text { return term.Plain(grouped(n)) }
	place := term.Plain("not written, a dry run")
	if r.Target != "" {
		place = term.Bold(r.Target)
	}
	a.out.Rows(
		term.Row{Name: "from", Value: term.Plain(r.Source), Note: term.Dim(fmt.Sprintf("%s, %s pages", bytesText(r.FileBytes), grouped(r.Pages)))},
		term.Row{Name: "to", Value: place},
		term.Row{Name: "store", Value: term.Plain(r.Store.String()), Note: term.Dim(fmt.Sprintf("from %s, incarnation %d", r.IdentityFrom, r.Incarnation))},
		term.Row{Name: "meta pages", Value: term.Plain(r.Metas[0].State + ", " + r.Metas[1].State), Note: term.Dim("read from: " + r.Base)},
		term.Row{Name: "damaged", Value: n(r.PagesDamaged), Note: term.Dim("pages")},
		term.Row{Name: "sessions", Value: n(r.Sessions)},
		term.Row{Name: "events", Value: n(r.Events), Note: term.Dim(framesNote(r))},
		term.Row{Name: "contents", Value: n(r.Contents), Note: term.Dim(lostNote(r.LostContents))},
		term.Row{Name: "frames lost", Value: n(r.LostFrames), Note: term.Dim(lostOf(r))},
	)
	if r.Base == eventlog.BaseNone {
		a.out.Println(term.Warn("no tree is left: "), term.Plain("contents may have been erased, so none is taken"))
	}
	if r.TailDoubt != "" {
		a.out.Println(term.Bad("the end is in doubt: "), term.Plain(r.TailDoubt))
	}
	if r.RulesInDoubt && r.TailDoubt == "" {
		a.out.Println(term.Bad("the operator rules are in doubt: "), term.Plain("a frame of them may be lost"))
	}
	if r.InDoubt > 0 {
		a.out.Println(term.Warn(fmt.Sprintf("%s may have lost the newest events, and can only be read", plural(int(r.InDoubt), "session"))))
	}
	if r.Unproven > 0 || r.Unplaced > 0 {
		a.out.Println(term.Dim(fmt.Sprintf("left out: %s that nothing proves, %s of no certain place", plural(int(r.Unproven), "frame"), plural(int(r.Unplaced), "frame"))))
	}
	a.lostPositions(r)
	a.lostSeqs(r)
	a.tail(r)
	if len(r.Conflicts) > 0 {
		a.out.Println(term.Dim(plural(len(r.Conflicts)+int(r.MoreConfl), "position") + " with different frames; see the statement"))
	}
	if r.Target != "" && r.Findings > 0 {
		a.out.Println(term.Dim(fmt.Sprintf("a check of the new store has %s, all of them of what was lost", plural(int(r.Findings), "finding"))))
	}
}

func framesNote(r *eventlog.SalvageReport) string {
	note := fmt.Sprintf("%s frames from the tree", grouped(r.Frames.Tree))
	carved := "from free pages"
	if r.Base == eventlog.BaseNone {
		note, carved = "no tree is left", "frames found on pages"
	}
	for _, f := range []struct {
		n    uint64
		what string
	}{{r.Frames.CutOff, "from pages cut off it"}, {r.Frames.Carved, carved}, {r.Frames.Tail, "unproven"}} {
		if f.n > 0 {
			note += fmt.Sprintf(", %s %s", grouped(f.n), f.what)
		}
	}
	return note
}

// lostOf says of how many. What lay behind an end in doubt nobody can count.
func lostOf(r *eventlog.SalvageReport) string {
	if r.TailDoubt != "" {
		return fmt.Sprintf("of %s, and perhaps more behind them", grouped(r.Positions))
	}
	return fmt.Sprintf("of %s", grouped(r.Positions))
}

func lostNote(n uint64) string {
	if n == 0 {
		return ""
	}
	return grouped(n) + " lost"
}

func (a *app) lostPositions(r *eventlog.SalvageReport) {
	if len(r.Lost) == 0 {
		return
	}
	rows := make([][]term.Text, len(r.Lost))
	for i, l := range r.Lost {
		who, seq, known := "nobody knows whose", "", ""
		if l.Session != nil {
			who, seq, known = l.Session.String(), fmt.Sprint(l.Seq), l.Known
		}
		rows[i] = []term.Text{term.Plain(between2(l.From, l.To)), term.Plain(who), term.Plain(seq), term.Plain(known)}
	}
	a.out.Table([]term.Column{{Title: "LOST POSITION", Right: true}, {Title: "SESSION", Min: 8}, {Title: "FROM SEQ", Right: true}, {Title: "KNOWN BY"}}, rows)
}

func (a *app) lostSeqs(r *eventlog.SalvageReport) {
	var rows [][]term.Text
	for _, d := range r.Damaged {
		id := d.Session.String()
		for _, l := range d.Lost {
			seqs := between2(l.From, l.To)
			if l.To == 0 {
				seqs = fmt.Sprintf("%d to the end", l.From)
			}
			rows = append(rows, []term.Text{term.Plain(id), term.Plain(seqs), term.Plain("events"), term.Plain("policy: " + l.Policy)})
		}
		for _, c := range d.Contents {
			rows = append(rows, []term.Text{term.Plain(id), term.Plain(between2(c.From, c.To)), term.Plain("contents"), term.Plain("")})
		}
		if d.Inconsistent {
			rows = append(rows, []term.Text{term.Plain(id), term.Plain(""), term.Plain(""), term.Plain("what is left does not fit together")})
		}
	}
	if len(rows) > 0 {
		a.out.Table([]term.Column{{Title: "SESSION", Min: 8}, {Title: "LOST SEQ", Right: true}, {Title: "WHAT"}, {Title: "NOTE"}}, rows)
	}
}

func (a *app) tail(r *eventlog.SalvageReport) {
	for _, t := range r.Tail {
		what := "left out; --include-tail takes it over"
		if t.Included {
			what = "taken over"
		}
		a.out.Println(term.Warn("unproven: "), term.Plain(fmt.Sprintf("position %d, session %s seq %s: %s", t.Position, t.Session, between2(t.First, t.Last), what)))
	}
}

// between2 writes a range.
func between2(from, to uint64) string {
	if from == to {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d-%d", from, to)
}
