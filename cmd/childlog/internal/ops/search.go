package ops

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/filter"
	"childlog/cmd/childlog/internal/logwalk"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// Search is one search through the logs of a store. What is found goes to Found
// one by one, what can't be looked through to Unread.
type Search struct {
	Filter  *filter.Filter
	Pattern *filter.Pattern // nil: any event that the filter picks

	// Found takes an event that was found, which is its own until it returns,
	// and the answer about it. False ends the search.
	Found func(row *eventlog.Row, ev *eventlog.Event, hit wire.Hit) bool
	// Unread takes a place that can't be looked through.
	Unread func(session uuid.UUID, gap logwalk.Gap)
	// Progress is told how many of the sessions are done; nil: nobody is.
	Progress func(done, of int)

	Sessions, Events, Bytes uint64 // that were looked through
}

const (
	excerptBefore = 40  // bytes of an excerpt before the match, at most
	excerptAfter  = 120 // and behind its beginning
)

var errEnough = errors.New("enough was found")

// Run searches. The logs are read one after the other, in the order of their
// creation, in bounded memory; the store's own, with its rules and reasons, comes
// last, and only where no session is picked.
func (q *Search) Run(ctx context.Context, s *eventlog.Store) error {
	rows, err := q.Filter.Sessions(ctx, s, func(text string) (uuid.UUID, error) { return Resolve(ctx, s, text) })
	if err != nil {
		return err
	}
	if own, err := s.Row(eventlog.StoreSession); err == nil && !q.Filter.PicksSessions() {
		rows = append(rows, own)
	}
	for i := range rows {
		if err := q.session(ctx, s, &rows[i]); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
		if q.Progress != nil {
			q.Progress(i+1, len(rows))
		}
	}
	return nil
}

func (q *Search) session(ctx context.Context, s *eventlog.Store, row *eventlog.Row) error {
	q.Sessions++
	events := q.Filter.Events()
	return logwalk.Each(ctx, s, row.Session, q.Pattern != nil, func(ev *eventlog.Event) error {
		q.Events++
		q.Bytes += uint64(len(ev.Content))
		if !events.Picks(ev) {
			return nil
		}
		hit, ok := q.hit(row, ev)
		if ok && !q.Found(row, ev, hit) {
			return errEnough
		}
		return nil
	}, func(g logwalk.Gap) error {
		if !g.Readable {
			q.Unread(row.Session, g)
		}
		return nil
	})
}

func (q *Search) hit(row *eventlog.Row, ev *eventlog.Event) (wire.Hit, bool) {
	out := wire.Hit{Session: row.Session.String(), Label: row.Label, Seq: ev.Seq, Type: ev.Type, Time: wire.Time(ev.Time)}
	if ev.Inherited != nil {
		out.Inherited = &wire.Origin{Session: ev.Inherited.Session.String(), Seq: ev.Inherited.Seq}
	}
	if q.Pattern == nil {
		return out, true
	}
	if len(ev.Content) == 0 { // none, erased, or one that can't be read
		return out, false
	}
	in, from, to := q.Pattern.Find(ev.Content, ev.Media == eventlog.MediaJSON)
	if in == nil {
		return out, false
	}
	before, match, after := Excerpt(in, from, to)
	out.Before, out.Match, out.After = &before, &match, &after
	return out, true
}

// Excerpt is the text around a match, cut between characters.
func Excerpt(in []byte, from, to int) (before, match, after string) {
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
