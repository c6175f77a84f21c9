package eventlog

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	bolt "go.etcd.io/bbolt"
)

// unit is one atomic unit in the queue.
type unit struct {
	via      Entry
	batch    Batch     // of an Append
	prepared []pending // of an Append
	plan     Plan      // of a Transact
	done     chan struct{}
	results  []Result
	err      error
}

func (u *unit) finish(results []Result, err error) {
	u.results, u.err = results, err
	close(u.done)
}

const (
	queueLen   = 4096     // units waiting before Append blocks
	groupUnits = 4096     // units of one transaction
	groupBytes = 24 << 20 // bytes after which a transaction is closed
)

// runCommitter is the only writer. The life of a group:
//
//  1. It takes a unit from the queue, and every other that is waiting. A lone
//     caller never waits for company; after a group larger than one the
//     committer yields until the queue stops growing, because the callers that
//     the last sync released are about to come back.
//  2. Each unit is checked and staged in the order of arrival.
//  3. One transaction is written and synced. A crash before the sync of its
//     meta page leaves the store as it was, and nobody was told otherwise; a
//     crash after it leaves the whole group, whose retries find their original.
//  4. The state is replaced, then the callers are answered, refusals included:
//     a refusal may rest on a unit of the same group, so it is worth as much
//     as the group.
//
// It ends when the queue is closed and drained.
func (s *Store) runCommitter() {
	defer close(s.committerDone)
	last := 1
	for {
		u, ok := <-s.queue
		if !ok {
			return
		}
		group, open := s.gather([]*unit{u}, last > 1)
		last = len(group)
		s.commit(group)
		if !open {
			return
		}
	}
}

// gather adds what is waiting to the group. The second result is false when
// the queue was closed.
func (s *Store) gather(group []*unit, yield bool) ([]*unit, bool) {
	for idle := 0; len(group) < groupUnits; {
		select {
		case u, ok := <-s.queue:
			if !ok {
				return group, false
			}
			group, idle = append(group, u), 0
			continue
		default:
		}
		if !yield || idle == 2 {
			break
		}
		idle++
		runtime.Gosched()
	}
	return group, true
}

// commit writes one group.
func (s *Store) commit(group []*unit) {
	s.waitForIndex()
	if err := s.writable(); err != nil {
		for _, u := range group {
			u.finish(nil, err)
		}
		return
	}
	type answer struct {
		results []Result
		err     error
	}
	answers := make([]answer, len(group))
	var st *stage
	outcome, err := s.journal.write(func(tx *bolt.Tx) error {
		st = newStage(s, tx)
		for i, u := range group {
			if st.bytes > s.opts.groupBytes {
				answers[i].err = errDeferred
				continue
			}
			var systemic bool
			answers[i].results, answers[i].err, systemic = s.stageUnit(st, u)
			if systemic {
				return answers[i].err
			}
		}
		if len(st.group.rows) == 0 {
			return errNothing
		}
		return st.finish()
	})
	switch {
	case errors.Is(err, errNothing):
		err = nil
	case outcome == committed:
		s.windows.committed(st.ids)
		s.st.apply(st.group, st.next, st.lag, st.totals)
		s.published()
	case outcome == unknown:
		s.stop(fmt.Errorf("%w: the store must be reopened: an earlier append: %v", ErrReadOnly, err))
	case outcome == brokenFile:
		err = fmt.Errorf("writing to the store failed, nothing was committed: %w", err)
		s.stop(fmt.Errorf("%w: the store must be reopened: %v", ErrReadOnly, err))
	}
	var deferred []*unit
	for i, u := range group {
		switch {
		case err != nil:
			u.finish(nil, err)
		case errors.Is(answers[i].err, errDeferred):
			deferred = append(deferred, u)
		default:
			u.finish(answers[i].results, answers[i].err)
		}
	}
	if len(deferred) > 0 {
		s.commit(deferred)
	}
}

var (
	errNothing  = errors.New("nothing to commit")
	errDeferred = errors.New("the transaction is full")
)

// stageUnit runs one unit's checks. systemic says that the transaction itself
// failed and the whole group with it.
func (s *Store) stageUnit(st *stage, u *unit) (results []Result, err error, systemic bool) {
	batches, prepared := []Batch{u.batch}, [][]pending{u.prepared}
	if u.plan != nil {
		view := &View{st: st, now: s.opts.Clock().UTC(), boot: s.boot}
		// A plan that panics on what some log says fails alone: it only reads.
		err = protect("plan", func() (err error) { batches, err = u.plan(view); return err })
		if err != nil || len(batches) == 0 {
			return nil, err, false
		}
		prepared = make([][]pending, len(batches))
		for i := range batches {
			if prepared[i], err = s.prepare(u.via, batches[i].Events); err != nil {
				return nil, err, false
			}
		}
	}
	results, err = st.add(u.via, batches, prepared)
	var be *putError
	return results, err, errors.As(err, &be)
}

// putError is a failure of the transaction, not of the unit.
type putError struct{ error }

func (e *putError) Unwrap() error { return e.error }

// submit queues a unit, waiting for room until ctx ends.
func (s *Store) submit(ctx context.Context, u *unit) error {
	s.submitMu.RLock()
	defer s.submitMu.RUnlock()
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.writable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	u.done = make(chan struct{})
	select {
	case s.queue <- u:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("append not queued: %w", ctx.Err())
	}
}

// Append writes a batch of open families and returns when it is durable. It
// may be called from any number of goroutines.
//
// Errors: ErrNotFound, ErrSessionClosed, ErrFenced, ErrConflict,
// ErrDuplicate, ErrEvidence, ErrUnauthorized (a closed family), ErrInvalid,
// ErrTooLarge, ErrNoSpace, ErrReadOnly: nothing was written.
// ErrOutcomeUnknown, or a ctx that ended while waiting: it may have been; a
// retry with the same event ids settles it.
func (s *Store) Append(ctx context.Context, b Batch) (Result, error) {
	p, err := s.AppendAsync(ctx, b)
	if err != nil {
		return Result{}, err
	}
	return p.Wait(ctx)
}

// Pending is an append that is on its way.
type Pending struct{ u *unit }

// AppendAsync queues a batch and returns. Batches that one goroutine queues
// for one session are committed in that order. It blocks while the queue is
// full, until ctx ends. The batch must not change until Wait returned.
func (s *Store) AppendAsync(ctx context.Context, b Batch) (*Pending, error) {
	if err := checkLimit("events of a batch", len(b.Events), s.limits.BatchEvents); err != nil {
		return nil, err
	}
	prepared, err := s.prepare(entryHarness, b.Events)
	if err != nil {
		return nil, err
	}
	u := &unit{via: entryHarness, batch: b, prepared: prepared}
	if err := s.submit(ctx, u); err != nil {
		return nil, err
	}
	return &Pending{u}, nil
}

// Wait returns when the batch is durable or refused. If ctx ends first the
// outcome is unknown to this caller; the batch goes on.
func (p *Pending) Wait(ctx context.Context) (Result, error) {
	results, err := p.u.wait(ctx)
	if err != nil {
		return Result{}, err
	}
	return results[0], nil
}

func (u *unit) wait(ctx context.Context) ([]Result, error) {
	select {
	case <-u.done:
		return u.results, u.err
	case <-ctx.Done():
	}
	select {
	case <-u.done: // both had happened: the answer is known after all
		return u.results, u.err
	default:
		return nil, fmt.Errorf("%w: stopped waiting: %w", ErrOutcomeUnknown, ctx.Err())
	}
}

// Transact commits what plan decides as one atomic unit: all of it or
// nothing, over any number of sessions. It is the way by which childlog's own
// packages write closed families; via fixes which of them, and with which
// sources. A harness appends with Append.
func (s *Store) Transact(ctx context.Context, via Entry, plan Plan) ([]Result, error) {
	if plan == nil || via == entryHarness || via > EntryStore {
		return nil, invalidf("transact: no entry point %d", via)
	}
	u := &unit{via: via, plan: plan}
	if err := s.submit(ctx, u); err != nil {
		return nil, err
	}
	return u.wait(ctx)
}
