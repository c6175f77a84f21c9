package eventlog

import "context"

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
