package importer

import (
	"bytes"
	"context"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// Bounds of one batch: what an import holds in memory, and what a crash can
// make it do again. A single content may be larger.
const (
	batchEvents = 2048
	batchBytes  = 4 << 20
)

// Sink appends events to one imported session in bounded batches, each all or
// nothing, each behind the one before. A crash between two leaves a log that
// the next run continues.
type Sink struct {
	s       *eventlog.Store
	session uuid.UUID
	head    uint64
	admit   func(*eventlog.View) error
	batch   []eventlog.NewEvent
	bytes   int

	Events int64 // appended
}

// NewSink continues the session behind head, 0 for a new one. admit, if there
// is one, is asked inside each commit and may refuse it.
func NewSink(s *eventlog.Store, session uuid.UUID, head uint64, admit func(*eventlog.View) error) *Sink {
	return &Sink{s: s, session: session, head: head, admit: admit}
}

// Add takes events that belong together: they are never in two batches. Their
// contents are copied.
func (k *Sink) Add(ctx context.Context, events ...eventlog.NewEvent) error {
	size := 0
	for i := range events {
		size += len(events[i].Content)
	}
	if len(k.batch) > 0 && (len(k.batch)+len(events) > batchEvents || k.bytes+size > batchBytes) {
		if err := k.Flush(ctx); err != nil {
			return err
		}
	}
	for _, ev := range events {
		ev.Content = bytes.Clone(ev.Content)
		k.batch = append(k.batch, ev)
	}
	k.bytes += size
	return nil
}

// Flush commits what was added.
func (k *Sink) Flush(ctx context.Context) error {
	if len(k.batch) == 0 {
		return nil
	}
	results, err := k.s.Transact(ctx, eventlog.EntryImport, func(v *eventlog.View) ([]eventlog.Batch, error) {
		if k.admit != nil {
			if err := k.admit(v); err != nil {
				return nil, err
			}
		}
		return []eventlog.Batch{{Session: k.session, Expect: eventlog.At(k.head), Events: k.batch}}, nil
	})
	if err != nil {
		return err
	}
	k.Events += int64(len(k.batch))
	k.head, k.batch, k.bytes = results[0].LastSeq, k.batch[:0:0], 0
	return nil
}
