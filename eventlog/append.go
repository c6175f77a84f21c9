package eventlog

import (
	"context"
	"fmt"
)

// unit is one atomic unit in the queue.
type unit struct {
	via      Entry
	one      [1]Batch          // of an Append
	prepared []pending         // of an Append
	admit    func(*View) error // of an import, nil for none
	plan     Plan              // of a Transact
	sweep    *erasure          // of a purge that is recorded: frames that go, and no event
	done     chan struct{}
	results  []Result
	err      error
}

func (u *unit) finish(results []Result, err error) {
	u.results, u.err = results, err
	close(u.done)
}

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
// retry with the same event ids, or under the same key, settles it.
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
	if err := b.keyed(); err != nil {
		return nil, err
	}
	prepared, err := s.prepare(entryHarness, b.Events)
	if err != nil {
		return nil, err
	}
	u := &unit{via: entryHarness, one: [1]Batch{b}, prepared: prepared}
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

// ImportAsync queues a batch of an importer and returns, as AppendAsync does for
// a harness: what the batch costs (checks, commitments, compression) is done in
// the caller's goroutine, and the batches that one goroutine queues are
// committed in that order. Transact does all of that inside the commit, one
// after the other, which halves the speed of an import. Sources are set to
// import, and what EntryImport may not write is refused.
//
// admit, if it is not nil, is asked inside the commit, as a [Plan] would be,
// and its error refuses the batch. Neither the batch nor its contents may
// change until Wait returned. The errors are those of Transact.
func (s *Store) ImportAsync(ctx context.Context, b Batch, admit func(*View) error) (*Pending, error) {
	if err := checkLimit("events of a batch", len(b.Events), s.limits.BatchEvents); err != nil {
		return nil, err
	}
	prepared, err := s.prepare(EntryImport, b.Events)
	if err != nil {
		return nil, err
	}
	u := &unit{via: EntryImport, one: [1]Batch{b}, prepared: prepared, admit: admit}
	if err := s.submit(ctx, u); err != nil {
		return nil, err
	}
	return &Pending{u}, nil
}

// Transact commits what plan decides as one atomic unit: all of it or
// nothing, over any number of sessions. It is the way by which childlog's own
// packages write closed families; via fixes which of them, and with which
// sources. A harness appends with Append.
func (s *Store) Transact(ctx context.Context, via Entry, plan Plan) ([]Result, error) {
	if plan == nil || via == entryHarness || via > EntryStore { // what comes behind is for this package alone
		return nil, invalidf("transact: no entry point %d", via)
	}
	return s.transact(ctx, via, plan)
}

// transact is Transact for this package too.
func (s *Store) transact(ctx context.Context, via Entry, plan Plan) ([]Result, error) {
	u := &unit{via: via, plan: plan}
	if err := s.submit(ctx, u); err != nil {
		return nil, err
	}
	return u.wait(ctx)
}
