package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/policy"
	"childlog/policy/scopefs"
)

func newScopeCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "scope",
		GroupID: groupPolicy,
		Short:   "Try write scopes: what is inside, what overlaps",
		Long: long(`
Try write scopes without a session.

  scope check   is a path of a call inside a scope, and if not, why
  scope merge   which children write to the same place

A scope is a list of places below a workspace. It admits each of them and what
lies below, compared exactly: src does not admit srcx. Nothing is written, and
no store is needed.`),
		Example: `  childlog scope check --scope src --scope docs/api.md src/a docs/b
  childlog scope merge results.json`,
		RunE: func(*cobra.Command, []string) error { return usagef("scope: want check or merge") },
	}
	cmd.AddCommand(a.runs(newScopeCheckCmd(a)), a.runs(newScopeMergeCmd(a)))
	return cmd
}

// scopeCheck is one run of scope check.
type scopeCheck struct {
	entries, denied  []string
	workspace, style string
	fs               bool

	scope policy.Scope
	deny  policy.DenyPaths
	store string // nothing in it is ever inside
}

func newScopeCheckCmd(a *app) *cobra.Command {
	var c scopeCheck
	cmd := &cobra.Command{
		Use:   "check TARGET...",
		Short: "Say whether paths of calls are inside a scope",
		Long: long(`
Say for each target, a path as a call names it, whether it is inside the scope,
and if not, what would have been accepted. Exit code 0 if all are, 3 if not.

Entries of a scope declare places and are tidied: "./a/" and "a//" are a.
Targets name real files and are never rewritten: what would have to be trimmed
or resolved to be compared is outside. Without --scope any place of the
workspace is inside but .git, .codex, .claude and .childlog, which need an entry
of their own.

By default names are compared and no file is looked at. With --fs the target is
looked up below the workspace: links are followed, and devices, hard links and
the store's own directory are outside. The answer holds for the moment.`),
		Example: `  childlog scope check --scope src src/a srcx/a
  childlog scope check --scope out --fs --workspace /srv/app out/next
  childlog scope check --scope src --deny src/secret --json src/secret/key`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("TARGET is missing")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c.store = a.store
			if err := c.prepare(a); err != nil {
				return err
			}
			return a.scopeChecked(&c, args)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&c.entries, "scope", nil, "a place of the scope, relative to the workspace (may be repeated)")
	f.StringArrayVar(&c.denied, "deny", nil, "a place that is denied whatever the scope says (may be repeated)")
	f.StringVar(&c.workspace, "workspace", "", "the workspace (default: with --fs the current directory; else absolute targets are outside)")
	f.StringVar(&c.style, "style", "", "how paths are written: posix or windows (default: as the workspace, else posix)")
	f.BoolVar(&c.fs, "fs", false, "look at the file system")
	complete(cmd, "style", policy.PathStylePosix, policy.PathStyleWindows)
	return cmd
}

// prepare reads the flags.
func (c *scopeCheck) prepare(a *app) (err error) {
	if err := oneOf("--style", c.style, policy.PathStylePosix, policy.PathStyleWindows); err != nil {
		return err
	}
	c.scope = policy.Unscoped()
	if len(c.entries) > 0 {
		if err := policy.CheckEntries(c.entries); err != nil {
			return usagef("--scope: %w", err)
		}
		if c.scope, err = policy.ParseScope(c.entries); err != nil {
			return usagef("--scope: %w", err)
		}
	}
	if c.deny, err = policy.ParseDenyPaths(c.denied); err != nil {
		return usagef("--deny: %w", err)
	}
	if c.fs {
		if c.style == policy.PathStyleWindows {
			return usagef("--fs looks at this file system, whose paths are posix; leave --style out")
		}
		if c.workspace == "" {
			c.workspace = "."
		}
		if c.workspace, err = a.files.Abs(c.workspace); err == nil {
			c.store, err = a.files.Abs(c.store)
		}
		return err
	}
	_, err = policy.NewWorkspace(c.workspace, c.style)
	if err != nil {
		return usagef("--workspace: %w", err)
	}
	return nil
}

// check answers for one target. An error is about the question, not the target.
func (c *scopeCheck) check(target string) (wire.Target, error) {
	t := wire.TargetOf(target, c.scope)
	rel, want, err := c.place(target)
	if outside := (*policy.TargetError)(nil); errors.As(err, &outside) {
		want, err = outside.Want, nil
		if outside.Err != nil {
			want += ": " + outside.Err.Error()
		}
		rel = outside.Resolved
	}
	switch {
	case err != nil:
		return t, err
	case want != "":
		t.Refuse(rel, want)
		return t, nil
	}
	for _, place := range []string{rel, c.named(target)} {
		if entry, denied := c.deny.Covers(place); denied {
			t.Refuse(rel, fmt.Sprintf("no path within %q, which is denied", entry))
			return t, nil
		}
	}
	t.Accept(rel)
	return t, nil
}

// place finds out where a target is, and what it would have to be.
func (c *scopeCheck) place(target string) (rel, want string, err error) {
	if c.fs {
		rel, err = scopefs.Check(c.workspace, c.scope, target, scopefs.Options{Protected: []string{c.store}})
		return rel, "", err
	}
	if rel, err = policy.Target(c.workspace, c.style, target); err != nil {
		return "", "", err
	}
	want = c.scope.Want(rel)
	if want == "" && !c.scope.Stated() && policy.Protected(rel) {
		want = "no .git, .codex, .claude or .childlog"
	}
	return rel, want, nil
}

// named is the place that an accepted target names, before any link.
func (c *scopeCheck) named(target string) string {
	rel, err := policy.Target(c.workspace, c.style, target)
	if err != nil {
		return "" // denied by any rule
	}
	return rel
}

func (a *app) scopeChecked(c *scopeCheck, targets []string) error {
	outside := 0
	for _, target := range targets {
		t, err := c.check(target)
		if err != nil {
			return err
		}
		if !t.Inside {
			outside++
		}
		if a.json {
			if err := a.emit(t); err != nil {
				return err
			}
			continue
		}
		a.scopeTarget(&t)
	}
	if err := a.out.Err(); err != nil || outside == 0 {
		return err
	}
	return fmt.Errorf("%w: %d of %s, the scope is %v", policy.ErrOutside, outside, plural(len(targets), "target"), c.scope)
}

func (a *app) scopeTarget(t *wire.Target) {
	line := term.Cat(term.Good("inside   "), term.Bold(t.Target))
	if !t.Inside {
		line = term.Cat(term.Bad("outside  "), term.Bold(t.Target))
	}
	if t.Resolved != nil && *t.Resolved != t.Target {
		line = term.Cat(line, term.Plain("  is ", *t.Resolved))
	}
	if t.Want != nil {
		line = term.Cat(line, term.Plain("  want ", *t.Want))
	}
	a.out.Println(line)
}
