package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/filter"
	"childlog/cmd/childlog/internal/forward"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// followPoll is how often log -f looks for new events.
const followPoll = 250 * time.Millisecond

func newLogCmd(a *app) *cobra.Command {
	l := &logRun{app: a, seqWidth: len("SEQ")}
	cmd := &cobra.Command{
		Use:     "log ID",
		GroupID: groupSessions,
		Short:   "Print the events of a session",
		Long: long(`
Print a session's events in order. A JSON content is printed byte for byte as it
was appended. Events of a fork seed are marked with where they were copied from.

What can't be read is shown as a hole, never left out: with --json as
{"hole":{"from","to","error"}}. If there was one, the exit code is 6. A --from
beyond the head is not found (exit 5), except with -f.

--type, --tool, --verdict, --code, --decider, --since, --until and --text pick
events; what is asked for must all hold. The verdict, the code and the decider
are those of tool/decision and approval/decided; a decider is a rule, the
approval pin of a child, a human or the host. --text is looked for in contents,
in any case; one that was erased or can't be read never matches.

-f goes on with new events until you interrupt it, or until nobody reads its
output any more, which is exit 0. It works beside other processes, opening the
store for a moment when something changed.`),
		Example: `  childlog log 0a1b2c3d
  childlog log 0a1b2c3d -f
  childlog log 0a1b2c3d --from 10 --limit 5 --json
  childlog log 0a1b2c3d --type 'policy/*' --type sandbox/mode
  childlog log 0a1b2c3d --verdict deny --tool write_file --since 24h`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if l.follow && (l.to > 0 || l.limit > 0) {
				return usagef("-f goes on for ever; it takes no --to and no --limit")
			}
			if err := compileFilter(&l.filter); err != nil {
				return err
			}
			l.events = l.filter.Events()
			if l.to > 0 && l.from > l.to {
				return usagef("--from %d lies behind --to %d", l.from, l.to)
			}
			err := l.run(cmd.Context(), args[0])
			if l.follow && errors.Is(err, context.Canceled) {
				err = l.stopped()
			}
			if err == nil && l.holes > 0 {
				err = fmt.Errorf("%w: session %s: %s can't be read", eventlog.ErrCorrupt, l.id, plural(l.holes, "range of seqs"))
			}
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&l.follow, "follow", "f", false, "go on with new events")
	f.Uint64Var(&l.from, "from", 1, "the first seq")
	f.Uint64Var(&l.to, "to", 0, "the last seq (default: the head)")
	f.Uint64Var(&l.limit, "limit", 0, "at most this many events")
	f.BoolVar(&l.bare, "no-content", false, "leave the contents out")
	l.filter.EventFlags(f)
	l.filter.PeriodFlags(f)
	f.StringVar(&l.filter.Text, "text", "", "only events with this in their content, in any case")
	completeFilter(cmd)
	return cmd
}

// logRun prints one log. What is read is rendered into a buffer, and printed
// once the store is given back: whoever reads the output may be slow, and must
// not keep a writer out.
type logRun struct {
	*app
	buf             bytes.Buffer
	look            *term.Writer // for people, into buf
	follow, bare    bool
	from, to, limit uint64
	filter          filter.Filter
	events          *filter.Events

	id       uuid.UUID
	seqWidth int
	next     uint64 // seq to go on with
	end      uint64 // the last seq to print; fixed at the first look, unless following
	holes    int
	printed  uint64
}

const (
	maxPageBytes = 4 << 20 // of contents and facts read at a time
	maxHeld      = 8 << 20 // bytes rendered while the store is open
	lastPatience = 10 * time.Second
)

func (l *logRun) run(ctx context.Context, session string) error {
	l.look = l.out.To(&l.buf)
	l.next = max(l.from, 1)
	for first, waiting := true, false; ; {
		changed, err := l.watch(ctx)
		if err != nil {
			return err
		}
		place := l.place()
		if !first {
			place.Wait = max(place.Wait, lastPatience) // it was readable a moment ago
		}
		err = access.Read(ctx, place, func(s *eventlog.Store) error {
			if first {
				l.warnRolledBack(s)
			}
			return l.render(ctx, s, session, first)
		})
		if _, writeErr := l.buf.WriteTo(l.stdout); writeErr != nil {
			return writeErr
		}
		if l.follow && errors.Is(err, eventlog.ErrLocked) {
			if first && !waiting {
				l.msg.Println(term.Dim("waiting: ", err.Error()))
				waiting = true
			}
			if err := sleep(ctx, followPoll); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return l.orInit(err)
		}
		first = false
		if l.next <= l.end && !l.full() {
			continue
		}
		if !l.follow {
			return nil
		}
		if err := changed(); err != nil {
			return err
		}
	}
}

// render renders what there is between next and end, up to a measure.
func (l *logRun) render(ctx context.Context, s *eventlog.Store, session string, first bool) (err error) {
	if first {
		if l.id, err = resolve(ctx, s, session); err != nil {
			return err
		}
	}
	row, err := s.Row(l.id)
	if err != nil {
		return err
	}
	if first || l.follow {
		if l.end = row.Head; l.to > 0 {
			l.end = min(l.end, l.to)
		}
		l.seqWidth = max(l.seqWidth, len(fmt.Sprint(row.Head)))
	}
	damage := func() []eventlog.Damage { return ops.LostBehind(ctx, s, &row) }
	if first && !l.follow && l.next > row.Head && !slices.ContainsFunc(damage(), func(d eventlog.Damage) bool { return d.To >= l.next }) {
		return withHint(fmt.Errorf("%w: session %s has no seq %d, its head is %d", eventlog.ErrNotFound, l.id, l.next, row.Head),
			"begin at the head or before it; -f waits for what is appended")
	}
	if first && !l.json && l.out.Rich() {
		l.look.Println(l.head())
	}
	for l.next <= l.end && !l.full() && l.buf.Len() < maxHeld {
		page, err := s.Read(ctx, l.id, eventlog.ReadOptions{From: l.next, To: l.end, MaxEvents: l.pageEvents(), MaxBytes: maxPageBytes, Contents: !l.bare || l.filter.NeedsContents()})
		if err != nil {
			return err
		}
		if err := l.page(&page); err != nil {
			return err
		}
		if l.next = page.Next; l.next == 0 {
			l.next = l.end + 1
		}
	}
	if l.next > l.end && l.to == 0 && !l.follow && !l.full() {
		return l.beyond(damage())
	}
	return nil
}

func (l *logRun) full() bool { return l.limit > 0 && l.printed >= l.limit }

func (l *logRun) pageEvents() int {
	if l.limit == 0 || l.filter.PicksAny() {
		return 4096
	}
	return int(min(4096, l.limit-l.printed))
}

// watch begins to look out for what is written to the store. What it returns
// waits for the first of it.
func (l *logRun) watch(ctx context.Context) (changed func() error, err error) {
	if l.env.Held == nil {
		was := access.Stamp(l.place())
		return func() error {
			for access.Stamp(l.place()) == was {
				if err := sleep(ctx, followPoll); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}
	next, err := l.env.Held.Changed(ctx)
	return func() error {
		select {
		case <-next:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-l.env.Stopping:
			return l.stopped()
		}
	}, err
}

// stopped tells the end of the holder, which is an error, from an interrupt, which
// is how one leaves -f.
func (l *logRun) stopped() error {
	select {
	case <-l.env.Stopping:
		return fmt.Errorf("%w: %w", eventlog.ErrStoreClosed, forward.ErrStopped)
	default:
		return nil
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// page renders events and holes in the order of their seqs.
func (l *logRun) page(page *eventlog.Page) error {
	holes := page.Holes
	for i := range page.Events {
		for len(holes) > 0 && holes[0].From < page.Events[i].Seq {
			if err := l.hole(holes[0]); err != nil {
				return err
			}
			holes = holes[1:]
		}
		ev := &page.Events[i]
		if !l.events.Match(ev) {
			continue
		}
		if l.bare {
			ev.Content, ev.ContentErr = nil, nil
		}
		if err := l.event(ev); err != nil {
			return err
		}
		if l.printed++; l.full() { // a page may hold more that the filter picks
			return nil
		}
	}
	for _, h := range holes {
		if err := l.hole(h); err != nil {
			return err
		}
	}
	return nil
}

// beyond shows damage that lies behind the last event that can be read, and
// breaks of the chain, which are no holes of their own.
func (l *logRun) beyond(damage []eventlog.Damage) error {
	for _, d := range damage {
		if d.From > l.end || l.holes == 0 {
			if err := l.hole(eventlog.Hole{From: d.From, To: d.To, Err: errors.New(d.Reason)}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *logRun) hole(h eventlog.Hole) error {
	l.holes++
	if l.json {
		line, err := wire.Line(wire.Hole{Hole: wire.Damage{From: h.From, To: h.To, Error: h.Err.Error()}})
		l.buf.Write(line)
		return err
	}
	l.look.Println(term.Bad(fmt.Sprintf("%*s  hole: ", l.seqWidth, seqRange(h.From, h.To))), term.Plain(h.Err.Error()))
	return nil
}
