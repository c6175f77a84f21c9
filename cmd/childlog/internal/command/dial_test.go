package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/holder"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
)

// Who took the store to serve it does not answer before the store is open. A
// command that comes meanwhile waits for it, whether it says so in LOCK or the
// command was told to wait. Who will not serve is reported at once.
func TestCommandsWaitForWhoBeginsToServe(t *testing.T) {
	for _, c := range []struct {
		holder string
		args   []string
		want   int
	}{
		{serveCommand, []string{"ls"}, failure.ExitOK},
		{"a program", []string{"ls", "--wait", "1m"}, failure.ExitOK},
		{"a program", []string{"ls"}, failure.ExitUnavailable},
	} {
		s := storetest.Open(t, eventlog.Options{Command: c.holder})
		dir := s.Dir()
		var out, msg bytes.Buffer
		ran := make(chan int, 1)
		go func() {
			ran <- Run(context.Background(), append([]string{"--store", dir}, c.args...), strings.NewReader(""), &out, &msg)
		}()
		if c.want != failure.ExitOK {
			require.Equal(t, c.want, <-ran)
			require.Contains(t, msg.String(), c.holder)
			continue
		}
		sleep(t.Context(), 5*lookAgain) // usually it has looked by then; either way it has to get through
		ctx, stop := context.WithCancel(context.Background())
		held := access.Hold(s, access.HoldOptions{Command: c.holder})
		served := make(chan error, 1)
		go func() { served <- holder.Serve(ctx, held, holder.Options{Run: Runner(held)}) }()
		require.Equal(t, c.want, <-ran, msg.String())
		stop()
		require.NoError(t, <-served)
	}
}

// TestAStoreIsNamedAsItsCallerNamesIt, whoever holds it under what name.
func TestAStoreIsNamedAsItsCallerNamesIt(t *testing.T) {
	s := storetest.New(t)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(s.Dir(), link))
	ctx, stop := context.WithCancel(t.Context())
	held := access.Hold(s, access.HoldOptions{Command: serveCommand})
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() {
		served <- holder.Serve(ctx, held, holder.Options{Run: Runner(held), Ready: func() { close(ready) }})
	}()
	<-ready
	var out, msg bytes.Buffer
	require.Equal(t, failure.ExitOK, Run(t.Context(), []string{"--store", link, "stats", "--json"}, strings.NewReader(""), &out, &msg), msg.String())
	require.Contains(t, out.String(), `"path":"`+link+`"`)
	stop()
	require.NoError(t, <-served)
}
