package eventlog

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestCloseAnswersWhatIsQueued: everything that was taken in before is
// committed, everything after is refused, nobody is left waiting.
func TestCloseAnswersWhatIsQueued(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	entered, leave := make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = ts.Transact(ctx, EntryCreate, func(*View) ([]Batch, error) {
			close(entered)
			<-leave
			return nil, nil
		})
	}()
	<-entered
	var queued []*Pending
	for range 50 {
		p, err := ts.AppendAsync(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("queued")}})
		require.NoError(t, err)
		queued = append(queued, p)
	}
	closed := make(chan error)
	go func() { closed <- ts.Close() }()
	for !ts.Closed() {
		time.Sleep(time.Millisecond)
	}
	_, err := ts.AppendAsync(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("late")}})
	require.ErrorIs(t, err, ErrStoreClosed)
	close(leave)
	require.NoError(t, <-closed)
	for i, p := range queued {
		res, err := p.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, uint64(i+2), res.LastSeq)
	}
	require.NoError(t, ts.Close(), "closing twice is one close")
	ts.open()
	seqs, _ := ts.seqs(id)
	require.Equal(t, upTo(51), seqs)
}

// TestCloseWhileAppending: each append of many goroutines is either there or
// was refused as closed.
func TestCloseWhileAppending(t *testing.T) {
	for range 10 {
		ts := newStore(t)
		var wg sync.WaitGroup
		acked := make([]uint64, 16)
		for i := range acked {
			id := ts.root(sid(i))
			wg.Go(func() {
				for {
					_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("x")}})
					if err != nil {
						if !errors.Is(err, ErrStoreClosed) {
							t.Errorf("want ErrStoreClosed, got %v", err)
						}
						return
					}
					acked[i]++
				}
			})
		}
		time.Sleep(2 * time.Millisecond)
		require.NoError(t, ts.Close())
		wg.Wait()
		ts.open()
		for i, n := range acked {
			row, err := ts.Row(sid(i))
			require.NoError(t, err)
			require.Equal(t, n+1, row.Head)
		}
	}
}

// TestClosedStoreServesNothing: every method says so, and none panics.
func TestClosedStoreServesNothing(t *testing.T) {
	for _, opts := range []Options{{}, {ReadOnly: true}} {
		ts := newStore(t)
		id := ts.root(sid(1))
		ts.reopen(opts)
		require.False(t, ts.Closed())
		require.NoError(t, ts.Close())
		require.True(t, ts.Closed())
		s := ts.Store
		calls := map[string]func() error{
			"Row":        func() error { _, err := s.Row(id); return err },
			"Read":       func() error { _, err := s.Read(ctx, id, ReadOptions{}); return err },
			"Policy":     func() error { _, _, err := s.Policy(ctx, id, 0); return err },
			"Replay":     func() error { return s.Replay(ctx, id, true, func(*Event) error { return nil }) },
			"Tail":       func() error { return s.Tail(ctx, id, 1, func(*Event) error { return nil }) },
			"EachRow":    func() error { return s.EachRow(ctx, func(*Row) (bool, error) { return true, nil }) },
			"Resolve":    func() error { _, err := s.Resolve(ctx, id.String()); return err },
			"prefix":     func() error { _, err := s.Resolve(ctx, id.String()[:8]); return err },
			"ByExternal": func() error { _, err := s.ByExternal("codex", "x"); return err },
			"ByKey":      func() error { _, err := s.ByKey(id, "x"); return err },
			"Children":   func() error { _, err := s.Children(id); return err },
			"Consumed":   func() error { _, err := s.Consumed(id, uuid.New()); return err },
			"Stats":      func() error { _, err := s.Stats(); return err },
			"Check":      func() error { _, err := s.Check(ctx, CheckOptions{}); return err },
		}
		if !opts.ReadOnly {
			calls["Append"] = func() error {
				_, err := s.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("x")}})
				return err
			}
			calls["Transact"] = func() error {
				_, err := s.Transact(ctx, EntryCreate, func(*View) ([]Batch, error) { return nil, nil })
				return err
			}
		}
		for name, call := range calls {
			require.ErrorIs(t, call(), ErrStoreClosed, name)
		}
	}
}

// TestCloseWhileReading: readers in the middle of a page end with their page
// or with ErrStoreClosed.
func TestCloseWhileReading(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, numbers(2000)...)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				_, _, err := ts.Policy(ctx, id, 0)
				if err == nil {
					_, err = ts.Read(ctx, id, ReadOptions{})
				}
				if err == nil {
					_, err = ts.Stats()
				}
				if err == nil {
					err = ts.EachRow(ctx, func(*Row) (bool, error) { return true, nil })
				}
				if errors.Is(err, ErrStoreClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	time.Sleep(5 * time.Millisecond)
	require.NoError(t, ts.Close())
	wg.Wait()
}

// TestCanceledWhileWaiting: a caller that gives up does not know the outcome;
// its batch goes on, and a retry finds out.
func TestCanceledWhileWaiting(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	canceled, cancel := context.WithCancel(ctx)
	result := make(chan error, 1)
	ts.inOneGroup(func() {
		p, err := ts.AppendAsync(canceled, Batch{Session: id, Expect: At(1), Events: []NewEvent{named(eid(1), "x")}})
		require.NoError(t, err)
		go func() {
			_, err := p.Wait(canceled)
			result <- err
		}()
		cancel()
		err = <-result
		require.ErrorIs(t, err, ErrOutcomeUnknown)
		require.ErrorIs(t, err, context.Canceled)
	})
	res, err := ts.Append(ctx, Batch{Session: id, Expect: At(1), Events: []NewEvent{named(eid(1), "x")}})
	require.NoError(t, err)
	require.True(t, res.Replayed)

	_, err = ts.Append(canceled, Batch{Session: id, Expect: At(2), Events: []NewEvent{text("never queued")}})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrOutcomeUnknown, "it was not even queued")

	// An answer that is there is given, however late somebody asks.
	p, err := ts.AppendAsync(ctx, Batch{Session: id, Expect: At(2), Events: []NewEvent{text("y")}})
	require.NoError(t, err)
	_, err = p.Wait(ctx)
	require.NoError(t, err)
	for range 100 {
		_, err = p.Wait(canceled)
		require.NoError(t, err)
	}
}

// TestFullQueueWaits: a caller in front of a full queue can give up.
func TestFullQueueWaits(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	var last *Pending
	ts.inOneGroup(func() {
		for range queueLen {
			var err error
			last, err = ts.AppendAsync(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("x")}})
			require.NoError(t, err)
		}
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		_, err := ts.AppendAsync(short, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("too much")}})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "append not queued")
	})
	res, err := last.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, uint64(queueLen+1), res.LastSeq)
}
