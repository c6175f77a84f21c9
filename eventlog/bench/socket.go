package main

import (
	"context"
	"errors"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/serve"
	"childlog/cmd/childlog/wire"
)

// runSocket64 compares appends over the socket of a store with those of the
// process that holds it, on one store: through the same interface, which is what
// the target is for, and through that of package eventlog, which reads no
// document. Clients and service are one process, so that its CPU time is that of
// both ends.
func runSocket64(o *options, rs map[string]*row) (targets []target, err error) {
	const callers = 64
	r := rs["socket-64"]
	r.Work = "64 callers, one event an append, one store"
	a, err := o.arena(r.Name, callers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	dir, err := a.sub("store")
	if err != nil {
		return nil, err
	}
	s, err := newStore(dir, 4*callers) // each contender has sessions of its own
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, s.Close)
	stop, err := serving(s)
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, stop)

	var clients []harness.Harness
	dial := func() error {
		c, err := harness.Dial(context.Background(), "unix:"+s.Dir(), harness.Options{})
		if err == nil {
			clients = append(clients, c)
			a.closers = append(a.closers, c.Close)
		}
		return err
	}
	for range callers + 1 {
		if err := dial(); err != nil {
			return nil, err
		}
	}
	for i, c := range []struct {
		name string
		over []harness.Harness
	}{{"64 clients", clients[:callers]}, {"one client", clients[callers:]}, {"embedded", []harness.Harness{harness.On(s.Store)}}} {
		ct := childlog(s, callers, waitEach(&through{s, c.over, i * callers}))
		ct.name = c.name
		a.cs = append(a.cs, ct)
	}
	bare := childlog(s, callers, waitEach(&plain{s, 3 * callers}))
	bare.name = "eventlog"
	a.cs = append(a.cs, bare)
	const half = 0.5
	targets, err = a.run(o, r, map[string]float64{"embedded": half})
	if err != nil {
		return nil, err
	}
	shared, embedded := a.cs[1], a.cs[2]
	return append(targets, atLeast(r.Name+"/embedded, one client", ratio(shared.rates, embedded.rates), half)), nil
}

// serving serves the store on its socket until it is stopped.
func serving(s *store) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- serve.Store(ctx, s.Store, serve.Options{Ready: func(wire.Serving) { close(ready) }})
	}()
	stop = func() error {
		cancel()
		return <-done
	}
	select {
	case <-ready:
		return stop, nil
	case err := <-done:
		done <- err
		return nil, stop()
	}
}

// through appends by the interface of package harness.
type through struct {
	s     *store
	over  []harness.Harness // callers take turns
	first int               // of the sessions
}

// Append implements peer.
func (t *through) Append(session int, r *record) error {
	facts := make(map[string]any, len(r.Facts))
	for k, v := range r.Facts {
		facts[k] = v
	}
	id := t.first + session
	_, err := t.over[session%len(t.over)].Append(context.Background(), harness.AppendRequest{
		Session: t.s.ids[id].String(), Expect: new(t.s.base[id] + r.Seq - 1),
		Events: []harness.Event{{ID: r.ID.String(), Type: r.Type, Facts: facts, ContentText: &r.Content}},
	})
	return err
}

func (t *through) Close() error { return nil }

// plain appends without the interface.
type plain struct {
	s     *store
	first int // of the sessions
}

// Append implements peer.
func (p *plain) Append(session int, r *record) error { return p.s.Append(p.first+session, r) }

func (p *plain) Close() error { return nil }
