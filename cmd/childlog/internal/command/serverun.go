package command

import (
	"context"
	"errors"
	"log/slog"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/internal/serving"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// serveRun is one run of serve.
type serveRun struct {
	*app
	address service.Address
	hosts   []string
	format  string
}

// check refuses what can't be served before the store is held.
func (r *serveRun) check() error {
	if err := oneOf("--log-format", r.format, "text", "json"); err != nil {
		return err
	}
	if r.address.Listen == "" {
		if r.address.CertFile != "" || r.address.KeyFile != "" || len(r.hosts) > 0 {
			return usagef("--tls-cert, --tls-key and --host are for --listen, which is missing")
		}
		return nil
	}
	if err := r.address.Check(); err != nil {
		return withHint(asUsage(err), "without TLS it listens on loopback, such as 127.0.0.1:7431")
	}
	return nil
}

// serveCommand is what LOCK says of a process that is to serve the store.
const serveCommand = "childlog serve"

func (r *serveRun) run(ctx context.Context) error {
	place := r.place()
	if by := eventlog.HeldBy(r.store); by == nil || by.Command != serveCommand {
		place.Wait = max(place.Wait, beginning) // commands, which come and go
	}
	return r.orInit(access.Serve(ctx, place, func(ctx context.Context, held *access.Held) error {
		err := serving.Run(ctx, held, serving.Options{Run: Runner(held), Address: r.address, Hosts: r.hosts, Log: r.logger(), Ready: r.serving})
		if errors.Is(err, eventlog.ErrInvalid) { // a host, or an address that leads elsewhere
			err = asUsage(err)
		}
		return err
	}))
}

// serving tells where the store can be reached. For programs that is data; what
// people read goes with the log.
func (r *serveRun) serving(v wire.Serving) {
	if r.json {
		_ = r.emit(v) // whoever waits for it finds the socket, too
		return
	}
	at := ""
	if v.URL != nil {
		at = " at " + *v.URL
	}
	r.msg.Println(term.Good("serving "), term.Bold(v.Path), term.Plain(at), term.Dim(" until it is interrupted"))
}

// logger writes to stderr. Where it was not asked for, only what went wrong is
// told.
func (r *serveRun) logger() *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelWarn}
	if r.format != "" || r.address.Listen != "" {
		o.Level = slog.LevelInfo
	}
	if r.format == "json" {
		return slog.New(slog.NewJSONHandler(r.stderr, o))
	}
	return slog.New(slog.NewTextHandler(r.stderr, o))
}
