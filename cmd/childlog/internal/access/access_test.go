package access

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
)

func place(t *testing.T) Place {
	p := Place{Dir: filepath.Join(t.TempDir(), "store"), Command: "a test"}
	require.False(t, Exists(p))
	_, err := Init(context.Background(), p)
	require.NoError(t, err)
	require.True(t, Exists(p))
	return p
}

func nothing(*eventlog.Store) error { return nil }

// A reader passes in a moment and is waited for, also without a wait; a writer
// that lives names itself and is reported at once.
func TestWaitForReadersOnly(t *testing.T) {
	ctx, p := context.Background(), place(t)
	require.Eventually(t, func() bool { // a busy machine may take longer than the grace to close it
		reader, err := eventlog.Open(ctx, p.Dir, eventlog.Options{ReadOnly: true})
		require.NoError(t, err)
		closed := make(chan error)
		time.AfterFunc(readerGrace/10, func() { closed <- reader.Close() })
		err = Write(ctx, p, nothing)
		require.NoError(t, <-closed)
		return err == nil
	}, time.Minute, time.Millisecond)

	writer, err := eventlog.Open(ctx, p.Dir, eventlog.Options{Command: "the holder"})
	require.NoError(t, err)
	for _, use := range []func(context.Context, Place, func(*eventlog.Store) error) error{Read, Write} {
		err := use(ctx, p, nothing)
		le := (*eventlog.LockedError)(nil)
		require.True(t, errors.As(err, &le), "%v", err)
		require.Equal(t, "the holder", le.Command)
	}
	require.NoError(t, writer.Close())

	// A reader that stays is an error too, in the end.
	reader, err := eventlog.Open(ctx, p.Dir, eventlog.Options{ReadOnly: true})
	require.NoError(t, err)
	require.ErrorIs(t, Write(ctx, p, nothing), eventlog.ErrLocked)
	require.NoError(t, Read(ctx, p, nothing), "readers do not keep each other out")
	require.NoError(t, reader.Close())
}

func TestErrorsPassThrough(t *testing.T) {
	ctx, p := context.Background(), place(t)
	mine := errors.New("mine")
	require.ErrorIs(t, Read(ctx, p, func(*eventlog.Store) error { return mine }), mine)
	require.ErrorIs(t, Write(ctx, p, func(*eventlog.Store) error { return mine }), mine)
	_, err := Init(ctx, p)
	require.ErrorIs(t, err, eventlog.ErrExists)
	id, stats, err := Reindex(ctx, p)
	require.NoError(t, err)
	require.NotZero(t, id.Store)
	require.Zero(t, stats.Events)
	p.Dir += "x"
	require.ErrorIs(t, Read(ctx, p, nothing), eventlog.ErrNotFound)
	require.ErrorIs(t, &CloseError{mine}, mine)
}

// TestStampOfTwoCommitsInATick: where the time of a file is too coarse to tell two
// writers apart, and the second finds room in it, the stamp does.
func TestStampOfTwoCommitsInATick(t *testing.T) {
	ctx, p := context.Background(), place(t)
	file := filepath.Join(p.Dir, "store.db")
	seen := map[string]bool{}
	var tick time.Time
	for i := range 4 {
		require.NoError(t, Write(ctx, p, func(s *eventlog.Store) error {
			_, err := materialize.Root(ctx, s, materialize.RootRequest{Label: "x"})
			return err
		}))
		if i == 0 {
			fi, err := os.Stat(file)
			require.NoError(t, err)
			tick = fi.ModTime()
		}
		require.NoError(t, os.Chtimes(file, tick, tick))
		require.False(t, seen[Stamp(p)], "commit %d", i)
		seen[Stamp(p)] = true
		require.True(t, seen[Stamp(p)], "it stays where nothing is written")
	}
	require.Contains(t, Stamp(Place{Dir: p.Dir + "x"}), "no such file")
}

// A store that was moved away while it is held is not followed by whatever lies
// in its place when it is opened again.
func TestAnotherStoreInItsPlace(t *testing.T) {
	ctx, p := context.Background(), place(t)
	err := Serve(ctx, p, func(ctx context.Context, held *Held) error {
		require.NoError(t, held.alone(ctx, p, func() error { return nil }))
		require.NoError(t, held.Use(ctx, nothing))
		require.NoError(t, os.Rename(p.Dir, p.Dir+".moved"))
		_, err := Init(ctx, p)
		require.NoError(t, err)
		require.ErrorIs(t, held.alone(ctx, p, func() error { return nil }), eventlog.ErrStoreLost)
		require.ErrorIs(t, held.Use(ctx, nothing), eventlog.ErrStoreLost)
		return nil
	})
	require.NoError(t, err)
}
