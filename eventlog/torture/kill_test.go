package torture_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

// newPlot makes a store in which a plot may begin, and its record.
func newPlot(t testing.TB, dir string, p plot) *record {
	t.Helper()
	_, err := eventlog.Init(ctx, dir)
	require.NoError(t, err)
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(t, err)
	require.NoError(t, p.set(s))
	require.NoError(t, s.Close())
	return p.record()
}

// TestKilledAtAnyMoment kills a process that writes with several goroutines,
// again and again: while it appends, while its index is written, while it
// opens and closes. After each kill the contract is held against what the
// process was told; then the next one goes on with the same store.
func TestKilledAtAnyMoment(t *testing.T) {
	stores, rounds := scale(2, 100), scale(8, 25)
	for n := range stores {
		base := t.TempDir()
		if n%2 == 1 {
			base = fastDir(t)
		}
		dir := filepath.Join(base, "store")
		r := newPlot(t, dir, plot{Seed: uint32(n + 1), Workers: 1 + n%7, Shared: 2, Small: n%3 == 2})
		random := rand.New(rand.NewPCG(1, uint64(n)))
		for round := range rounds {
			err := killOnce(t, r, dir, random)
			require.NoError(t, count(err), "store %d, round %d", n, round)
		}
		require.NoError(t, count(reindexed(dir)), "store %d", n)
	}
}

func killOnce(t *testing.T, r *record, dir string, random *rand.Rand) error {
	tally.rounds.Add(1)
	h := startHelper(t, "write", assignment{Plot: r.plot, Dir: dir, From: r.acked, Cycle: random.IntN(3) == 0}.env())
	defer h.kill()
	// Half of the time after so many acknowledgements, which is in the middle
	// of things; half of the time after a while, which may be in an open.
	acks := random.IntN(40)
	if random.IntN(2) == 0 {
		acks = -1
		after := time.Duration(random.IntN(80)) * time.Millisecond
		if random.IntN(20) == 0 {
			after = time.Duration(450+random.IntN(200)) * time.Millisecond // the index is written by its timer
		}
		timer := time.AfterFunc(after, func() { _ = h.cmd.Process.Kill() })
		defer timer.Stop()
	}
	for n := 0; ; n++ {
		if n == acks {
			time.Sleep(time.Duration(random.IntN(3000)) * time.Microsecond)
			_ = h.cmd.Process.Kill()
		}
		text, err := h.line()
		if err != nil {
			break // the pipe ended with the process
		}
		if isFailure(text) {
			return breach(text)
		}
		if err := r.note(text); err != nil {
			return err
		}
	}
	_ = h.cmd.Wait()
	if h.stderr.Len() > 0 {
		return fmt.Errorf("%w: %s", errPanic, h.stderr.String())
	}
	tally.kills.Add(1)
	return r.settle(dir, eventlog.Options{})
}

// reindexed compares every row with that of an index built anew.
func reindexed(dir string) error {
	rows := func() (out []string, err error) {
		s, err := eventlog.Open(ctx, dir, eventlog.Options{})
		if err != nil {
			return nil, err
		}
		defer s.Close()
		err = s.EachRow(ctx, func(row *eventlog.Row) (bool, error) {
			out = append(out, fmt.Sprintf("%+v", *row))
			return true, nil
		})
		return out, err
	}
	before, err := rows()
	if err != nil {
		return err
	}
	st, err := eventlog.Reindex(ctx, dir, eventlog.Options{})
	if err != nil {
		return err
	}
	after, err := rows()
	if err != nil {
		return err
	}
	if st.Lag != 0 || fmt.Sprint(before) != fmt.Sprint(after) {
		return fmt.Errorf("the index answers\n%v\na new one\n%v", before, after)
	}
	return sound(dir)
}
