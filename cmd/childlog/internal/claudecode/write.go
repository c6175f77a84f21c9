package claudecode

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"time"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// write appends what the store lacks of a file that was scanned. It reads the
// same open file again, up to where the scan ended.
func (r *run) write(ctx context.Context, in *importer.Input, sc *scan, read func(int)) error {
	f := sc.f
	w := &writer{r: r, sc: sc, sinks: newSinks(r.S, sc.convs), at: make([]int64, len(sc.convs))}
	todo := false
	defer w.sinks.close()
	for _, c := range sc.convs {
		todo = todo || c.events > 0
	}
	if !todo {
		return nil
	}
	lines, err := in.Lines(ctx, read)
	if err != nil {
		return err
	}
	rd := newReader(f, nil)
	for n := int64(1); n <= sc.prefix.Lines; n++ {
		line, err := lines.Next()
		if err != nil {
			return r.rewritten(ctx, f, err)
		}
		i, out := rd.next(line)
		if i >= len(sc.convs) {
			return r.rewritten(ctx, f, nil)
		}
		if err := w.line(ctx, i, line, &out); err != nil {
			return err
		}
	}
	if lines.Prefix() != sc.prefix {
		return r.rewritten(ctx, f, nil)
	}
	whole := false
	if in.Packed() { // the digest of the file as it lies needs the pass to reach its end
		_, err := lines.Next()
		if whole = err == io.EOF; !whole && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for i, c := range sc.convs {
		if err := w.end(ctx, i, c, in, whole, rd.mappers[i]); err != nil {
			return err
		}
	}
	return nil
}

// writer is the second pass over a file.
type writer struct {
	r     *run
	sc    *scan
	sinks *sinks
	at    []int64 // lines of each conversation so far
	batch []eventlog.NewEvent
}

// line adds the events of one line.
func (w *writer) line(ctx context.Context, i int, line importer.Line, out *mapped) error {
	c := w.sc.convs[i]
	if w.at[i]++; w.at[i] <= c.known {
		return nil
	}
	w.batch = w.batch[:0]
	if w.at[i] == 1 {
		first, err := c.createdEvent(cmp.Or(out.events[0].Time, w.sc.f.h.created))
		if err != nil {
			return err
		}
		w.batch = append(w.batch, first)
	}
	ref, err := w.sc.refs.of(ctx, out.e, line.Number)
	if err != nil {
		return err
	}
	for j, ev := range out.events {
		ev.ID, ev.Inherited, ev.Time = c.eventID(w.at[i], j, line.Sum), ref, cmp.Or(ev.Time, w.sc.f.h.created)
		w.batch = append(w.batch, ev)
	}
	return w.sinks.add(ctx, i, w.batch...)
}

// end writes a run's last word about a conversation.
func (w *writer) end(ctx context.Context, i int, c *conv, in *importer.Input, whole bool, m *mapper) error {
	f := w.sc.f
	side := c.side()
	if c.newSidecar() {
		ev := eventlog.NewEvent{ID: c.atHead(side.sum), Type: importer.TypeSidecar, Media: eventlog.MediaOctets, Content: side.raw, Ignorable: true,
			Facts: importer.Facts("bytes", len(side.raw), "sha256", eventlog.Hash(side.sum)), Time: cmp.Or(m.last, f.h.created)}
		if eventlog.CheckJSON(side.raw) == nil {
			ev.Media = eventlog.MediaJSON
		}
		if err := w.sinks.add(ctx, i, ev); err != nil {
			return err
		}
	}
	if c.needsSource() {
		ev := c.place.SourceEvent(in, f.path, w.sc.prefix, whole, m.last, f.h.created, c.word(len(w.sc.convs)-1)...)
		if c.newSidecar() { // the lines may be those of an earlier run's last word
			ev.ID = c.atHead(sha256.Sum256(append(w.sc.prefix.Sum[:], side.sum[:]...)))
		}
		if err := w.sinks.add(ctx, i, ev); err != nil {
			return err
		}
	}
	return w.sinks.flush(ctx, i)
}

// atHead is the id of an event that may come again with the same bytes: each
// time the session's head is another.
func (c *conv) atHead(sum [32]byte) uuid.UUID {
	return importer.EventID(c.place.Session, int64(c.head), importer.PartSource, sum)
}

// createdEvent is the first event of a conversation.
func (c *conv) createdEvent(at time.Time) (eventlog.NewEvent, error) {
	created := c.place.Created(c.call.seq)
	created.WorkspaceRoot, created.PathStyle = c.f.h.workspace, c.f.h.style
	if c.place.Child { // where it runs is not recorded, so its policy counts as not enforced by anybody here
		created.Provider = eventlog.Provider{Name: cmp.Or(c.agentType(), System)}
	}
	return c.place.CreatedEvent(created, c.title(), c.f.h.cwd, at)
}

func (r *run) rewritten(ctx context.Context, f *file, err error) error {
	detail := ""
	if err != nil && !errors.Is(err, io.EOF) {
		detail = ": " + err.Error()
	}
	return r.Rewritten(ctx, f.path, &f.Place, detail)
}
