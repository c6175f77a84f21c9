package eventlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestOneWinnerForEachSeq: of 64 that expect the same head exactly one wins,
// and the others are told the truth about the head.
func TestOneWinnerForEachSeq(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	for head := uint64(1); head <= 20; head++ {
		var wg sync.WaitGroup
		var won atomic.Int32
		for i := range 64 {
			wg.Go(func() {
				res, err := ts.Append(ctx, Batch{Session: id, Expect: At(head), Events: []NewEvent{text(fmt.Sprint(i))}})
				var conflict *ConflictError
				switch {
				case err == nil:
					won.Add(1)
					if res.LastSeq != head+1 {
						t.Errorf("want seq %d, got %d", head+1, res.LastSeq)
					}
				case !errors.As(err, &conflict) || conflict.Expected != head || conflict.Actual != head+1:
					t.Errorf("round %d: %v", head, err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, int32(1), won.Load())
	}
	seqs, _ := ts.seqs(id)
	require.Equal(t, upTo(21), seqs)
}

// TestAnyIsGapless: 64 writers at the head of one session get distinct seqs
// without a gap, in the order of the log.
func TestAnyIsGapless(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	const writers, each = 64, 30
	results := make([][]Result, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				res, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text(fmt.Sprint(w, " ", i)), text("second")}})
				if err != nil {
					t.Error(err)
					return
				}
				results[w] = append(results[w], res)
			}
		})
	}
	wg.Wait()
	texts := ts.texts(id, 1)
	require.Len(t, texts, 1+2*writers*each)
	for w, list := range results {
		last := uint64(0)
		for i, res := range list {
			require.Equal(t, res.FirstSeq+1, res.LastSeq, "a batch is not torn apart")
			require.Greater(t, res.FirstSeq, last, "one writer's appends keep their order")
			last = res.LastSeq
			require.Equal(t, fmt.Sprint(w, " ", i), texts[res.FirstSeq-1])
		}
	}
}

// TestOrderOfOneGoroutine: batches that one goroutine queues for a session are
// committed in that order, also when a group is too large for a transaction
// and a part of it is put off.
func TestOrderOfOneGoroutine(t *testing.T) {
	ts := newStore(t, Options{groupBytes: 100_000})
	a, b := ts.root(sid(1)), ts.root(sid(2))
	large := noise(1, 30_000)
	var pending []*Pending
	ts.inOneGroup(func() {
		for i := range 24 {
			for _, id := range []uuid.UUID{a, b} {
				ev := text("small")
				if i%2 == 0 && id == a {
					ev = octets(large)
				}
				p, err := ts.AppendAsync(ctx, Batch{Session: id, Expect: At(uint64(i + 1)), Events: []NewEvent{ev}})
				require.NoError(t, err)
				pending = append(pending, p)
			}
		}
	})
	for i, p := range pending {
		res, err := p.Wait(ctx)
		require.NoError(t, err, "append %d", i)
		require.Equal(t, uint64(i/2+2), res.LastSeq)
	}
}

// registerInput is one append with an expected head, seen as an operation on
// the register "head of the session": a compare and set by one.
type registerInput struct{ expect uint64 }

type registerOutput struct {
	ok     bool
	actual uint64 // of a conflict
}

var headRegister = porcupine.Model{
	Init: func() any { return uint64(1) },
	Step: func(state, input, output any) (bool, any) {
		head, in, out := state.(uint64), input.(registerInput), output.(registerOutput)
		if in.expect == head {
			return out.ok, head + 1
		}
		return !out.ok && out.actual == head, head
	},
}

// TestAppendsAreLinearizable: what all callers were told fits one order in
// which each append took effect between its call and its answer.
func TestAppendsAreLinearizable(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	var mu sync.Mutex
	var ops []porcupine.Operation
	var wg sync.WaitGroup
	start := time.Now()
	for client := range 8 {
		wg.Go(func() {
			guess := uint64(1)
			for range 25 {
				call := time.Since(start).Nanoseconds()
				_, err := ts.Append(ctx, Batch{Session: id, Expect: At(guess), Events: []NewEvent{text("x")}})
				op := porcupine.Operation{ClientId: client, Input: registerInput{guess}, Call: call, Return: time.Since(start).Nanoseconds()}
				var conflict *ConflictError
				switch {
				case err == nil:
					op.Output = registerOutput{ok: true}
					guess++
				case errors.As(err, &conflict):
					op.Output = registerOutput{actual: conflict.Actual}
					guess = conflict.Actual
				default:
					t.Error(err)
					return
				}
				mu.Lock()
				ops = append(ops, op)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	result, _ := porcupine.CheckOperationsVerbose(headRegister, ops, 20*time.Second)
	require.NotEqual(t, porcupine.Illegal, result)
	lie := ops[len(ops)/2]
	lie.Output = registerOutput{actual: 999}
	require.False(t, porcupine.CheckOperations(headRegister, append(ops[:0:0], lie)), "the model can fail")
}

// TestReadersSeeWholeBatches: while writers append pairs, the fold, the log
// and the policy of a session agree with each other at any moment.
func TestReadersSeeWholeBatches(t *testing.T) {
	ts := newStore(t)
	const sessions = 4
	for i := range sessions {
		ts.root(sid(i))
	}
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			for n := 0; stop.Err() == nil; n++ {
				if n%10 == 0 {
					ts.narrow(sid(i))
				}
				_, err := ts.Append(ctx, Batch{Session: sid(i), Expect: Any(), Events: []NewEvent{text("a"), text("b")}})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for stop.Err() == nil {
			if err := ts.st.flush(ts.Store); err != nil {
				t.Error(err)
			}
		}
	})
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	for r := range rounds {
		id := sid(r % sessions)
		row, err := ts.Row(id)
		require.NoError(t, err)
		page, err := ts.Read(ctx, id, ReadOptions{From: row.Head - min(row.Head-1, 20)})
		require.NoError(t, err)
		require.Empty(t, page.Holes)
		require.GreaterOrEqual(t, page.Head, row.Head)
		events, at, err := ts.Policy(ctx, id, 0)
		require.NoError(t, err)
		require.Equal(t, at.LastPolicy, events[len(events)-1].Seq)
		n := 0
		require.NoError(t, ts.EachRow(ctx, func(*Row) (bool, error) { n++; return true, nil }))
		require.Equal(t, sessions, n)
	}
	cancel()
	wg.Wait()
}

// TestLongRunCrossesFlushes: so many frames that the index is flushed several
// times and the writers wait for it; it ends equal to a new index.
func TestLongRunCrossesFlushes(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = flushLagFrames + 2000
	}
	ts := newStore(t)
	const sessions = 50
	for i := range sessions {
		ts.root(sid(i))
	}
	queue := make([]*Pending, 0, n)
	for i := range n {
		p, err := ts.AppendAsync(ctx, Batch{Session: sid(i % sessions), Expect: Any(), Events: []NewEvent{{Type: "plugin/note", Facts: mustFacts(map[string]any{"n": i})}}})
		require.NoError(t, err)
		queue = append(queue, p)
	}
	for _, p := range queue {
		_, err := p.Wait(ctx)
		require.NoError(t, err)
	}
	st, err := ts.Stats()
	require.NoError(t, err)
	require.LessOrEqual(t, st.Lag, uint64(maxLagFrames+groupUnits))
	if !testing.Short() { // the short run may end before the background flush does
		require.Less(t, st.Lag, st.Frames, "it was flushed on the way")
	}
	before := ts.rows()
	require.NoError(t, ts.Close())
	rebuilt, err := Reindex(ctx, ts.dir, Options{})
	require.NoError(t, err)
	require.Zero(t, rebuilt.Lag)
	require.Equal(t, uint64(n+sessions), rebuilt.Events)
	ts.open()
	require.Equal(t, before, ts.rows())
}
