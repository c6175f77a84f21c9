package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

func newTreeCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "tree [ID]",
		GroupID: groupSessions,
		Short:   "Show who delegated to whom, under which policy",
		Long: long(`
Show the sessions as trees of delegations, each with its status and its
effective sandbox, approvals and grant (role, files and shell; of a root without
a profile none is shown); with ID only that session and what lies below it. The
policies are read from the logs.

A child that was purged is shown in its place, with where it is recorded. An
imported session is marked evidence: it is never authority. A child whose
parent is not in this store stands as a tree of its own, with a note.`),
		Example: `  childlog tree
  childlog tree 9f8e7d6c
  childlog tree --json`,
		Args: between(0, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var nodes []node
			var short ids
			var boot uuid.UUID
			err := a.read(cmd.Context(), func(s *eventlog.Store) error {
				boot = s.Boot()
				var top uuid.UUID
				if len(args) == 1 {
					var err error
					if top, err = resolve(cmd.Context(), s, args[0]); err != nil {
						return err
					}
				}
				rows, err := allRows(cmd.Context(), s)
				if err != nil {
					return err
				}
				kept, err := purgedBelow(cmd.Context(), s, rows)
				if err != nil {
					return err
				}
				for i := range kept {
					rows = append(rows, kept[i].row)
				}
				short = shortIDs(sessionsOf(rows))
				nodes = forest(rows, top)
				markPurged(nodes, kept)
				return readPolicies(cmd.Context(), s, nodes)
			})
			if err != nil {
				return err
			}
			if !a.json {
				a.tree(nodes, boot, short)
				return a.out.Err()
			}
			for i := range nodes {
				if err := a.emit(nodes[i].wire(boot)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// statusPurged is that of a session that was removed on record.
const statusPurged = "purged"

// node is a session in a forest, in preorder.
type node struct {
	row    eventlog.Row
	level  int
	orphan bool
	policy replay.Effective
	err    error            // why there is no policy
	purged *eventlog.Purged // it is no more
}

// purgedBelow are the purged sessions whose parent is still there.
func purgedBelow(ctx context.Context, s *eventlog.Store, rows []eventlog.Row) (out []node, err error) {
	alive := make(map[uuid.UUID]bool, len(rows))
	for i := range rows {
		alive[rows[i].Session] = true
	}
	err = s.EachPurged(ctx, func(p *eventlog.Purged) error {
		if alive[p.Parent] {
			out = append(out, node{row: eventlog.Row{Session: p.Session, Kind: p.Kind, Parent: p.Parent, Root: p.Root, Evidence: p.Evidence, Head: p.Head,
				FirstTime: p.Created.UnixNano(), LastTime: p.Last.UnixNano()}, purged: p})
		}
		return nil
	})
	return out, err
}

func markPurged(nodes, kept []node) {
	by := map[uuid.UUID]*eventlog.Purged{}
	for i := range kept {
		by[kept[i].row.Session] = kept[i].purged
	}
	for i := range nodes {
		nodes[i].purged = by[nodes[i].row.Session]
	}
}

// forest orders rows as trees, children in the order of creation. With top it
// is the tree of that session only. A parent that is missing, and links that
// run in a circle, which only a damaged or imported log can state, make a
// session a top of its own.
func forest(rows []eventlog.Row, top uuid.UUID) []node {
	at := map[uuid.UUID]int{}
	below := map[uuid.UUID][]int{}
	for i := range rows {
		at[rows[i].Session] = i
		below[rows[i].Parent] = append(below[rows[i].Parent], i)
	}
	var out []node
	seen := map[uuid.UUID]bool{}
	var add func(i, level int, orphan bool)
	add = func(i, level int, orphan bool) {
		r := &rows[i]
		if seen[r.Session] {
			return
		}
		seen[r.Session] = true
		out = append(out, node{row: *r, level: level, orphan: orphan})
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

func readPolicies(ctx context.Context, s *eventlog.Store, nodes []node) error {
	for i := range nodes {
		n := &nodes[i]
		if n.purged != nil {
			continue
		}
		n.policy, n.err = replay.Policy(ctx, s, n.row.Session, 0)
		if errors.Is(n.err, context.Canceled) {
			return n.err
		}
	}
	return nil
}

func (n *node) wire(boot uuid.UUID) wire.Node {
	out := wire.Node{Session: wire.SessionOf(&n.row, boot), Level: n.level, Orphan: n.orphan}
	if n.purged != nil {
		kept := wire.PurgedOf(n.purged)
		out.Status, out.Purged = statusPurged, &kept
		return out
	}
	if n.err != nil {
		text := n.err.Error()
		out.Error = &text
		return out
	}
	sandbox, approvals := wire.SandboxOf(n.policy.Sandbox.Value.Canonical()), string(n.policy.Approvals)
	out.Sandbox, out.Approvals = &sandbox, &approvals
	if role := string(n.policy.Choices.Role); role != "" {
		out.Role = &role
	}
	if wire.Stated(&n.policy) {
		grant := wire.HalfOf(n.policy.Authority.Own).Grant
		out.Grant = &grant
	}
	return out
}

func (a *app) tree(nodes []node, boot uuid.UUID, short ids) {
	if len(nodes) == 0 {
		a.out.Println(term.Dim("no sessions"))
		return
	}
	depths := make([]int, len(nodes))
	for i := range nodes {
		depths[i] = nodes[i].level
	}
	branches := a.out.Branches(depths)
	rows := make([][]term.Text, len(nodes))
	orphans, never := 0, false
	for i := range nodes {
		n := &nodes[i]
		name := term.Cat(branches[i], term.Bold(n.row.Label))
		if n.row.Label == "" {
			name = term.Cat(branches[i], term.Dim("(", n.row.Kind, ")"))
		}
		if n.orphan {
			orphans++
			name = term.Cat(name, term.Warn(" *"))
		}
		sandbox, approvals, grant := term.Bad("unreadable"), term.Bad("nothing is granted"), term.Text(nil)
		status := statusOf(&n.row, boot)
		if n.purged != nil {
			status = term.Warn(statusPurged)
			sandbox, approvals = term.Dim(fmt.Sprintf("seq %d of the store's log", n.purged.Seq)), term.Dim(n.purged.Code)
		} else if n.err == nil {
			grant = grantShort(&n.policy)
			sandbox, approvals = sandboxText(n.policy.Sandbox.Value), term.Plain(string(n.policy.Approvals))
			never = never || n.policy.Approvals == policy.Never
			if !n.policy.Enforced() {
				sandbox = term.Cat(sandbox, term.Dim(", not enforced"))
			}
			if n.policy.Claimed() {
				sandbox = term.Cat(sandbox, term.Dim(", claimed"))
			}
		}
		rows[i] = []term.Text{name, term.Plain(short.of(n.row.Session)), status, sandbox, approvals, grant,
			term.Plain(fmt.Sprint(n.row.Depth)), term.Plain(grouped(n.row.Head))}
	}
	a.out.Table([]term.Column{{Title: "LABEL", Min: 12}, {Title: "SESSION"}, {Title: "STATUS"}, {Title: "SANDBOX", Min: 15},
		{Title: "APPROVALS"}, {Title: "GRANT", Min: 21}, {Title: "DEPTH", Right: true, Drop: 3}, {Title: "SEQ", Right: true, Drop: 2}}, rows)
	if never {
		a.neverLegend(string(policy.Never))
	}
	if orphans > 0 {
		a.out.Println(term.Warn("* "), term.Dim("its parent is not in this store"))
	}
}

// sandboxText is a sandbox in a table.
func sandboxText(v policy.Sandbox) term.Text {
	v = v.Canonical()
	t := modeText(v.Mode)
	if v.Network != (v.Mode == policy.DangerFullAccess) {
		t = term.Cat(t, term.Dim(", network "), onOff(v.Network))
	}
	return t
}
