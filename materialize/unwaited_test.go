package materialize_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
)

// TestRootThatIsNotWaitedFor: the plan goes on, with variables of its own; the
// race detector watches.
func TestRootThatIsNotWaitedFor(t *testing.T) {
	bg := context.Background()
	dir := filepath.Join(t.TempDir(), "store")
	_, err := eventlog.Init(bg, dir)
	require.NoError(t, err)
	s, err := eventlog.Open(bg, dir, eventlog.Options{})
	require.NoError(t, err)
	defer s.Close()
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := s.Transact(bg, eventlog.EntryCreate, func(*eventlog.View) ([]eventlog.Batch, error) {
			close(entered)
			<-leave
			return nil, nil
		})
		done <- err
	}()
	<-entered
	for wait := time.Millisecond; ; wait *= 2 { // until it is queued in time
		ctx, cancel := context.WithTimeout(bg, wait)
		_, err = materialize.Root(ctx, s, materialize.RootRequest{})
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		if errors.Is(err, eventlog.ErrOutcomeUnknown) {
			break
		}
	}
	close(leave)
	<-done
}
