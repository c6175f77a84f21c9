package claudecode

import (
	"context"
	"slices"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// Bounds of the conversations of a file that are written at the same time:
// each open one has batches of its own in memory.
const (
	maxSinks     = 8
	pendingBytes = 8 << 20 // of lines, before all of several are made durable
)

// sinks write the conversations of one file. A few are open; the one that
// waited longest is closed for another, and opened again behind what it wrote.
type sinks struct {
	s       *eventlog.Store
	convs   []*conv
	open    map[int]*importer.Sink
	order   []int    // open ones, the one used last at the end
	heads   []uint64 // behind what was added to each
	pending int64
}

func newSinks(s *eventlog.Store, convs []*conv) *sinks {
	k := &sinks{s: s, convs: convs, open: map[int]*importer.Sink{}}
	for _, c := range convs {
		k.heads = append(k.heads, c.head)
	}
	return k
}

// add takes events of one conversation that belong together.
func (k *sinks) add(ctx context.Context, i int, events ...eventlog.NewEvent) error {
	for j := range events {
		k.pending += int64(len(events[j].Content))
	}
	if k.pending > pendingBytes && len(k.order) > 1 {
		k.pending = 0
		for _, sink := range k.open {
			if err := sink.Flush(ctx); err != nil {
				return err
			}
		}
	}
	sink := k.open[i]
	if sink != nil {
		k.order = slices.DeleteFunc(k.order, func(j int) bool { return j == i })
	} else {
		if len(k.order) == maxSinks {
			if err := k.flush(ctx, k.order[0]); err != nil {
				return err
			}
		}
		c := k.convs[i]
		sink = importer.NewSink(k.s, c.place.Session, k.heads[i], c.place.Admit)
		k.open[i] = sink
	}
	k.order = append(k.order, i)
	k.heads[i] += uint64(len(events))
	return sink.Add(ctx, events...)
}

// flush makes what was added to a conversation durable, and closes its sink.
func (k *sinks) flush(ctx context.Context, i int) error {
	sink := k.open[i]
	if sink == nil {
		return nil
	}
	err := sink.Flush(ctx)
	k.closeOne(i)
	return err
}

func (k *sinks) closeOne(i int) {
	k.convs[i].added += k.open[i].Close()
	delete(k.open, i)
	k.order = slices.DeleteFunc(k.order, func(j int) bool { return j == i })
}

// close ends what is still open. What was not flushed may be given up.
func (k *sinks) close() {
	for len(k.order) > 0 {
		k.closeOne(k.order[0])
	}
}
