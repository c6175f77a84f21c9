package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// loop appends records of one session until stop, and counts those that are
// durable.
type loop func(session int, src *source, stop *atomic.Bool, done *atomic.Int64) error

// waitEach waits for each append before the next.
func waitEach(p peer) loop {
	return func(session int, src *source, stop *atomic.Bool, done *atomic.Int64) error {
		for !stop.Load() {
			r, err := src.next()
			if err != nil {
				return err
			}
			if err := p.Append(session, r); err != nil {
				return err
			}
			done.Add(1)
		}
		return nil
	}
}

// contender takes turns with others.
type contender struct {
	name    string
	loop    loop
	settle  func() error           // waits for background work after a turn; may be nil
	lag     func() (uint64, error) // frames the index is behind at the end of a turn; may be nil
	sources []*source

	rates []float64 // events/s, by round
	lags  []float64 // frames, by round
	cpu   []float64 // us of CPU time an event, the warm-up and what was left included, by round
}

func newContender(name string, sessions int, l loop) *contender {
	c := &contender{name: name, loop: l, sources: make([]*source, sessions)}
	for i := range c.sources {
		c.sources[i] = newSource(i)
	}
	return c
}

func childlog(s *store, sessions int, l loop) *contender {
	c := newContender("childlog", sessions, l)
	c.settle, c.lag = s.settle, s.lag
	return c
}

// stalled is how long a window may last for its first event: a busy disk holds
// a sync back for longer than a short window.
const stalled = 30 * time.Second

// turn runs every session's loop and counts what becomes durable in a window
// that begins after the warm-up, without a break.
func (c *contender) turn(warm, window time.Duration) error {
	var stop atomic.Bool
	var done atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, len(c.sources))
	cpu := cpuTime()
	labelled(c.name, func() {
		for i, src := range c.sources {
			wg.Go(func() { errs[i] = c.loop(i, src, &stop, &done) })
		}
	})
	time.Sleep(warm)
	from, begin := done.Load(), time.Now()
	time.Sleep(window)
	for done.Load() == from && time.Since(begin) < stalled {
		time.Sleep(10 * time.Millisecond)
	}
	events, took := done.Load()-from, time.Since(begin)
	var lag uint64
	var lagErr error
	if c.lag != nil {
		lag, lagErr = c.lag()
	}
	stop.Store(true)
	wg.Wait()
	if err := errors.Join(append(errs, lagErr)...); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	if events == 0 {
		return fmt.Errorf("%s: nothing became durable within %v", c.name, stalled)
	}
	c.rates = append(c.rates, float64(events)/took.Seconds())
	if c.lag != nil {
		c.lags = append(c.lags, float64(lag))
	}
	if c.settle != nil {
		if err := c.settle(); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	c.cpu = append(c.cpu, float64((cpuTime()-cpu).Microseconds())/float64(done.Load()))
	return nil
}

// labelled runs fn so that a profile tells its goroutines, and those that they
// start, from the other contenders': go tool pprof -tagfocus contender=NAME.
func labelled(name string, fn func()) {
	pprof.Do(context.Background(), pprof.Labels("contender", name), func(context.Context) { fn() })
}

// race gives every contender a turn in each round; the order rotates.
func race(o *options, cs []*contender) error {
	for round := range o.rounds {
		for i := range cs {
			if err := cs[(i+round)%len(cs)].turn(o.warm, o.window); err != nil {
				return err
			}
		}
	}
	return nil
}

// fewestRounds are measured even where a row has used up its time.
const fewestRounds = 3

// measured is what one function returned, by round.
type measured struct {
	values []float64
	busy   []float64 // CPU time of this process over the time that passed
}

// perCPU turns rates into rates of CPU time: what they were if nobody else had
// used the cores. It means something where one thread works and never waits.
func (m measured) perCPU() (rates []float64) {
	for i, v := range m.values {
		rates = append(rates, v/m.busy[i])
	}
	return rates
}

// onCPU does the same for durations.
func (m measured) onCPU() (durations []float64) {
	for i, v := range m.values {
		durations = append(durations, v*m.busy[i])
	}
	return durations
}

// interleave calls each fn once in each of so many rounds, in rotating order,
// and returns what they returned. A round before is not counted. After the
// budget no further round begins, once there are fewestRounds.
func interleave(budget time.Duration, rounds int, fns ...func() (float64, error)) ([]measured, error) {
	out := make([]measured, len(fns))
	begin := time.Now()
	for round := -1; round < rounds && (round < fewestRounds || time.Since(begin) < budget); round++ {
		for i := range fns {
			k := (i + round + 1) % len(fns)
			from, cpu := time.Now(), cpuTime()
			v, err := fns[k]()
			if err != nil {
				return nil, err
			}
			if round >= 0 {
				out[k].values = append(out[k].values, v)
				out[k].busy = append(out[k].busy, (cpuTime()-cpu).Seconds()/time.Since(from).Seconds())
			}
		}
	}
	return out, nil
}

// repeat is interleave for one.
func repeat(budget time.Duration, rounds int, fn func() (float64, error)) ([]float64, error) {
	out, err := interleave(budget, rounds, fn)
	if err != nil {
		return nil, err
	}
	return out[0].values, nil
}

// cpuTime is what this process has used, in user and in system mode.
func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // with these arguments it has no way to fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// median of an even number is the mean of the two in the middle. An empty list
// has none and gives the zero value.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.SortedFunc(slices.Values(values), cmp.Compare)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// ratio is the median over the rounds of a/b.
func ratio(a, b []float64) float64 {
	var r []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			r = append(r, a[i]/b[i])
		}
	}
	return median(r)
}
