package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/filter"
	"childlog/cmd/childlog/internal/logwalk"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newSearchCmd(a *app) *cobra.Command {
	r := &searchRun{app: a}
	var isRegexp bool
	cmd := &cobra.Command{
		Use:     "search [TEXT]",
		GroupID: groupSessions,
		Short:   "Find events in all logs, or in those below a session",
		Long: long(`
Go through the logs and print each event whose content holds TEXT, in any case;
with --regexp what matches the expression (RE2), in the case as given. Without
TEXT each event that the flags pick. A session, its seq, the type and an excerpt
with the match marked are printed, one line an event.

A JSON content is looked through as it was appended and, where it has escapes,
as the text that they stand for. A content that was erased never matches.

The flags pick sessions and events, and all that is asked for must hold. Nothing
is indexed: the logs are read one after the other, in the order of their
creation, in bounded memory; the store's own, with its rules, comes last, and
only where no session is picked. What can't be read is reported on stderr, and
the exit code is then 6. Nothing found is no failure.`),
		Example: `  childlog search "connection refused"
  childlog search timeout --subtree 0a1b2c3d --type 'tool/*' --since 7d
  childlog search --regexp 'AKIA[0-9A-Z]{16}' --json
  childlog search --verdict deny --role explore`,
		Args: between(0, "TEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := compileFilter(&r.filter); err != nil {
				return err
			}
			switch {
			case len(args) == 1:
				var err error
				if r.pattern, err = filter.NewPattern(args[0], isRegexp); err != nil {
					return usage(err)
				}
			case isRegexp:
				return usagef("--regexp says how TEXT is meant; give TEXT")
			case !r.filter.PicksAny():
				return usagef("what is to be found? give TEXT, or a flag that picks events, such as --verdict deny")
			}
			if r.limit < 0 {
				return usagef("--limit: want 0 or more, got %d", r.limit)
			}
			return r.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&isRegexp, "regexp", false, "TEXT is a regular expression, and the case counts")
	f.IntVar(&r.limit, "limit", 0, "at most this many events")
	r.filter.SessionFlags(f)
	r.filter.EventFlags(f)
	r.filter.PeriodFlags(f)
	completeFilter(cmd)
	return cmd
}

// searchRun is one search. What is found is kept until the store is given back:
// whoever reads the output may be slow, and must not keep a writer out.
type searchRun struct {
	*app
	filter  filter.Filter
	pattern *filter.Pattern // nil: any
	limit   int

	found  []hit
	held   int  // bytes of excerpts
	more   bool // there may be more than was found
	took   time.Duration
	q      ops.Search
	unread []lost
}

// hit is one event that was found.
type hit struct {
	wire.Hit
	session   uuid.UUID
	line      term.Text // of an event that no text was looked for in
	inherited *eventlog.Ref
}

// lost is a part of a log that could not be searched.
type lost struct {
	session uuid.UUID
	logwalk.Gap
}

const (
	maxFoundBytes = 64 << 20
	maxLost       = 100
)

func (r *searchRun) run(ctx context.Context) error {
	var short ids
	begin := time.Now()
	update, done := r.bar("searching", "sessions")
	r.q = ops.Search{Filter: &r.filter, Pattern: r.pattern, Found: r.take, Progress: update, Unread: func(session uuid.UUID, g logwalk.Gap) {
		if len(r.unread) <= maxLost {
			r.unread = append(r.unread, lost{session, g})
		}
	}}
	err := r.read(ctx, func(s *eventlog.Store) (err error) {
		if short, err = shortOf(ctx, s); err != nil {
			return err
		}
		return r.q.Run(ctx, s)
	})
	done()
	r.took = time.Since(begin)
	if err != nil {
		return err
	}
	if err := r.print(short); err != nil {
		return err
	}
	if len(r.unread) > 0 {
		for i, l := range r.unread {
			if i == maxLost {
				r.msg.Println(term.Warn("childlog: warning: "), term.Plain("and more"))
				break
			}
			r.msg.Println(term.Warn("childlog: warning: "), term.Plain(fmt.Sprintf("not searched: seq %s of %s: %v", seqRange(l.From, l.To), short.of(l.session), l.Err)))
		}
		return withHint(fmt.Errorf("%w: a part of %s can't be read, and was not searched", eventlog.ErrCorrupt, plural(r.damaged(), "log")),
			"what was found is printed all the same; `childlog verify` lists what is wrong")
	}
	return nil
}

func (r *searchRun) damaged() int {
	seen := map[uuid.UUID]bool{}
	for _, l := range r.unread {
		seen[l.session] = true
	}
	return len(seen)
}

// take keeps an event that was found, unless there are enough.
func (r *searchRun) take(row *eventlog.Row, ev *eventlog.Event, found wire.Hit) bool {
	if r.limit > 0 && len(r.found) == r.limit || r.held > maxFoundBytes {
		r.more = true
		return false
	}
	h := hit{Hit: found, session: row.Session}
	if ev.Inherited != nil {
		from := *ev.Inherited // the event is not ours to keep
		h.inherited = &from
	}
	if r.pattern == nil {
		h.line = (&logRun{app: r.app}).body(ev)
	} else {
		r.held += len(*h.Before) + len(*h.Match) + len(*h.After)
	}
	r.held += h.line.Width() + 200
	r.found = append(r.found, h)
	return true
}

func (r *searchRun) print(short ids) error {
	if r.json {
		for i := range r.found {
			if err := r.emit(r.found[i].Hit); err != nil {
				return err
			}
		}
		return nil
	}
	width, rich := r.out.Width(), r.out.Rich()
	for i := range r.found {
		h := &r.found[i]
		line := term.Cat(term.Bold(short.of(h.session)), term.Dim(fmt.Sprintf(" %6d  ", h.Seq)), term.Plain(h.Type, strings.Repeat(" ", max(0, typeWidth-len(h.Type)))), term.Plain("  "))
		if h.inherited != nil && h.Match != nil {
			line = term.Cat(line, term.Dim(fmt.Sprintf("copied from seq %d of %s  ", h.inherited.Seq, short.of(h.inherited.Session))))
		}
		if h.Match != nil {
			before := *h.Before
			if room := width - line.Width() - term.Plain(*h.Match).Width(); width > 0 && term.Plain(before).Width() > max(0, room/2) { // else the match would be cut off
				before = lastPart(before, max(0, room/2))
			}
			marked := term.Warn(*h.Match)
			if !rich {
				marked = term.Plain("[[", *h.Match, "]]")
			}
			line = term.Cat(line, term.Plain(before), marked, term.Plain(*h.After))
		} else {
			line = term.Cat(line, h.line)
		}
		if width == 0 {
			width = 2 * pipeWidth
		}
		r.out.Println(line.Cut(width))
	}
	if rich {
		r.summary()
	}
	return r.out.Err()
}

// lastPart is the end of a text, of about so many characters.
func lastPart(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return "…" + string(runes[len(runes)-n:])
}

func (r *searchRun) summary() {
	text := plural(len(r.found), "event") + " found"
	if r.more {
		text = "the first " + text
	}
	text += fmt.Sprintf(" in %s, %s", plural(int(r.q.Sessions), "session"), plural(int(r.q.Events), "event"))
	if seconds := r.took.Seconds(); seconds > 0.1 {
		text += fmt.Sprintf(", %s, %.0f MB/s", r.took.Round(time.Millisecond), float64(r.q.Bytes)/1e6/seconds)
	}
	r.msg.Println(term.Dim(text))
}
