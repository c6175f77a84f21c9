package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// arena holds the contenders of one row and what has to be closed after it.
type arena struct {
	dir      string
	sessions int
	cs       []*contender
	closers  []func() error
}

func (o *options) arena(name string, sessions int) (*arena, error) {
	dir, done, err := o.scratch(name)
	return &arena{dir: dir, sessions: sessions, closers: []func() error{done}}, err
}

// close closes in the opposite order of opening.
func (a *arena) close() (err error) {
	for i := len(a.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, a.closers[i]())
	}
	return err
}

func (a *arena) sub(name string) (string, error) {
	dir := filepath.Join(a.dir, name)
	return dir, os.Mkdir(dir, 0o700)
}

// childlog adds a store of its own; l makes its loop.
func (a *arena) childlog(l func(*store) loop) error {
	dir, err := a.sub("childlog")
	if err != nil {
		return err
	}
	var s *store
	labelled("childlog", func() { s, err = newStore(dir, a.sessions) }) // its goroutines start here
	if err != nil {
		return err
	}
	a.closers = append(a.closers, s.Close)
	a.cs = append(a.cs, childlog(s, a.sessions, l(s)))
	return nil
}

// peer adds a contender that waits for each append.
func (a *arena) peer(name string, open func(dir string, sessions int) (peer, error)) error {
	dir, err := a.sub(name)
	if err != nil {
		return err
	}
	p, err := open(dir, a.sessions)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	a.closers = append(a.closers, p.Close)
	a.cs = append(a.cs, newContender(name, a.sessions, waitEach(p)))
	return nil
}

// run lets them race and reports childlog's ratio to each peer that has a
// target.
func (a *arena) run(o *options, r *row, reach map[string]float64) ([]target, error) {
	if err := race(o, a.cs); err != nil {
		return nil, err
	}
	var targets []target
	var cpu []string
	ours := a.cs[0]
	for _, c := range a.cs {
		r.add(c.name, "events/s", c.rates)
		cpu = append(cpu, fmt.Sprintf("%s %s", c.name, figure(median(c.cpu))))
		r.detail("cpu_us_an_event "+c.name, c.cpu)
		if c == ours {
			continue
		}
		x := ratio(ours.rates, c.rates)
		if want, ok := reach[c.name]; ok {
			targets = append(targets, atLeast(r.Name+"/"+c.name, x, want))
		} else {
			r.note("%s is %s times %s", ours.name, figure(x), c.name)
		}
	}
	r.note("us of CPU time an event: %s", strings.Join(cpu, ", "))
	_, worst := span(ours.lags)
	r.detail("index_lag_frames", ours.lags)
	return append(targets, atMost(r.Name+"/index-lag-frames", worst, maxLag)), nil
}

// named is a contender to be.
type named struct {
	name string
	open func(dir string, sessions int) (peer, error)
}

// appends runs one row of appends.
func appends(o *options, r *row, sessions int, ours func(*store) loop, peers []named, reach map[string]float64) (targets []target, err error) {
	a, err := o.arena(r.Name, sessions)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	if err := a.childlog(ours); err != nil {
		return nil, err
	}
	for _, p := range peers {
		if err := a.peer(p.name, p.open); err != nil {
			return nil, err
		}
	}
	return a.run(o, r, reach)
}

func waiting(s *store) loop { return waitEach(s) }

func runAppend64(o *options, rs map[string]*row) ([]target, error) {
	r := rs["append-64"]
	r.Work = "64 children, one event an append"
	return appends(o, r, 64, waiting, []named{{"jsonl", newJSONL}, {"sqlite", newSQLite}, {"bbolt-tx", newBoltTx}, {"tidwall-wal", newWAL}},
		map[string]float64{"jsonl": 4, "sqlite": 15, "bbolt-tx": 12})
}

func runAppend512(o *options, rs map[string]*row) ([]target, error) {
	r := rs["append-512"]
	r.Work = "512 children, one event an append"
	return appends(o, r, 512, waiting, []named{{"jsonl", newJSONL}, {"sqlite", newSQLite}}, map[string]float64{"jsonl": 8, "sqlite": 40})
}

func runAppend1(o *options, rs map[string]*row) ([]target, error) {
	r := rs["append-1"]
	r.Work = "1 child, waiting for each"
	dir, done, err := o.scratch("size")
	if err != nil {
		return nil, err
	}
	size, err := storedBytes(dir)
	if err := errors.Join(err, done()); err != nil {
		return nil, err
	}
	r.detail("stored_bytes_an_event", size)
	bare := func(dir string, _ int) (peer, error) { return newBoltBare(dir, size) }
	return appends(o, r, 1, waiting, []named{{"bbolt-bare", bare}, {"jsonl", newJSONL}, {"sqlite", newSQLite}, {"bbolt-tx", newBoltTx}},
		map[string]float64{"bbolt-bare": 0.9})
}

func runInflight(o *options, rs map[string]*row) ([]target, error) {
	r := rs["inflight-64"]
	r.Work = "1 child, 64 in flight; jsonl waits for each"
	return appends(o, r, 1, func(s *store) loop { return s.pipelined(64) }, []named{{"jsonl", newJSONL}}, map[string]float64{"jsonl": 8})
}
