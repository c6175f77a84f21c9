package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/ops"
	"childlog/cmd/childlog/internal/term"
	"childlog/eventlog"
	"childlog/policy"
)

// complete offers the values of a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // fails for a flag that does not exist
}

// completeRole offers the roles, without their other names.
func completeRole(cmd *cobra.Command) {
	roles := make([]string, 0, len(policy.Roles()))
	for _, r := range policy.Roles() {
		roles = append(roles, string(r))
	}
	complete(cmd, "role", roles...)
}

// sessionFlags are the flags that name a session.
var sessionFlags = []string{"parent", "consume"}

// completeSessions offers the sessions of the store, with their labels,
// wherever a command takes one. A store that can't be read now offers none.
func (a *app) completeSessions(cmd *cobra.Command) {
	if own := cmd.ValidArgsFunction; takesID(cmd) || own == nil && strings.Contains(cmd.Use, "ID") {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			switch {
			case len(args) == 0 && takesID(cmd):
				return a.sessions(cmd.Context(), typed), cobra.ShellCompDirectiveNoFileComp
			case own != nil:
				return own(cmd, args, typed)
			case strings.Contains(cmd.Use, "FILE"):
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
	for _, flag := range sessionFlags {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
				return a.sessions(cmd.Context(), typed), cobra.ShellCompDirectiveNoFileComp
			}) // fails for a flag that does not exist
		}
	}
}

// takesID reports whether a command's first argument is a session.
func takesID(cmd *cobra.Command) bool {
	_, args, _ := strings.Cut(cmd.Use, " ")
	return strings.HasPrefix(args, "ID") || strings.HasPrefix(args, "[ID")
}

func (a *app) sessions(ctx context.Context, typed string) (out []string) {
	if err := a.findStore(); err != nil {
		return nil
	}
	_ = a.read(ctx, func(s *eventlog.Store) error {
		rows, err := ops.AllRows(ctx, s)
		for i := range rows {
			if id := rows[i].Session.String(); strings.HasPrefix(id, strings.ToLower(typed)) {
				out = append(out, cobra.CompletionWithDesc(id, term.Escape(rows[i].Label)))
			}
		}
		return err
	})
	return out
}
