package eventlog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The index follows the journal in the background. Its lag is bounded, in
// frames and in bytes, by making the committer wait: an open after a crash
// replays at most that much.
const (
	maxLagFrames   = 32 << 10
	maxLagBytes    = 16 << 20
	flushLagFrames = 8 << 10 // start a flush at this lag
	flushLagBytes  = 4 << 20
	flushAfter     = 500 * time.Millisecond // of the first frame not covered
	closeLagFrames = 64                     // less is left to the next open
)

// indexer owns the one goroutine that writes index.db.
type indexer struct {
	s     *Store
	wake  chan struct{} // capacity 1
	quit  chan struct{}
	done  chan struct{}
	mu    sync.Mutex
	moved *sync.Cond  // a flush ended
	err   error       // the last flush failed; the index is behind, nothing else
	due   atomic.Bool // somebody waits, or something was erased: flush, whatever the lag
}

func startIndexer(s *Store) *indexer {
	x := &indexer{s: s, wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	x.moved = sync.NewCond(&x.mu)
	go x.run()
	return x
}

func (x *indexer) poke() {
	if x == nil {
		return
	}
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

func (x *indexer) run() {
	defer close(x.done)
	timer := time.NewTimer(flushAfter)
	timer.Stop()
	for armed := false; ; {
		select {
		case <-x.quit:
			timer.Stop()
			return
		case <-timer.C:
			armed = false
			x.flush()
		case <-x.wake:
			// After a failure only the timer tries again: a cut of a growing
			// overlay with every commit would cost more with every commit.
			if frames, bytes := x.s.st.lag(); x.failed() == nil && (x.due.Swap(false) || frames >= flushLagFrames || bytes >= flushLagBytes) {
				x.flush()
			} else if frames > 0 && !armed {
				timer.Reset(flushAfter)
				armed = true
			}
		}
	}
}

func (x *indexer) failed() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

func (x *indexer) flush() {
	err := x.s.st.flush(x.s)
	x.mu.Lock()
	x.err = err
	x.mu.Unlock()
	x.moved.Broadcast()
}

// close flushes what is worth it, or was erased, and ends the goroutine.
func (x *indexer) close() error {
	close(x.quit)
	<-x.done
	if frames, _ := x.s.st.lag(); frames >= closeLagFrames || x.due.Load() {
		return x.s.st.flush(x.s)
	}
	return nil
}

// waitForIndex is the back-pressure: the committer stands still while a group
// would leave the index too far behind. If the index can't be written at all, the overlay
// grows instead: losing speed and memory, never events.
func (s *Store) waitForIndex(more, moreBytes uint64) {
	x := s.indexer
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.err == nil {
		if frames, bytes := s.st.lag(); frames == 0 || frames+more <= maxLagFrames && bytes+moreBytes <= maxLagBytes {
			return
		}
		x.due.Store(true)
		x.poke()
		x.moved.Wait()
	}
}

// flush moves the overlay into the index. The cut is taken under the lock and
// holds whole groups only, so rows, positions and coverage agree; the write
// happens outside it.
func (s *state) flush(store *Store) error {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	s.mu.Lock()
	if s.index == nil || s.next == s.covered {
		s.mu.Unlock()
		return nil
	}
	cut := newChanges()
	cut.absorb(s.over)
	nodes := maps.Clone(s.nodes)
	c := cover{Store: store.identity.Store, Incarnation: store.identity.Incarnation, Fold: foldVersion, Next: s.next, Totals: s.totals, Lost: s.lost}
	if s.tree.err == nil {
		c.Edge = slices.Clone(s.tree.nodes)
	}
	bytes := s.bytes
	s.mu.Unlock()

	var err error
	if c.Last, err = store.lastLeaf(c.Next); err != nil && !errors.Is(err, ErrCorrupt) {
		return err // damage below is a zero, which no later open takes for a leaf
	}
	if err := s.index.flush(cut, nodes, c); errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("%w: %w", errIndex, err)
	} else if err != nil {
		return fmt.Errorf("index: %w", err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.covered = c.Next
	s.bytes -= bytes
	for id, was := range cut.rows {
		e := s.over.rows[id]
		if e == nil {
			continue // purged meanwhile
		}
		if e.row.Head == was.row.Head {
			delete(s.over.rows, id)
			continue
		}
		now := *e
		n := len(was.pending)
		now.pending, now.flushed = append([]framePos(nil), e.pending[n:]...), e.flushed+uint64(n)
		s.over.rows[id] = &now
	}
	for id := range cut.gone {
		delete(s.over.gone, id)
	}
	for k, v := range cut.names {
		// A key of a session that was purged meanwhile was stated again by its
		// purge: the next flush drops the one that this one wrote.
		if _, gone := s.over.gone[v]; s.over.names[k] == v && !gone {
			delete(s.over.names, k)
		}
	}
	for k, v := range cut.links {
		if s.over.links[k] == v {
			delete(s.over.links, k)
		}
	}
	for k := range nodes {
		delete(s.nodes, k)
	}
	return nil
}
