package command

import (
	"context"

	"github.com/spf13/cobra"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/forward"
)

func newServeCmd(a *app) *cobra.Command {
	r := &serveRun{app: a}
	cmd := &cobra.Command{
		Use:     "serve",
		GroupID: groupStore,
		Short:   "Hold the store, so that many processes work on it at a time",
		Long: long(`
Hold the store and serve it to the other processes of this user, on the socket
SOCK in its directory. Every other command finds it there by itself and works
through it, with the same output and the same exit codes; any number may run at
a time. Without it a command holds the store alone for as long as it runs.

The socket speaks HTTP/JSON too: everything that a program which runs agents
needs. With --listen so does a TCP address, for clients that show a token (see
childlog token). GET /docs there describes the API, /openapi.json does it for
programs; /healthz, /readyz and /metrics are for those who run it. An address
that is not loopback needs --tls-cert and --tls-key. Files that are replaced
later count from the next connection on, without a restart; a pair that does not
load is logged, and the one before it goes on.

It runs until it is interrupted, lets the commands and requests that are at work
come to their end, and gives the store back. A second interrupt ends it at once.
After a crash nothing has to be removed; what was acknowledged is there.

One line a request goes to stderr, which names its route, status, time and token
id, and nothing of what was sent: with --listen, or if --log-format is given.

A command that --key-file is given to signs with the key of this one.`),
		Example: `  childlog serve
  childlog serve --listen 127.0.0.1:7431
  childlog serve --listen 0.0.0.0:7431 --tls-cert crt.pem --tls-key key.pem`,
		Args: between(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.check(); err != nil {
				return err
			}
			return r.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.address.Listen, "listen", "", "serve over TCP at HOST:PORT too; port 0 takes a free one")
	f.StringVar(&r.address.CertFile, "tls-cert", "", "the certificate for TLS, a PEM file")
	f.StringVar(&r.address.KeyFile, "tls-key", "", "its key, a PEM file")
	f.StringSliceVar(&r.hosts, "host", nil, "a name under which clients ask for it, beside localhost and the address")
	f.StringVar(&r.format, "log-format", "", "how requests are logged: text, the default, or json")
	complete(cmd, "log-format", "text", "json")
	return cmd
}

// Runner runs the commands of others on a store that this process holds.
func Runner(held *access.Held) forward.Runner {
	return func(ctx context.Context, env forward.Env, args []string) int {
		return RunIn(ctx, Env{Env: env, Held: held}, args)
	}
}
