package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/guard"
	"childlog/cmd/childlog/internal/install"
	"childlog/cmd/childlog/internal/redact"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
)

func newInstallCmd(a *app) *cobra.Command {
	var dryRun, project, observe bool
	var profile, policy string
	cmd := &cobra.Command{
		Use:     "install HARNESS",
		GroupID: groupPolicy,
		Short:   "Put the guard into a harness's settings",
		Long: long(`
Make claude-code or codex ask childlog before every tool call: put hooks into
its settings that run ` + "`childlog guard`" + `. The change is shown as a diff first;
--dry-run shows it and ends. Secrets in the lines around it are masked.

  claude-code  ~/.claude/settings.json, or in $CLAUDE_CONFIG_DIR
  codex        ~/.codex/hooks.json, or in $CODEX_HOME

--project takes the settings of the project in this directory instead: for
Claude Code .claude/settings.local.json, which is yours and not shared, since
the hooks name paths of this machine; for Codex .codex/hooks.json, which Codex
reads in a project that you trust.

What is in the file stays byte for byte, and goes on to work as it did. The
hooks name this executable, the store and the profile, so that the environment
of a session can't change them. Installed again, the hooks are brought up to
date where they stand; a flag that is left out keeps what they say. The store is
created if there is none.

A backup is kept beside the file and never overwritten: ` + "`childlog uninstall`" + `
puts the original bytes back. What is not understood is refused with its place,
and so are settings under which the hooks would not run.`),
		Example: `  childlog install claude-code --dry-run
  childlog install claude-code
  childlog install codex --profile read-only
  childlog install claude-code --project --observe`,
		Args:      between(1, "HARNESS"),
		ValidArgs: install.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("--profile", profile, guard.ProfileReadOnly, guard.ProfileEditHere, guard.ProfileTrusted); err != nil {
				return err
			}
			r := install.Request{Default: guard.DefaultProfile, Project: project}
			if cmd.Flags().Changed("profile") && policy != "" {
				return usagef("what may a session do? give --profile or --policy, not both")
			}
			if cmd.Flags().Changed("profile") {
				r.Profile = &profile
			}
			if policy != "" {
				file, err := a.files.Abs(policy)
				if err == nil {
					_, err = a.files.Stat(file)
				}
				if err != nil {
					return usagef("--policy: %v", err)
				}
				r.Policy = &file
			}
			if cmd.Flags().Changed("observe") {
				r.Observe = &observe
			}
			var err error
			if r.Harness, err = install.ByName(args[0]); err != nil {
				return asUsage(err)
			}
			if r.Env, err = a.surroundings(); err != nil {
				return err
			}
			if r.Command, err = a.hookCommand(); err != nil {
				return err
			}
			p, err := install.Install(r)
			if err != nil {
				return err
			}
			v, err := a.installation(p, dryRun)
			if err != nil {
				return err
			}
			created := !access.Exists(a.place())
			v.Command, v.Observe, v.Store, v.Events = new(p.Line()), &p.Command.Observe, &p.Command.Store, r.Harness.Events()
			v.Profile, v.Policy = optionalText(p.Command.Profile), optionalText(p.Command.Policy)
			if !a.json {
				a.showDiff(v.Diff)
			}
			var key string
			if !dryRun {
				if key, err = a.install(cmd.Context(), p, created); err != nil {
					return err
				}
				v.StoreCreated = created
				v.Backup = optionalText(p.Backup)
			}
			return a.show(v, func() { a.showInstalled(p, v, created, key) })
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would change, and change nothing")
	cmd.Flags().BoolVar(&project, "project", false, "take the settings of the project in this directory")
	cmd.Flags().StringVar(&profile, "profile", "", "what a session may do: read-only, edit-here or trusted (default edit-here)")
	cmd.Flags().StringVar(&policy, "policy", "", "a document that says what a session may do, see guard --help")
	cmd.Flags().BoolVar(&observe, "observe", false, "record everything and never block")
	complete(cmd, "profile", guard.ProfileReadOnly, guard.ProfileEditHere, guard.ProfileTrusted)
	return cmd
}

// surroundings are what settings are looked for in.
func (a *app) surroundings() (install.Env, error) {
	dir, err := a.files.Abs(".")
	return install.Env{Getenv: a.getenv, Dir: dir, System: "/"}, err
}

// hookCommand is what a hook is to run: this executable on this store.
func (a *app) hookCommand() (c install.Command, err error) {
	if c.Exe, err = install.Self(); err != nil {
		return c, err
	}
	if c.Store, err = a.files.Abs(a.store); err != nil || a.keyFile == "" {
		return c, err
	}
	c.KeyFile, err = a.files.Abs(a.keyFile)
	return c, err
}

// install makes the store, without which every hook blocks, and then the change.
// It returns the public key of a store that it made.
func (a *app) install(ctx context.Context, p *install.Plan, create bool) (key string, err error) {
	if create {
		id, err := access.Init(ctx, a.place())
		if err != nil {
			return "", withHint(err, "nothing was changed in "+p.Path+"; a store begins in a directory that is new or empty: name one with --store")
		}
		key = id.Key
	}
	return key, p.Apply()
}

// installation is what both commands tell of a plan.
func (a *app) installation(p *install.Plan, dryRun bool) (*wire.Installation, error) {
	v := &wire.Installation{Harness: p.Harness.Name, Path: p.Path, Link: optionalText(p.Link), Action: string(p.Action), DryRun: dryRun, Events: []string{},
		Backup: optionalText(p.Backup), Warnings: append([]string{}, p.Warnings...)}
	mask, err := redact.New(redact.Options{})
	if err != nil {
		return nil, err
	}
	v.Diff = mask.String(p.Diff(), redact.Counts{})
	return v, nil
}

// optionalText is null where there is none.
func optionalText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// showDiff prints a unified diff.
func (a *app) showDiff(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "diff "):
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			a.out.Println(term.Bold(line))
		case strings.HasPrefix(line, "@@"):
			a.out.Println(term.Accent(line))
		case strings.HasPrefix(line, "+"):
			a.out.Println(term.Good(line))
		case strings.HasPrefix(line, "-"):
			a.out.Println(term.Bad(line))
		default:
			a.out.Println(term.Plain(line))
		}
	}
	if text != "" {
		a.out.Println()
	}
}

func (a *app) warnings(list []string) {
	for _, w := range list {
		a.msg.Println(term.Warn("childlog: warning: "), term.Plain(w))
	}
}

func (a *app) showInstalled(p *install.Plan, v *wire.Installation, created bool, key string) {
	a.warnings(v.Warnings)
	did, made := v.Action, "created"
	if v.DryRun {
		did, made = map[install.Action]string{install.Installed: "would install", install.Updated: "would update"}[p.Action], "would be created"
	}
	if p.Changes() {
		a.out.Println(term.Good(did), term.Plain(" the guard of "+p.Harness.Title+" in "), term.Bold(p.Path))
	} else {
		a.out.Println(term.Good("nothing to do: "), term.Plain("the guard of "+p.Harness.Title+" is in "), term.Bold(p.Path), term.Plain(" already"))
	}
	rows := []term.Row{{Name: "hooks", Value: term.Plain(strings.Join(v.Events, ", "))}, {Name: "profile", Value: profileText(p)}}
	if p.Link != "" {
		rows = append(rows, term.Row{Name: "link to", Value: term.Plain(p.Link)})
	}
	if p.Backup != "" {
		rows = append(rows, term.Row{Name: "backup", Value: term.Plain(p.Backup)})
	}
	store := term.Plain(*v.Store)
	if created {
		store = term.Cat(store, term.Good(", "+made))
	}
	rows = append(rows, term.Row{Name: "store", Value: store})
	if key != "" {
		rows = append(rows, term.Row{Name: "key", Value: term.Plain(key)})
	}
	a.out.Rows(rows...)
	if key != "" {
		a.out.Wrap(0, term.Dim(keepKey))
	}
	switch {
	case v.DryRun:
		a.out.Println(term.Dim("nothing was changed"))
		return
	case !p.Changes():
		return
	case p.Harness == install.Codex:
		a.out.Println(term.Warn("Codex runs a hook only after you trusted it: "), term.Plain("open /hooks in Codex and look at each"))
	}
	a.out.Println(term.Dim("next: "), term.Plain("start a new session of "+p.Harness.Title+"; `childlog doctor` says whether all is well"))
}

func profileText(p *install.Plan) term.Text {
	what := term.Plain(p.Command.Profile)
	if p.Command.Policy != "" {
		what = term.Plain("as ", p.Command.Policy, " says")
	}
	if p.Command.Observe {
		return term.Cat(what, term.Warn(", observe: everything is recorded and nothing blocked"))
	}
	return what
}
