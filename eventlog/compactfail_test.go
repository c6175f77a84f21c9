package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestCompactNeedsRoom, says how much, and writes nothing without it.
func TestCompactNeedsRoom(t *testing.T) {
	ts := variedStore(t)
	require.NoError(t, ts.Close())
	room(t, 7_000_000)
	requireUntouched(t, filepath.Join(ts.dir, journalFile), func() {
		_, err := Compact(ctx, ts.dir, CompactOptions{at: func(step string) error { return errors.New("it went on to " + step) }})
		var ns *NoSpaceError
		require.ErrorAs(t, err, &ns)
		require.ErrorIs(t, err, ErrNoSpace)
		require.EqualValues(t, 7_000_000, ns.Free)
		require.Greater(t, ns.Need, uint64(7_000_000))
		require.Equal(t, ts.dir, ns.Path)
	})
	room(t, 70_000_000)
	compact(t, ts.dir)
}

// room lets the file system have so much space, for the rest of the test.
func room(t *testing.T, free uint64) {
	was := freeSpace
	t.Cleanup(func() { freeSpace = was })
	freeSpace = func(string) (uint64, error) { return free, nil }
}

func TestFreeSpace(t *testing.T) {
	free, err := freeSpace(t.TempDir())
	require.NoError(t, err)
	require.NotZero(t, free)
	_, err = freeSpace(filepath.Join(t.TempDir(), "none"))
	require.Error(t, err)
}

func init() {
	roles["compact-limited"] = func() { // the kernel ends the copy in the middle
		signal.Ignore(syscall.SIGXFSZ)
		limit := unix.Rlimit{Cur: 3 << 20, Max: unix.RLIM_INFINITY}
		exitOn(unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
		_, err := Compact(ctx, os.Getenv("STORE"), CompactOptions{})
		fmt.Println(errors.Is(err, ErrNoSpace), err)
	}
	roles["compact-crash"] = func() { // is killed at a step
		_, err := Compact(ctx, os.Getenv("STORE"), CompactOptions{at: func(step string) error {
			if step == os.Getenv("STEP") {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				time.Sleep(time.Minute)
			}
			return nil
		}})
		fmt.Println("not killed:", err)
	}
	roles["compact"] = func() { // waits at its steps for a line
		in := make([]byte, 1)
		_, err := Compact(ctx, os.Getenv("STORE"), CompactOptions{Command: "childlog compact", at: func(step string) error {
			fmt.Println(step)
			_, err := os.Stdin.Read(in)
			return err
		}})
		exitOn(err)
		fmt.Println("done")
	}
	roles["wait"] = func() { // waits for the store and appends
		fmt.Println("waiting")
		s, err := Open(ctx, os.Getenv("STORE"), Options{Wait: time.Minute})
		exitOn(err)
		res, err := s.Append(ctx, Batch{Session: sid(1), Expect: Any(), Events: []NewEvent{text("from the waiter")}})
		exitOn(err)
		exitOn(s.Close())
		fmt.Println("appended", res.LastSeq)
	}
}

// TestCompactWithoutRoomOnTheWay: the copy ends in the middle; the store is
// what it was and goes on.
func TestCompactWithoutRoomOnTheWay(t *testing.T) {
	ts := variedStore(t)
	require.NoError(t, ts.Close())
	requireUntouched(t, filepath.Join(ts.dir, journalFile), func() {
		h := startHelper(t, "compact-limited", "STORE="+ts.dir)
		require.Regexp(t, `^true .*(file too large|no space)`, h.line())
		require.NoError(t, h.cmd.Wait())
	})
	require.NotContains(t, filesOf(t, ts.dir), compactFile)
	ts.open()
	ts.say(sid(50), "it goes on")
}

// compactSteps are all steps of a compaction, in order.
func compactSteps(t *testing.T) (steps []string) {
	dir := emptyStore(t)
	ts := useStore(t, dir)
	ts.root(sid(1))
	require.NoError(t, ts.Close())
	_, err := Compact(ctx, dir, CompactOptions{at: func(step string) error { steps = append(steps, step); return nil }})
	require.NoError(t, err)
	require.Equal(t, []string{"created", "page", "synced", "compared", "before rename", "renamed"}, steps)
	return steps
}

// TestCompactFailsAtEachStep, with an error or by a kill: the store is whole,
// old or new, and whoever writes next finds no leftovers.
func TestCompactFailsAtEachStep(t *testing.T) {
	whole := steppedStore(t)
	require.NoError(t, whole.Close())
	for _, step := range compactSteps(t) {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s killed=%t", step, killed), func(t *testing.T) {
				ts := &testStore{t: t, dir: filepath.Join(t.TempDir(), "store")}
				t.Cleanup(ts.finish)
				copyDir(t, whole.dir, ts.dir)
				path := filepath.Join(ts.dir, journalFile)
				before := contentsOf(t, ts.dir)
				was, err := os.Stat(path)
				require.NoError(t, err)
				if killed {
					h := startHelper(t, "compact-crash", "STORE="+ts.dir, "STEP="+step)
					require.Empty(t, h.line())
				} else {
					failed := errors.New("failed here")
					_, err := Compact(ctx, ts.dir, CompactOptions{at: func(s string) error {
						if s == step {
							return failed
						}
						return nil
					}})
					require.ErrorIs(t, err, failed)
				}
				is, err := os.Stat(path)
				require.NoError(t, err)
				require.Equal(t, step == "renamed", !os.SameFile(was, is), "it is the old file until it is the new one")
				left := killed && step != "renamed" && step != "created"
				requireUntouched(t, ts.dir, func() { // a reader changes nothing
					requireSound(t, ts.dir)
					require.Equal(t, left, strings.Contains(strings.Join(filesOf(t, ts.dir), " "), compactFile))
				})
				require.Equal(t, before, contentsOf(t, ts.dir))
				ts.open() // a writer tidies up
				require.NotContains(t, filesOf(t, ts.dir), compactFile)
				require.Empty(t, ts.Notices())
				ts.say(sid(0), "it goes on")
				if step == "page" {
					compactAgain(t, ts)
				}
			})
		}
	}
}

// TestCompactIsCancelled between two pages.
func TestCompactIsCancelled(t *testing.T) {
	ts := variedStore(t)
	require.NoError(t, ts.Close())
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err := Compact(short, ts.dir, CompactOptions{at: func(step string) error {
		if step == "page" {
			cancel()
		}
		return nil
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, filesOf(t, ts.dir), compactFile)
}

// TestCase65_WaiterAcrossACompaction: a process that waits for the lock while
// the store is compacted appends to the new file.
func TestCase65_WaiterAcrossACompaction(t *testing.T) {
	ts := newStore(t)
	ts.root(sid(1))
	ts.say(sid(1), numbers(20)...)
	require.NoError(t, ts.Close())
	path := filepath.Join(ts.dir, journalFile)
	old, err := os.Open(path)
	require.NoError(t, err)
	defer old.Close()
	was, err := old.Stat()
	require.NoError(t, err)

	c := startHelper(t, "compact", "STORE="+ts.dir)
	require.Equal(t, "created", c.line())
	w := startHelper(t, "wait", "STORE="+ts.dir)
	require.Equal(t, "waiting", w.line())
	_, err = Open(ctx, ts.dir, Options{})
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, "childlog compact", locked.Command)
	for _, step := range []string{"page", "synced", "compared", "before rename", "renamed", "done"} {
		time.Sleep(2 * lockPoll) // the waiter looks at each step
		_, err := c.stdin.Write([]byte("\n"))
		require.NoError(t, err)
		require.Equal(t, step, c.line())
	}
	require.NoError(t, c.cmd.Wait())
	require.Equal(t, "appended 22", w.line())
	require.NoError(t, w.cmd.Wait())

	is, err := os.Stat(path)
	require.NoError(t, err)
	require.False(t, os.SameFile(was, is))
	orphan, err := old.Stat()
	require.NoError(t, err)
	require.Equal(t, was.ModTime(), orphan.ModTime(), "nobody wrote to the old file")
	ts.open()
	require.Equal(t, []string{"message 20", "from the waiter"}, ts.texts(sid(1), 21))
}
