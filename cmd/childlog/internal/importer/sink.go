package importer

import (
	"context"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// Sink appends events to one imported session in bounded batches, each all or
// nothing, each behind the one before. A crash between two leaves a log that
// the next run continues.
type Sink struct {
	w       *Writer
	owned   bool // the writer is this sink's alone
	session uuid.UUID
	admit   func(*eventlog.View) error
	head    uint64 // behind everything that was added
	apart   bool   // what comes next begins a frame
}

// NewSink continues a session behind head, 0 for a new one, with a writer of
// its own; see [Writer.Sink]. Close must be called.
func NewSink(s *eventlog.Store, session uuid.UUID, head uint64, admit func(*eventlog.View) error) *Sink {
	k := NewWriter(s).Sink(session, head, admit)
	k.owned = true
	return k
}

// Add takes events that belong together: they are never in two batches. Their
// contents are copied. An error may be that of an earlier batch.
func (k *Sink) Add(ctx context.Context, events ...eventlog.NewEvent) error {
	return k.w.add(ctx, k, events)
}

// AddApart is Add for an event that is looked for by itself, such as a run's
// last word: it gets a frame of its own, so that finding it takes no reading of
// what came with it.
func (k *Sink) AddApart(ctx context.Context, ev eventlog.NewEvent) error {
	k.apart = true
	return k.w.add(ctx, k, []eventlog.NewEvent{ev})
}

// Flush returns when everything that the sink's writer was given is durable.
func (k *Sink) Flush(ctx context.Context) error { return k.w.Flush(ctx) }

// Close ends a sink that has a writer of its own, and returns how many events
// were committed. What was added since the last full batch and not flushed is
// given up.
func (k *Sink) Close() (events int64) {
	if !k.owned {
		return k.w.Committed(k.session)
	}
	k.w.Close()
	return k.w.Committed(k.session)
}
