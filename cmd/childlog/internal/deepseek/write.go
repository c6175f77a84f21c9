package deepseek

import (
	"context"
	"fmt"
	"io"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// created is session/created of a file; n may be nil.
func (f *file) created(n *notes, parentSeq uint64) eventlog.Created {
	c := f.Created(parentSeq)
	c.WorkspaceRoot, c.PathStyle, c.SeedLen = f.h.workspace, f.h.style, f.h.seed
	if n != nil {
		if n.mode == eventlog.ModeContinuable {
			c.Mode = eventlog.ModeContinuable
		}
		// Where the provider runs is not recorded, so its policy counts as not
		// enforced by anybody here.
		c.Provider = eventlog.Provider{Name: n.provider}
	}
	return c
}

// write appends what the store lacks of a file that was scanned. It reads the
// same open file again, up to where the scan ended.
func (r *run) write(ctx context.Context, f *file, in *importer.Input, sc *scan, read func(int)) (events int64, err error) {
	if !sc.needsSource() {
		return 0, nil
	}
	lines, err := in.Lines(ctx, read)
	if err != nil {
		return 0, err
	}
	sink := importer.NewSink(r.S, f.Session, sc.head, f.Admit)
	defer func() { events = sink.Close() }()
	seed := newSeed(r.S, f)
	for n := int64(1); n <= sc.prefix.Lines; n++ {
		line, err := lines.Next()
		if err != nil {
			return 0, r.rewritten(ctx, f, err)
		}
		if n <= sc.known {
			continue
		}
		if n == 1 {
			if err := r.writeHeader(ctx, f, sink, sc, line); err != nil {
				return 0, err
			}
			continue
		}
		out := sc.mapper.next(line)
		out.event.ID = importer.EventID(f.Session, n, importer.PartLine, line.Sum)
		if out.inherited {
			if out.event.Inherited, err = seed.of(ctx, &out, n); err != nil {
				return 0, err
			}
		}
		if err := sink.Add(ctx, out.event); err != nil {
			return 0, err
		}
	}
	if lines.Prefix() != sc.prefix {
		return 0, r.rewritten(ctx, f, nil)
	}
	if seed.guessed > 0 {
		r.find(f, codeUnlinked, 0, fmt.Sprintf("the parent's log is not in the store, or not that far; the places of %d inherited events in it are those that counting gives", seed.guessed))
	}
	packedWhole := false
	if in.Packed() { // the digest of the file as it lies needs the pass to reach its end
		_, err := lines.Next()
		if packedWhole = err == io.EOF; !packedWhole && ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	if err := sink.Add(ctx, f.SourceEvent(in, f.path, sc.prefix, packedWhole, sc.mapper.last, f.h.created)); err != nil {
		return 0, err
	}
	return 0, sink.Flush(ctx)
}

func (r *run) writeHeader(ctx context.Context, f *file, sink *importer.Sink, sc *scan, line importer.Line) error {
	call, _ := r.callOf(f, sc.notes)
	first, err := f.CreatedEvent(f.created(sc.notes, call.seq), sc.notes.displayLabel(), f.h.cwd, f.h.created)
	if err != nil {
		return err
	}
	header := importer.Keep(importer.LineHeader, eventlog.MediaJSON, line.Bytes)
	header.Facts = importer.Facts("original", "session", "line", importer.LineHeader)
	header.ID, header.Time = importer.EventID(f.Session, 1, importer.PartLine, line.Sum), f.h.created
	return sink.Add(ctx, first, header)
}

func (r *run) rewritten(ctx context.Context, f *file, err error) error {
	detail := ""
	if err != nil && err != io.EOF {
		detail = ": " + err.Error()
	}
	return r.Rewritten(ctx, f.path, &f.Place, detail)
}
