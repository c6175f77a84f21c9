package importer

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// Bounds of one batch, and how many are on their way at once: what an import
// holds in memory, and what a crash can make it do again. A single content may
// be larger than a batch.
const (
	batchEvents = 2048
	batchBytes  = 4 << 20
	inFlight    = 3
	firstBytes  = 256 << 10 // of a batch's buffer, which grows
)

// batches are used again by the sinks of other sessions: an import of many
// small logs would else clear more memory than it reads.
var batches = sync.Pool{New: func() any { return new(batch) }}

// Sink appends events to one imported session in bounded batches, each all or
// nothing, each behind the one before. A crash between two leaves a log that
// the next run continues.
//
// While a batch is being committed the next one is filled: a goroutine of the
// sink's checks, commits to and compresses the contents, so that the caller
// reads on. What it was handed is committed even if the caller's ctx ends. It
// ends with Close, which must be called.
type Sink struct {
	s       *eventlog.Store
	session uuid.UUID
	admit   func(*eventlog.View) error

	head    uint64 // behind everything that was added
	batch   *batch
	free    chan *batch
	work    chan *batch
	ended   chan struct{}
	failure error // of the goroutine; read it after ended
	events  int64 // committed; likewise
}

// batch is a batch that is being filled or on its way. Its contents lie in
// buffers, the last and largest of which is used again.
type batch struct {
	eventlog.Batch
	bytes []byte
	size  int // of the contents
	done  *eventlog.Pending
	flush chan error // answers a Flush; nil: a batch of events
}

// NewSink continues the session behind head, 0 for a new one. admit, if there
// is one, is asked inside each commit and may refuse it.
func NewSink(s *eventlog.Store, session uuid.UUID, head uint64, admit func(*eventlog.View) error) *Sink {
	k := &Sink{s: s, session: session, head: head, admit: admit, free: make(chan *batch, inFlight+1), work: make(chan *batch, 1), ended: make(chan struct{})}
	for range inFlight + 1 {
		k.free <- nil // made when it is needed: most logs fill one batch
	}
	go k.run()
	return k
}

// Add takes events that belong together: they are never in two batches. Their
// contents are copied. An error is that of an earlier batch.
func (k *Sink) Add(ctx context.Context, events ...eventlog.NewEvent) error {
	size := 0
	for i := range events {
		size += len(events[i].Content)
	}
	if b := k.batch; b != nil && (len(b.Events)+len(events) > batchEvents || b.size+size > batchBytes) {
		if err := k.send(ctx); err != nil {
			return err
		}
	}
	if k.batch == nil {
		select {
		case k.batch = <-k.free:
		case <-ctx.Done():
			return ctx.Err()
		case <-k.ended:
			return k.failure
		}
		if k.batch == nil {
			k.batch = batches.Get().(*batch)
		}
		k.batch.Batch = eventlog.Batch{Session: k.session, Expect: eventlog.At(k.head), Events: k.batch.Events[:0]}
		k.batch.bytes, k.batch.size = k.batch.bytes[:0], 0
	}
	b := k.batch
	if len(b.bytes)+size > cap(b.bytes) { // the old one stays where it is: events point to it
		b.bytes = make([]byte, 0, max(min(2*cap(b.bytes), batchBytes), firstBytes, size))
	}
	b.size += size
	for _, ev := range events {
		at := len(b.bytes)
		b.bytes = append(b.bytes, ev.Content...)
		if ev.Content != nil {
			ev.Content = b.bytes[at:len(b.bytes):len(b.bytes)]
		}
		b.Events = append(b.Events, ev)
	}
	k.head += uint64(len(events))
	return nil
}

// send hands the batch to the goroutine.
func (k *Sink) send(ctx context.Context) error {
	b := k.batch
	if b == nil {
		return nil
	}
	k.batch = nil
	return k.hand(ctx, b)
}

func (k *Sink) hand(ctx context.Context, b *batch) error {
	select {
	case k.work <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-k.ended:
		return k.failure
	}
}

// Flush returns when everything that was added is durable.
func (k *Sink) Flush(ctx context.Context) error {
	if err := k.send(ctx); err != nil {
		return err
	}
	answer := make(chan error, 1)
	if err := k.hand(ctx, &batch{flush: answer}); err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-k.ended:
		return k.failure
	}
}

// Close ends the goroutine and returns how many events were committed. What
// was added since the last full batch and not flushed is given up.
func (k *Sink) Close() (events int64) {
	close(k.work)
	<-k.ended
	close(k.free)
	for b := range k.free {
		if b != nil {
			batches.Put(b)
		}
	}
	return k.events
}

// run prepares and queues batches in order and waits for them in order. It ends
// at the first failure: what comes behind it has no place.
func (k *Sink) run() {
	defer close(k.ended)
	ctx := context.Background()
	var queued []*batch
	settle := func(most int) (err error) {
		for len(queued) > most && err == nil {
			b := queued[0]
			queued = queued[1:]
			if _, err = b.done.Wait(ctx); err == nil {
				k.events += int64(len(b.Events))
				clear(b.Events)
				if cap(b.bytes) > batchBytes {
					b.bytes = nil
				}
				k.free <- b
			}
		}
		return err
	}
	for b := range k.work {
		if b.flush != nil {
			if k.failure = settle(0); k.failure != nil {
				break
			}
			b.flush <- nil
			continue
		}
		if k.failure = settle(inFlight - 1); k.failure != nil {
			break
		}
		if b.done, k.failure = k.s.ImportAsync(ctx, b.Batch, k.admit); k.failure != nil {
			break
		}
		queued = append(queued, b)
	}
	if err := settle(0); k.failure == nil {
		k.failure = err
	}
}
