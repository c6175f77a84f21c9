package eventlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTailSeesEveryEventOnce: followers that start early, late and in the
// middle see each event once and in order while writers append.
func TestTailSeesEveryEventOnce(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	ts.say(id, numbers(9)...)
	const total, writers = 600, 4
	last := uint64(10 + total)
	var wg sync.WaitGroup
	errDone := errors.New("done")
	for _, from := range []uint64{0, 1, 5, 10, 11, 300} {
		wg.Go(func() {
			want := max(from, 1)
			err := ts.Tail(ctx, id, from, func(ev *Event) error {
				if ev.Seq != want {
					return fmt.Errorf("want seq %d, got %d", want, ev.Seq)
				}
				if ev.ContentErr != nil {
					return ev.ContentErr
				}
				if want++; ev.Seq == last {
					return errDone
				}
				return nil
			})
			if !errors.Is(err, errDone) {
				t.Errorf("from %d: %v", from, err)
			}
		})
	}
	for range writers {
		wg.Go(func() {
			for range total / writers {
				if _, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("x")}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestTailEnds with its context, with its function, and with the store.
func TestTailEnds(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	canceled, cancel := context.WithCancel(ctx)
	err := ts.Tail(canceled, id, 1, func(*Event) error { cancel(); return nil })
	require.ErrorIs(t, err, context.Canceled)
	own := errors.New("own")
	require.ErrorIs(t, ts.Tail(ctx, id, 1, func(*Event) error { return own }), own)
	require.ErrorIs(t, ts.Tail(ctx, sid(404), 1, func(*Event) error { return nil }), ErrNotFound)

	result := make(chan error, 1)
	seen := make(chan uint64, 10)
	go func() {
		result <- ts.Tail(ctx, id, 1, func(ev *Event) error { seen <- ev.Seq; return nil })
	}()
	require.Equal(t, uint64(1), <-seen)
	require.NoError(t, ts.Close())
	require.ErrorIs(t, <-result, ErrStoreClosed)

	ts.open(Options{ReadOnly: true})
	n := 0
	require.NoError(t, ts.Tail(ctx, id, 1, func(*Event) error { n++; return nil }), "nothing new can come")
	require.Equal(t, 1, n)
}

// TestTailDoesNotHoldUpWriters: a follower that never comes back from its
// function delays nobody.
func TestTailDoesNotHoldUpWriters(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- ts.Tail(ctx, id, 1, func(*Event) error {
			close(entered)
			<-leave
			return errors.New("enough")
		})
	}()
	<-entered
	ts.say(id, numbers(100)...)
	_, err := ts.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{octets(noise(1, 4<<20))}})
	require.NoError(t, err, "not even one for which the file has to grow")
	close(leave)
	require.EqualError(t, <-done, "enough")
}
