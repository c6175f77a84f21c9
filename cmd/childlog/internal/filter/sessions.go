package filter

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/replay"
)

// Sessions reads the rows of the sessions that the filter picks, in the order of
// their creation and then of ids. The store's own session is no agent's and never
// one of them. resolve finds a session that the user named.
//
// A period picks sessions that were at work in it: the first event before its
// end, the last activity not before its beginning. A session whose policy can't
// be read has no role and no sandbox. The text is not looked at, see
// [Filter.Named]. Errors: those of resolve, a canceled context, a damaged index.
func (f *Filter) Sessions(ctx context.Context, s *eventlog.Store, resolve func(string) (uuid.UUID, error)) ([]eventlog.Row, error) {
	var parent, top uuid.UUID
	var err error
	if f.Parent != "" {
		if parent, err = resolve(f.Parent); err != nil {
			return nil, err
		}
	}
	var below map[uuid.UUID]bool
	if f.Subtree != "" {
		if top, err = resolve(f.Subtree); err != nil {
			return nil, err
		}
		if below, err = Below(ctx, s, top); err != nil {
			return nil, err
		}
	}
	boot := s.Boot()
	var rows []eventlog.Row
	err = s.EachRow(ctx, func(r *eventlog.Row) (bool, error) {
		switch {
		case r.Session == eventlog.StoreSession,
			f.Parent != "" && r.Parent != parent, below != nil && !below[r.Session],
			f.Kind != "" && r.Kind != f.Kind, f.Status != "" && r.Status(boot) != f.Status,
			!f.until.IsZero() && !time.Unix(0, r.FirstTime).Before(f.until), r.LastActivity().Before(f.since):
			return true, nil
		}
		if f.NeedsPolicy() {
			ok, err := f.holds(ctx, s, r.Session)
			if !ok || err != nil {
				return err == nil, err
			}
		}
		rows = append(rows, *r)
		return true, nil
	})
	slices.SortFunc(rows, func(x, y eventlog.Row) int {
		return cmp.Or(cmp.Compare(x.FirstTime, y.FirstTime), bytes.Compare(x.Session[:], y.Session[:]))
	})
	return rows, err
}

// holds reports whether a session's policy is what the filter wants.
func (f *Filter) holds(ctx context.Context, s *eventlog.Store, session uuid.UUID) (bool, error) {
	e, err := replay.Policy(ctx, s, session, 0)
	if err != nil {
		return false, ctx.Err()
	}
	return (f.Role == "" || string(e.Choices.Role) == f.Role) && (f.Sandbox == "" || string(e.Sandbox.Value.Canonical().Mode) == f.Sandbox), nil
}

// Below is a session and all its descendants. Imported logs may name each other as
// parents in a circle, so none is visited twice.
func Below(ctx context.Context, s *eventlog.Store, top uuid.UUID) (map[uuid.UUID]bool, error) {
	seen := map[uuid.UUID]bool{top: true}
	for queue := []uuid.UUID{top}; len(queue) > 0; queue = queue[1:] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		children, err := s.Children(queue[0])
		if err != nil {
			return nil, err
		}
		for _, c := range children {
			if !seen[c] {
				seen[c] = true
				queue = append(queue, c)
			}
		}
	}
	return seen, nil
}

// Named reports whether the text stands in what names a session: its label, its
// directory, its id here or elsewhere.
func (f *Filter) Named(r *eventlog.Row) bool {
	if f.text == nil {
		return true
	}
	names := strings.Join([]string{r.Label, r.Cwd, r.WorkspaceRoot, r.Session.String(), r.System + ":" + r.ExternalID}, "\n")
	return f.text.In([]byte(names), false)
}
