package torture_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/eventlog"
)

var ctx = context.Background()

// A process that is to be killed, traced or left to hang is this binary again,
// with roleVar set to the part it plays.
const roleVar = "CHILDLOG_TORTURE_ROLE"

var roles = map[string]func(){}

// tally counts what a run did and what it found. The second half must stay 0.
var tally struct {
	rounds, kills, faults, images, flips, cuts, histories, acked atomic.Int64

	lost, partial, panics, policies, other atomic.Int64
}

func summary() string {
	var b strings.Builder
	for _, c := range []struct {
		name string
		n    *atomic.Int64
	}{
		{"rounds", &tally.rounds}, {"kills", &tally.kills}, {"injected faults", &tally.faults}, {"crash images", &tally.images},
		{"flips", &tally.flips}, {"truncations", &tally.cuts}, {"histories", &tally.histories}, {"acknowledged events checked", &tally.acked},
		{"lost events", &tally.lost}, {"partial units", &tally.partial}, {"panics and hangs", &tally.panics},
		{"wrong policies", &tally.policies}, {"other breaches", &tally.other},
	} {
		fmt.Fprintf(&b, "torture: %-28s %d\n", c.name, c.n.Load())
	}
	return b.String()
}

// What a check can find. Each is a breach of the contract and is counted.
var (
	errLost    = errors.New("an acknowledged event is lost or changed")
	errPartial = errors.New("a unit is there in part")
	errPanic   = errors.New("a process died or hung")
	errPolicy  = errors.New("another policy")
)

// count notes what a breach was and returns it.
func count(err error) error {
	switch {
	case err == nil:
	case errors.Is(err, errLost):
		tally.lost.Add(1)
	case errors.Is(err, errPartial):
		tally.partial.Add(1)
	case errors.Is(err, errPanic):
		tally.panics.Add(1)
	case errors.Is(err, errPolicy):
		tally.policies.Add(1)
	default:
		tally.other.Add(1)
	}
	return err
}

// breach finds the sentinel of an error that came from another process as text.
func breach(text string) error {
	for _, known := range []error{errLost, errPartial, errPanic, errPolicy} {
		if strings.Contains(text, known.Error()) {
			return fmt.Errorf("%w (%s)", known, text)
		}
	}
	return errors.New(text)
}

func TestMain(m *testing.M) {
	if role := roles[os.Getenv(roleVar)]; role != nil {
		role()
		return
	}
	code := m.Run()
	if left := goroutinesLeft(); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, "goroutines outlived their store:\n"+left)
		code = 1
	}
	fmt.Print(summary())
	if path := os.Getenv("CHILDLOG_TORTURE_COUNTS"); path != "" {
		if err := os.WriteFile(path, []byte(summary()), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// goroutinesLeft returns the stacks of the store's goroutines, after some
// patience for those that are on their way out.
func goroutinesLeft() (left string) {
	for range 100 {
		left = ""
		buf := make([]byte, 1<<20)
		for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(stack, "childlog/eventlog.(") {
				left += stack + "\n\n"
			}
		}
		if left == "" {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return left
}

// scale is how often something is done: in the short form, in the long one.
func scale(short, long int) int {
	if testing.Short() {
		return short
	}
	return long
}

// fastDir is a directory in memory where there is one: what is done there tests
// the code and not the disk.
func fastDir(t testing.TB) string {
	t.Helper()
	if unix.Access("/dev/shm", unix.W_OK) != nil {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "childlog-torture-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// helper is another process that plays a role.
type helper struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  *bufio.Reader
	stderr strings.Builder
}

func startHelper(t testing.TB, role string, env ...string) *helper {
	t.Helper()
	h := &helper{cmd: exec.Command(os.Args[0])}
	h.cmd.Env = append(os.Environ(), append(env, roleVar+"="+role)...)
	h.cmd.Stderr = &h.stderr
	var err error
	h.stdin, err = h.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := h.cmd.StdoutPipe()
	require.NoError(t, err)
	h.lines = bufio.NewReader(stdout)
	require.NoError(t, h.cmd.Start())
	t.Cleanup(h.kill)
	return h
}

// line is the next line that the helper says, without its end. A last line
// that was cut off is none.
func (h *helper) line() (string, error) {
	text, err := h.lines.ReadString('\n')
	return strings.TrimSuffix(text, "\n"), err
}

func (h *helper) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

// fail ends a process that plays a role.
func fail(err error) {
	if err != nil {
		fmt.Printf("failed: %v\n", err)
		os.Exit(1)
	}
}

// copyStore copies the files of a store that nobody has open.
func copyStore(t testing.TB, from, to string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(to, 0o700))
	names, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, e := range names {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(to, e.Name()), b, 0o600))
	}
}

// sound runs the full check over a store that nobody has open.
func sound(dir string) error {
	s, err := eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer s.Close()
	return clean(s)
}

func clean(s *eventlog.Store) error {
	report, err := s.Check(ctx, eventlog.CheckOptions{})
	if err == nil && !report.OK() {
		err = fmt.Errorf("the full check finds %+v", report.Findings)
	}
	return err
}
