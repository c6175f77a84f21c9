package command

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUntilUnread: the watch ends with the reader or when it is stopped, and what
// has no reader that could go is not watched.
func TestUntilUnread(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	ctx, stop := untilUnread(context.Background(), w)
	require.NoError(t, ctx.Err())
	stop() // returns with the goroutine
	require.Error(t, ctx.Err())

	ctx, stop = untilUnread(context.Background(), w)
	require.NoError(t, r.Close())
	<-ctx.Done()
	stop()

	file, err := os.Create(t.TempDir() + "/out")
	require.NoError(t, err)
	defer file.Close()
	ctx, stop = untilUnread(context.Background(), file)
	require.NoError(t, ctx.Err())
	stop()
	_, stop = untilUnread(context.Background(), &bytes.Buffer{})
	stop()
}
