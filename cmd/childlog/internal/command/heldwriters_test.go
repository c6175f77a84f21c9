package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/forward"
	"childlog/cmd/childlog/internal/holder"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
)

// heldStore serves a new store with one root until the test ends.
func heldStore(t *testing.T, root string) (dir string) {
	dir = t.TempDir() + "/store"
	_, err := eventlog.Init(t.Context(), dir)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- access.Serve(ctx, access.Place{Dir: dir, Command: "childlog serve"}, func(ctx context.Context, held *access.Held) error {
			return holder.Serve(ctx, held, holder.Options{Run: Runner(held), Ready: func() { close(ready) }})
		})
	}()
	select {
	case <-ready:
	case err := <-done:
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		storetest.RequireSound(t, dir)
	})
	var out, msg bytes.Buffer
	require.Zero(t, Run(t.Context(), []string{"--store", dir, "root", "--id", root}, strings.NewReader(""), &out, &msg), msg.String())
	return dir
}

// TestManyWritersThroughAHolder: 50 commands at a time are all acknowledged, and
// the seqs have no gap.
func TestManyWritersThroughAHolder(t *testing.T) {
	const root, writers = "11111111-0000-4000-8000-000000000000", 50
	dir := heldStore(t, root)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			var out, msg bytes.Buffer
			line := fmt.Sprintf(`{"type":"user/message","content_text":"from %d"}`, i)
			if code := Run(t.Context(), []string{"--store", dir, "append", root}, strings.NewReader(line), &out, &msg); code != 0 {
				t.Errorf("exit code %d: %s", code, msg.String())
			}
		})
	}
	all.Wait()
	var out, msg bytes.Buffer
	require.Zero(t, Run(t.Context(), []string{"--store", dir, "log", root, "--json", "--no-content"}, strings.NewReader(""), &out, &msg))
	for seq, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		require.Contains(t, line, fmt.Sprintf(`"seq":%d,`, seq+1))
	}
	require.Equal(t, 1+writers, strings.Count(out.String(), "\n"))
}

// TestHolderLendsNoOther: a caller that says so itself gets nothing run that is
// not the store's, whatever the command line says.
func TestHolderLendsNoOther(t *testing.T) {
	dir := heldStore(t, "11111111-0000-4000-8000-000000000000")
	elsewhere := t.TempDir() + "/new"
	for _, args := range [][]string{
		{"--store", elsewhere, "init"}, {"restore", dir, "--to", elsewhere}, {"salvage", "--to", elsewhere}, {"demo"}, {"serve"}, {"token", "new", "--role", "operator"},
		{"accept-rollback", "--reason", "x"}, {"verify", "--bundle", "x"}, {"scope", "check", "--fs", "x"}, {"types"},
	} {
		call, err := forward.Dial(t.Context(), dir)
		require.NoError(t, err)
		var out, msg bytes.Buffer
		code, err := call.Run(t.Context(), forward.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &msg, Files: files.Local{}, Getenv: os.Getenv}, args)
		require.NoError(t, err)
		require.Equal(t, failure.ExitUsage, code, "%v: %s", args, msg.String())
		require.Empty(t, out.String(), args)
	}
	require.NoDirExists(t, elsewhere)
}

// TestOtherVersion: what the caller's version knows and the holder's does not is
// no mistake of whoever typed it.
func TestOtherVersion(t *testing.T) {
	dir := heldStore(t, "11111111-0000-4000-8000-000000000000")
	call, err := forward.Dial(t.Context(), dir)
	require.NoError(t, err)
	var out, msg bytes.Buffer
	env := forward.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &msg, Files: files.Local{}, Getenv: os.Getenv, Version: "99.0"}
	code, err := call.Run(t.Context(), env, []string{"ls", "--flag-of-the-future"})
	require.NoError(t, err)
	require.Equal(t, failure.ExitUnavailable, code)
	require.Contains(t, msg.String(), "the caller 99.0")
	require.Contains(t, msg.String(), "start the process that holds the store again")
}
