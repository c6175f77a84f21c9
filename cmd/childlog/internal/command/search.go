package command

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/filter"
	"childlog/cmd/childlog/internal/logwalk"
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

	found    []hit
	held     int  // bytes of excerpts
	more     bool // there may be more than was found
	searched struct {
		sessions, events, bytes uint64
		took                    time.Duration
	}
	unread []lost
}

// hit is one event that was found.
type hit struct {
	session          uuid.UUID
	label            string
	seq              uint64
	typ              string
	at               time.Time
	before, m, after string
	line             term.Text // of an event that no text was looked for in
	inherited        *eventlog.Ref
}

// lost is a part of a log that could not be searched.
type lost struct {
	session uuid.UUID
	logwalk.Gap
}

const (
	excerptBefore = 40  // bytes of an excerpt before the match, at most
	excerptAfter  = 120 // and behind its beginning
	maxFoundBytes = 64 << 20
	maxLost       = 100
)

func (r *searchRun) run(ctx context.Context) error {
	var short ids
	begin := time.Now()
	update, done := r.bar("searching", "sessions")
	err := r.read(ctx, func(s *eventlog.Store) error {
		rows, err := r.filter.Sessions(ctx, s, func(text string) (uuid.UUID, error) { return resolve(ctx, s, text) })
		if err != nil {
			return err
		}
		if own, err := s.Row(eventlog.StoreSession); err == nil && !r.filter.PicksSessions() {
			rows = append(rows, own) // no agent's; the texts of rules and reasons are in it
		}
		if short, err = shortOf(ctx, s); err != nil {
			return err
		}
		for i := range rows {
			if r.full() {
				return nil
			}
			if err := r.session(ctx, s, &rows[i]); err != nil {
				return err
			}
			update(i+1, len(rows))
		}
		return nil
	})
	done()
	r.searched.took = time.Since(begin)
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

func (r *searchRun) full() bool { return r.more }

var errEnough = fmt.Errorf("enough was found")

func (r *searchRun) session(ctx context.Context, s *eventlog.Store, row *eventlog.Row) error {
	r.searched.sessions++
	events := r.filter.Events()
	err := logwalk.Each(ctx, s, row.Session, r.pattern != nil, func(ev *eventlog.Event) error {
		r.searched.events++
		r.searched.bytes += uint64(len(ev.Content))
		if !events.Picks(ev) {
			return nil
		}
		return r.event(row, ev)
	}, func(g logwalk.Gap) error {
		if !g.Readable && len(r.unread) <= maxLost {
			r.unread = append(r.unread, lost{row.Session, g})
		}
		return nil
	})
	if err == errEnough { //nolint:errorlint // it is our own, and comes back as it is
		return nil
	}
	return err
}

func (r *searchRun) event(row *eventlog.Row, ev *eventlog.Event) error {
	h := hit{session: row.Session, label: row.Label, seq: ev.Seq, typ: ev.Type, at: ev.Time}
	if ev.Inherited != nil {
		from := *ev.Inherited // the event is not ours to keep
		h.inherited = &from
	}
	if r.pattern != nil {
		if len(ev.Content) == 0 { // none, erased, or one that can't be read
			return nil
		}
		in, from, to := r.pattern.Find(ev.Content, ev.Media == eventlog.MediaJSON)
		if in == nil {
			return nil
		}
		h.before, h.m, h.after = excerpt(in, from, to)
	} else {
		h.line = (&logRun{app: r.app}).body(ev)
	}
	if r.limit > 0 && len(r.found) == r.limit || r.held > maxFoundBytes {
		r.more = true
		return errEnough
	}
	r.held += len(h.before) + len(h.m) + len(h.after) + h.line.Width() + 200
	r.found = append(r.found, h)
	return nil
}

// excerpt is the text around a match, cut between characters.
func excerpt(in []byte, from, to int) (before, match, after string) {
	begin := max(0, from-excerptBefore)
	for begin < from && !utf8.RuneStart(in[begin]) {
		begin++
	}
	end := min(len(in), max(from+excerptAfter, min(to, from+excerptAfter)))
	for end < len(in) && end > from && !utf8.RuneStart(in[end]) {
		end--
	}
	to = min(to, end)
	before, match, after = string(in[begin:from]), string(in[from:to]), string(in[to:end])
	if begin > 0 {
		before = "…" + before
	}
	if end < len(in) {
		after += "…"
	}
	return before, match, after
}

func (r *searchRun) print(short ids) error {
	if r.json {
		for i := range r.found {
			if err := r.emit(r.found[i].wire(r.pattern != nil)); err != nil {
				return err
			}
		}
		return nil
	}
	width, rich := r.out.Width(), r.out.Rich()
	for i := range r.found {
		h := &r.found[i]
		line := term.Cat(term.Bold(short.of(h.session)), term.Dim(fmt.Sprintf(" %6d  ", h.seq)), term.Plain(h.typ, strings.Repeat(" ", max(0, typeWidth-len(h.typ)))), term.Plain("  "))
		if h.inherited != nil && h.m != "" {
			line = term.Cat(line, term.Dim(fmt.Sprintf("copied from seq %d of %s  ", h.inherited.Seq, short.of(h.inherited.Session))))
		}
		if h.m != "" {
			if room := width - line.Width() - term.Plain(h.m).Width(); width > 0 && term.Plain(h.before).Width() > max(0, room/2) { // else the match would be cut off
				h.before = lastPart(h.before, max(0, room/2))
			}
			marked := term.Warn(h.m)
			if !rich {
				marked = term.Plain("[[", h.m, "]]")
			}
			line = term.Cat(line, term.Plain(h.before), marked, term.Plain(h.after))
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
	text += fmt.Sprintf(" in %s, %s", plural(int(r.searched.sessions), "session"), plural(int(r.searched.events), "event"))
	if seconds := r.searched.took.Seconds(); seconds > 0.1 {
		text += fmt.Sprintf(", %s, %.0f MB/s", r.searched.took.Round(time.Millisecond), float64(r.searched.bytes)/1e6/seconds)
	}
	r.msg.Println(term.Dim(text))
}

func (h *hit) wire(matched bool) wire.Hit {
	out := wire.Hit{Session: h.session.String(), Label: h.label, Seq: h.seq, Type: h.typ, Time: wire.Time(h.at)}
	if matched {
		out.Before, out.Match, out.After = &h.before, &h.m, &h.after
	}
	if h.inherited != nil {
		out.Inherited = &wire.Origin{Session: h.inherited.Session.String(), Seq: h.inherited.Seq}
	}
	return out
}
