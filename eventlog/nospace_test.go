package eventlog

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
)

// noise is content that no compression shrinks.
func noise(seed uint64, n int) []byte {
	out := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(out)
	return out
}

func octets(b []byte) NewEvent {
	return NewEvent{Type: "user/message", Media: MediaOctets, Content: b}
}

// fill appends until there is no room and returns how many appends were
// acknowledged.
func fill(s *Store, id uuid.UUID, size int) (acked uint64, err error) {
	for {
		_, err := s.Append(ctx, Batch{Session: id, Expect: At(acked + 1), Events: []NewEvent{octets(noise(acked, size))}})
		if err != nil {
			return acked, err
		}
		acked++
	}
}

// TestCase24_NoSpace: an append that gets no room is refused and leaves
// nothing; when room appears the same handle goes on with the next seq.
func TestCase24_NoSpace(t *testing.T) {
	for _, max := range []int{1 << 20, 12 << 20} { // below and above the step by which the file grows
		t.Run(fmt.Sprint(max), func(t *testing.T) {
			ts := newStore(t, Options{MaxSize: max})
			id := ts.root(sid(1))
			acked, err := fill(ts.Store, id, 300_000)
			require.ErrorIs(t, err, ErrNoSpace)
			require.NotErrorIs(t, err, ErrOutcomeUnknown)
			require.NotZero(t, acked)
			info, err := os.Stat(filepath.Join(ts.dir, journalFile))
			require.NoError(t, err)
			require.LessOrEqual(t, info.Size(), int64(max), "the limit is the file's")

			row, err := ts.Row(id)
			require.NoError(t, err)
			require.Equal(t, acked+1, row.Head)
			seqs, holes := ts.seqs(id)
			require.Equal(t, upTo(acked+1), seqs)
			require.Empty(t, holes)
			_, err = ts.Append(ctx, Batch{Session: id, Expect: At(acked + 1), Events: []NewEvent{octets(noise(1, 600_000))}})
			require.ErrorIs(t, err, ErrNoSpace, "it stays refused")

			ts.journal.db.MaxSize = max + (8 << 20)
			ts.journal.measureRoom()
			res, err := ts.Append(ctx, Batch{Session: id, Expect: At(acked + 1), Events: []NewEvent{octets(noise(1, 300_000))}})
			require.NoError(t, err, "room appeared: no restart is needed")
			require.Equal(t, acked+2, res.LastSeq)
			require.NoError(t, ts.Close())
			requireSound(t, ts.dir)
		})
	}
}

// TestCase24_NoSpaceFailsTheGroup: of a group that does not fit nothing is
// acknowledged, and each caller is told.
func TestCase24_NoSpaceFailsTheGroup(t *testing.T) {
	ts := newStore(t, Options{MaxSize: 2 << 20})
	a, b := ts.root(sid(1)), ts.root(sid(2))
	var pending []*Pending
	for i := range 40 {
		for _, id := range []uuid.UUID{a, b} {
			p, err := ts.AppendAsync(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{octets(noise(uint64(i), 100_000))}})
			require.NoError(t, err)
			pending = append(pending, p)
		}
	}
	acked := map[uuid.UUID]uint64{a: 1, b: 1}
	refused := 0
	for _, p := range pending {
		res, err := p.Wait(ctx)
		if err != nil {
			require.ErrorIs(t, err, ErrNoSpace)
			refused++
			continue
		}
		require.Equal(t, acked[res.Session]+1, res.LastSeq, "no seq was used up by a refused append")
		acked[res.Session]++
	}
	require.NotZero(t, refused)
	for id, head := range acked {
		row, err := ts.Row(id)
		require.NoError(t, err)
		require.Equal(t, head, row.Head)
	}
}

func init() {
	roles["limited"] = func() {
		signal.Ignore(syscall.SIGXFSZ) // as a program that appends has to
		s, err := Open(ctx, os.Getenv("STORE"), Options{})
		exitOn(err)
		st, err := s.Stats()
		exitOn(err)
		var limit unix.Rlimit
		exitOn(unix.Getrlimit(unix.RLIMIT_FSIZE, &limit))
		limit.Cur = uint64(st.JournalBytes + 512<<10)
		exitOn(unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
		acked, err := fill(s, sid(1), 100_000)
		if !errors.Is(err, ErrNoSpace) {
			exitOn(fmt.Errorf("want ErrNoSpace, got %w", err))
		}
		limit.Cur = limit.Max
		exitOn(unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
		res, err := s.Append(ctx, Batch{Session: sid(1), Expect: At(acked + 1), Events: []NewEvent{text("room again")}})
		exitOn(err)
		exitOn(s.Close())
		fmt.Println(acked, res.LastSeq)
	}
}

// TestLockOnAFullDisk: the words for an error message have no room, and the lock
// is taken all the same: a narrowing may still fit into store.db.
func TestLockOnAFullDisk(t *testing.T) {
	h := startHelper(t, "lock without room", "STORE="+t.TempDir())
	line := h.line()
	require.NoError(t, h.cmd.Wait(), line)
	require.Equal(t, "locked", line)
}

func init() {
	roles["lock without room"] = func() {
		signal.Ignore(syscall.SIGXFSZ)
		var limit unix.Rlimit
		exitOn(unix.Getrlimit(unix.RLIMIT_FSIZE, &limit))
		limit.Cur = 0
		exitOn(unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
		held, err := acquireLock(ctx, os.Getenv("STORE"), true, 0, "first")
		exitOn(err)
		_, err = acquireLock(ctx, os.Getenv("STORE"), true, 0, "second")
		locked := (*LockedError)(nil)
		if !errors.As(err, &locked) || locked.PID != 0 {
			exitOn(fmt.Errorf("want a lock that names nobody, got %w", err))
		}
		exitOn(held.release(true))
		limit.Cur = limit.Max
		exitOn(unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
		fmt.Println("locked")
	}
}

// exitOn ends a process that plays a role.
func exitOn(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// TestCase24_FileSizeLimit: the same with a limit that the kernel enforces, in
// the middle of a commit.
func TestCase24_FileSizeLimit(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	require.NoError(t, ts.Close())
	h := startHelper(t, "limited", "STORE="+ts.dir)
	var acked, last uint64
	line := h.line()
	_, err := fmt.Sscan(line, &acked, &last)
	require.NoError(t, err, line)
	require.NoError(t, h.cmd.Wait(), line)
	require.Equal(t, acked+2, last)
	ts.open()
	seqs, _ := ts.seqs(sid(1))
	require.Equal(t, upTo(last), seqs)
}

// TestMaxSizeKeepsAReserve: where ordinary appends are refused at the largest
// size, what ends or narrows something still goes in, and only that.
func TestMaxSizeKeepsAReserve(t *testing.T) {
	ts := newStore(t, Options{MaxSize: 2 << 20})
	id := ts.root(sid(1))
	ts.activate(id, 1)
	in := func(ev NewEvent) error {
		_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Epoch: 1, Events: []NewEvent{ev}})
		return err
	}
	require.NoError(t, in(NewEvent{Type: TypeTurnStart, Facts: must(MakeFacts(map[string]any{"turn": 1}))}))
	for size := 100_000; size > 0; size /= 10 {
		for i := 0; ; i++ {
			if err := in(octets(noise(uint64(i), size))); err != nil {
				require.ErrorIs(t, err, ErrNoSpace)
				break
			}
		}
	}
	require.ErrorIs(t, in(text("")), ErrNoSpace, "full to the last event")
	result := must(MakeFacts(map[string]any{"call": "c", "outcome": "ok"}))
	require.NoError(t, in(NewEvent{Type: TypeToolResult, Facts: result, Media: MediaText, Content: []byte("done")}))
	require.ErrorIs(t, in(NewEvent{Type: TypeToolResult, Facts: result, Media: MediaOctets, Content: noise(1, 60_000)}), ErrNoSpace, "the reserve is not for what is large")
	require.NoError(t, in(NewEvent{Type: TypeTurnEnd, Facts: must(MakeFacts(map[string]any{"turn": 1}))}))
	ts.narrow(id)
	require.ErrorIs(t, in(text("")), ErrNoSpace, "nor for others")
	info, err := os.Stat(filepath.Join(ts.dir, journalFile))
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(2<<20))
}
