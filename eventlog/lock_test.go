package eventlog

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func init() {
	roles["hold"] = func() { // opens the store, says so, and lives until its stdin ends
		s, err := Open(ctx, os.Getenv("STORE"), Options{Command: "childlog serve", ReadOnly: os.Getenv("READ") != ""})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		_, _ = io.Copy(io.Discard, os.Stdin)
		if err := s.Close(); err != nil {
			os.Exit(1)
		}
	}
}

// helper is another process that plays a role.
type helper struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func startHelper(t *testing.T, role string, env ...string) *helper {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, roleVar+"="+role)...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	h := &helper{cmd: cmd, stdin: stdin, lines: bufio.NewScanner(stdout)}
	t.Cleanup(func() { h.kill() })
	return h
}

func (h *helper) line() string {
	h.lines.Scan()
	return h.lines.Text()
}

func (h *helper) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

func (h *helper) finish(t *testing.T) {
	require.NoError(t, h.stdin.Close())
	require.NoError(t, h.cmd.Wait())
}

func emptyStore(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "store")
	_, err := Init(ctx, dir)
	require.NoError(t, err)
	return dir
}

// TestCase23_SecondOpenerFailsAtOnce, and is told who holds the store.
func TestCase23_SecondOpenerFailsAtOnce(t *testing.T) {
	dir := emptyStore(t)
	h := startHelper(t, "hold", "STORE="+dir)
	require.Equal(t, "held", h.line())
	for name, opts := range map[string]Options{"to write": {}, "to read": {ReadOnly: true}} {
		_, err := Open(ctx, dir, opts)
		var locked *LockedError
		require.ErrorAs(t, err, &locked, name)
		require.ErrorIs(t, err, ErrLocked)
		require.Equal(t, dir, locked.Path)
		require.Equal(t, h.cmd.Process.Pid, locked.PID)
		require.Equal(t, "childlog serve", locked.Command)
		require.False(t, locked.Since.IsZero())
		require.ErrorContains(t, err, fmt.Sprintf("store %s is held by pid %d (childlog serve) since", dir, h.cmd.Process.Pid))
	}
	_, err := Reindex(ctx, dir, Options{})
	require.ErrorIs(t, err, ErrLocked)
	h.finish(t)
	require.NoError(t, useStore(t, dir).Close())
	info, err := os.Stat(filepath.Join(dir, lockFile))
	require.NoError(t, err)
	require.Zero(t, info.Size(), "nobody is named who does not hold it")
}

// TestCase25_OpenerWaits about as long as it was told to.
func TestCase25_OpenerWaits(t *testing.T) {
	dir := emptyStore(t)
	h := startHelper(t, "hold", "STORE="+dir)
	require.Equal(t, "held", h.line())
	const wait = 300 * time.Millisecond
	start := time.Now()
	_, err := Open(ctx, dir, Options{Wait: wait})
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
	require.GreaterOrEqual(t, time.Since(start), wait)
	require.GreaterOrEqual(t, locked.Waited, wait)
	require.ErrorContains(t, err, "; waited ")
	require.Equal(t, h.cmd.Process.Pid, locked.PID)

	// A wait ends with its context, and with the holder.
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = Open(short, dir, Options{Wait: time.Hour})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	time.AfterFunc(50*time.Millisecond, func() { _ = h.stdin.Close() })
	s, err := Open(ctx, dir, Options{Wait: time.Hour})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// TestStartedProcessHoldsNothing: a program that starts others has copies of its
// descriptors in each of them for a moment. A store that it closed is free.
func TestStartedProcessHoldsNothing(t *testing.T) {
	ts := newStore(t)
	for _, opts := range []Options{{}, {ReadOnly: true}} {
		ts.reopen(opts)
		copied, err := unix.Dup(int(ts.lock.f.Fd()))
		require.NoError(t, err)
		defer unix.Close(copied)
		require.NoError(t, ts.Close())
		ts.open()
	}
}

// TestKilledHolderHoldsNothing: the kernel gives its lock back, and its name
// in the file is not believed.
func TestKilledHolderHoldsNothing(t *testing.T) {
	dir := emptyStore(t)
	h := startHelper(t, "hold", "STORE="+dir)
	require.Equal(t, "held", h.line())
	h.kill()
	reader := startHelper(t, "hold", "STORE="+dir, "READ=1")
	require.Equal(t, "held", reader.line())
	_, err := Open(ctx, dir, Options{})
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
	require.Zero(t, locked.PID, "the reader holds it, and readers leave no name")
	require.ErrorContains(t, err, "is held by another process")
	reader.finish(t)
	require.NoError(t, useStore(t, dir).Close())
}

// TestReadersShareTheStore, and a writer waits for all of them.
func TestReadersShareTheStore(t *testing.T) {
	ts := newStore(t)
	id := ts.root(sid(1))
	require.NoError(t, ts.Close())
	a, err := Open(ctx, ts.dir, Options{ReadOnly: true})
	require.NoError(t, err)
	b, err := Open(ctx, ts.dir, Options{ReadOnly: true})
	require.NoError(t, err)
	_, err = b.Append(ctx, Batch{Session: id, Expect: Any(), Events: []NewEvent{text("x")}})
	require.ErrorIs(t, err, ErrReadOnly)
	_, err = b.Transact(ctx, EntryOperator, func(*View) ([]Batch, error) { return nil, nil })
	require.ErrorIs(t, err, ErrReadOnly)
	for _, s := range []*Store{a, b} {
		_, err = Open(ctx, ts.dir, Options{})
		require.ErrorIs(t, err, ErrLocked)
		_, err = s.Row(id)
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	ts.open()
}

// TestStoreReplacedWhileOpening: bbolt locks the inode. A process that waits
// for the lock of a file that is replaced in the meantime gets the lock of an
// orphan and must not write to it.
func TestStoreReplacedWhileOpening(t *testing.T) {
	dir := emptyStore(t)
	err := replacedWhileOpening(t, dir)
	for try := 0; try < 20 && err != nil && !strings.Contains(err.Error(), "was replaced"); try++ { // bbolt waits for a second, a slow machine for longer
		require.ErrorIs(t, err, ErrLocked)
		err = replacedWhileOpening(t, dir)
	}
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, "was replaced while it was opened")
	require.NoError(t, useStore(t, dir).Close(), "the next attempt gets the new file")
}

// replacedWhileOpening returns what an opener is told whose file is replaced
// while it waits for the lock of it.
func replacedWhileOpening(t *testing.T, dir string) error {
	path := filepath.Join(dir, journalFile)
	held, err := os.Open(path)
	require.NoError(t, err)
	defer held.Close()
	require.NoError(t, unix.Flock(int(held.Fd()), unix.LOCK_EX))

	result := make(chan error, 1)
	go func() {
		s, err := Open(ctx, dir, Options{})
		if err == nil {
			err = s.Close()
		}
		result <- err
	}()
	// The opener waits in bbolt once it has the file open for longer than the
	// inspection before takes.
	for seen := 0; seen < 3; time.Sleep(20 * time.Millisecond) {
		if seen++; openCount(t, path) < 2 {
			seen = 0
		}
		if len(result) > 0 { // its second was over
			return <-result
		}
	}
	copyFile(t, path, path+".new")
	require.NoError(t, os.Rename(path+".new", path))
	require.NoError(t, unix.Flock(int(held.Fd()), unix.LOCK_UN))
	return <-result
}

// openCount is how many descriptors this process has of a file.
func openCount(t *testing.T, path string) (n int) {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc to see when the other opener waits")
	}
	for _, fd := range fds {
		if link, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && link == path {
			n++
		}
	}
	return n
}
