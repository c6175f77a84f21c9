package materialize_test

import (
	"context"
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
	ctx, cancel := context.WithTimeout(bg, 500*time.Millisecond)
	defer cancel()
	_, err = materialize.Root(ctx, s, materialize.RootRequest{})
	require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	close(leave)
	<-done
}
