package eventlog

import (
	"fmt"
	"runtime"
	"time"
)

const (
	queueLen   = 4096     // units waiting before Append blocks
	groupUnits = 4096     // units of one transaction
	groupBytes = 24 << 20 // bytes after which a transaction takes no further unit

	gatherUnits = 128                   // a group that waits for nobody
	gatherPause = 50 * time.Microsecond // without anybody coming back
	gatherMost  = time.Millisecond      // that the writer stands idle
)

// runCommitter stages units and hands them, group by group, to the one writer.
// The life of a group:
//
//  1. While the group before it is being synced, the committer takes units
//     from the queue, checks each against all that came before it, and lays out
//     its frames. A lone caller never waits for company.
//  2. The writer puts the frames into one transaction and syncs it. A crash
//     before the sync of its meta page leaves the store as it was, and nobody
//     was told otherwise; a crash after it leaves the whole group, whose retries
//     find their original.
//  3. The state is replaced, then the callers are answered, refusals included:
//     a refusal may rest on a unit of the same group or of the one before, so
//     it is worth as much as they are.
//  4. If the commit failed, what was staged on top of it rests on nothing: it
//     is staged anew, its plans included.
//
// A unit that is alone is written here at once, without waking the writer.
//
// It ends when the queue is closed and drained.
func (s *Store) runCommitter() {
	defer close(s.committerDone)
	w := startWriter(s)
	defer w.stop()
	c := &committer{s: s, w: w, st: newStage(s, nil)}
	for c.open() {
		switch {
		case c.st.flight == nil && len(c.st.group.units) > 0:
			c.gather()
			c.hand()
		case c.st.flight == nil:
			c.take(<-s.queue)
		case c.full():
			c.done(<-w.outcomes)
		default:
			select {
			case r := <-w.outcomes:
				c.done(r)
			case u := <-s.queue:
				c.take(u)
			}
		}
	}
}

// committer is the state of runCommitter.
type committer struct {
	s      *Store
	w      *writer
	st     *stage
	closed bool // the queue is, and empty

	back int // callers that the last group released, and that wait already
}

// open reports whether anything is left to do.
func (c *committer) open() bool {
	return !c.closed || c.st.flight != nil || len(c.st.group.units) > 0
}

// full reports whether the group takes no further unit.
func (c *committer) full() bool {
	g := c.st.group
	return c.closed || len(g.units) >= groupUnits || g.bytes > c.s.opts.groupBytes
}

// take stages a unit, nil from a closed queue.
func (c *committer) take(u *unit) {
	if u == nil {
		c.closed = true
		return
	}
	c.stage(u)
}

func (c *committer) stage(u *unit) {
	results, err := c.s.stageUnit(c.st, u)
	if len(results) == 1 && results[0].Replayed && results[0].Position < c.s.st.durable() {
		u.finish(results, nil) // it rests on nothing that is on its way
		return
	}
	g := c.st.group
	g.units, g.answers = append(g.units, u), append(g.answers, answer{results, err})
}

// gather stages what is waiting, however long that takes. After a group of
// several, whose callers are about to come back, it yields until as many are
// there again: a group that goes without them costs two syncs more. A large
// group goes at once, since the writer's work for it is as long as theirs to
// come back.
func (c *committer) gather() {
	begun := time.Now()
	for idle := begun; !c.full(); {
		select {
		case u := <-c.s.queue:
			c.take(u)
			if len(c.st.group.units) >= gatherUnits {
				return
			}
			idle = time.Now()
			continue
		default:
		}
		now := time.Now()
		if c.back <= 1 || len(c.st.group.units) >= c.back || now.Sub(idle) > gatherPause || now.Sub(begun) > gatherMost {
			return
		}
		runtime.Gosched()
	}
}

// hand gives the group to the writer and begins the next one on top of it.
func (c *committer) hand() {
	g := c.st.group
	c.s.waitForIndex(uint64(len(g.drafts)), g.lag)
	if len(g.units) == 1 && len(c.s.queue) == 0 { // nothing to stage meanwhile, so no goroutine to wake
		c.st.begin(g)
		c.done(c.s.commit(g))
		return
	}
	c.w.groups <- g
	c.st.begin(g)
}

// done takes the outcome of the group in flight. Its callers were answered.
func (c *committer) done(committed bool) {
	flight, above := c.st.flight, c.st.group.units
	c.back = len(flight.units) + len(above) + len(c.s.queue)
	if committed {
		c.s.windows.committed(flight.drafts)
		c.st.flight = nil
		return
	}
	c.st.begin(nil)
	for _, u := range above {
		c.stage(u)
	}
}

// stageUnit runs one unit's checks and lays it out.
func (s *Store) stageUnit(st *stage, u *unit) (results []Result, err error) {
	// What panics on some log's words fails alone: it only reads.
	err = protect("append", func() (err error) {
		if u.sweep != nil {
			st.group.erasing.frames = append(st.group.erasing.frames, u.sweep.frames...)
			st.group.erasing.absolve = st.group.erasing.absolve || u.sweep.absolve
			return nil
		}
		batches, prepared := u.one[:], [][]pending{u.prepared}
		if u.admit != nil {
			if err = protect("admit", func() error { return u.admit(s.viewOf(st)) }); err != nil {
				return err
			}
		}
		if u.plan != nil {
			view := s.viewOf(st)
			err = protect("plan", func() (err error) { batches, err = u.plan(view); return err })
			if err != nil || len(batches) == 0 {
				return err
			}
			prepared = make([][]pending, len(batches))
			for i := range batches {
				if prepared[i] = batches[i].foreign; prepared[i] != nil {
					continue
				}
				if batches[i].Key != "" { // in effect for Append alone
					return invalidf("session %s: a batch of a plan takes no key", batches[i].Session)
				}
				if prepared[i], err = s.prepare(u.via, batches[i].Events); err != nil {
					return err
				}
			}
		}
		results, err = st.add(u.via, batches, prepared)
		return err
	})
	if err != nil {
		results = nil
	}
	return results, err
}

func (s *Store) viewOf(st *stage) *View {
	return &View{st: st, now: s.opts.Clock().UTC(), boot: s.boot}
}

// writer owns the goroutine that writes store.db.
type writer struct {
	s        *Store
	groups   chan *group
	outcomes chan bool // whether a group counts; none is taken before it was read
}

func startWriter(s *Store) *writer {
	w := &writer{s: s, groups: make(chan *group), outcomes: make(chan bool)}
	go w.run()
	return w
}

// stop ends the goroutine, which has nothing in hand.
func (w *writer) stop() {
	close(w.groups)
	<-w.outcomes
}

func (w *writer) run() {
	defer close(w.outcomes)
	for g := range w.groups {
		w.outcomes <- w.s.commit(g)
	}
}

// commit writes one group and answers its callers. It reports whether the group
// counts.
func (s *Store) commit(g *group) bool {
	err := s.writable()
	if err == nil && (len(g.drafts) > 0 || !g.erasing.empty()) {
		if !g.erasing.empty() {
			s.erasing.Lock()
			defer s.erasing.Unlock()
		}
		var kind commitOutcome
		switch kind, err = s.journal.write(g.write); kind {
		case committed:
			s.st.apply(g.changes, g.tree, g.next, g.lag, g.totals)
			if len(g.erasing.contents)+len(g.erasing.condemn) > 0 {
				s.indexer.due.Store(true) // the index holds labels: what was erased is to leave it too
			}
			s.published()
		case unknown:
			s.stop(fmt.Errorf("%w: the store must be reopened: an earlier append: %v", ErrReadOnly, err))
		case brokenFile:
			err = fmt.Errorf("writing to the store failed, nothing was committed: %w", err)
			s.stop(fmt.Errorf("%w: the store must be reopened: %v", ErrReadOnly, err))
		}
	}
	for i, u := range g.units {
		if err != nil {
			u.finish(nil, err)
		} else {
			u.finish(g.answers[i].results, g.answers[i].err)
		}
	}
	return err == nil
}
