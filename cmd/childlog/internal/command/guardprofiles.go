package command

import (
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/guard"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/policy"
)

func newGuardProfilesCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "profiles",
		Short: "Print what the shipped profiles of guards permit",
		Long: long(`
Print the profiles that come with guards, from the narrowest to the widest. Each
says what a new root may do; its agents get at most as much, and are never asked
about. What a profile allows the harness may still refuse or ask about.

Commands name no files in their arguments, so under edit-here it is the sandbox
and the questions of the harness that bind what a command touches; read-only
runs those that childlog-inspect/1 finds to change nothing. Tools that nobody
knows, such as those of MCP servers, are left to trusted, unless a document of
--policy declares what they do.`),
		Example: `  childlog guard profiles
  childlog guard profiles --json`,
		Args: between(0),
		RunE: func(*cobra.Command, []string) error {
			var rows [][]term.Text
			var abouts []term.Row
			for _, p := range guard.Profiles() {
				v := wire.GuardProfile{Profile: p.Profile, About: p.About, Default: p.Profile == guard.DefaultProfile, Sandbox: string(p.Mode), Network: p.Network,
					Shell: string(p.Shell), Spawn: p.Spawn, Approvals: string(p.Approvals), UnknownTools: p.Mode == policy.DangerFullAccess && p.Network, Approve: p.Approve}
				if a.json {
					if err := a.emit(v); err != nil {
						return err
					}
					continue
				}
				rows = append(rows, []term.Text{term.Bold(p.Profile), modeText(p.Mode), term.Plain(v.Shell), offOn(v.Network), offOn(v.Spawn), term.Plain(v.Approvals), offOn(v.UnknownTools)})
				about := term.Plain(v.About)
				if v.Default {
					about = term.Cat(about, term.Dim(" (the default)"))
				}
				abouts = append(abouts, term.Row{Name: v.Profile, Value: about})
			}
			if !a.json {
				a.out.Table([]term.Column{{Title: "PROFILE"}, {Title: "SANDBOX"}, {Title: "SHELL"}, {Title: "NETWORK"}, {Title: "AGENTS"}, {Title: "APPROVALS"}, {Title: "UNKNOWN TOOLS"}}, rows)
				a.out.Println()
				a.out.Rows(abouts...)
			}
			return a.out.Err()
		},
	}
}

// offOn is a permission in a table.
func offOn(permitted bool) term.Text {
	if permitted {
		return term.Plain("yes")
	}
	return term.Good("no")
}
