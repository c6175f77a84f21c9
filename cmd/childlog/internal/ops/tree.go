package ops

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/replay"
)

// Tree reads the sessions as trees of delegations, in preorder, or with top only
// that session and what lies below it. all are the ids of every session that the
// trees could show.
func Tree(ctx context.Context, s *eventlog.Store, top uuid.UUID) (nodes []Node, all []uuid.UUID, err error) {
	rows, err := AllRows(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	kept, err := purgedBelow(ctx, s, rows)
	if err != nil {
		return nil, nil, err
	}
	for i := range kept {
		rows = append(rows, kept[i].Row)
	}
	for i := range rows {
		all = append(all, rows[i].Session)
	}
	nodes = forest(rows, top)
	markPurged(nodes, kept)
	return nodes, all, readPolicies(ctx, s, nodes)
}

// StatusPurged is that of a session that was removed on record.
const StatusPurged = "purged"

// Node is a session in a forest, in preorder.
type Node struct {
	Row    eventlog.Row
	Level  int
	Orphan bool // its parent is not in this store
	Policy replay.Effective
	Err    error            // why there is no policy
	Purged *eventlog.Purged // it is no more
}

// purgedBelow are the purged sessions whose parent is still there.
func purgedBelow(ctx context.Context, s *eventlog.Store, rows []eventlog.Row) (out []Node, err error) {
	alive := make(map[uuid.UUID]bool, len(rows))
	for i := range rows {
		alive[rows[i].Session] = true
	}
	err = s.EachPurged(ctx, func(p *eventlog.Purged) error {
		if alive[p.Parent] {
			out = append(out, Node{Row: eventlog.Row{Session: p.Session, Kind: p.Kind, Parent: p.Parent, Root: p.Root, Evidence: p.Evidence, Head: p.Head,
				FirstTime: p.Created.UnixNano(), LastTime: p.Last.UnixNano()}, Purged: p})
		}
		return nil
	})
	return out, err
}

func markPurged(nodes, kept []Node) {
	by := map[uuid.UUID]*eventlog.Purged{}
	for i := range kept {
		by[kept[i].Row.Session] = kept[i].Purged
	}
	for i := range nodes {
		nodes[i].Purged = by[nodes[i].Row.Session]
	}
}

// forest orders rows as trees, children in the order of creation. With top it
// is the tree of that session only. A parent that is missing, and links that
// run in a circle, which only a damaged or imported log can state, make a
// session a top of its own.
func forest(rows []eventlog.Row, top uuid.UUID) []Node {
	at := map[uuid.UUID]int{}
	below := map[uuid.UUID][]int{}
	for i := range rows {
		at[rows[i].Session] = i
		below[rows[i].Parent] = append(below[rows[i].Parent], i)
	}
	var out []Node
	seen := map[uuid.UUID]bool{}
	var add func(i, level int, orphan bool)
	add = func(i, level int, orphan bool) {
		r := &rows[i]
		if seen[r.Session] {
			return
		}
		seen[r.Session] = true
		out = append(out, Node{Row: *r, Level: level, Orphan: orphan})
		for _, c := range below[r.Session] {
			add(c, level+1, false)
		}
	}
	if top != uuid.Nil {
		if i, ok := at[top]; ok {
			add(i, 0, false)
		}
		return out
	}
	for i := range rows {
		if _, known := at[rows[i].Parent]; !known {
			add(i, 0, rows[i].Parent != uuid.Nil)
		}
	}
	for i := range rows {
		add(i, 0, true)
	}
	return out
}

func readPolicies(ctx context.Context, s *eventlog.Store, nodes []Node) error {
	for i := range nodes {
		n := &nodes[i]
		if n.Purged != nil {
			continue
		}
		n.Policy, n.Err = replay.Policy(ctx, s, n.Row.Session, 0)
		if errors.Is(n.Err, context.Canceled) {
			return n.Err
		}
	}
	return nil
}

// Wire converts the node.
func (n *Node) Wire(boot uuid.UUID) wire.Node {
	out := wire.Node{Session: wire.SessionOf(&n.Row, boot), Level: n.Level, Orphan: n.Orphan}
	if n.Purged != nil {
		kept := wire.PurgedOf(n.Purged)
		out.Status, out.Purged = StatusPurged, &kept
		return out
	}
	if n.Err != nil {
		text := n.Err.Error()
		out.Error = &text
		return out
	}
	sandbox, approvals := wire.SandboxOf(n.Policy.Sandbox.Value.Canonical()), string(n.Policy.Approvals)
	out.Sandbox, out.Approvals = &sandbox, &approvals
	if role := string(n.Policy.Choices.Role); role != "" {
		out.Role = &role
	}
	if wire.Stated(&n.Policy) {
		grant := wire.HalfOf(n.Policy.Authority.Own).Grant
		out.Grant = &grant
	}
	return out
}

// AllRows reads the row of every agent's session, in the order of creation and
// then of ids. The store's own session is no agent.
func AllRows(ctx context.Context, s *eventlog.Store) ([]eventlog.Row, error) {
	var rows []eventlog.Row
	err := s.EachRow(ctx, func(r *eventlog.Row) (bool, error) {
		if r.Session != eventlog.StoreSession {
			rows = append(rows, *r)
		}
		return true, nil
	})
	slices.SortFunc(rows, func(x, y eventlog.Row) int { return Order(&x, &y) })
	return rows, err
}
