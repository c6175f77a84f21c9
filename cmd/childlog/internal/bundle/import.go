package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// What an import does with a session.
const (
	OutcomeNew       = "new"
	OutcomeContinued = "continued" // an earlier bundle had brought its beginning
	OutcomeSame      = "same"      // the store has it already, native or not; nothing is added
)

// Taken is what became of one session.
type Taken struct {
	Listed
	Outcome string
	Was     uint64 // the head before
}

// Imported is the outcome of an import.
type Imported struct {
	Report   *Report
	Sessions []Taken
	Events   uint64 // appended, or in a dry run those that would be
	Status   string // how well the bundle was proven; what store/imported says
}

// ImportOptions of an import.
type ImportOptions struct {
	Anchors
	DryRun bool
	By     string // who takes the logs in; a code
}

// Import takes the logs of a bundle into a store as evidence: chain hashes and
// receipts are the same there, and nothing in them is ever authority. The bundle
// is checked in full before anything is written, and refused as a whole if
// anything in it is not what it was, a log is not whole, or a session of the
// store stands in the way: a native one with another log, or evidence that went
// on otherwise. The store's own session of the bundle is not taken in.
//
// A second import adds nothing; a later bundle of the same sessions goes on where
// the first one ended. An import that was interrupted is finished by repeating
// it. in is read two or three times from its beginning.
//
// Errors: ErrCorrupt (what the check found), ErrConflict with the first seq that
// differs, ErrUnauthorized (it would be attached to a native session, or take
// its external id), ErrInvalid, and those of a commit.
func Import(ctx context.Context, s *eventlog.Store, in io.ReadSeeker, o ImportOptions) (*Imported, error) {
	i := &importer{s: s, in: in, o: o, plan: map[uuid.UUID]*Taken{}, logs: map[uuid.UUID]*eventlog.ForeignLog{}}
	return &i.done, i.run(ctx)
}

// Bounds of what is committed at a time.
const (
	importEvents = 2048
	importBytes  = 16 << 20 // headers and contents as stored; one frame always fits
)

type importer struct {
	s    *eventlog.Store
	in   io.ReadSeeker
	o    ImportOptions
	done Imported

	plan   map[uuid.UUID]*Taken // sessions with something to add
	order  []uuid.UUID
	logs   map[uuid.UUID]*eventlog.ForeignLog
	events int
	bytes  int
}

func (i *importer) rewind() error {
	_, err := i.in.Seek(0, io.SeekStart)
	return err
}

func (i *importer) run(ctx context.Context) error {
	if err := i.rewind(); err != nil {
		return err
	}
	r, err := Verify(ctx, i.in, i.o.Anchors)
	if err != nil {
		return err
	}
	i.done.Report = r
	if i.done.Status = strings.ReplaceAll(string(r.Status()), " ", "_"); r.Signer == "" {
		i.done.Status = "unproven"
	}
	if err := sound(r); err != nil {
		return err
	}
	if err := i.decide(ctx, r); err != nil {
		return err
	}
	if len(i.plan) == 0 || i.o.DryRun {
		return nil
	}
	if err := i.rewind(); err != nil {
		return err
	}
	none := func(node, bool) error { return nil }
	_, _, end, err := read(ctx, i.in, visitor{frame: func(f *eventlog.RawFrame, _ []bool) error { return i.frame(ctx, f) }, subtree: none})
	if err != nil {
		return err
	}
	if end.digest != r.Digest {
		return &eventlog.CorruptError{Reason: "bundle: the file changed while it was read"}
	}
	return i.flush(ctx)
}

// sound refuses what must not be taken in.
func sound(r *Report) error {
	for _, f := range r.Findings {
		if !f.Missing {
			return &eventlog.CorruptError{Session: f.Session, Seq: f.Seq, Reason: "bundle: " + f.Kind + ": " + f.Detail}
		}
	}
	for _, l := range r.Sessions {
		if !l.Complete {
			return &eventlog.CorruptError{Session: l.Session, Reason: "bundle: the log is not whole, so nothing of the bundle is taken in"}
		}
	}
	return nil
}

// decide compares each session with what the store has under its id.
func (i *importer) decide(ctx context.Context, r *Report) error {
	for _, l := range r.Sessions {
		if l.Session == eventlog.StoreSession {
			continue
		}
		t := Taken{Listed: l.Listed, Outcome: OutcomeNew}
		row, err := i.s.Row(l.Session)
		switch {
		case errors.Is(err, eventlog.ErrNotFound):
		case err != nil:
			return err
		case row.Head >= l.Head:
			t.Outcome, t.Was = OutcomeSame, row.Head
			hash, err := hashAt(ctx, i.s, l.Session, l.Head)
			if err != nil {
				return err
			}
			if hash != l.Hash {
				return i.conflict(ctx, &row, l.Head)
			}
		case !row.Imported:
			return i.conflict(ctx, &row, l.Head)
		default:
			t.Outcome, t.Was = OutcomeContinued, row.Head
			if err := i.conflict(ctx, &row, row.Head); err != nil {
				return err
			}
		}
		i.done.Sessions = append(i.done.Sessions, t)
		if t.Outcome != OutcomeSame {
			i.plan[l.Session] = &i.done.Sessions[len(i.done.Sessions)-1]
			i.done.Events += l.Head - t.Was
		}
	}
	for k := range i.done.Sessions { // the slice has its place now
		if t := &i.done.Sessions[k]; i.plan[t.Session] != nil {
			i.plan[t.Session] = t
		}
	}
	return nil
}

// conflict finds the first seq up to last at which the store's log is not the
// bundle's. Where all are equal and the log did not come from elsewhere, it is
// the store's own that is shorter, and takes nothing.
func (i *importer) conflict(ctx context.Context, row *eventlog.Row, last uint64) error {
	if err := i.rewind(); err != nil {
		return err
	}
	differs := uint64(0)
	_, _, _, err := read(ctx, i.in, visitor{subtree: func(node, bool) error { return nil }, frame: func(f *eventlog.RawFrame, _ []bool) error {
		if f.Session != row.Session || differs != 0 || f.First > last {
			return nil
		}
		for k := range f.Events {
			ev := &f.Events[k]
			if ev.Seq > last || ev.Seq > row.Head {
				break
			}
			hash, err := hashAt(ctx, i.s, row.Session, ev.Seq)
			if err != nil {
				return err
			}
			if hash != ev.Hash {
				differs = ev.Seq
				break
			}
		}
		return nil
	}})
	switch {
	case err != nil:
		return err
	case differs > 0:
		return fmt.Errorf("%w: session %s: seq %d here is another event than in the bundle", eventlog.ErrConflict, row.Session, differs)
	case row.Imported:
		return nil
	case row.Evidence:
		return fmt.Errorf("%w: session %s was imported from another system's log, as far as seq %d, and does not go on from a bundle", eventlog.ErrConflict, row.Session, row.Head)
	}
	return fmt.Errorf("%w: session %s is native here, with head seq %d; the bundle goes on from there, and nothing of it is taken for this store's", eventlog.ErrConflict, row.Session, row.Head)
}

// frame adds what is new of a frame.
func (i *importer) frame(ctx context.Context, f *eventlog.RawFrame) error {
	t := i.plan[f.Session]
	if t == nil || f.Last() <= t.Was {
		return nil
	}
	size := len(f.Raw)
	for _, chunks := range f.Chunks {
		for _, c := range chunks {
			size += len(c)
		}
	}
	if i.events > 0 && (i.events+len(f.Events) > importEvents || i.bytes+size > importBytes) {
		if err := i.flush(ctx); err != nil {
			return err
		}
	}
	log := i.logs[f.Session]
	if log == nil {
		log = &eventlog.ForeignLog{Session: f.Session, After: max(f.First-1, t.Was), Prev: f.Prev}
		if r := i.done.Report; log.After == 0 {
			log.Record = eventlog.ImportRecord{Store: r.Store, Head: t.Head, Hash: t.Hash, Status: i.done.Status, By: i.o.By}
			if r.Signer != "" {
				log.Record.TreeSize, log.Record.TreeRoot = r.Checkpoint.Size, r.Checkpoint.Root
			}
		}
		i.logs[f.Session] = log
		i.order = append(i.order, f.Session)
	}
	for k := range f.Events {
		if f.Events[k].Seq <= t.Was {
			log.Prev = f.Events[k].Hash
			continue
		}
		ev, err := eventlog.NewForeignEvent(f.Session, f.Headers[k], f.Chunks[k])
		if err != nil {
			return err
		}
		log.Events = append(log.Events, ev)
		i.events++
	}
	i.bytes += size
	return nil
}

// flush commits what was gathered.
func (i *importer) flush(ctx context.Context) error {
	if i.events == 0 {
		return nil
	}
	logs := make([]eventlog.ForeignLog, len(i.order))
	for k, id := range i.order {
		logs[k] = *i.logs[id]
	}
	if _, err := i.s.ImportLogs(ctx, logs...); err != nil {
		return err
	}
	clear(i.logs)
	i.order, i.events, i.bytes = i.order[:0], 0, 0
	return nil
}

// hashAt is the chain hash of a session after a seq.
func hashAt(ctx context.Context, s *eventlog.Store, session uuid.UUID, seq uint64) (eventlog.Hash, error) {
	page, err := s.Read(ctx, session, eventlog.ReadOptions{From: seq, To: seq})
	if err != nil {
		return eventlog.Hash{}, err
	}
	if len(page.Events) != 1 {
		return eventlog.Hash{}, &eventlog.CorruptError{Session: session, Seq: seq, Reason: "the event can't be read"}
	}
	return page.Events[0].Hash, nil
}
