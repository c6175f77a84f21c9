package torture_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// fill appends to a session until there is no room, and returns the head. Size
// is that of the contents; 0: events without one.
func fill(t *testing.T, s *eventlog.Store, id uuid.UUID, size int) (head uint64) {
	t.Helper()
	p := plot{Seed: 1}
	for n := range 100_000 {
		row, err := s.Row(id)
		require.NoError(t, err)
		ev := eventlog.NewEvent{Type: "plugin/note"}
		if size > 0 {
			ev.Media, ev.Content = eventlog.MediaOctets, p.content(0, n, 0, size|1)
		}
		_, err = s.Append(ctx, eventlog.Batch{Session: id, Expect: eventlog.At(row.Head), Events: []eventlog.NewEvent{ev}})
		if err == nil {
			continue
		}
		require.NoError(t, countUnless(err, eventlog.ErrNoSpace))
		require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown)
		after, err := s.Row(id)
		require.NoError(t, err)
		require.Equal(t, row.Head, after.Head, "the refused append left nothing")
		return row.Head
	}
	t.Fatal("the disk is never full")
	return 0
}

// countUnless counts an error that is not the expected one.
func countUnless(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return count(err)
}

func init() {
	// Appends under a limit of the file's size that the kernel enforces, in
	// the middle of a commit or of a flush of the index, and goes on when it is gone.
	roles["limited"] = func() {
		a := assigned()
		signal.Ignore(syscall.SIGXFSZ)
		s, err := eventlog.Open(ctx, a.Dir, eventlog.Options{})
		fail(err)
		sc := a.Plot.script(0)
		for range a.From[0] {
			sc.next()
		}
		var limit unix.Rlimit
		fail(unix.Getrlimit(unix.RLIMIT_FSIZE, &limit))
		free := limit
		refused := 0
		for range a.Count {
			o := sc.next()
			row, err := s.Row(o.session)
			fail(err)
			limit.Cur = 16<<10 + rand.Uint64N(400<<10)
			fail(unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
			done, err := o.do(s, a.Plot, row.Head)
			fail(unix.Setrlimit(unix.RLIMIT_FSIZE, &free))
			if errors.Is(err, eventlog.ErrNoSpace) {
				refused++
				done, err = o.do(s, a.Plot, row.Head)
			}
			fail(err)
			sayLine(done)
		}
		fail(s.Close())
		fmt.Println("refused", refused)
	}
}

// TestCase24_FileSizeLimits: each operation of a script meets a limit somewhere
// in the file. It is done, or refused and then done without a restart.
func TestCase24_FileSizeLimits(t *testing.T) {
	refused := 0
	for n := range scale(2, 20) {
		dir := filepath.Join(fastDir(t), "store")
		r := newPlot(t, dir, plot{Seed: uint32(810 + n), Workers: 1, Small: true})
		h := startHelper(t, "limited", assignment{Plot: r.plot, Dir: dir, From: r.acked, Count: 80}.env())
		for {
			text, err := h.line()
			require.NoError(t, count(err), h.stderr.String())
			require.False(t, isFailure(text), text)
			var n int
			if _, err := fmt.Sscanf(text, "refused %d", &n); err == nil {
				refused += n
				break
			}
			require.NoError(t, r.note(text))
		}
		require.NoError(t, h.cmd.Wait())
		require.NoError(t, count(r.settle(dir, eventlog.Options{})), "seed %d", r.Seed)
	}
	require.Positive(t, refused, "the limit was met")
	tally.faults.Add(int64(refused))
}

// TestCase24_MaxSize: at the largest size of the store ordinary appends are
// refused for want of space, whatever their size, and nothing is lost.
func TestCase24_MaxSize(t *testing.T) {
	dir := filepath.Join(fastDir(t), "store")
	r := newPlot(t, dir, plot{Seed: 830, Workers: 1})
	id := r.session(0, 0)
	const limit = 2 << 20
	s, err := eventlog.Open(ctx, dir, eventlog.Options{MaxSize: limit})
	require.NoError(t, err)
	head := fill(t, s, id, 5000)
	_, err = replay.Narrow(ctx, s, replay.Narrowing{Session: id, Sandbox: &policy.Setting{Mode: policy.ReadOnly}, Reason: string(make([]byte, 60_000))})
	require.NoError(t, count(err), "a right can be taken away all the same")
	head++
	info, err := os.Stat(filepath.Join(dir, "store.db"))
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(limit))
	require.NoError(t, s.Close())
	s, err = eventlog.Open(ctx, dir, eventlog.Options{MaxSize: 2 * limit})
	require.NoError(t, err)
	res, err := s.Append(ctx, eventlog.Batch{Session: id, Expect: eventlog.At(head), Events: []eventlog.NewEvent{{Type: "plugin/note"}}})
	require.NoError(t, err)
	require.Equal(t, head+1, res.LastSeq)
	require.NoError(t, s.Close())
	require.NoError(t, count(sound(dir)))
}

// TestMaxSizeKeepsAReserve: where ordinary appends are refused at the largest
// size, what ends something still goes in: the end of a turn, a settlement with
// the end of its activation, a closing.
func TestMaxSizeKeepsAReserve(t *testing.T) {
	dir := filepath.Join(fastDir(t), "store")
	r := newPlot(t, dir, plot{Seed: 831, Workers: 1})
	s, err := eventlog.Open(ctx, dir, eventlog.Options{MaxSize: 2 << 20})
	require.NoError(t, err)
	defer s.Close()
	root := r.session(0, 0)
	child, err := materialize.Delegate(ctx, s, root, snapshot.Options{}, materialize.Request{})
	require.NoError(t, err)
	active, err := replay.Activate(ctx, s, child.ID, replay.AsOperator())
	require.NoError(t, err)
	turn, err := eventlog.MakeFacts(map[string]any{"turn": 1})
	require.NoError(t, err)
	inTurn := func(typ string) error {
		_, err := s.Append(ctx, eventlog.Batch{Session: child.ID, Expect: eventlog.Any(), Epoch: active.Epoch, Events: []eventlog.NewEvent{{Type: typ, Facts: turn}}})
		return err
	}
	require.NoError(t, inTurn(eventlog.TypeTurnStart))
	fill(t, s, root, 5000)
	head := fill(t, s, root, 0) // to the last page
	for _, end := range []struct {
		name string
		do   func() error
	}{
		{"turn/end", func() error { return inTurn(eventlog.TypeTurnEnd) }},
		{"settle", func() error { _, err := replay.Settle(ctx, s, child.ID, active.Epoch, "completed"); return err }},
		{"close", func() error { _, err := replay.Close(ctx, s, child.ID); return err }},
	} {
		require.NoError(t, count(end.do()), end.name)
	}
	require.Equal(t, head, fill(t, s, root, 0), "the reserve is not for others")
}
