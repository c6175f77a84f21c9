package command

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/forward"
	"childlog/cmd/childlog/internal/holder"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

func newServeCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "serve",
		GroupID: groupStore,
		Short:   "Hold the store, so that many processes work on it at a time",
		Long: long(`
Hold the store and serve it to the other processes of this user, on the socket
SOCK in its directory. Every other command finds it there by itself and works
through it, with the same output and the same exit codes; any number may run at
a time. Without it a command holds the store alone for as long as it runs.

It runs until it is interrupted, lets the commands that are at work come to
their end, and gives the store back. After a crash nothing has to be removed.

A command that --key-file is given to signs with the key of this one.`),
		Example: `  childlog serve
  childlog --store ./agents --wait 10s serve`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.serve(cmd.Context())
		},
	}
}

func (a *app) serve(ctx context.Context) error {
	return a.orInit(access.Serve(ctx, a.place(), func(ctx context.Context, held *access.Held) error {
		var v wire.Serving
		err := held.Use(ctx, func(s *eventlog.Store) error {
			v = wire.Serving{Store: s.Identity().Store.String(), Path: held.Dir(), Socket: filepath.Join(held.Dir(), forward.Socket)}
			return nil
		})
		if err != nil {
			return err
		}
		return holder.Serve(ctx, held, holder.Options{Run: Runner(held), Ready: func() { a.serving(&v) }})
	}))
}

// serving tells that the store can be reached. It goes to stderr: nothing that
// serve prints is data.
func (a *app) serving(v *wire.Serving) {
	if a.json {
		if b, err := wire.Line(v); err == nil {
			_, _ = a.stderr.Write(b) // whoever waits for it finds the socket, too
		}
		return
	}
	a.msg.Println(term.Good("serving "), term.Bold(v.Path), term.Dim(" until it is interrupted"))
}

// Runner runs the commands of others on a store that this process holds.
func Runner(held *access.Held) forward.Runner {
	return func(ctx context.Context, env forward.Env, args []string) int {
		return RunIn(ctx, Env{Env: env, Held: held}, args)
	}
}
