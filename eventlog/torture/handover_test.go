package torture_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

func init() {
	// Waits for the store, says that it has it, writes without end, and says
	// each acknowledgement.
	roles["wait"] = func() {
		a := assigned()
		s, err := eventlog.Open(ctx, a.Dir, eventlog.Options{Wait: time.Hour, Command: "childlog wait"})
		fail(err)
		fmt.Println("held")
		id := a.Plot.session(0, 0)
		for a.Count == 0 {
			res, err := s.Append(ctx, eventlog.Batch{Session: id, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: "plugin/note"}}})
			fail(err)
			sayLine(at{id, res.LastSeq, fmt.Sprintf("%x", res.Hash)})
		}
		fail(s.Close())
	}
}

// TestCase25_AWaiterGetsTheStoreOfAKilledHolder: several processes wait for a
// store. Each time its holder is killed in the middle of its appends exactly
// one of them gets it, goes on with the next seq, and has lost nothing of what
// was acknowledged to the others.
func TestCase25_AWaiterGetsTheStoreOfAKilledHolder(t *testing.T) {
	dir := filepath.Join(fastDir(t), "store")
	r := newPlot(t, dir, plot{Seed: 900, Workers: 1})
	random := rand.New(rand.NewPCG(10, 0))
	got := make(chan *helper, 4)
	start := func() {
		h := startHelper(t, "wait", assignment{Plot: r.plot, Dir: dir}.env())
		go func() {
			if text, err := h.line(); err == nil && text == "held" {
				got <- h
			}
		}()
	}
	for range 3 {
		start()
	}
	var all []at
	for range scale(6, 150) {
		holder := <-got
		start()
		_, err := eventlog.Open(ctx, dir, eventlog.Options{})
		require.ErrorIs(t, err, eventlog.ErrLocked)
		until := 1 + random.IntN(20)
		for n := 0; ; n++ {
			if n == until {
				require.Empty(t, got, "another process holds the store too")
				_ = holder.cmd.Process.Kill()
				tally.kills.Add(1)
			}
			text, err := holder.line()
			if err != nil {
				break
			}
			require.False(t, isFailure(text), text)
			var a at
			require.NoError(t, json.Unmarshal([]byte(text), &a))
			require.True(t, len(all) == 0 || a.Seq > all[len(all)-1].Seq, "a seq was given twice")
			all = append(all, a)
		}
		_ = holder.cmd.Wait()
		require.Empty(t, holder.stderr.String())
	}
	for range 3 {
		(<-got).kill()
	}
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(t, err)
	requireAcked(t, s, all)
	require.NoError(t, s.Close())
	require.NoError(t, count(sound(dir)))
}

// requireAcked looks for acknowledged events of one session.
func requireAcked(t *testing.T, s *eventlog.Store, acks []at) {
	t.Helper()
	hashes := map[uint64]string{}
	err := s.Replay(ctx, acks[0].Session, false, func(ev *eventlog.Event) error {
		hashes[ev.Seq] = fmt.Sprintf("%x", ev.Hash)
		return nil
	})
	require.NoError(t, count(err))
	for _, a := range acks {
		if hashes[a.Seq] != a.Hash {
			require.NoError(t, count(fmt.Errorf("%w: seq %d", errLost, a.Seq)))
		}
		tally.acked.Add(1)
	}
}

// TestAReaderDoesNotHoldTheFile: somebody reads a log slowly, and somebody
// follows one, while others append. The appends go on, and the file grows by
// what is appended and not by what a reader kept from being used again.
func TestAReaderDoesNotHoldTheFile(t *testing.T) {
	grown := func(readers bool) int64 {
		dir := filepath.Join(fastDir(t), "store")
		p := plot{Seed: 901, Workers: 1}
		newPlot(t, dir, p)
		s, err := eventlog.Open(ctx, dir, eventlog.Options{})
		require.NoError(t, err)
		defer s.Close()
		id := p.session(0, 0)
		note := func(n int) {
			_, err := s.Append(ctx, eventlog.Batch{Session: id, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: "plugin/note",
				Media: eventlog.MediaOctets, Content: p.content(0, n, 0, 301)}}})
			require.NoError(t, count(err))
		}
		note(0)
		step, done := make(chan struct{}), make(chan error, 2)
		if readers {
			go func() {
				done <- s.Replay(ctx, id, true, func(*eventlog.Event) error { <-step; return nil })
			}()
			go func() {
				done <- s.Tail(ctx, id, 1, func(*eventlog.Event) error { <-step; return nil })
			}()
		}
		appends := scale(400, 20_000)
		for n := range appends {
			note(n)
			if readers && n%50 == 0 {
				step <- struct{}{}
			}
		}
		st, err := s.Stats()
		require.NoError(t, err)
		used := st.JournalBytes - int64(st.FreePages*st.PageSize)
		close(step)
		if readers {
			require.NoError(t, <-done)
			require.NoError(t, s.Close())
			require.ErrorIs(t, <-done, eventlog.ErrStoreClosed)
		}
		return used
	}
	without, with := grown(false), grown(true)
	require.LessOrEqual(t, with, without+without/4+64*4096, "bytes in use with readers, and without: %d", without)
}

// jumping is a clock that nobody can rely on.
func jumping(random *rand.Rand) func() time.Time {
	return func() time.Time { return time.Unix(int64(random.Uint32N(4_000_000_000)), 0) }
}

// TestCase61_AClockThatJumps: the same script under a clock that jumps back and
// forth by decades leaves the same logs and the same policies, but for times.
func TestCase61_AClockThatJumps(t *testing.T) {
	written := func(clock func() time.Time) string {
		dir := filepath.Join(fastDir(t), "store")
		r := newPlot(t, dir, plot{Seed: 902, Workers: 1, Shared: 1})
		s, err := eventlog.Open(ctx, dir, eventlog.Options{Clock: clock})
		require.NoError(t, err)
		sc := r.script(0)
		for range scale(40, 400) {
			o := sc.next()
			row, err := s.Row(o.session)
			require.NoError(t, err)
			a, err := o.do(s, r.plot, row.Head)
			require.NoError(t, count(err))
			r.add(a)
		}
		require.NoError(t, s.Close())
		require.NoError(t, count(r.settle(dir, eventlog.Options{Clock: clock})))
		require.NoError(t, count(reindexed(dir)))
		s, err = eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true, Clock: clock})
		require.NoError(t, err)
		defer s.Close()
		var ids []string
		err = s.EachRow(ctx, func(row *eventlog.Row) (bool, error) {
			err := s.Replay(ctx, row.Session, false, func(ev *eventlog.Event) error {
				if name := ev.ID.String(); !eventlog.IsClosed(ev.Type) {
					ids = append(ids, name)
				}
				ids = append(ids, fmt.Sprint(row.Session, ev.Seq, ev.Type))
				return nil
			})
			return true, err
		})
		require.NoError(t, err)
		return fmt.Sprint(ids)
	}
	random := rand.New(rand.NewPCG(11, 0))
	require.Equal(t, written(time.Now), written(jumping(random)))
}

// TestOpenAndCloseLeaveNothing: hundreds of opens, for reading and writing,
// with and without appends, some that fail because the store is held, leave no
// goroutine, no descriptor and no map.
func TestOpenAndCloseLeaveNothing(t *testing.T) {
	dir := filepath.Join(fastDir(t), "store")
	r := newPlot(t, dir, plot{Seed: 903, Workers: 1})
	id := r.session(0, 0)
	held := func() (files, maps, goroutines int) {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("needs /proc to count descriptors")
		}
		raw, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		for _, name := range []string{"store.db", "index.db"} {
			maps += strings.Count(string(raw), filepath.Join(dir, name))
		}
		return len(list), maps, runtime.NumGoroutine()
	}
	files, maps, goroutines := held()
	var acks []at
	for n := range scale(60, 800) {
		tally.rounds.Add(1)
		s, err := eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: n%3 == 2})
		require.NoError(t, count(err))
		_, err = eventlog.Open(ctx, dir, eventlog.Options{})
		require.ErrorIs(t, err, eventlog.ErrLocked)
		if n%3 == 1 {
			for range 1 + n%7 {
				res, err := s.Append(ctx, eventlog.Batch{Session: id, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: "plugin/note"}}})
				require.NoError(t, count(err))
				acks = append(acks, at{id, res.LastSeq, fmt.Sprintf("%x", res.Hash)})
			}
		}
		if n%5 == 0 {
			_, err := s.Read(ctx, id, eventlog.ReadOptions{})
			require.NoError(t, err)
		}
		require.NoError(t, count(s.Close()))
		_, err = s.Row(uuid.New())
		require.ErrorIs(t, err, eventlog.ErrStoreClosed)
	}
	for range 100 { // goroutines end a moment after they are told to
		if _, _, now := held(); now <= goroutines {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	nowFiles, nowMaps, nowGoroutines := held()
	require.Equal(t, []int{files, maps}, []int{nowFiles, nowMaps}, "descriptors and maps")
	require.LessOrEqual(t, nowGoroutines, goroutines)
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(t, err)
	requireAcked(t, s, acks)
	require.NoError(t, s.Close())
	require.NoError(t, count(sound(dir)))
}
