package ops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/filter"
	"childlog/cmd/childlog/internal/logwalk"
	"childlog/eventlog"
	"childlog/replay"
)

// FilterError makes an input error of what a filter refused; the filter names
// the flags of the command.
func FilterError(err error) error {
	if ue := (*filter.UsageError)(nil); errors.As(err, &ue) {
		return fmt.Errorf("%w: %s", eventlog.ErrInvalid, strings.NewReplacer("--type:", "/types:", "--", "/").Replace(ue.Error()))
	}
	return err
}

// Picked reads the rows of the sessions that a filter picks. Where it picks events
// too, only sessions that hold one.
func Picked(ctx context.Context, s *eventlog.Store, f *filter.Filter) ([]eventlog.Row, error) {
	rows, err := f.Sessions(ctx, s, func(text string) (uuid.UUID, error) { return Resolve(ctx, s, text) })
	if err != nil || !f.PicksEvents() {
		return rows, err
	}
	var out []eventlog.Row
	for i := range rows {
		held, err := holds(ctx, s, f, rows[i].Session)
		if err != nil {
			return nil, err
		}
		if held {
			out = append(out, rows[i])
		}
	}
	return out, nil
}

var errHeld = errors.New("an event was found")

// holds reports whether a log has an event that a filter picks. What can't be read
// holds none.
func holds(ctx context.Context, s *eventlog.Store, f *filter.Filter, session uuid.UUID) (bool, error) {
	m := f.Events()
	err := logwalk.Each(ctx, s, session, false, func(ev *eventlog.Event) error {
		if m.Picks(ev) {
			return errHeld
		}
		return nil
	}, func(logwalk.Gap) error { return nil })
	if errors.Is(err, errHeld) {
		return true, nil
	}
	return false, err
}

// List reads the rows of the sessions that a filter picks, its text included, in
// their order.
func List(ctx context.Context, s *eventlog.Store, f *filter.Filter) ([]eventlog.Row, error) {
	rows, err := Picked(ctx, s, f)
	return slices.DeleteFunc(rows, func(r eventlog.Row) bool { return !f.Named(&r) }), err
}

// Order is that of sessions in lists: of their creation, ties by id. It never
// changes.
func Order(x, y *eventlog.Row) int {
	return cmp.Or(cmp.Compare(x.FirstTime, y.FirstTime), bytes.Compare(x.Session[:], y.Session[:]))
}

// Unreadable says why a session's policy can't be read. Policies are read only
// where something hints at it: in a sound store a list costs no log.
func Unreadable(ctx context.Context, s *eventlog.Store, r *eventlog.Row) error {
	if len(r.Damage) == 0 && r.UnknownSeq == 0 && s.Whole() == nil {
		return nil
	}
	_, err := replay.Policy(ctx, s, r.Session, 0)
	return err
}
