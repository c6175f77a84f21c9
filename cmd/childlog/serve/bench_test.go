package serve_test

import (
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/serve"
	"childlog/eventlog"
)

// BenchmarkAppend appends one event of 300 bytes a request from 64 callers: to
// a store of this process, to one through its socket, and through the command's
// through its socket.
func BenchmarkAppend(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "store")
	_, err := eventlog.Init(ctx, dir)
	require.NoError(b, err)
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	own := harness.On(s)
	serving(b, s, serve.Options{})
	socket, err := harness.Dial(ctx, "unix:"+dir, harness.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, socket.Close()) })
	for _, c := range []struct {
		name string
		h    harness.Harness
	}{{"embedded", own}, {"socket", socket}} {
		b.Run(c.name, func(b *testing.B) { appends(b, c.h) })
	}
}

const callers = 64

func appends(b *testing.B, h harness.Harness) {
	roots := make([]string, callers)
	for i := range roots {
		r, err := h.Root(ctx, harness.RootRequest{})
		require.NoError(b, err)
		roots[i] = r.Session
	}
	text := strings.Repeat("x", 300)
	var left atomic.Int64
	left.Store(int64(b.N))
	used := cpu(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	for _, id := range roots {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := h.Append(ctx, harness.AppendRequest{Session: id, Events: []harness.Event{{Type: "user/message", ContentText: &text}}}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64((cpu(b)-used).Microseconds())/float64(b.N), "cpu-us/event") // of both ends; a machine with other work shows it all the same
}

// cpu is the time that this process has had.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
