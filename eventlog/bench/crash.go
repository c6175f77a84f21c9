package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
)

const (
	rootsAUnit = 500                     // of the store that crashes
	fillFor    = 75 * time.Second        // at most; fewer events then, which the row says
	readyLine  = "writing"               // the crash task, once the store is as large as asked for
	crashAfter = 1500 * time.Millisecond // of writing single events, so that the index is behind
	writers    = 512                     // that are at work at the crash
)

// runOpenCrash lets a process build a store and kills it while it writes.
func runOpenCrash(o *options, rs map[string]*row) (targets []target, err error) {
	r := rs["open-crash"]
	sessions, per := o.size(100_000, 1_000), 48
	r.Work = fmt.Sprintf("open after kill -9, %s sessions, %s events", grouped(float64(sessions)), grouped(float64(sessions*(per+2))))
	dir, done, err := o.scratch("crash")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	begin := time.Now()
	if err := buildAndKill(dir, sessions, per); err != nil {
		return nil, err
	}
	r.note("building took %.0f s", time.Since(begin).Seconds())
	targets, found, err := openRow(o, r, filepath.Join(dir, "store"))
	if err == nil && found < float64(sessions*per) {
		r.note("SMALLER THAN ASKED FOR: building was stopped after %v", fillFor)
	}
	return targets, err
}

// buildAndKill starts the task, waits until it says that it is writing, and
// kills it a moment later.
func buildAndKill(dir string, sessions, per int) error {
	cmd, err := taskCommand(nil, "crash", dir, strconv.Itoa(sessions), strconv.Itoa(per))
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if strings.TrimSpace(line) != readyLine {
		_ = cmd.Process.Kill()
		return errors.Join(fmt.Errorf("the writing process said %q", line), err, cmd.Wait())
	}
	time.Sleep(crashAfter)
	if err := cmd.Process.Kill(); err != nil {
		return errors.Join(err, cmd.Wait())
	}
	var killed interface{ ExitCode() int }
	if err := cmd.Wait(); !errors.As(err, &killed) || killed.ExitCode() != -1 {
		return fmt.Errorf("the writing process ended by itself: %v", err)
	}
	return nil
}

// openRow opens what the crash left several times. A writer brings the index
// up to date, so index.db is put back before each; store.db must not change.
// It returns how many events were found.
func openRow(o *options, r *row, store string) (targets []target, events float64, err error) {
	index, journal := filepath.Join(store, "index.db"), filepath.Join(store, "store.db")
	kept := filepath.Join(filepath.Dir(store), "index.kept")
	if err := copyFile(index, kept); err != nil {
		return nil, 0, err
	}
	before, err := os.Stat(journal)
	if err != nil {
		return nil, 0, err
	}
	var lag, sessions float64
	open := func(opts eventlog.Options, cold bool) func() (float64, error) {
		return func() (float64, error) {
			if err := copyFile(kept, index); err != nil {
				return 0, err
			}
			if cold {
				if err := evict(index, journal); err != nil {
					return 0, err
				}
			}
			begin := time.Now()
			s, err := eventlog.Open(context.Background(), store, opts)
			took := time.Since(begin)
			if err != nil {
				return 0, err
			}
			st, err := s.Stats()
			lag, sessions, events = float64(st.Lag), float64(st.Sessions), float64(st.Events)
			return float64(took.Microseconds()) / 1000, errors.Join(err, s.Close())
		}
	}
	rounds, err := interleave(o.budget, o.size(5, 3), open(eventlog.Options{ReadOnly: true}, false), open(eventlog.Options{}, false))
	if err != nil {
		return nil, 0, err
	}
	cold, err := repeat(o.budget, o.size(3, 1), open(eventlog.Options{ReadOnly: true}, true))
	if err != nil {
		return nil, 0, err
	}
	after, err := os.Stat(journal)
	if err != nil {
		return nil, 0, err
	}
	if after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		r.note("opening changed store.db: only the first round saw it as the crash left it")
	}
	// The round that is not counted brings the index up to date.
	clean, err := repeat(o.budget, o.size(3, 1), func() (float64, error) {
		begin := time.Now()
		s, err := eventlog.Open(context.Background(), store, eventlog.Options{})
		took := time.Since(begin)
		if err != nil {
			return 0, err
		}
		return float64(took.Microseconds()) / 1000, s.Close()
	})
	if err != nil {
		return nil, 0, err
	}
	r.add("for writing, warm", "ms", rounds[1].values)
	r.add("read only, warm", "ms", rounds[0].values)
	r.add("read only, cold files", "ms", cold)
	r.add("for writing, after a close", "ms", clean)
	r.note("found %s sessions, %s events, the index %s frames behind; store.db %.1f GiB", grouped(sessions), grouped(events), grouped(lag), float64(before.Size())/(1<<30))
	r.detail("index_lag_frames", lag)
	return []target{atMost("open-crash-ms", median(rounds[1].values), 100)}, events, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close()) // or the next sync of another file waits for it, too
}

// crashTask builds a store, says so, and writes single events until it is
// killed.
func crashTask(args []string) error {
	if len(args) != 3 {
		return errors.New("crash: want a directory, sessions and events")
	}
	sessions, err1 := strconv.Atoi(args[1])
	per, err2 := strconv.Atoi(args[2])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	s, err := newStore(args[0], 0)
	if err != nil {
		return err
	}
	if s.ids, err = makeRoots(s.Store, sessions); err != nil {
		return errors.Join(err, s.Close())
	}
	if err := s.fill(s.ids, filling{per: per, batch: per, until: time.Now().Add(fillFor)}); err != nil {
		return errors.Join(err, s.Close())
	}
	if err := s.heads(); err != nil {
		return errors.Join(err, s.Close())
	}
	fmt.Println(readyLine)
	var stop atomic.Bool
	var done atomic.Int64
	n := min(writers, len(s.ids))
	return parallel(n, n, func(i int) error { return waitEach(s)(i, newSource(i), &stop, &done) })
}

// heads reads where each of the sessions that will be written to stands.
func (s *store) heads() error {
	s.base = make([]uint64, min(writers, len(s.ids)))
	for i := range s.base {
		row, err := s.Row(s.ids[i])
		if err != nil {
			return err
		}
		s.base[i] = row.Head
	}
	return nil
}

// makeRoots makes so many roots. They are what materialize.Root makes, many in a
// unit: how a session began is nothing to an open, and delegating each would
// take longer than all of the rest.
func makeRoots(s *eventlog.Store, n int) ([]uuid.UUID, error) {
	ctx := context.Background()
	const workspace = "/srv/project"
	def, err := policy.Setting{Mode: policy.ReadOnly}.Resolve(workspace)
	if err != nil {
		return nil, err
	}
	own, err := policy.Setting{Mode: policy.WorkspaceWrite}.Resolve(workspace)
	if err != nil {
		return nil, err
	}
	ids := make([]uuid.UUID, n)
	return ids, parallel(4, (n+rootsAUnit-1)/rootsAUnit, func(unit int) error {
		mine := ids[unit*rootsAUnit : min((unit+1)*rootsAUnit, n)]
		_, err := s.Transact(ctx, eventlog.EntryCreate, func(v *eventlog.View) (batches []eventlog.Batch, err error) {
			for i := range mine {
				if mine[i], err = v.NewSessionID(); err != nil {
					return nil, err
				}
				c := eventlog.Created{Kind: eventlog.KindRoot, Root: mine[i], Mode: eventlog.ModeContinuable, MaxDepth: materialize.DefaultMaxDepth,
					WorkspaceRoot: workspace, PathStyle: "posix", Defaults: policy.Defaults{Sandbox: def, Approvals: policy.Ask}}
				batches = append(batches, eventlog.Batch{Session: mine[i], Events: []eventlog.NewEvent{
					{Type: eventlog.TypeSessionCreated, Facts: c.Facts(), Media: eventlog.MediaJSON, Content: []byte(`{"cwd":"` + workspace + `"}`)},
					{Type: eventlog.TypeSandboxMode, Facts: eventlog.SandboxFacts(own)},
				}})
			}
			return batches, nil
		})
		return err
	})
}
