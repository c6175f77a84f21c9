package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/internal/wire"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

func newDelegateCmd(a *app) *cobra.Command {
	var (
		defaults                  defaultFlags
		r                         materialize.Request
		parent, id, cwd, provider string
		outOfProcess              bool
		epoch                     uint64
	)
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

With --key a retry is safe: the same parent, key and request give the same child
again; another request under the key is a conflict (exit 4).

--fork SEQ lets the child begin with a copy of the parent's conversation up to
that seq. Copies never bear policy.`),
		Example: `  childlog delegate --parent 0a1b2c3d --label "collect changes"
  childlog delegate --parent 0a1b2c3d --key "run 4, call 7" --json
  childlog delegate --parent 0a1b2c3d --fork 42 --prompt "go on from here"`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			var err error
			if r.ID, err = parseID("--id", id); err != nil {
				return err
			}
			if err := oneOf("--mode", r.Mode, eventlog.ModeOneShot, eventlog.ModeContinuable); err != nil {
				return err
			}
			if r.Workspace, err = directory(cwd); err != nil {
				return err
			}
			if outOfProcess && provider == "" {
				return usagef("--out-of-process needs the name of the --provider")
			}
			if provider != "" {
				r.Provider = eventlog.Provider{Name: provider, InProcess: !outOfProcess}
			}
			return a.write(ctx, func(s *eventlog.Store) error {
				pid, err := resolve(ctx, s, parent)
				if err != nil {
					return err
				}
				present, err := defaults.present(ctx, s, pid)
				if err != nil {
					return err
				}
				made, err := materialize.Delegate(ctx, s, pid, snapshot.Options{Epoch: epoch, Present: present}, r)
				if err != nil {
					return err
				}
				v, err := created(s, made)
				if err != nil {
					return err
				}
				v.Captured, err = captured(ctx, s, &made.Policy)
				if err != nil {
					return err
				}
				return a.show(v, func() { a.delegated(&v, &made) })
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&parent, "parent", "", "the session that delegates (required)")
	f.StringVar(&r.Label, "label", "", "a name for people")
	f.StringVar(&r.Key, "key", "", "idempotency key, unique for the parent: a retry finds its child")
	f.StringVar(&r.Mode, "mode", eventlog.ModeContinuable, "one-shot (settling closes it) or continuable (takes follow-ups)")
	f.Uint64Var(&r.Fork, "fork", 0, "begin with the parent's conversation up to this seq of its log")
	f.StringVar(&id, "id", "", "the child's id, a UUID (default: a random one)")
	f.StringVar(&cwd, "cwd", "", "the child's working directory (default: the parent's); it never moves a captured root")
	f.StringVar(&r.ToolCall, "tool-call", "", "the parent's tool call that delegates")
	f.StringVar(&r.Prompt, "prompt", "", "the task, kept with the receipt")
	f.Uint64Var(&epoch, "epoch", 0, "the parent's activation; refused once another superseded it")
	f.StringVar(&provider, "provider", "", "what runs the child (default: this process)")
	f.BoolVar(&outOfProcess, "out-of-process", false, "the provider keeps its own policy: recorded, not enforced; one-shot only")
	defaults.add(cmd)
	complete(cmd, "mode", eventlog.ModeOneShot, eventlog.ModeContinuable)
	_ = cmd.MarkFlagRequired("parent") // fails for a flag that does not exist
	return cmd
}

// captured tells what the delegation of a child took from the parent, as of
// the child's birth.
func captured(ctx context.Context, s *eventlog.Store, e *replay.Effective) (*wire.Captured, error) {
	born, err := replay.Policy(ctx, s, e.Session, e.BornSeq)
	if err != nil {
		return nil, err
	}
	c := &wire.Captured{Parent: e.Parent.String(), Seq: e.ParentSeq}
	if born.Bound.Cause().Source == policy.SourceDelegation {
		v := wire.SandboxOf(born.Bound.Value)
		c.Sandbox = &v
	}
	return c, nil
}

func (a *app) delegated(v *wire.Created, made *materialize.Session) {
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
	a.out.Println()
	a.out.Println(term.Dim("for the model:"))
	a.out.Wrap(2, term.Plain(v.RuntimeContext))
}
