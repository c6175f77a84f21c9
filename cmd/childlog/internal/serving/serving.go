// Package serving puts together what a process serves of a store that it holds:
// the socket in the store's directory, with the API and the commands of others,
// and the API over TCP where that is asked for.
package serving

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/forward"
	"childlog/cmd/childlog/internal/holder"
	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// Grace is how long requests that are at work may take to end.
const Grace = 10 * time.Second

// Options say what is served.
type Options struct {
	Run     forward.Runner  // runs the commands of others; required
	Address service.Address // over TCP; without Listen the socket only
	Hosts   []string        // names under which clients ask for it over TCP
	Log     *slog.Logger    // nil: nothing is logged
	Ready   func(wire.Serving)
}

// Run serves the store until ctx ends, and returns once nothing of it is left.
// The store stays held. Errors: ErrInvalid (address, hosts); what could not be
// listened on.
func Run(ctx context.Context, held *access.Held, o Options) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, err := service.New(service.Options{Use: held.Use, Dir: held.Dir(), Log: o.Log, Hosts: o.Hosts, Listen: o.Address.Listen})
	if err != nil {
		return err
	}
	v := wire.Serving{Path: held.Dir(), Socket: filepath.Join(held.Dir(), forward.Socket)}
	err = held.Use(ctx, func(s *eventlog.Store) error {
		v.Store = s.Identity().Store.String()
		return nil
	})
	if err != nil {
		return err
	}
	var tcp *service.Server
	if o.Address.Listen != "" {
		if tcp, err = s.Listen(ctx, o.Address); err != nil {
			return err
		}
		url := tcp.URL()
		v.URL = &url
	}
	ready := func() {
		if o.Ready != nil {
			o.Ready(v)
		}
	}
	// Whichever ends first ends the other.
	var both sync.WaitGroup
	var socketErr, tcpErr error
	both.Go(func() {
		defer stop()
		socketErr = holder.Serve(ctx, held, holder.Options{Run: o.Run, Handler: s.Socket(), Trunk: s.Trunk, Log: o.Log, Stopping: s.Stop, Grace: Grace, Ready: ready})
	})
	if tcp != nil {
		both.Go(func() {
			defer stop()
			tcpErr = tcp.Serve(ctx, Grace)
		})
	}
	both.Wait()
	return errors.Join(socketErr, tcpErr)
}
