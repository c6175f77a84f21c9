package harness

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/filter"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// maxPageBytes bounds the contents and facts of a page.
const maxPageBytes = 4 << 20

// Show implements [Harness].
func (h *Store) Show(ctx context.Context, r SessionRequest) (wire.Detail, error) {
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return wire.Detail{}, err
	}
	v, _, _, err := ops.Show(ctx, h.s, id)
	return v, err
}

// filtered reads what picks sessions and events.
func (h *Store) filtered(f filter.Filter) (*filter.Filter, error) {
	if err := h.usable(); err != nil {
		return nil, err
	}
	if err := f.Compile(time.Now()); err != nil {
		return nil, ops.FilterError(err)
	}
	return &f, nil
}

func (f *SessionFilter) into(to *filter.Filter) {
	to.Parent, to.Subtree, to.Status, to.Kind, to.Role, to.Sandbox = f.Parent, f.Subtree, f.Status, f.Kind, f.Role, f.Sandbox
}

func (f *EventFilter) into(to *filter.Filter) {
	to.Types, to.Tool, to.Verdict, to.Code, to.Decider, to.Since, to.Until = f.Types, f.Tool, f.Verdict, f.Code, f.Decider, f.Since, f.Until
}

// bounded lowers a limit to what one answer holds.
func bounded(key string, limit, most int) (int, error) {
	switch {
	case limit < 0:
		return 0, fmt.Errorf("%w: /%s: want 0 or more, got %d", eventlog.ErrInvalid, key, limit)
	case limit == 0:
		return most, nil
	}
	return min(limit, most), nil
}

// List implements [Harness].
func (h *Store) List(ctx context.Context, r ListRequest) (Items[wire.Listed], error) {
	out := Items[wire.Listed]{Items: []wire.Listed{}}
	limit, err := bounded("limit", r.Limit, MaxListed)
	if err != nil {
		return out, err
	}
	pick := filter.Filter{Text: r.Text}
	r.SessionFilter.into(&pick)
	r.EventFilter.into(&pick)
	f, err := h.filtered(pick)
	if err != nil {
		return out, err
	}
	var after *eventlog.Row
	if r.After != "" {
		id, err := h.session(ctx, r.After)
		if err != nil {
			return out, err
		}
		row, err := h.s.Row(id)
		if err != nil {
			return out, err
		}
		after = &row
	}
	rows, err := ops.List(ctx, h.s, f)
	if err != nil {
		return out, err
	}
	if after != nil { // also if it is none of those that are picked by now
		rows = slices.DeleteFunc(rows, func(row eventlog.Row) bool { return ops.Order(&row, after) <= 0 })
	}
	if len(rows) > limit {
		rows = rows[:limit]
		out.Next = rows[limit-1].Session.String()
	}
	for i := range rows {
		why := ""
		if err := ops.Unreadable(ctx, h.s, &rows[i]); err != nil {
			why = err.Error()
		}
		out.Items = append(out.Items, wire.ListedOf(&rows[i], h.s.Boot(), why))
	}
	return out, ctx.Err()
}

// Tree implements [Harness].
func (h *Store) Tree(ctx context.Context, r TreeRequest) (Items[wire.Node], error) {
	out := Items[wire.Node]{Items: []wire.Node{}}
	if err := h.usable(); err != nil {
		return out, err
	}
	top := uuid.Nil
	if r.Session != "" {
		var err error
		if top, err = h.session(ctx, r.Session); err != nil {
			return out, err
		}
	}
	nodes, _, err := ops.Tree(ctx, h.s, top)
	for i := range nodes {
		out.Items = append(out.Items, nodes[i].Wire(h.s.Boot()))
	}
	return out, err
}

// Log implements [Harness].
func (h *Store) Log(ctx context.Context, r LogRequest) (LogPage, error) {
	limit, err := bounded("limit", r.Limit, MaxPage)
	if err != nil {
		return LogPage{}, err
	}
	if r.To > 0 && r.From > r.To {
		return LogPage{}, fmt.Errorf("%w: /from: %d lies behind /to: %d", eventlog.ErrInvalid, r.From, r.To)
	}
	pick := filter.Filter{Text: r.Text}
	r.EventFilter.into(&pick)
	f, err := h.filtered(pick)
	if err != nil {
		return LogPage{}, err
	}
	id, err := h.session(ctx, r.Session)
	if err != nil {
		return LogPage{}, err
	}
	row, err := h.s.Row(id)
	if err != nil {
		return LogPage{}, err
	}
	p := logPager{h: h, r: &r, row: &row, f: f, limit: limit}
	return p.read(ctx)
}

// logPager reads one page.
type logPager struct {
	h     *Store
	r     *LogRequest
	row   *eventlog.Row
	f     *filter.Filter
	limit int
	out   LogPage
	bytes int
}

func (p *logPager) read(ctx context.Context) (LogPage, error) {
	row := p.row
	p.out = LogPage{Session: row.Session.String(), Head: row.Head, Events: []wire.Event{}, Holes: []wire.Damage{}}
	from, to := max(p.r.From, 1), row.Head
	if p.r.To > 0 {
		to = min(to, p.r.To)
	}
	behind := ops.LostBehind(ctx, p.h.s, row)
	if from > row.Head && !slices.ContainsFunc(behind, func(d eventlog.Damage) bool { return d.To >= from }) {
		return LogPage{}, fmt.Errorf("%w: session %s has no seq %d, its head is %d", eventlog.ErrNotFound, row.Session, from, row.Head)
	}
	events := p.f.Events()
	for from <= to {
		n := 4096
		if !p.f.PicksAny() {
			n = p.limit - len(p.out.Events)
		}
		page, err := p.h.s.Read(ctx, row.Session, eventlog.ReadOptions{From: from, To: to, MaxEvents: n, MaxBytes: maxPageBytes, Contents: !p.r.NoContent || p.f.NeedsContents()})
		if err != nil {
			return LogPage{}, err
		}
		for _, hole := range page.Holes {
			p.out.Holes = append(p.out.Holes, wire.Damage{From: hole.From, To: hole.To, Error: hole.Err.Error()})
		}
		for i := range page.Events {
			ev := &page.Events[i]
			if !events.Match(ev) {
				continue
			}
			if p.take(ev); p.full() {
				return p.ends(ev.Seq+1, to, behind), nil
			}
		}
		if page.Next == 0 {
			break
		}
		from = page.Next
		if err := ctx.Err(); err != nil {
			return LogPage{}, err
		}
	}
	return p.ends(to+1, to, behind), nil
}

func (p *logPager) take(ev *eventlog.Event) {
	if p.r.NoContent {
		ev.Content, ev.ContentErr = nil, nil
	}
	p.out.Events = append(p.out.Events, wire.EventOf(ev))
	p.bytes += len(ev.Content) + len(ev.Facts)
}

func (p *logPager) full() bool { return len(p.out.Events) >= p.limit || p.bytes >= maxPageBytes }

// ends closes the page: what lies behind it is for the next one, and only the
// last one tells what is lost behind the head.
func (p *logPager) ends(next, to uint64, behind []eventlog.Damage) LogPage {
	if next <= to {
		p.out.Next = next
		p.out.Holes = slices.DeleteFunc(p.out.Holes, func(d wire.Damage) bool { return d.From >= next })
		return p.out
	}
	if p.r.To == 0 || p.r.To > p.row.Head {
		for _, d := range behind {
			if d.From > p.row.Head || len(p.out.Holes) == 0 { // a break of the chain is no hole of its own
				p.out.Holes = append(p.out.Holes, wire.Damage{From: d.From, To: d.To, Error: d.Reason})
			}
		}
	}
	return p.out
}

// Rules implements [Harness].
func (h *Store) Rules(ctx context.Context, _ NoRequest) (wire.Rules, error) {
	if err := h.usable(); err != nil {
		return wire.Rules{}, err
	}
	v, _, _, err := ops.RulesNow(ctx, h.s)
	return v, err
}

// Stats implements [Harness].
func (h *Store) Stats(ctx context.Context, r StatsRequest) (wire.StoreStats, error) {
	if err := h.usable(); err != nil {
		return wire.StoreStats{}, err
	}
	st, err := access.Stats(h.s)
	if err != nil {
		return wire.StoreStats{}, err
	}
	v := wire.StoreStats{Stats: wire.StatsOf(h.s.Identity(), h.s.Dir(), st), Largest: []wire.Large{}}
	rows, err := h.s.Largest(ctx, ops.LargestShown)
	if err != nil {
		return v, err
	}
	for _, row := range rows {
		v.Largest = append(v.Largest, wire.Large{Session: row.Session.String(), Label: row.Label, Events: row.Head})
	}
	if r.Deep {
		m, err := h.s.Measure(ctx, func(int, int) {})
		if err != nil {
			return v, err
		}
		v.Measured = wire.MeasuredOf(m)
	}
	return v, nil
}
