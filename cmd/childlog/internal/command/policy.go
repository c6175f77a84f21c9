package command

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

func newPolicyCmd(a *app) *cobra.Command {
	var at uint64
	cmd := &cobra.Command{
		Use:     "policy ID",
		GroupID: groupPolicy,
		Short:   "Show what a session may do, and which event says so",
		Long: long(`
Show a session's effective policy, and for each field the event that set it.
It is computed from the session's own log alone: neither the environment, nor a
configuration, nor what the parent holds today goes in, so every process gets
the same answer. Nothing is written.

  effective = meet(bound, own last switch)

The bound is the widest the session may ever be again: what its delegation
captured, met with every narrowing since. --at shows the policy as of a seq.

The grant is what it may do beside the sandbox. Beside each field stand the rule
that gave it its value and the event that stated it:

  receipt           as its delegation granted it (the event delegation/granted)
  profile           as the root was set up (root --profile)
  narrowing         lowered later, for ever
  role_preset       its role is not meant for more
  parent_delegable  its parent had no more to hand on
  deny_...          follows from a tool that is denied

"hands on" is what its children can get at most. Roots follow the operator rules
that the store has at each decision; children those of their capture.
"fingerprint" is a hash over the whole grant, for comparing two sessions.

Approvals "never" means never ask, always reject. It does not mean that no
approval is needed.

If the log is damaged, or a newer version wrote something that may have
narrowed it, there is no answer and nothing may be granted (exit 6).`),
		Example: `  childlog policy 0a1b2c3d
  childlog policy 0a1b2c3d --at 7
  childlog policy 0a1b2c3d --json`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") && at == 0 {
				return usagef("--at: seqs begin at 1")
			}
			var e replay.Effective
			var label string
			err := a.read(cmd.Context(), func(s *eventlog.Store) error {
				id, err := resolve(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				if row, err := s.Row(id); err == nil {
					label = row.Label
				}
				if e, err = replay.Policy(cmd.Context(), s, id, at); id == eventlog.StoreSession {
					err = ownSession(err)
				}
				return err
			})
			if err != nil {
				return err
			}
			return a.show(wire.PolicyOf(&e), func() {
				a.out.Println(term.Bold(e.Session.String()), term.Plain("  ", quoted(label)))
				a.policyRows(&e, term.Row{})
			})
		},
	}
	cmd.Flags().Uint64Var(&at, "at", 0, "as of this seq (default: the head)")
	return cmd
}

// policyRows prints a policy for people; extra is a row to add, if it has a name.
func (a *app) policyRows(e *replay.Effective, extra term.Row) {
	rows := append(sandboxRows(e, extra), grantRows(e)...)
	for _, f := range e.Findings {
		rows = append(rows, term.Row{Name: "finding", Value: term.Cat(term.Warn(f.Code), term.Plain(fmt.Sprintf(" at seq %d: %s", f.Seq, f.Detail)))})
	}
	a.out.Rows(rows...)
}

// sandboxRows are what a session is and what its sandbox and approvals are.
func sandboxRows(e *replay.Effective, extra term.Row) []term.Row {
	v := e.Sandbox.Value.Canonical()
	rows := []term.Row{{Name: "kind", Value: kindText(e)}}
	if extra.Name != "" {
		rows = append(rows, extra)
	}
	rows = append(rows,
		term.Row{Name: "as of", Value: term.Plain(fmt.Sprintf("seq %d", e.Seq))},
		term.Row{Name: "sandbox", Value: modeText(v.Mode), Note: by(e.Sandbox.Mode, e.Session)},
	)
	if v.Mode == policy.WorkspaceWrite {
		rows = append(rows,
			term.Row{Name: "  writable", Value: rootsText(v.Roots), Note: by(e.Sandbox.Roots, e.Session)},
			term.Row{Name: "  temp", Value: tempText(v), Note: by(e.Sandbox.ExcludeSlashTmp, e.Session)},
		)
	}
	rows = append(rows,
		term.Row{Name: "  network", Value: onOff(v.Network), Note: by(e.Sandbox.Network, e.Session)},
		term.Row{Name: "approvals", Value: approvalsText(e.Approvals), Note: by(e.ApprovalBy, e.Session)},
	)
	if e.ApprovalRaw != e.Approvals && e.ApprovalRaw != "" {
		rows = append(rows, term.Row{Value: term.Warn("recorded as ", string(e.ApprovalRaw))})
	}
	if e.Bound.Value.Equal(policy.Top()) {
		rows = append(rows, term.Row{Name: "bound", Value: term.Plain("none: nothing has limited it yet")})
	} else {
		rows = append(rows, term.Row{Name: "bound", Value: term.Plain(e.Bound.Value.String()), Note: by(e.Bound.Cause(), e.Session)})
	}
	def := term.Plain(e.Defaults.Sandbox.String(), ", approvals ", string(e.Defaults.Approvals))
	if e.Defaults.Approvals.Effective() == policy.Never {
		def = term.Cat(def, term.Plain(" (", shortMeaning(policy.Never), ")"))
	}
	return append(rows, term.Row{Name: "default", Value: def, Note: term.Dim("recorded at ", where(e.DefaultsBy.Origin, e.Session))})
}

// kindText says what a session is, marks that lower its authority included.
func kindText(e *replay.Effective) term.Text {
	var t term.Text
	switch e.Kind {
	case eventlog.KindChild:
		t = term.Plain(fmt.Sprintf("%s child at depth %d of %d", e.Mode, e.Depth, e.MaxDepth))
		if e.Parent != uuid.Nil {
			t = term.Cat(t, term.Plain(", of ", e.Parent.String()))
		}
	case eventlog.KindStub:
		t = term.Cat(term.Plain("stub of a session outside the store: "), term.Warn("its policy is a claim"))
	default:
		t = term.Plain(fmt.Sprintf("root, children down to depth %d", e.MaxDepth))
	}
	if e.Evidence {
		t = term.Cat(term.Warn("evidence"), term.Plain(" (imported, never authority), "), t)
	}
	if !e.Enforced() {
		t = term.Cat(t, term.Plain(", run by ", e.Provider.Name, ": "), term.Warn("its policy is recorded, not enforced"))
	}
	return t
}

func rootsText(r policy.Roots) term.Text {
	list := r.List()
	if list == nil {
		return term.Warn("no directory is recorded")
	}
	if len(list) == 0 {
		return term.Plain("nothing")
	}
	t := term.Plain(list[0])
	for _, dir := range list[1:] {
		t = term.Cat(t, term.Plain(", ", dir))
	}
	return t
}

func tempText(v policy.Sandbox) term.Text {
	switch {
	case v.ExcludeTmpdirEnvVar && v.ExcludeSlashTmp:
		return term.Plain("not writable")
	case v.ExcludeTmpdirEnvVar:
		return term.Plain("/tmp writable")
	case v.ExcludeSlashTmp:
		return term.Plain("$TMPDIR writable")
	}
	return term.Plain("$TMPDIR and /tmp writable")
}

func onOff(on bool) term.Text {
	if on {
		return term.Warn("on")
	}
	return term.Good("off")
}

// shortMeaning goes beside an approval in a table.
func shortMeaning(a policy.Approval) string {
	if a.Effective() == policy.Never {
		return "never ask, always reject"
	}
	return "ask, reject without a decision"
}
