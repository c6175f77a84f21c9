package torture_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/eventlog"
	"childlog/replay"
)

const fileVar = "CHILDLOG_TORTURE_FILE"

func init() {
	// Reads and writes from all sides while the file is cut under the open
	// handle, so that the memory map faults, as it does when the disk is gone.
	roles["vanish"] = func() {
		a := assigned()
		path := filepath.Join(a.Dir, os.Getenv(fileVar))
		whole, err := os.ReadFile(path)
		fail(err)
		signed, err := os.ReadFile(filepath.Join(a.Dir, "CHECKPOINT"))
		fail(err)
		s, err := eventlog.Open(ctx, a.Dir, eventlog.Options{})
		fail(err)
		id := a.Plot.session(0, 0)
		var wg sync.WaitGroup
		var mu sync.Mutex
		stop := make(chan struct{})
		for n := range 12 {
			wg.Go(func() {
				for stopped := false; !stopped; {
					select {
					case <-stop:
						stopped = true // and once more, after the cut
					default:
					}
					var err error
					switch n % 6 {
					case 0:
						_, err = s.Append(ctx, eventlog.Batch{Session: id, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: "plugin/note"}}})
					case 1:
						_, err = s.Read(ctx, id, eventlog.ReadOptions{Contents: true})
					case 2:
						_, err = replay.Policy(ctx, s, id, 0)
					case 3:
						err = s.Replay(ctx, id, true, func(ev *eventlog.Event) error { return ev.ContentErr })
					case 4:
						err = s.EachRow(ctx, func(*eventlog.Row) (bool, error) { return true, nil })
					case 5:
						_, err = s.Check(ctx, eventlog.CheckOptions{})
					}
					switch {
					case err == nil, errors.Is(err, eventlog.ErrCorrupt), errors.Is(err, eventlog.ErrReadOnly), errors.Is(err, eventlog.ErrOutcomeUnknown),
						errors.Is(err, eventlog.ErrPolicyUnreadable), errors.Is(err, eventlog.ErrStoreClosed):
					default:
						mu.Lock()
						fmt.Printf("failed: %d: %v\n", n, err)
						mu.Unlock()
						return
					}
				}
			})
		}
		time.Sleep(30 * time.Millisecond)
		fail(os.Truncate(path, int64(a.Count)))
		time.Sleep(30 * time.Millisecond)
		close(stop)
		wg.Wait()
		closeErr := s.Close()
		// The disk is back, as it was before anything was appended.
		fail(os.WriteFile(path, whole, 0o600))
		if path != filepath.Join(a.Dir, "index.db") {
			fail(os.Remove(filepath.Join(a.Dir, "index.db")))
			fail(os.WriteFile(filepath.Join(a.Dir, "CHECKPOINT"), signed, 0o600)) // which else has seen what is gone
		}
		if err := sound(a.Dir); err != nil {
			fail(fmt.Errorf("the handle was closed (%v) and: %w", closeErr, err))
		}
		fmt.Println("ok")
	}
}

// TestTheDiskIsGone: the file ends, at different places, under a handle that is
// used by many. Every call comes back with an error or what it read before;
// the process lives, and closes the handle.
func TestTheDiskIsGone(t *testing.T) {
	for n := range scale(6, 60) {
		dir := filepath.Join(fastDir(t), "store")
		r := newPlot(t, dir, plot{Seed: 950, Workers: 1})
		_, err := eventlog.Reindex(ctx, dir, eventlog.Options{}) // there is something in it to fault on
		require.NoError(t, err)
		file := []string{"store.db", "index.db"}[n%2]
		size := []int{0, 1, 4096, 8192, 12288, 20480}[n/2%6] + n/12*4096
		h := startHelper(t, "vanish", assignment{Plot: r.plot, Dir: dir, Count: size}.env(), fileVar+"="+file)
		late := time.AfterFunc(time.Minute, func() { _ = h.cmd.Process.Signal(unix.SIGQUIT) }) // which says where it hangs
		answer, err := h.line()
		late.Stop()
		if err != nil {
			_ = h.cmd.Wait()
			err = fmt.Errorf("%w: %w %s", errPanic, err, h.stderr.String())
		} else if answer != "ok" {
			err = breach(answer)
		}
		require.NoError(t, count(err), "%s cut to %d bytes", file, size)
		tally.faults.Add(1)
	}
}
