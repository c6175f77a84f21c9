package lines

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/bundle"
	"childlog/eventlog"
)

// maxLine bounds a line, bytes: a content of 16 MiB, of which every byte may be
// written as \u0000, and its header.
const maxLine = 6*eventlog.MaxContent + 1<<20

// Imported is the outcome of an import.
type Imported struct {
	bundle.Imported
	Lines     uint64
	Rewritten uint64 // contents that a filter had rewritten: not taken in
	Absent    uint64 // contents that the lines came without
}

// Import takes lines in as evidence. Everything is checked before anything is
// written: each event against its header, the chain of each log from seq 1 on,
// each content against its commitment. So the digests here are those of the store
// that the lines come from. That the lines are all that there was, and that
// anybody vouches for them, is proven by nothing in them: for that there are
// bundles. The store's own session is passed over.
//
// Otherwise it is as [bundle.Import]. Errors: ErrInvalid with the line, and those.
func Import(ctx context.Context, s *eventlog.Store, in io.ReadSeeker, dry bool, by string) (*Imported, error) {
	c := &checker{logs: map[uuid.UUID]*bundle.Listed{}}
	if err := each(ctx, in, c.line); err != nil {
		return nil, err
	}
	logs := bundle.Logs{Record: eventlog.ImportRecord{Status: bundle.StatusUnproven, By: by}}
	for _, id := range c.order {
		logs.List = append(logs.List, *c.logs[id])
	}
	logs.Each = func(ctx context.Context, fn func(*eventlog.RawFrame) error) error {
		return each(ctx, in, func(f *eventlog.RawFrame, _ *line) error { return fn(f) })
	}
	done, err := bundle.TakeIn(ctx, s, logs, dry)
	if err != nil {
		return nil, err
	}
	c.done.Imported = *done
	return &c.done, nil
}

// checker is the first reading.
type checker struct {
	logs  map[uuid.UUID]*bundle.Listed
	order []uuid.UUID
	done  Imported
}

func (c *checker) line(f *eventlog.RawFrame, l *line) error {
	c.done.Lines++
	if f.Session != eventlog.StoreSession {
		if _, err := eventlog.NewForeignEvent(f.Session, f.Headers[0], f.Chunks[0]); err != nil {
			return err
		}
	}
	log := c.logs[f.Session]
	if log == nil {
		log = &bundle.Listed{Session: f.Session, Imported: f.Imported}
		c.logs[f.Session] = log
		c.order = append(c.order, f.Session)
	}
	if f.First != log.Head+1 {
		return &eventlog.CorruptError{Session: f.Session, Seq: log.Head + 1, Reason: fmt.Sprintf("the next line is seq %d: lines are missing or out of order", f.First)}
	}
	log.Head, log.Hash = f.First, f.Events[0].Hash
	if ev := &f.Events[0]; ev.HasContent && f.Chunks[0] == nil {
		if l.Filtered {
			c.done.Rewritten++
		} else {
			c.done.Absent++
		}
	}
	return nil
}

// each reads all lines from the beginning and calls fn with each.
func each(ctx context.Context, in io.ReadSeeker, fn func(*eventlog.RawFrame, *line) error) error {
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	hashes := map[uuid.UUID]eventlog.Hash{}
	prevOf := func(id uuid.UUID) eventlog.Hash {
		if h, ok := hashes[id]; ok {
			return h
		}
		return eventlog.Genesis(id)
	}
	r := bufio.NewReaderSize(in, 256<<10)
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := next(r)
		if errors.Is(err, io.EOF) && len(text) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		f, l, err := parse(text, prevOf)
		if err == nil {
			hashes[f.Session] = f.Events[0].Hash
			err = fn(f, l)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
}

// next reads a line of at most maxLine bytes.
func next(r *bufio.Reader) (text []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(text)+len(part) > maxLine {
			return nil, &eventlog.TooLargeError{What: "line in bytes", Limit: maxLine, Size: uint64(len(text) + len(part))}
		}
		text = append(text, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
	}
}
