package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// smallLog is the log with which a long one is compared.
const smallLog = 1000

// runLong measures on one store with a long log: the policy, as a call and as
// a command, and the memory of a full replay.
func runLong(o *options, rs map[string]*row) (targets []target, err error) {
	events := o.size(1_000_000, 50_000)
	dir, done, err := o.scratch("long")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	s, err := newStore(dir, 3)
	if err != nil {
		return nil, err
	}
	long, small, wide := s.ids[0], s.ids[1], s.ids[2]
	if err := errors.Join(
		s.fill([]uuid.UUID{small}, filling{per: smallLog, batch: 8}),
		s.fill([]uuid.UUID{wide}, filling{per: smallLog, batch: smallLog}),
		s.fill([]uuid.UUID{long}, filling{per: events, batch: 8}),
		s.Close(),
	); err != nil {
		return nil, err
	}
	add := func(name string, measure func(*row) ([]target, error)) {
		if r := rs[name]; r != nil && err == nil {
			var t []target
			t, err = measure(r)
			targets = append(targets, t...)
		}
	}
	add("policy-1m", func(r *row) ([]target, error) {
		r.Work = fmt.Sprintf("effective policy, store open, %s events, 8 a batch", grouped(float64(events)))
		return policyRow(o, r, s.Dir(), [3]uuid.UUID{long, small, wide})
	})
	add("policy-process", func(r *row) ([]target, error) {
		r.Work = "childlog policy ID, the whole process, on that store"
		return processRow(o, r, s.Dir(), long)
	})
	add("memory", func(r *row) ([]target, error) {
		r.Work = fmt.Sprintf("full replay of %s events, a process of its own", grouped(float64(events)))
		return memoryRow(r, s.Dir(), long)
	})
	return targets, err
}

// policyRow times the policy of a long log, of a short one, and of one whose
// head frame holds all of its events.
func policyRow(o *options, r *row, dir string, ids [3]uuid.UUID) (targets []target, err error) {
	ctx := context.Background()
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	calls := o.size(500, 100)
	of := func(id uuid.UUID) func() (float64, error) {
		return func() (float64, error) {
			begin := time.Now()
			for range calls {
				e, err := replay.Policy(ctx, s, id, 0)
				if err != nil {
					return 0, err
				}
				if e.Sandbox.Value.Mode != policy.WorkspaceWrite {
					return 0, fmt.Errorf("policy of %s: sandbox %s, want %s", id, e.Sandbox.Value.Mode, policy.WorkspaceWrite)
				}
			}
			return float64(time.Since(begin).Microseconds()) / float64(calls), nil
		}
	}
	rounds, err := interleave(o.budget, max(o.rounds, 5), of(ids[0]), of(ids[1]), of(ids[2]))
	if err != nil {
		return nil, err
	}
	long, small, wide := rounds[0], rounds[1], rounds[2]
	r.add("long log", "us", long.values)
	r.add("long log, CPU time", "us", long.onCPU())
	r.add("1,000 events", "us", small.values)
	r.add("1,000 events, CPU time", "us", small.onCPU())
	r.add("1,000 in one batch", "us", wide.values)
	return []target{atMost("policy-1m-us", median(long.values), 100), atMost("policy-1m/policy-1k", ratio(long.values, small.values), 1.2)}, nil
}

func processRow(o *options, r *row, dir string, id uuid.UUID) ([]target, error) {
	command, err := o.childlogCommand()
	if err != nil {
		return nil, err
	}
	rounds, err := repeat(o.budget, o.size(41, 9), func() (float64, error) {
		begin := time.Now()
		out, err := exec.Command(command, "--store", dir, "policy", id.String()).CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("childlog policy: %w: %s", err, out)
		}
		return float64(time.Since(begin).Microseconds()) / 1000, nil
	})
	if err != nil {
		return nil, err
	}
	r.add("childlog policy", "ms", rounds)
	// What an empty process of the same binary costs, which no store can change.
	base, err := repeat(o.budget, o.size(21, 5), func() (float64, error) {
		begin := time.Now()
		err := exec.Command(command, "--version").Run()
		return float64(time.Since(begin).Microseconds()) / 1000, err
	})
	if err != nil {
		return nil, err
	}
	r.add("childlog --version", "ms", base)
	return []target{atMost("policy-process-ms", median(rounds), 40)}, nil
}

// childlogCommand builds the command from the tree that this module lies in.
func (o *options) childlogCommand() (string, error) {
	if o.command != "" {
		return o.command, nil
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "childlog").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w (run this in its module's directory)", err)
	}
	path := filepath.Join(o.dir, "childlog")
	build := exec.Command("go", "build", "-o", path, "./cmd/childlog")
	build.Dir = strings.TrimSpace(string(out))
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	o.command = path
	return path, nil
}

// memoryUse is what the memory task found, bytes.
type memoryUse struct {
	Events   uint64  `json:"events"`
	Idle     uint64  `json:"idle_anonymous"`
	Peak     uint64  `json:"peak_anonymous"`
	IdleFile uint64  `json:"idle_mapped"`
	PeakFile uint64  `json:"peak_mapped"`
	HWM      uint64  `json:"vm_hwm"`
	Seconds  float64 `json:"seconds"`
}

const mib = 1 << 20

func memoryRow(r *row, dir string, id uuid.UUID) ([]target, error) {
	var u memoryUse
	if err := answerOf(&u, nil, "memory", dir, id.String()); err != nil {
		return nil, err
	}
	over := (float64(u.Peak) - float64(u.Idle)) / mib
	r.add("peak over idle, anonymous", "MiB", []float64{over})
	r.add("peak over idle, mapped file", "MiB", []float64{(float64(u.PeakFile) - float64(u.IdleFile)) / mib})
	r.add("VmHWM", "MiB", []float64{float64(u.HWM) / mib})
	r.add("speed, default GOMAXPROCS", "events/s", []float64{float64(u.Events) / u.Seconds})
	r.detail("memory", u)
	return []target{atMost("memory-mib", over, 64)}, nil
}

// memoryTask replays a session of a store in this process and watches it.
func memoryTask(args []string) error {
	if len(args) != 2 {
		return errors.New("memory: want a store and a session")
	}
	id, err := uuid.Parse(args[1])
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := eventlog.Open(ctx, args[0], eventlog.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	runtime.GC()
	debug.FreeOSMemory()
	idle, err := procFields("/proc/self/status")
	if err != nil {
		return err
	}
	w := watchMemory()
	begin := time.Now()
	n, err := verifiedReplay(ctx, s, id)
	took := time.Since(begin)
	peak, peakFile, watchErr := w.stop()
	if err := errors.Join(err, watchErr, s.Close()); err != nil {
		return err
	}
	end, err := procFields("/proc/self/status")
	if err != nil {
		return err
	}
	return reply(memoryUse{Events: n, Idle: idle["RssAnon"] << 10, Peak: peak, IdleFile: idle["RssFile"] << 10, PeakFile: peakFile, HWM: end["VmHWM"] << 10, Seconds: took.Seconds()})
}

// watch samples this process's resident pages.
type watch struct {
	quit, done chan struct{}
	anon, file uint64
	err        error
}

func watchMemory() *watch {
	w := &watch{quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for last := false; !last && w.err == nil; {
			select {
			case <-tick.C:
			case <-w.quit:
				last = true
			}
			w.sample()
		}
	}()
	return w
}

func (w *watch) sample() {
	f, err := procFields("/proc/self/status")
	if _, ok := f["RssAnon"]; err == nil && !ok {
		err = fmt.Errorf("/proc/%d/status has no RssAnon", os.Getpid())
	}
	w.err = err
	w.anon, w.file = max(w.anon, f["RssAnon"]<<10), max(w.file, f["RssFile"]<<10)
}

// stop takes a last sample and returns the peaks in bytes.
func (w *watch) stop() (anon, file uint64, err error) {
	close(w.quit)
	<-w.done
	return w.anon, w.file, w.err
}
