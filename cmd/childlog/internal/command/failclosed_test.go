package command

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/forward"
	"childlog/eventlog"
)

// TestFailClosed: a guard ends with 0 or 2 and, unless it answered, with a reason.
func TestFailClosed(t *testing.T) {
	for code := range 256 {
		var said bytes.Buffer
		got := failClosed([]string{"guard", "claude-code"}, &said, func() int { return code })
		switch code {
		case 0, 2:
			require.Equal(t, code, got)
		default:
			require.Equal(t, 2, got)
			require.NotEmpty(t, said.String())
		}
		require.Zero(t, failClosed([]string{"guard", "codex", "--observe"}, io.Discard, func() int { return code }))
		require.Equal(t, code, failClosed([]string{"ls"}, io.Discard, func() int { return code }), "other commands are run as they are")
	}
	var said bytes.Buffer
	require.Equal(t, 2, failClosed([]string{"guard", "codex"}, &said, func() int { panic("at the disco") }))
	require.Contains(t, said.String(), "at the disco")
	require.Panics(t, func() { failClosed([]string{"ls"}, io.Discard, func() int { panic("of another command") }) })
}

// TestFailClosedUnderSignals: a terminal that goes away, and more than one
// interrupt, do not end a guard: to a harness that would be leave.
func TestFailClosedUnderSignals(t *testing.T) {
	require.Zero(t, failClosed([]string{"guard", "codex"}, io.Discard, func() int {
		for range 2 {
			for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGPIPE} {
				require.NoError(t, syscall.Kill(os.Getpid(), sig))
			}
		}
		return 0
	}))
}

// TestGuardWithoutAnOutput: a denial that goes to the null device, as with a
// stdout that was closed or sent away, is told by the exit code.
func TestGuardWithoutAnOutput(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s")
	_, err := eventlog.Init(t.Context(), store)
	require.NoError(t, err)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	for args, want := range map[string]int{"": 2, "--observe": 0} {
		var said bytes.Buffer
		denied := strings.NewReplacer("Read", "Write", `"t"`, `"u"`).Replace(guardedCall)
		args := append([]string{"--store", store, "guard", "claude-code"}, strings.Fields(args)...)
		require.Equal(t, want, Run(t.Context(), args, strings.NewReader(denied), null, &said))
		require.Equal(t, want == 2, strings.Contains(said.String(), "path_unknown"), said.String())
		require.Zero(t, Run(t.Context(), args, strings.NewReader(guardedCall), null, &said), "silence needs nobody who reads it")
	}
}

// TestTakeAll: a harness that still writes is not cut off, and one that never
// ends is not waited for.
func TestTakeAll(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	takeAll(r, time.Millisecond)
	wrote := make(chan error)
	go func() {
		_, err := w.Write(make([]byte, 1<<20)) // more than a pipe holds
		w.Close()
		wrote <- err
	}()
	takeAll(r, time.Minute)
	require.NoError(t, <-wrote)
}

// TestRunsGuard: a command line that means a guard is known as one, also if it is
// wrong; others are left alone.
func TestRunsGuard(t *testing.T) {
	for line, want := range map[string]bool{
		"guard": true, "guard codex": true, "--store x guard codex": true, "--store=x --json guard": true, "--wait 5s --key-file k guard claude-code": true,
		"--bogus guard codex": true, "--bogus x guard codex": true, "-x guard": true, "--store": false, "": false, "ls": false, "ls guard": false,
		"root --label guard": false, "--store guard ls": false, "help guard": false, "guards": false, "--": false, "-- guard": true,
	} {
		require.Equal(t, want, runsGuard(strings.Fields(line)), line)
	}
	require.Equal(t, 2*time.Second, guardDeadline([]string{"guard", "codex", "--timeout", "2s"}))
	require.Equal(t, 2*time.Second, guardDeadline([]string{"guard", "--timeout=2s"}))
	for _, line := range []string{"guard", "guard --timeout", "guard --timeout -1s", "guard --timeout soon", "guard --timeout=0s"} {
		require.Equal(t, guardTimeout, guardDeadline(strings.Fields(line)), line)
	}
}

// runGuard runs a guard on a store and returns what a harness gets.
func runGuard(t *testing.T, store, event string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, said bytes.Buffer
	args = append([]string{"--store", store, "guard", "claude-code"}, args...)
	code = Run(context.Background(), args, strings.NewReader(event), &out, &said)
	code = failClosed(args, &said, func() int { return code }) // afterwards: its last resort ends the process
	require.Contains(t, []int{0, 2}, code)
	if code == 2 {
		require.NotEmpty(t, strings.TrimSpace(said.String()))
	}
	return out.String(), said.String(), code
}

const (
	guardedCall = `{"session_id":"s","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Read","tool_use_id":"t","tool_input":{}}`
	guardedStop = `{"session_id":"s","cwd":"/w","hook_event_name":"Stop"}`
)

// TestGuardAndALostHolder: a holder that takes the work and goes away, that never
// answers, or that answers anything else, is no leave.
func TestGuardAndALostHolder(t *testing.T) {
	const taken = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + forward.Protocol + "\r\n\r\n"
	frame := func(kind byte, body string) string {
		return string([]byte{kind, 0, 0, byte(len(body) >> 8), byte(len(body))}) + body
	}
	for name, says := range map[string]string{
		"it is gone":             taken,
		"half a frame":           taken + "o\x00\x00\x00\x40{",
		"an answer, no end":      taken + frame('o', "{\"verb\":0}\n"),
		"an end, no answer":      taken + frame('x', `{"code":0}`),
		"half an answer":         taken + frame('o', `{"verb":`) + frame('x', `{"code":0}`),
		"an answer of no verb":   taken + frame('o', "{}\n") + frame('x', `{"code":0}`),
		"an answer of more":      taken + frame('o', "{\"verb\":9}\n") + frame('x', `{"code":0}`),
		"a failure":              taken + frame('x', `{"code":1}`),
		"a code of its own":      taken + frame('x', `{"code":-7}`),
		"something else":         "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"something else yet":     "hello\r\n\r\n",
		"nothing, and it stays":  "",
		"a frame of no protocol": taken + frame('?', "x"),
	} {
		t.Run(name, func(t *testing.T) {
			store := filepath.Join(t.TempDir(), "s")
			_, err := eventlog.Init(t.Context(), store)
			require.NoError(t, err)
			held, err := eventlog.Open(t.Context(), store, eventlog.Options{Command: "a holder"})
			require.NoError(t, err)
			defer held.Close()
			path, done, err := forward.Short(store, forward.Socket)
			require.NoError(t, err)
			defer done()
			l, err := net.Listen("unix", path)
			require.NoError(t, err)
			defer l.Close()
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = bufio.NewReader(conn).ReadString('\n')
					_, _ = io.WriteString(conn, says)
					if says != "" {
						conn.Close()
					}
				}
			}()
			out, said, code := runGuard(t, store, guardedCall, "--timeout", "1s")
			require.Equal(t, 2, code, "%s%s", out, said)
			require.Empty(t, out)
			out, said, code = runGuard(t, store, guardedStop, "--timeout", "1s")
			require.Zero(t, code, said)
			require.Contains(t, out, "systemMessage")
			_, _, code = runGuard(t, store, guardedCall, "--timeout", "1s", "--observe")
			require.Zero(t, code)
		})
	}
}

// TestGuardWithoutItsInput: who never sends the event, or never takes the answer,
// is not waited for.
func TestGuardWithoutItsInput(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	var said bytes.Buffer
	args := []string{"--store", t.TempDir(), "guard", "codex", "--timeout", "50ms"}
	require.Equal(t, failure.ExitUsage, Run(context.Background(), args, r, io.Discard, &said))
	require.Contains(t, said.String(), "no answer within 50ms")

	store := filepath.Join(t.TempDir(), "s")
	_, err := eventlog.Init(t.Context(), store)
	require.NoError(t, err)
	args = []string{"--store", store, "guard", "claude-code", "--profile", "read-only"}
	denied := strings.Replace(guardedCall, "Read", "Write", 1)
	require.Equal(t, 2, Run(context.Background(), args, strings.NewReader(denied), broken{}, &said), "a denial that can't be told blocks all the same")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, fmt.Errorf("nobody reads") }
