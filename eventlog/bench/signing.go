package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// signEvery is ten times the pace at which an open store signs by itself, so
// that what is measured is no less than what is paid.
const signEvery = 500 * time.Millisecond

// runSign64 compares a store that signs its tree with one that has no key, and
// else does the same.
func runSign64(o *options, rs map[string]*row) (targets []target, err error) {
	r := rs["sign-64"]
	r.Work = "64 children, one event an append, signed every 500 ms"
	a, err := o.arena(r.Name, 64)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	if err := a.childlog(signing); err != nil {
		return nil, err
	}
	dir, err := a.sub("unsigned")
	if err != nil {
		return nil, err
	}
	var s *store
	labelled("unsigned", func() { s, err = newUnsigned(dir, a.sessions) })
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, s.Close)
	c := childlog(s, a.sessions, waitEach(s))
	c.name = "unsigned"
	a.cs = append(a.cs, c)
	return a.run(o, r, map[string]float64{"unsigned": 0.95})
}

// newUnsigned is newStore without its key: it hashes the tree and signs nothing.
func newUnsigned(dir string, children int) (*store, error) {
	s, err := newStore(dir, children)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "store")
	if err := errors.Join(s.Close(), os.Remove(filepath.Join(path, "KEY"))); err != nil {
		return nil, err
	}
	return s, s.open(path)
}

// signing appends, and signs meanwhile.
func signing(s *store) loop {
	appends := waitEach(s)
	return func(session int, src *source, stop *atomic.Bool, done *atomic.Int64) (err error) {
		if session != 0 {
			return appends(session, src, stop, done)
		}
		var wg sync.WaitGroup
		var signErr error
		ended := make(chan struct{})
		wg.Go(func() {
			for tick := time.NewTicker(signEvery); ; {
				select {
				case <-ended:
					tick.Stop()
					return
				case <-tick.C:
					if _, err := s.Checkpoint(context.Background()); err != nil {
						signErr = err
						return
					}
				}
			}
		})
		err = appends(session, src, stop, done)
		close(ended)
		wg.Wait()
		return errors.Join(err, signErr)
	}
}
