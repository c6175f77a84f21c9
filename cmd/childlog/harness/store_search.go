package harness

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/filter"
	"childlog/cmd/childlog/internal/logwalk"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// maxUnread bounds the places of a search that could not be looked through.
const maxUnread = 100

// Search implements [Harness].
func (h *Store) Search(ctx context.Context, r SearchRequest) (Found, error) {
	out := Found{Items: []wire.Hit{}, Unread: []Unread{}}
	limit, err := bounded("limit", r.Limit, MaxFound)
	if err != nil {
		return out, err
	}
	var pick filter.Filter
	r.SessionFilter.into(&pick)
	r.EventFilter.into(&pick)
	f, err := h.filtered(pick)
	if err != nil {
		return out, err
	}
	q := ops.Search{Filter: f}
	switch {
	case r.Text != "":
		if q.Pattern, err = filter.NewPattern(r.Text, r.Regexp); err != nil {
			return out, ops.FilterError(err)
		}
	case r.Regexp:
		return out, fmt.Errorf("%w: /regexp says how /text is meant; give /text", eventlog.ErrInvalid)
	case !f.PicksAny():
		return out, fmt.Errorf("%w: what is to be found? give /text, or what picks events, such as /verdict", eventlog.ErrInvalid)
	}
	q.Found = func(_ *eventlog.Row, _ *eventlog.Event, hit wire.Hit) bool {
		if len(out.Items) == limit {
			out.More = true
			return false
		}
		out.Items = append(out.Items, hit)
		return true
	}
	q.Unread = func(session uuid.UUID, g logwalk.Gap) {
		if len(out.Unread) < maxUnread {
			out.Unread = append(out.Unread, Unread{Session: session.String(), Damage: wire.Damage{From: g.From, To: g.To, Error: g.Err.Error()}})
		}
	}
	return out, q.Run(ctx, h.s)
}
