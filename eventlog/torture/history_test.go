package torture_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/eventlog"
)

// clients append to one session, each with the head that it believes in.
const clients = 64

// try is an append with an expected head: an operation on the register "head
// of the session", which it compares and sets. Its times are those of the
// system's monotonic clock, so tries of several processes can be compared.
type try struct {
	Client       int
	ID           uuid.UUID
	Expect       uint64
	Call, Return int64
	OK           bool
	Found        bool
	Actual       uint64 // the head as it was told: after it, or in a conflict
}

func monotonic() int64 {
	var ts unix.Timespec
	fail(unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts))
	return ts.Nano()
}

func (y *try) do(s *eventlog.Store, session uuid.UUID) error {
	res, err := s.Append(ctx, eventlog.Batch{Session: session, Expect: eventlog.At(y.Expect), Events: []eventlog.NewEvent{{ID: y.ID, Type: "plugin/note"}}})
	y.Return = monotonic()
	var conflict *eventlog.ConflictError
	switch {
	case err == nil:
		y.OK, y.Found, y.Actual = true, res.Replayed, res.LastSeq
	case errors.As(err, &conflict):
		y.Actual = conflict.Actual
	default:
		return err
	}
	return nil
}

func init() {
	// 64 clients compete for each seq, say what they are about to do and what
	// came of it, and now and then repeat what was acknowledged.
	roles["compete"] = func() {
		a := assigned()
		s, err := eventlog.Open(ctx, a.Dir, eventlog.Options{})
		fail(err)
		session := a.Plot.session(0, 0)
		row, err := s.Row(session)
		fail(err)
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(a.From[0]), uint64(c)))
				believed := row.Head
				for range a.Count {
					y := try{Client: c, ID: uuid.New(), Expect: believed, Call: monotonic()}
					sayLine(y)
					fail(y.do(s, session))
					believed = y.Actual
					sayLine(y)
					if y.OK && random.IntN(3) == 0 { // the reply was lost
						again := y
						fail(again.do(s, session))
						if !again.OK || !again.Found || again.Actual != y.Actual {
							fail(errLost)
						}
					}
				}
			})
		}
		wg.Wait()
		fail(s.Close())
	}
}

// headRegister is the head of the session, compared and set by one.
var headRegister = porcupine.Model{
	Init: func() any { return uint64(2) }, // a root with an override
	Step: func(state, _, output any) (bool, any) {
		head, y := state.(uint64), output.(try)
		if y.Expect == head {
			return y.OK && y.Actual == head+1, head + 1
		}
		return !y.OK && y.Actual == head, head
	},
}

// linear looks for an order that explains what all were told. A history in
// which 64 clients overlap has too many orders to try. But a conflict names the
// head at which it took effect, and says no more than that this head was not
// over when it was called and had begun when it returned. So of those that
// name one head the last to be called and the first to return say it all.
func linear(done map[uuid.UUID]try) error {
	var ops []porcupine.Operation
	last, first := map[uint64]try{}, map[uint64]try{}
	add := func(y try) {
		ops = append(ops, porcupine.Operation{ClientId: len(ops), Call: y.Call, Output: y, Return: y.Return})
	}
	for _, y := range done {
		if y.OK {
			add(y)
			continue
		}
		if y.Expect == y.Actual {
			return fmt.Errorf("it expected head %d, the head was %d, and that was a conflict", y.Expect, y.Actual)
		}
		if was, ok := last[y.Actual]; !ok || y.Call > was.Call {
			last[y.Actual] = y
		}
		if was, ok := first[y.Actual]; !ok || y.Return < was.Return {
			first[y.Actual] = y
		}
	}
	for head, y := range last {
		add(y)
		if first[head].ID != y.ID {
			add(first[head])
		}
	}
	if result := porcupine.CheckOperationsTimeout(headRegister, ops, time.Minute); result != porcupine.Ok {
		return fmt.Errorf("an order of %d appends that explains what they were told: %s", len(ops), result)
	}
	return nil
}

// TestOneHistory: 64 clients on one expected seq, with repetitions, in several
// processes that are killed one after the other; what a kill left open is
// repeated by the next. What all of them were told fits one order, in which
// each append took effect between its first call and its last answer.
func TestOneHistory(t *testing.T) {
	first := try{Expect: 2, OK: true, Actual: 3, Call: 1, Return: 2}
	second := try{ID: uuid.UUID{2}, Expect: 2, OK: true, Actual: 3, Call: 3, Return: 4}
	require.Error(t, linear(map[uuid.UUID]try{{1}: first, {2}: second}), "two won the same seq")
	second = try{ID: uuid.UUID{2}, Expect: 9, Actual: 2, Call: 3, Return: 4}
	require.Error(t, linear(map[uuid.UUID]try{{1}: first, {2}: second}), "one was told of a head that was over")
	for n := range scale(1, 30) {
		dir := filepath.Join(fastDir(t), "store")
		r := newPlot(t, dir, plot{Seed: uint32(1000 + n), Workers: 1})
		session := r.session(0, 0)
		random := rand.New(rand.NewPCG(12, uint64(n)))
		done, open := map[uuid.UUID]try{}, map[uuid.UUID]try{}
		for kill := range scale(3, 5) {
			h := startHelper(t, "compete", assignment{Plot: r.plot, Dir: dir, Count: 10, From: []int{kill}}.env())
			until := 80 + random.IntN(700)
			for lines := 0; ; lines++ {
				if lines == until {
					_ = h.cmd.Process.Kill()
					tally.kills.Add(1)
				}
				text, err := h.line()
				if err != nil {
					break
				}
				var y try
				require.False(t, isFailure(text), text)
				require.NoError(t, json.Unmarshal([]byte(text), &y))
				if open[y.ID] = y; y.Return != 0 {
					done[y.ID] = y
					delete(open, y.ID)
				}
			}
			_ = h.cmd.Wait()
			require.Empty(t, h.stderr.String())
			s, err := eventlog.Open(ctx, dir, eventlog.Options{})
			require.NoError(t, err)
			for id, y := range open { // in any order
				require.NoError(t, count(y.do(s, session)))
				done[id] = y
				delete(open, id)
			}
			require.NoError(t, s.Close())
		}
		won := uint64(0)
		for _, y := range done {
			if y.OK {
				won++
			}
		}
		require.NoError(t, count(linear(done)), "history %d of %d appends", n, len(done))
		tally.histories.Add(1)
		s, err := eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true})
		require.NoError(t, err)
		row, err := s.Row(session)
		require.NoError(t, err)
		require.Equal(t, won+2, row.Head, "each winner has a seq of its own")
		tally.acked.Add(int64(won))
		require.NoError(t, count(clean(s)))
		require.NoError(t, s.Close())
	}
}
