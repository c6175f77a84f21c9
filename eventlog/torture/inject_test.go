//go:build linux && amd64

package torture_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

// patience is how often the careful writer repeats an operation, or an open,
// that fails.
const patience = 3

func init() {
	// Does as a careful harness does when the disk fails: believes what it is
	// told, opens the store again if it has to, and repeats. It says each
	// acknowledgement, and in between what it was told about a failure.
	roles["careful"] = func() {
		a := assigned()
		c := &careful{a: a, script: a.Plot.script(0)}
		if !c.open() {
			fmt.Println("told: gave up")
			return
		}
		for range a.From[0] {
			c.script.next()
		}
		for range a.Count {
			if !c.do(c.script.next()) {
				fmt.Println("told: gave up")
				return
			}
		}
		if a.Linger {
			time.Sleep(700 * time.Millisecond) // the index is written by its timer
		}
		if err := c.store.Close(); err != nil {
			fmt.Printf("told: close: %v\n", err)
		}
	}
	// Makes a store, again if that fails.
	roles["init"] = func() {
		a := assigned()
		for range patience {
			_, err := eventlog.Init(ctx, a.Dir)
			if err == nil || errors.Is(err, eventlog.ErrExists) {
				break
			}
			fmt.Printf("told: init: %v\n", err)
		}
	}
}

type careful struct {
	a      assignment
	script *script
	store  *eventlog.Store
}

func (c *careful) open() bool {
	for range patience {
		var err error
		if c.store, err = eventlog.Open(ctx, c.a.Dir, eventlog.Options{}); err == nil {
			return true
		}
		fmt.Printf("told: open: %v\n", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return false
}

func (c *careful) do(o *op) bool {
	absent := false // it was said that nothing was committed
	for n := range patience {
		row, err := c.store.Row(o.session)
		fail(err)
		var done ack
		if n == 0 {
			done, err = o.do(c.store, c.a.Plot, row.Head)
		} else {
			done, err = c.script.repeat(c.store, o)
		}
		switch {
		case err == nil:
			if absent && done.Found {
				fail(fmt.Errorf("%w: operation %d was said not to be committed, and is there", errPartial, o.n))
			}
			sayLine(done)
			return true
		case errors.Is(err, eventlog.ErrNoSpace):
			fmt.Println("told: no space")
			absent = true
		case errors.Is(err, eventlog.ErrOutcomeUnknown):
			fmt.Println("told: outcome unknown")
			absent = false
		default:
			fmt.Printf("told: not committed: %v\n", strings.ReplaceAll(err.Error(), "\n", " "))
			absent = true
		}
		after, rowErr := c.store.Row(o.session)
		fail(rowErr)
		if after.Head != row.Head {
			fail(fmt.Errorf("%w: operation %d failed and head %d became %d", errPartial, o.n, row.Head, after.Head))
		}
		if errors.Is(err, eventlog.ErrNoSpace) {
			continue // the same handle goes on
		}
		_, err = c.store.Append(ctx, eventlog.Batch{Session: o.session, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: "plugin/note"}}})
		if !errors.Is(err, eventlog.ErrReadOnly) {
			fail(fmt.Errorf("after a failed commit the handle has to refuse writes until it is opened again, got %v", err))
		}
		_ = c.store.Close()
		if !c.open() {
			return false
		}
	}
	return false
}

// faultsOf lists what can fail in a run: each step in turn, in each way.
func faultsOf(steps []step, counts func(step) bool) (out []fault) {
	nth := map[string]int{}
	for _, s := range steps {
		if s.call == "say" || s.file == "LOCK" || !counts(s) { // the words in LOCK are for error messages
			continue
		}
		key := s.call + " " + s.file
		nth[key]++
		f := fault{call: s.call, file: s.file, nth: nth[key]}
		errnos := []syscall.Errno{syscall.EIO, syscall.ENOSPC}
		if strings.HasSuffix(s.call, "sync") {
			errnos = errnos[:1]
		}
		for _, f.errno = range errnos {
			f.done = false
			out = append(out, f)
			if f.errno == syscall.EIO && (strings.HasSuffix(s.call, "sync") || s.call == "pwrite64") {
				f.done = true // it fails and takes effect
				out = append(out, f)
			}
		}
	}
	return out
}

func (f fault) String() string {
	how := "not done"
	if f.done {
		how = "done"
	}
	if f.on {
		how += " and all later ones"
	}
	return fmt.Sprintf("%s %d of %s fails with %v, %s", f.call, f.nth, f.file, f.errno, how)
}

// sample keeps about one in every.
func sample(list []fault, every int, random *rand.Rand) []fault {
	return slices.DeleteFunc(list, func(fault) bool { return random.IntN(every) > 0 })
}

// TestEachStepFails fails each write, sync and truncate of a short run in
// turn: not done; done all the same; and from there on all of them.
func TestEachStepFails(t *testing.T) {
	canTrace(t)
	for n := range scale(1, 4) {
		p := plot{Seed: uint32(500 + n), Workers: 1, Shared: 1, Small: n%2 == 0}
		random := rand.New(rand.NewPCG(6, uint64(n)))
		first := failing(t, p, 7, false, nil)
		faults := faultsOf(first, func(s step) bool { return s.file == "store.db" })
		require.Greater(t, len(faults), 50)
		for i := range faults[:len(faults):len(faults)] {
			if f := faults[i]; !f.done && f.nth%3 == 0 {
				f.on = true
				faults = append(faults, f)
			}
		}
		for _, f := range sample(faults, scale(30, 1), random) {
			failing(t, p, 7, false, &f)
		}
	}
}

// TestFoundAfterAFailedSync: the sync of a meta page fails, and the system
// calls the page clean though it never wrote it. Opened again the store shows
// the commit, and the repetition is told so: then a power cut may not take it.
func TestFoundAfterAFailedSync(t *testing.T) {
	canTrace(t)
	for nth := 2; nth <= scale(4, 12); nth += 2 {
		p := plot{Seed: uint32(520 + nth), Workers: 1, Small: true}
		steps := failing(t, p, nth/2, false, &fault{call: "fdatasync", file: "store.db", nth: nth, errno: syscall.EIO})
		_, told := said(steps)
		require.Equal(t, []string{"told: outcome unknown"}, told)
	}
}

// TestEachStepOfTheIndexFails: nothing is lost by it, and nobody but the log of
// an operator hears of it.
func TestEachStepOfTheIndexFails(t *testing.T) {
	canTrace(t)
	for n, linger := range []bool{false, true} {
		p := plot{Seed: uint32(600 + n), Workers: 1, Small: true}
		first := failing(t, p, 70, linger, nil)
		faults := faultsOf(first, func(s step) bool { return s.file == "index.db" })
		require.Greater(t, len(faults), 10)
		for _, f := range sample(faults, scale(45, 1), rand.New(rand.NewPCG(7, uint64(n)))) {
			failing(t, p, 70, linger, &f)
		}
	}
}

// failing runs the careful writer with a fault and checks what it leaves, on
// the files as they are and as a power cut leaves them that takes everything
// which a failed sync said it could not write.
func failing(t *testing.T, p plot, ops int, linger bool, f *fault) []step {
	t.Helper()
	dir := filepath.Join(fastDir(t), "store")
	r := newPlot(t, dir, p)
	d := newDisk(t, dir)
	d.drops = true
	steps := trace(t, "careful", dir, f, assignment{Plot: p, Dir: dir, From: r.acked, Count: ops, Linger: linger}.env())
	lines, told := said(steps)
	what := "nothing fails"
	if f != nil {
		tally.faults.Add(1)
		what = f.String()
	}
	for _, text := range told {
		if isFailure(text) {
			require.NoError(t, count(breach(text)), what)
		}
		if text == "told: no space" {
			require.True(t, f != nil && f.errno == syscall.ENOSPC, "%s, and it is told: %s", what, text)
		}
		require.False(t, f == nil || f.file == "index.db" && strings.HasPrefix(text, "told: not committed"), "%s, and it is told: %s", what, text)
	}
	for _, text := range lines {
		require.NoError(t, r.note(text), what)
	}
	require.True(t, f != nil && f.on || r.acked[0] == ops, "%s: it stopped after %d operations, told %v", what, r.acked[0], told)
	for _, s := range steps {
		d.take(s)
	}
	image := filepath.Join(fastDir(t), "image")
	require.NoError(t, d.write(image, cut{whole: func() bool { return false }}))
	tally.images.Add(1)
	after := r.clone()
	require.NoError(t, count(r.settle(dir, eventlog.Options{})), "%s, told %v", what, told)
	require.NoError(t, count(after.settle(image, eventlog.Options{})), "%s, told %v, then a power cut", what, told)
	return steps
}

// TestEachStepOfInitFails, and the process is killed at each of them. What is
// there after it, under its name, is a store or nothing.
func TestEachStepOfInitFails(t *testing.T) {
	canTrace(t)
	made := func(f *fault) []step {
		dir := filepath.Join(fastDir(t), "store")
		p := plot{Seed: 700, Workers: 1}
		steps := trace(t, "init", dir, f, assignment{Plot: p, Dir: dir}.env())
		what := "nothing fails"
		if f != nil {
			what = f.String()
			if f.kill {
				tally.kills.Add(1)
				what = fmt.Sprintf("killed at %s %d of %s", f.call, f.nth, f.file)
			} else {
				tally.faults.Add(1)
			}
		}
		s, err := eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true})
		if err == nil {
			require.NoError(t, s.Close())
		} else {
			require.ErrorIs(t, err, eventlog.ErrNotFound, what)
			require.True(t, f != nil && f.kill, "%s: there is no store after a repetition", what)
			_, err := eventlog.Init(ctx, dir)
			require.NoError(t, count(err), "%s: it can be made after all", what)
		}
		s, err = eventlog.Open(ctx, dir, eventlog.Options{})
		require.NoError(t, count(err), what)
		require.NoError(t, p.set(s), what)
		require.NoError(t, s.Close(), what)
		require.NoError(t, count(sound(dir)), what)
		return steps
	}
	faults := faultsOf(made(nil), func(s step) bool { return !strings.HasPrefix(s.file, ".") })
	for _, f := range faults {
		if f.errno == syscall.EIO && !f.done {
			f.kill = true
			faults = append(faults, f)
		}
	}
	for _, f := range sample(faults, scale(8, 1), rand.New(rand.NewPCG(8, 0))) {
		made(&f)
	}
}
