package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/snapshot"
)

func newDelegateCmd(a *app) *cobra.Command {
	var flags childFlags
	var from delegator
	cmd := &cobra.Command{
		Use:     "delegate --parent ID",
		GroupID: groupSessions,
		Short:   "Capture a parent's policy and make a child from it",
		Long: long(`
Delegate: capture what the parent may do now, and make a child whose log begins
with that snapshot. Both happen in one commit: the child is there as a whole, or
not at all.

The child gets the parent's sandbox override met with all its narrowings; if the
parent has neither, the deployment default recorded at its creation counts, met
with the one in force (--default-sandbox, CHILDLOG_DEFAULT_SANDBOX). Approvals
are never inherited: every child is pinned to never, which means never ask,
always reject. What the parent switches later does not reach the child.

What the child may do beside its sandbox is at most what the parent hands on.
--request states less, as a JSON document; every key may be left out:

  {"label": "write the notes", "role": "implement", "shell": "read_only",
   "write_scope": ["docs"], "tools": ["read_file", "write_file"],
   "denied_tools": ["fetch_url"], "max_steps": 40}

A missing list of tools inherits the parent's, [] is no tool at all. "delegable"
states apart what the child may hand on. ` + "`childlog schema request`" + ` describes
all keys. What a flag says must not stand in the document too.

A wish beyond the parent is cut, and the cut is shown with its rule; where a
smaller child would be of no use, the delegation is refused (exit 3).

With --key a retry is safe: the same parent, key and request give the same child
again; another request under the key is a conflict (exit 4).

--fork SEQ lets the child begin with a copy of the parent's conversation up to
that seq. Copies never bear policy.`),
		Example: `  childlog delegate --parent 0a1b2c3d --label "collect changes"
  childlog delegate --parent 0a1b2c3d --key "run 4, call 7" --json
  childlog delegate --parent 0a1b2c3d --role implement --write-scope docs
  childlog delegate --parent 0a1b2c3d --request worker.json
  childlog delegate --parent 0a1b2c3d --fork 42 --prompt "go on from here"`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			r, err := a.childRequest(cmd, &flags)
			if err != nil {
				return err
			}
			return a.write(ctx, func(s *eventlog.Store) error {
				return a.delegate(ctx, s, &from, &flags, r)
			})
		},
	}
	flags.add(cmd)
	from.add(a, cmd)
	return cmd
}

// delegator is who makes a child, and under which default.
type delegator struct {
	parent   string
	epoch    uint64
	defaults defaultFlags
}

func (d *delegator) add(a *app, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&d.parent, "parent", "", "the session that delegates (required)")
	f.Uint64Var(&d.epoch, "epoch", 0, "the parent's activation; refused once another superseded it")
	d.defaults.add(a, cmd)
	_ = cmd.MarkFlagRequired("parent") // fails for a flag that does not exist
}

// delegate makes a child and tells what it got.
func (a *app) delegate(ctx context.Context, s *eventlog.Store, from *delegator, flags *childFlags, r materialize.Request) error {
	pid, err := resolve(ctx, s, from.parent)
	if err != nil {
		return err
	}
	present, err := from.defaults.present(ctx, s, pid)
	if err != nil {
		return err
	}
	if r.Inspection, err = ops.Inspect(ctx, s, pid, &flags.doc); err != nil {
		return err
	}
	v, made, err := ops.Delegate(ctx, s, pid, snapshot.Options{Epoch: from.epoch, Present: present}, r)
	if pid == eventlog.StoreSession {
		err = ownSession(err)
	}
	if err != nil {
		return err
	}
	return a.show(v, func() { a.delegated(&v, &made) })
}

func (a *app) delegated(v *wire.Delegated, made *materialize.Session) {
	verb := "child "
	if v.Existing {
		verb = "child exists under this key, nothing was written: "
	}
	a.out.Println(term.Good(verb), term.Bold(v.Session), term.Plain("  ", quoted(v.Label)))
	what := term.Cat(term.Plain("the sandbox that "), term.Bold(*v.Parent), term.Plain(fmt.Sprintf(" held at seq %d", v.Captured.Seq)))
	if v.Captured.Sandbox == nil {
		what = term.Plain(fmt.Sprintf("no override: the parent had none at seq %d, so the default recorded at creation counts", v.Captured.Seq))
	}
	a.policyRows(&made.Policy, term.Row{Name: "captured", Value: what})
	g := made.Policy.Granted
	a.out.Println()
	if len(g.Cuts) == 0 {
		a.out.Println(term.Dim("cut: "), term.Plain("nothing, the child has what was asked for"))
	} else {
		a.out.Println(term.Dim("cut, from what was asked for:"))
		a.cutTable(g.Cuts, "ASKED", "GRANTED")
	}
	for _, x := range g.Relied {
		a.out.Println(term.Dim("relied on the explicit grant "), explicitText(x), term.Dim(", issued at ", where(x.Issuer, made.ID)))
	}
	a.out.Println()
	a.out.Println(term.Dim("fingerprint of the grant:"))
	a.out.Fold(2, term.Plain(v.Fingerprint.Line))
	a.out.Println()
	a.out.Println(term.Dim("for the model:"))
	a.out.Fold(2, term.Plain(v.RuntimeContext))
}
