package torture_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/policy"
	"childlog/replay"
)

// heap watches how much memory is in use at its peak, bytes.
type heap struct {
	stop, done chan struct{}
	peak       uint64
}

func watchHeap() *heap {
	runtime.GC()
	h := &heap{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(h.done)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			h.peak = max(h.peak, m.HeapInuse)
			select {
			case <-h.stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return h
}

func (h *heap) end() uint64 {
	close(h.stop)
	<-h.done
	return h.peak
}

// grown is what a large store says of itself, and the memory that took.
type grown struct {
	Sessions, Events, Rows int
	Head                   uint64
	Policy                 int // events it took to know the policy
	Findings               int
	OpenPeak, ReadPeak     uint64 // heap, bytes
	CheckPeak              uint64
}

func init() {
	// Opens a large store and looks at all of it.
	roles["large"] = func() {
		a := assigned()
		id := a.Plot.session(0, 0)
		var g grown
		h := watchHeap()
		s, err := eventlog.Open(ctx, a.Dir, eventlog.Options{ReadOnly: true})
		fail(err)
		st, err := s.Stats()
		fail(err)
		g.Sessions, g.Events = int(st.Sessions), int(st.Events)
		fail(s.EachRow(ctx, func(*eventlog.Row) (bool, error) { g.Rows++; return true, nil }))
		e, err := replay.Policy(ctx, s, id, 0)
		fail(err)
		g.Policy = len(e.Seqs())
		g.OpenPeak = h.end()
		h = watchHeap()
		fail(s.Replay(ctx, id, true, func(ev *eventlog.Event) error { g.Head = ev.Seq; return ev.ContentErr }))
		g.ReadPeak = h.end()
		h = watchHeap()
		report, err := s.Check(ctx, eventlog.CheckOptions{})
		fail(err)
		g.Findings, g.CheckPeak = len(report.Findings), h.end()
		fail(s.Close())
		sayLine(g)
	}
}

func look(t *testing.T, p plot, dir string) (g grown) {
	t.Helper()
	h := startHelper(t, "large", assignment{Plot: p, Dir: dir}.env())
	text, err := h.line()
	require.NoError(t, count(err), h.stderr.String())
	require.False(t, isFailure(text), text)
	require.NoError(t, json.Unmarshal([]byte(text), &g))
	require.NoError(t, h.cmd.Wait())
	t.Logf("%s", text)
	return g
}

// TestAMillionEvents in one session: the policy takes as many events as bear
// it, and reading the log takes no more memory than a short one.
func TestAMillionEvents(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a million events")
	}
	const n, mib = 1_000_000, 1 << 20
	dir := filepath.Join(fastDir(t), "store")
	p := plot{Seed: 1100, Workers: 1}
	newPlot(t, dir, p)
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(t, err)
	id := p.session(0, 0)
	_, err = replay.Narrow(ctx, s, replay.Narrowing{Session: id, Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}, Reason: "a test"})
	require.NoError(t, err)
	row, err := s.Row(id)
	require.NoError(t, err)
	content := p.content(0, 0, 0, 101)
	written(t, n/100, func(i int) (*eventlog.Pending, error) {
		events := make([]eventlog.NewEvent, 100)
		for k := range events {
			events[k] = eventlog.NewEvent{Type: "plugin/note", Media: eventlog.MediaOctets, Content: content}
		}
		return s.AppendAsync(ctx, eventlog.Batch{Session: id, Expect: eventlog.At(row.Head + uint64(100*i)), Events: events})
	})
	require.NoError(t, s.Close())
	g := look(t, p, dir)
	tally.acked.Add(int64(g.Head))
	require.Equal(t, row.Head+n, g.Head)
	require.Equal(t, 3, g.Policy)
	require.Zero(t, g.Findings)
	require.Less(t, g.OpenPeak, uint64(64*mib))
	require.Less(t, g.ReadPeak, uint64(64*mib+64*mib))
	require.Less(t, g.CheckPeak, uint64(128*mib))
}

// TestAHundredThousandSessions: rows are listed without their logs, and what
// grows with the number of sessions, the full check, grows by little for each.
func TestAHundredThousandSessions(t *testing.T) {
	if testing.Short() {
		t.Skip("creates a hundred thousand sessions")
	}
	const n, mib = 100_000, 1 << 20
	dir := filepath.Join(fastDir(t), "store")
	p := plot{Seed: 1101, Workers: 1}
	newPlot(t, dir, p)
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(t, err)
	const unit = 1000
	for first := 1; first <= n; first += unit {
		_, err := s.Transact(ctx, eventlog.EntryCreate, func(*eventlog.View) ([]eventlog.Batch, error) {
			var batches []eventlog.Batch
			for i := first; i < first+unit; i++ {
				id := p.session(1, i)
				created := eventlog.Created{Kind: eventlog.KindRoot, Root: id, MaxDepth: 3, Mode: eventlog.ModeContinuable,
					Defaults: policy.Defaults{Sandbox: policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), Approvals: policy.Ask}}
				batches = append(batches, eventlog.Batch{Session: id, Events: []eventlog.NewEvent{{Type: eventlog.TypeSessionCreated, Facts: created.Facts()}}})
			}
			return batches, nil
		})
		require.NoError(t, err)
	}
	written(t, 2*n, func(i int) (*eventlog.Pending, error) {
		return s.AppendAsync(ctx, eventlog.Batch{Session: p.session(1, 1+i%n), Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: "plugin/note"}}})
	})
	require.NoError(t, s.Close())
	g := look(t, p, dir)
	tally.acked.Add(int64(g.Events))
	require.Equal(t, []int{n + 1, 3*n + 2, n + 1}, []int{g.Sessions, g.Events, g.Rows})
	require.Zero(t, g.Findings)
	require.Less(t, g.OpenPeak, uint64(128*mib))
	require.Less(t, g.CheckPeak, uint64(1024*mib))
	s, err = eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(t, err)
	for _, i := range []int{1, n / 2, n} {
		e, err := replay.Policy(ctx, s, p.session(1, i), 0)
		require.NoError(t, err)
		require.Equal(t, policy.ReadOnly, e.Sandbox.Value.Mode)
	}
	require.NoError(t, s.Close())
}

// written waits for n appends, of which so many are on their way that commits
// are full.
func written(t *testing.T, n int, append func(i int) (*eventlog.Pending, error)) {
	t.Helper()
	window := make(chan *eventlog.Pending, 1000)
	failed := make(chan error, 1)
	go func() {
		defer close(failed)
		for p := range window {
			if _, err := p.Wait(ctx); err != nil {
				failed <- err
				break
			}
		}
		for range window { // nobody waits for a place any more
		}
	}()
	for i := range n {
		p, err := append(i)
		if err != nil {
			close(window)
			require.NoError(t, count(fmt.Errorf("append %d: %w", i, err)))
		}
		window <- p
	}
	close(window)
	require.NoError(t, count(<-failed))
}
