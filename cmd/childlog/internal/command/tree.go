package command

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/eventlog"
	"childlog/policy"
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
			var nodes []ops.Node
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
				var all []uuid.UUID
				var err error
				nodes, all, err = ops.Tree(cmd.Context(), s, top)
				short = shortIDs(all)
				return err
			})
			if err != nil {
				return err
			}
			if !a.json {
				a.tree(nodes, boot, short)
				return a.out.Err()
			}
			for i := range nodes {
				if err := a.emit(nodes[i].Wire(boot)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) tree(nodes []ops.Node, boot uuid.UUID, short ids) {
	if len(nodes) == 0 {
		a.out.Println(term.Dim("no sessions"))
		return
	}
	depths := make([]int, len(nodes))
	for i := range nodes {
		depths[i] = nodes[i].Level
	}
	branches := a.out.Branches(depths)
	rows := make([][]term.Text, len(nodes))
	orphans, never := 0, false
	for i := range nodes {
		n := &nodes[i]
		name := term.Cat(branches[i], term.Bold(n.Row.Label))
		if n.Row.Label == "" {
			name = term.Cat(branches[i], term.Dim("(", n.Row.Kind, ")"))
		}
		if n.Orphan {
			orphans++
			name = term.Cat(name, term.Warn(" *"))
		}
		sandbox, approvals, grant := term.Bad("unreadable"), term.Bad("nothing is granted"), term.Text(nil)
		status := statusOf(&n.Row, boot)
		if n.Purged != nil {
			status = term.Warn(ops.StatusPurged)
			sandbox, approvals = term.Dim(fmt.Sprintf("seq %d of the store's log", n.Purged.Seq)), term.Dim(n.Purged.Code)
		} else if n.Err == nil {
			grant = grantShort(&n.Policy)
			sandbox, approvals = sandboxText(n.Policy.Sandbox.Value), term.Plain(string(n.Policy.Approvals))
			never = never || n.Policy.Approvals == policy.Never
			if !n.Policy.Enforced() {
				sandbox = term.Cat(sandbox, term.Dim(", not enforced"))
			}
			if n.Policy.Claimed() {
				sandbox = term.Cat(sandbox, term.Dim(", claimed"))
			}
		}
		rows[i] = []term.Text{name, term.Plain(short.of(n.Row.Session)), status, sandbox, approvals, grant,
			term.Plain(fmt.Sprint(n.Row.Depth)), term.Plain(grouped(n.Row.Head))}
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
