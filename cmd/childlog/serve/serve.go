// Package serve lets a program that embeds childlog serve its own store: its
// workers in other processes and languages, the hooks of agents and an operator's
// terminal work on it while the program holds it.
//
//	h, err := harness.Open(ctx, dir, eventlog.Options{}) // eventlog.Init made it, once
//	go func() { served <- serve.Store(ctx, h.Unwrap(), serve.Options{Ready: ready}) }()
//	// until the program ends: cancel ctx, wait for served, and then
//	err = h.Close()
//
// Who dials before Ready was called may find nobody.
//
// It is what `childlog serve` does: the socket SOCK in the store's directory,
// over which every command of this user finds the store by itself and programs
// reach it with harness.Dial("unix:DIR"), and HTTP for clients with tokens where an
// address is named.
//
// The program goes on using the store meanwhile: everything that others do is
// ordered with its own calls by the commits. What needs the store alone, such as
// `childlog compact`, is refused as locked while it is served.
package serve

import (
	"context"
	"log/slog"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/command"
	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/internal/serving"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// Options say what is served. The zero value is the socket only.
type Options struct {
	Listen            string             // HOST:PORT to serve over TCP too; port 0 takes a free one. Clients show a token (`childlog token new`)
	CertFile, KeyFile string             // PEM; needed for any address but loopback; replaced files count from the next connection on
	Hosts             []string           // names under which clients ask for it, beside localhost and the address
	Log               *slog.Logger       // a line a request, without contents; nil: nothing is logged
	Ready             func(wire.Serving) // called once it can be reached; nil: nobody waits
	Command           string             // named to who finds the store locked; "": serve
}

// Store serves a store that this program holds for writing, until ctx ends or
// the socket fails. It then lets the requests and commands that are at work come
// to their end, for up to ten seconds, and returns when nothing of it is left: no
// goroutine, no connection, no socket. The store stays open, and the caller's to
// close, which is to be done after.
//
// It may be called once at a time for a store. Errors: eventlog.ErrInvalid (an
// address without TLS that is not loopback, hosts), what could not be listened
// on; nil if ctx ended.
func Store(ctx context.Context, s *eventlog.Store, o Options) error {
	if o.Command == "" {
		o.Command = "serve"
	}
	held := access.Hold(s, access.HoldOptions{Command: o.Command})
	return serving.Run(ctx, held, serving.Options{Run: command.Runner(held), Address: service.Address{Listen: o.Listen, CertFile: o.CertFile, KeyFile: o.KeyFile},
		Hosts: o.Hosts, Log: o.Log, Ready: o.Ready})
}
