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
	mappedBytes = 64 << 20  // of contents after which mapped pages are given back
	firstBytes  = 256 << 10 // of a batch's buffer, which grows
)

// Writer appends what an import brings, session after session. While a batch is
// being committed the next one is filled: a goroutine of the writer's checks,
// commits to and compresses the contents, so that the caller reads on, into the
// next file too. A batch may hold the end of one session and the beginning of
// the next, so that many small logs don't take a sync each.
//
// What the goroutine was handed is committed even if the caller's ctx ends. It
// ends with Close, which must be called. The other methods are for one
// goroutine.
type Writer struct {
	s     *eventlog.Store
	batch *batch // being filled, nil: none
	free  chan *batch
	work  chan *batch
	ended chan struct{}

	failure error // of the goroutine; others read it once that ended
	mapped  int   // of the goroutine: contents since pages were given back

	mu        sync.Mutex
	committed map[uuid.UUID]int64
}

// batch is filled by the caller and then the goroutine's until it is free
// again. Its contents lie in buffers, the last and largest of which is used
// again.
type batch struct {
	events []eventlog.NewEvent
	units  []unit
	bytes  []byte
	size   int        // of the contents
	flush  chan error // answers a Flush; nil: a batch of events
}

// unit is what a batch holds of one session.
type unit struct {
	sink     *Sink
	head     uint64 // in front of it
	from, to int    // of the batch's events
	pending  *eventlog.Pending
}

// batches are used again by later writers: an import of few small logs would
// else clear more memory than it reads.
var batches = sync.Pool{New: func() any { return new(batch) }}

// NewWriter starts a writer.
func NewWriter(s *eventlog.Store) *Writer {
	w := &Writer{s: s, free: make(chan *batch, inFlight+1), work: make(chan *batch, 1), ended: make(chan struct{}), committed: map[uuid.UUID]int64{}}
	for range inFlight + 1 {
		w.free <- nil // made when it is needed
	}
	go w.run()
	return w
}

// Sink continues a session behind head, 0 for a new one. admit, if there is
// one, is asked inside each commit and may refuse it.
func (w *Writer) Sink(session uuid.UUID, head uint64, admit func(*eventlog.View) error) *Sink {
	return &Sink{w: w, session: session, head: head, admit: admit}
}

func (w *Writer) add(ctx context.Context, k *Sink, events []eventlog.NewEvent) error {
	size := 0
	for i := range events {
		size += len(events[i].Content)
	}
	if b := w.batch; b != nil && (len(b.events)+len(events) > batchEvents || b.size+size > batchBytes) {
		if err := w.send(ctx); err != nil {
			return err
		}
	}
	if w.batch == nil {
		select {
		case w.batch = <-w.free:
		case <-ctx.Done():
			return ctx.Err()
		case <-w.ended:
			return w.failure
		}
		if w.batch == nil {
			w.batch = batches.Get().(*batch)
		}
	}
	b := w.batch
	if len(b.bytes)+size > cap(b.bytes) { // the old one stays where it is: events point to it
		b.bytes = make([]byte, 0, max(min(2*cap(b.bytes), batchBytes), firstBytes, size))
	}
	b.size += size
	if n := len(b.units); n == 0 || b.units[n-1].sink != k || k.apart {
		k.apart = false
		b.units = append(b.units, unit{sink: k, head: k.head, from: len(b.events)})
	}
	for _, ev := range events {
		at := len(b.bytes)
		b.bytes = append(b.bytes, ev.Content...)
		if ev.Content != nil {
			ev.Content = b.bytes[at:len(b.bytes):len(b.bytes)]
		}
		b.events = append(b.events, ev)
	}
	b.units[len(b.units)-1].to = len(b.events)
	k.head += uint64(len(events))
	return nil
}

// send hands the batch to the goroutine.
func (w *Writer) send(ctx context.Context) error {
	b := w.batch
	if b == nil {
		return nil
	}
	w.batch = nil
	return w.hand(ctx, b)
}

func (w *Writer) hand(ctx context.Context, b *batch) error {
	select {
	case w.work <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-w.ended:
		return w.failure
	}
}

// Flush returns when everything that was added is durable.
func (w *Writer) Flush(ctx context.Context) error {
	if err := w.send(ctx); err != nil {
		return err
	}
	answer := make(chan error, 1)
	if err := w.hand(ctx, &batch{flush: answer}); err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-w.ended:
		return w.failure
	}
}

// Close ends the goroutine. What was added since the last full batch and not
// flushed is given up.
func (w *Writer) Close() {
	close(w.work)
	<-w.ended
	close(w.free)
	for b := range w.free {
		if b != nil {
			batches.Put(b)
		}
	}
}

// Committed is how many events of a session are durable.
func (w *Writer) Committed(session uuid.UUID) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.committed[session]
}

// run prepares and queues batches in order and waits for them in order. It ends
// at the first failure: what comes behind it has no place.
func (w *Writer) run() {
	defer close(w.ended)
	var queued []*batch
	settle := func(most int) (err error) {
		for len(queued) > most && err == nil {
			b := queued[0]
			queued = queued[1:]
			if err = w.wait(b); err == nil {
				if w.mapped += b.size; w.mapped > mappedBytes {
					w.s.ReleasePages()
					w.mapped = 0
				}
				w.free <- b.again()
			}
		}
		return err
	}
	for b := range w.work {
		if w.failure = settle(inFlight - 1); w.failure != nil {
			break
		}
		if b.flush != nil {
			if w.failure = settle(0); w.failure != nil {
				break
			}
			b.flush <- nil
			continue
		}
		queued = append(queued, b)
		if w.failure = w.queue(b); w.failure != nil {
			break
		}
	}
	if err := settle(0); w.failure == nil {
		w.failure = err
	}
}

// queue prepares a batch and hands its units to the store, in order.
func (w *Writer) queue(b *batch) (err error) {
	for i := range b.units {
		u := &b.units[i]
		events := eventlog.Batch{Session: u.sink.session, Expect: eventlog.At(u.head), Events: b.events[u.from:u.to]}
		if u.pending, err = w.s.ImportAsync(context.Background(), events, u.sink.admit); err != nil {
			return err
		}
	}
	return nil
}

// wait returns when a batch is durable, or the part of it that was queued.
func (w *Writer) wait(b *batch) error {
	var first error
	for i := range b.units {
		u := &b.units[i]
		if u.pending == nil { // queueing ended before it
			break
		}
		if _, err := u.pending.Wait(context.Background()); err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		w.mu.Lock()
		w.committed[u.sink.session] += int64(u.to - u.from)
		w.mu.Unlock()
	}
	return first
}

// again empties a batch for another use.
func (b *batch) again() *batch {
	clear(b.events)
	clear(b.units)
	b.events, b.units, b.bytes, b.size = b.events[:0], b.units[:0], b.bytes[:0], 0
	if cap(b.bytes) > batchBytes {
		b.bytes = nil
	}
	return b
}
