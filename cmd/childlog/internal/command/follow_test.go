package command

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/failure"
	"childlog/eventlog"
)

// A follower in another process prints what is appended as it comes, lets
// writers in, waits for one that stays, and ends with exit 0 when interrupted.
func TestLogFollow(t *testing.T) {
	dir := newStore(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := &exec.Cmd{Path: exe, Args: []string{"childlog", "--store", dir, "log", rootID, "-f", "--json"}} // TestMain goes by the name
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer cmd.Process.Kill() //nolint:errcheck // it has ended by then, or the test has failed

	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	next := func(want string) {
		t.Helper()
		select {
		case line := <-lines:
			require.Contains(t, line, want)
		case <-time.After(30 * time.Second):
			t.Fatalf("no line with %s", want)
		}
	}
	event := func(text string) string { return `{"type":"user/message","content_text":"` + text + `"}` }

	next(`"type":"session/created"`)
	for _, text := range []string{"one", "two"} {
		code, _, msg := inProcess(t, dir, event(text), "append", rootID, "--wait", "30s") // the follower may be at it
		require.Zero(t, code, msg)
	}
	next(`"content_text":"one"`)
	next(`"content_text":"two"`)

	s, err := eventlog.Open(context.Background(), dir, eventlog.Options{Wait: 10 * time.Second})
	require.NoError(t, err)
	id, err := s.Resolve(context.Background(), rootID)
	require.NoError(t, err)
	_, err = s.Append(context.Background(), eventlog.Batch{Session: id, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: "user/message", Media: eventlog.MediaText, Content: []byte("three")}}})
	require.NoError(t, err)
	select {
	case line := <-lines:
		t.Fatalf("a held store was read: %s", line)
	case <-time.After(2 * followPoll):
	}
	require.NoError(t, s.Close())
	next(`"content_text":"three"`)

	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	for range lines {
	}
	require.NoError(t, cmd.Wait())
}

// Input that never ends does not keep an interrupted command.
func TestInterruptedInput(t *testing.T) {
	dir := newStore(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	var out, msg strings.Builder
	require.Equal(t, failure.ExitInterrupted, Run(ctx, []string{"--store", dir, "append", rootID}, r, &out, &msg))
	require.Contains(t, msg.String(), "hint: ")
}
