package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/internal/tokens"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newTokenCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "token",
		GroupID: groupStore,
		Short:   "Make, list and revoke tokens for the service",
		Long: long(`
Who uses a store's service over TCP shows a token, which has a role:

  harness    runs agents: creates roots, delegates, appends, sends, asks, has
             calls decided, resumes, reads
  operator   all of that, and what only people order: narrowings, operator
             rules, acting as an operator
  auditor    reads, and nothing else

The Unix socket in the store's directory takes no token: whoever may use the
directory is an operator.

Tokens are kept in the file TOKENS of the store, as hashes: a token is shown
once. What is revoked or has expired is refused from the next request on, by
services that run too. No backup or export holds the file.`),
		Example: `  childlog token new --role harness --label "build agents"
  childlog token ls
  childlog token revoke 3f9a1c20`,
		RunE: func(*cobra.Command, []string) error { return usagef("token: want new, ls or revoke") },
	}
	cmd.AddCommand(a.runs(newTokenNewCmd(a)), a.runs(newTokenLsCmd(a)), a.runs(newTokenRevokeCmd(a)))
	return cmd
}

func newTokenNewCmd(a *app) *cobra.Command {
	var role, label string
	var life time.Duration
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Make a token",
		Long: long(`
Make a token and print it. It is the only line on stdout, so that it can be put
where it is needed; it is kept nowhere and can't be shown again.

A token without --expires is good until it is revoked.`),
		Example: `  childlog token new --role harness --label "build agents" --expires 720h
  childlog token new --role auditor > auditor.token`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if role == "" {
				return usagef("--role is missing: harness, operator or auditor")
			}
			r, err := tokens.ParseRole(role)
			if err != nil {
				return asUsage(err)
			}
			if cmd.Flags().Changed("expires") && life <= 0 {
				return usagef("--expires: want more than 0, got %s", life)
			}
			now := time.Now()
			t, secret, err := tokens.New(a.store, tokens.Request{Role: r, Label: label, Life: life, Now: now})
			if err != nil {
				return a.tokenHint(err)
			}
			return a.show(wire.NewToken{Token: wire.TokenOf(t, now), Secret: secret}, func() {
				a.msg.Println(term.Good("made "), term.Plain("token "), term.Bold(t.ID), term.Plain(" of role "+string(t.Role)+expiryText(t)+"; it is shown only now:"))
				a.out.Println(term.Plain(secret))
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&role, "role", "", "what its bearer may do: harness, operator or auditor")
	f.StringVar(&label, "label", "", "whose it is, for the list")
	f.DurationVar(&life, "expires", 0, "how long it is good, such as 720h (default: until it is revoked)")
	complete(cmd, "role", string(tokens.Harness), string(tokens.Operator), string(tokens.Auditor))
	return cmd
}

func newTokenLsCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the tokens of the store",
		Long: long(`
List the tokens of the store in the order in which they were made: ids, roles
and labels, never the tokens. Expired ones are listed until they are revoked.`),
		Example: `  childlog token ls
  childlog token ls --json`,
		Args: between(0),
		RunE: func(*cobra.Command, []string) error {
			if !access.Exists(a.place()) {
				return a.orInit(fmt.Errorf("%w: store %s", eventlog.ErrNotFound, a.store))
			}
			list, err := tokens.List(a.store)
			if err != nil {
				return a.tokenHint(err)
			}
			now := time.Now()
			if a.json {
				for _, t := range list {
					if err := a.emit(wire.TokenOf(t, now)); err != nil {
						return err
					}
				}
				return nil
			}
			if len(list) == 0 {
				a.out.Println(term.Dim("no tokens; `childlog token new --role ROLE` makes one"))
				return a.out.Err()
			}
			rows := make([][]term.Text, 0, len(list))
			for _, t := range list {
				expires := term.Plain("never")
				if t.Expired(now) {
					expires = term.Bad("expired " + wire.Time(t.Expires))
				} else if !t.Expires.IsZero() {
					expires = term.Plain(wire.Time(t.Expires))
				}
				rows = append(rows, []term.Text{term.Bold(t.ID), term.Plain(string(t.Role)), term.Plain(wire.Time(t.Created)), expires, term.Plain(t.Label)})
			}
			a.out.Table([]term.Column{{Title: "ID"}, {Title: "ROLE"}, {Title: "CREATED", Drop: 1}, {Title: "EXPIRES"}, {Title: "LABEL", Min: 8}}, rows)
			return a.out.Err()
		},
	}
}

func newTokenRevokeCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token",
		Long: long(`
Remove a token. A service that runs refuses it from the next request on, and
ends the streams of events that were opened with it within seconds.`),
		Example: `  childlog token revoke 3f9a1c20`,
		Args:    exactly("ID"),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := tokens.Revoke(a.store, args[0])
			if err != nil {
				return a.tokenHint(err)
			}
			return a.show(wire.TokenOf(t, time.Now()), func() {
				a.out.Println(term.Good("revoked "), term.Bold(t.ID), term.Plain(" of role "+string(t.Role)))
			})
		},
	}
}

// tokenHint says what can be done about the file of tokens.
func (a *app) tokenHint(err error) error {
	switch {
	case errors.Is(err, eventlog.ErrNotFound) && access.Exists(a.place()):
		return withHint(err, "`childlog token ls` lists the tokens with their ids")
	case errors.Is(err, eventlog.ErrCorrupt):
		return withHint(err, "nobody is admitted by it, and it was not changed; remove it and make new tokens")
	case errors.Is(err, eventlog.ErrTooLarge):
		return withHint(err, "`childlog token revoke` removes those that are no longer needed; expired ones count too")
	}
	return a.orInit(err)
}

func expiryText(t tokens.Token) string {
	if t.Expires.IsZero() {
		return ", good until it is revoked"
	}
	return ", good until " + wire.Time(t.Expires)
}
