package command

import (
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/install"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
)

func newUninstallCmd(a *app) *cobra.Command {
	var dryRun, project bool
	cmd := &cobra.Command{
		Use:     "uninstall HARNESS",
		GroupID: groupPolicy,
		Short:   "Take the guard out of a harness's settings",
		Long: long(`
Undo ` + "`childlog install`" + ` for claude-code or codex. While the settings are as
install left them, their original bytes come back; a file and directories that
were not there before are removed. If the file was edited since, only the hooks
of childlog go, comments and all else stay, and the backup of the original
stays too; the answer says which it was.

The store and its logs are not touched.`),
		Example: `  childlog uninstall claude-code --dry-run
  childlog uninstall codex
  childlog uninstall claude-code --project`,
		Args:      between(1, "HARNESS"),
		ValidArgs: install.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := install.ByName(args[0])
			if err != nil {
				return asUsage(err)
			}
			env, err := a.surroundings()
			if err != nil {
				return err
			}
			exe, err := install.Self()
			if err != nil {
				return err
			}
			p, err := install.Uninstall(h, env, project, exe)
			if err != nil {
				return err
			}
			v, err := a.installation(p, dryRun)
			if err != nil {
				return err
			}
			if !a.json {
				a.showDiff(v.Diff)
			}
			if !dryRun {
				if err := p.Apply(); err != nil {
					return err
				}
				v.Backup = optionalText(p.Backup)
			}
			return a.show(v, func() { a.showUninstalled(p, v) })
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would change, and change nothing")
	cmd.Flags().BoolVar(&project, "project", false, "take the settings of the project in this directory")
	return cmd
}

func (a *app) showUninstalled(p *install.Plan, v *wire.Installation) {
	did := map[install.Action][2]string{ // done, and what would be
		install.Absent:   {"nothing to do: no hook of childlog is in ", "nothing to do: no hook of childlog is in "},
		install.Restored: {"restored the original bytes of ", "would restore the original bytes of "},
		install.Deleted:  {"removed what install made: ", "would remove what install made: "},
		install.Removed:  {"took the hooks of childlog out of ", "would take the hooks of childlog out of "},
	}[p.Action]
	if v.DryRun {
		did[0] = did[1]
	}
	a.out.Println(term.Good(did[0]), term.Bold(p.Path))
	if p.Action == install.Removed {
		a.out.Println(term.Plain("it is not as install left it, so everything else in it stays as it is"))
	}
	if p.Backup != "" && p.Action != install.Restored {
		a.out.Println(term.Dim("backup of the original: "), term.Plain(p.Backup))
	}
	if v.DryRun {
		a.out.Println(term.Dim("nothing was changed"))
	}
}
