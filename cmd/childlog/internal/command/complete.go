package command

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/forward"
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

// heldSessions lists the sessions of a store that another process holds, if one
// does.
func (a *app) heldSessions(ctx context.Context, offer func(id, label string)) bool {
	if a.env.Held != nil {
		return false
	}
	call, err := forward.Dial(ctx, a.store)
	if err != nil {
		return false
	}
	var list bytes.Buffer
	env := a.env.Env
	env.Stdout, env.Stderr = &list, io.Discard
	if _, err := call.Run(ctx, env, []string{"ls", "--json"}); err != nil {
		return true
	}
	for line := range bytes.Lines(list.Bytes()) {
		var row struct {
			Session string `json:"session"`
			Label   string `json:"label"`
		}
		if json.Unmarshal(line, &row) == nil {
			offer(row.Session, row.Label)
		}
	}
	return true
}

func (a *app) sessions(ctx context.Context, typed string) (out []string) {
	if err := a.findStore(); err != nil {
		return nil
	}
	offer := func(id, label string) {
		if strings.HasPrefix(id, strings.ToLower(typed)) {
			out = append(out, cobra.CompletionWithDesc(id, term.Escape(label)))
		}
	}
	if a.heldSessions(ctx, offer) {
		return out
	}
	_ = a.read(ctx, func(s *eventlog.Store) error {
		rows, err := ops.AllRows(ctx, s)
		for i := range rows {
			offer(rows[i].Session.String(), rows[i].Label)
		}
		return err
	})
	return out
}
