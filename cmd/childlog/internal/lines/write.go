package lines

import (
	"bufio"
	"bytes"
	"context"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"childlog/eventlog"
)

// Options of an export.
type Options struct {
	Sessions []uuid.UUID              // nil: all
	Filter   func(text []byte) []byte // of facts and contents; JSON stays JSON. nil: none
	Progress func(done, of uint64)    // positions; nil: none
}

// Written is what an export wrote.
type Written struct {
	Sessions, Frames, Events, Contents uint64
	Rewritten                          uint64 // contents that the filter rewrote
	FactsRewritten                     uint64 // events whose facts it rewrote: their logs can't be proven any more
	Absent                             uint64 // contents that the store has no more
}

// Export writes the events of a store, or of some sessions, in the order of their
// positions. The store is read and not changed. Memory is bounded by one batch's
// contents. Errors: ErrCorrupt: damage is never handed on; those of w.
func Export(ctx context.Context, s *eventlog.Store, w io.Writer, o Options) (Written, error) {
	var want func(uuid.UUID) bool
	if o.Sessions != nil {
		set := map[uuid.UUID]bool{}
		for _, id := range o.Sessions {
			row, err := s.Row(id)
			if err != nil {
				return Written{}, err
			}
			if len(row.Damage) > 0 {
				return Written{}, &eventlog.CorruptError{Session: id, Seq: row.Damage[0].From, Reason: row.Damage[0].Reason + "; damage is not exported"}
			}
			set[id] = true
		}
		want = func(id uuid.UUID) bool { return set[id] }
	}
	x := &exporter{w: bufio.NewWriterSize(w, 256<<10), o: o, want: want, size: s.Durable()}
	if err := s.EachRaw(ctx, 0, x.size, want, x.frame); err != nil {
		return x.done, err
	}
	return x.done, x.w.Flush()
}

type exporter struct {
	w    *bufio.Writer
	o    Options
	want func(uuid.UUID) bool
	size uint64
	buf  []byte
	done Written
}

func (x *exporter) frame(f *eventlog.RawFrame) error {
	if x.o.Progress != nil && (f.Position%4096 == 0 || f.Position+1 == x.size) {
		x.o.Progress(f.Position+1, x.size)
	}
	if f.Raw == nil || x.want != nil && !x.want(f.Session) {
		return nil
	}
	x.done.Frames++
	if f.First == 1 {
		x.done.Sessions++
	}
	for i := range f.Events {
		if err := x.event(f, i); err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) event(f *eventlog.RawFrame, i int) error {
	ev := &f.Events[i]
	var content []byte
	var salt *eventlog.Salt
	if chunks := f.Chunks[i]; chunks != nil {
		var err error
		if content, err = eventlog.DecodeChunks(ev, chunks); err != nil {
			return err
		}
		s, err := eventlog.ChunkSalt(ev, chunks)
		if err != nil {
			return err
		}
		salt = &s
		x.done.Contents++
	} else if ev.HasContent {
		x.done.Absent++
	}
	l, err := lineOf(f, i, content, salt)
	if err != nil {
		return err
	}
	if x.o.Filter != nil {
		x.filter(&l, ev.Media, content)
	}
	if x.buf, err = l.append(x.buf[:0]); err != nil {
		return err
	}
	x.done.Events++
	_, err = x.w.Write(x.buf)
	return err
}

// filter rewrites what the filter finds something in. With the salt a reader
// could try out what is missing, so it goes; with the header what stood in the
// facts would still be there.
func (x *exporter) filter(l *line, media eventlog.Media, content []byte) {
	if content != nil {
		if out := x.o.Filter(content); !bytes.Equal(out, content) {
			l.give(media, out)
			l.Salt, l.Filtered = nil, true
			x.done.Rewritten++
		}
	}
	if out := x.o.Filter(l.Facts); !bytes.Equal(out, l.Facts) {
		l.Facts, l.Header, l.Filtered = jsontext.Value(out), nil, true
		x.done.FactsRewritten++
	}
}
