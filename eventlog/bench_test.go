package eventlog

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// BenchmarkAppend appends events of 300 bytes to 1, 64 and 512 sessions, one
// goroutine each that waits for its append. The index lag at the end is
// reported, so that speed is not bought with it.
func BenchmarkAppend(b *testing.B) {
	for _, sessions := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			ts := newStore(b)
			for i := range sessions {
				ts.root(sid(i))
			}
			facts, err := MakeFacts(map[string]any{"call": "call-17", "tool": "read"})
			require.NoError(b, err)
			content := []byte(fmt.Sprintf("%0300d", 7))
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.SetBytes(int64(len(content)))
			b.ResetTimer()
			for i := range sessions {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := ts.Append(ctx, Batch{Session: sid(i), Expect: Any(), Events: []NewEvent{{Type: TypeToolCall, Facts: facts, Media: MediaText, Content: content}}}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			st, err := ts.Stats()
			require.NoError(b, err)
			b.ReportMetric(float64(st.Lag), "lag-frames")
		})
	}
}

// BenchmarkPolicy reads the policy of a session behind a short and a long
// conversation: the cost is that of the policy events.
func BenchmarkPolicy(b *testing.B) {
	for _, events := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("events=%d", events), func(b *testing.B) {
			ts := newStore(b)
			id := ts.root(sid(1))
			ts.narrow(id)
			ts.say(id, numbers(events)...)
			ts.flushIndex()
			for b.Loop() {
				if _, _, err := ts.Policy(ctx, id, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReplay reads a whole log with its contents, verified.
func BenchmarkReplay(b *testing.B) {
	ts := newStoreAt(b, filepath.Join(b.TempDir(), "store"))
	id := ts.root(sid(1))
	ts.say(id, numbers(50_000)...)
	for b.Loop() {
		n := 0
		if err := ts.Replay(ctx, id, true, func(*Event) error { n++; return nil }); err != nil || n != 50_001 {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(50_001*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkCopy copies a store of 1,000,000 events in batches of 100: the rate
// of each operation, and how much of the heap it took at most over what was
// there before.
func BenchmarkCopy(b *testing.B) {
	const batches = 10_000
	ts := newStore(b)
	fillBatches(b, ts, batches)
	n := 0
	for _, c := range []struct {
		name string
		run  func(b *testing.B)
	}{
		{"backup", func(b *testing.B) {
			n++
			_, err := ts.Backup(ctx, aside(ts, fmt.Sprint("backup", n)), BackupOptions{})
			require.NoError(b, err)
		}},
		{"measure", func(b *testing.B) {
			_, err := ts.Measure(ctx, nil)
			require.NoError(b, err)
		}},
		{"restore", func(b *testing.B) {
			n++
			_, err := Restore(ctx, aside(ts, "backup1"), aside(ts, fmt.Sprint("restored", n)), RestoreOptions{})
			require.NoError(b, err)
		}},
		{"compact", func(b *testing.B) {
			require.NoError(b, ts.Close())
			_, err := Compact(ctx, ts.dir, CompactOptions{})
			require.NoError(b, err)
			ts.open()
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			stop, peak := peakHeap()
			before := cpuTime()
			for b.Loop() {
				c.run(b)
			}
			stop()
			b.ReportMetric(100*batches*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric((cpuTime()-before).Seconds()*1e6/(100*batches*float64(b.N)), "cpu-us/event")
			b.ReportMetric(float64(peak.Load())/(1<<20), "peak-MiB")
		})
	}
}

// cpuTime is what this process has computed so far, whatever else the machine does.
func cpuTime() time.Duration {
	var r unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &r) // it has no other error than a wrong who
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// peakHeap watches the heap until stop: garbage that was not collected yet is in it.
func peakHeap() (stop func(), peak *atomic.Uint64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	base, done, peak := m.HeapAlloc, make(chan struct{}), new(atomic.Uint64)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapAlloc-min(base, m.HeapAlloc)))
		}
	})
	return func() { close(done); wg.Wait() }, peak
}
