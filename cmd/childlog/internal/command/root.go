package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/manifest"
	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
)

func newRootCmd(a *app) *cobra.Command {
	var (
		sandbox                             sandboxFlags
		defaults                            defaultFlags
		approvals, label, external, cwd, id string
		profile                             string
		maxDepth                            int
		claimed                             bool
	)
	cmd := &cobra.Command{
		Use:     "root",
		GroupID: groupSessions,
		Short:   "Begin a session that nobody delegated",
		Long: long(`
Begin a root session: one that a person or a service started. It is where a
tree of delegations grows from.

--sandbox and --approvals set an explicit policy. Without them the deployment
default counts, which is recorded now and never read again: --default-sandbox
and --default-approvals, else CHILDLOG_DEFAULT_SANDBOX and
CHILDLOG_DEFAULT_APPROVALS, else read-only and ask.

--cwd is the workspace: the directory that workspace-write may write below. It
is recorded absolute and with links resolved. Without it no directory is
recorded, and workspace-write permits only what --writable-root adds.

--profile states, as a JSON document, what the root may do (own) and hand on
(delegable) beside its sandbox, and for whom it works. A coordinator that writes
nothing itself, and whose children may write below docs and src:

  {"principal": {"kind": "person", "ref": "u17"},
   "own": {"shell": "none", "write_scope": []},
   "delegable": {"write_scope": ["docs", "src"]}}

What is left out is open (` + "`childlog schema profile`" + `). Without a profile a
root holds everything beside the sandbox.

--claimed makes a stub: it stands for a parent that lives in another system.
Its policy is a claim that nobody checked, and is marked so.`),
		Example: `  childlog root --sandbox workspace-write --cwd . --label "release notes"
  childlog root --default-sandbox workspace-write --approvals never --cwd /srv
  childlog root --profile coordinator.json --cwd /srv
  childlog root --claimed --external codex:thread-17`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := materialize.RootRequest{Label: label, MaxDepth: maxDepth, Claimed: claimed}
			var err error
			if r.ID, err = parseID("--id", id); err != nil {
				return err
			}
			if cmd.Flags().Changed("max-depth") && (maxDepth < 1 || maxDepth > materialize.HardMaxDepth) {
				return usagef("--max-depth: got %d, want 1 to %d", maxDepth, materialize.HardMaxDepth)
			}
			if r.Sandbox, err = sandbox.setting(); err != nil {
				return err
			}
			if approvals != "" {
				if r.Approvals, err = policy.ParseApproval(approvals); err != nil {
					return usagef("--approvals: %v", err)
				}
			}
			if r.Default, r.Ask, err = defaults.read(); err != nil {
				return err
			}
			if external != "" {
				var ok bool
				if r.System, r.External, ok = strings.Cut(external, ":"); !ok || r.System == "" || r.External == "" {
					return usagef("--external: got %q, want SYSTEM:ID", external)
				}
			}
			if r.Workspace, err = a.directory(cwd); err != nil {
				return err
			}
			if r.Profile, err = a.profile(cmd.Context(), profile); err != nil {
				return err
			}
			return a.write(cmd.Context(), func(s *eventlog.Store) error {
				v, made, err := ops.Root(cmd.Context(), s, r)
				if err != nil {
					return err
				}
				return a.show(v, func() {
					a.out.Println(term.Good("root "), term.Bold(v.Session), term.Plain("  ", quoted(v.Label)))
					a.policyRows(&made.Policy, term.Row{})
				})
			})
		},
	}
	sandbox.add(a, cmd, "an explicit sandbox")
	f := cmd.Flags()
	f.StringVar(&approvals, "approvals", "", "explicit approvals: ask, or never (never ask, always reject)")
	defaults.add(a, cmd)
	f.StringVar(&label, "label", "", "a name for people")
	f.StringVar(&external, "external", "", "another system's id of this session, as SYSTEM:ID; both name it from then on")
	f.StringVar(&cwd, "cwd", "", "the workspace directory")
	f.StringVar(&profile, "profile", "", "what it may do and hand on, a JSON document: a file, or - for stdin")
	f.IntVar(&maxDepth, "max-depth", materialize.DefaultMaxDepth, "how many delegations may follow one below the other, at most 8")
	f.BoolVar(&claimed, "claimed", false, "a stub for a parent outside the store; its policy is a claim")
	f.StringVar(&id, "id", "", "the new session's id, a UUID (default: a random one)")
	complete(cmd, "approvals", string(policy.Never), string(policy.Ask))
	return cmd
}

// profile reads what a root may do; nil if nothing was named.
func (a *app) profile(ctx context.Context, name string) (*materialize.Profile, error) {
	if name == "" {
		return nil, nil
	}
	doc, err := a.document(ctx, name, manifest.MaxDocument)
	if err != nil {
		return nil, err
	}
	p, err := manifest.ParseProfile(doc)
	if err != nil {
		return nil, withHint(fmt.Errorf("--profile: %w", err), "nothing was written; `childlog schema profile` describes the document")
	}
	return p, nil
}
