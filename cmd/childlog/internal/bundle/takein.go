package bundle

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// What an import does with a session.
const (
	OutcomeNew       = "new"
	OutcomeContinued = "continued" // an earlier import had brought its beginning
	OutcomeSame      = "same"      // the store has it already, native or not; nothing is added
	OutcomePurged    = "purged"    // it was removed from the store on record; nothing of it is taken
)

// Taken is what became of one session.
type Taken struct {
	Listed
	Outcome string
	Was     uint64 // the head before; of one that was purged the head in the file
}

// Logs are whole logs of another store that were checked: that each follows its
// own chain from seq 1 to the head that is listed.
type Logs struct {
	List   []Listed
	Each   func(ctx context.Context, fn func(*eventlog.RawFrame) error) error // in the order of each log; several times
	Record eventlog.ImportRecord                                              // what store/imported says of all of them
}

// TakeIn takes logs into a store as evidence, as [Import] says. A dry run
// decides and writes nothing.
func TakeIn(ctx context.Context, s *eventlog.Store, logs Logs, dry bool) (*Imported, error) {
	t := &taker{s: s, from: logs, done: &Imported{Status: logs.Record.Status}, plan: map[uuid.UUID]Taken{}, logs: map[uuid.UUID]*eventlog.ForeignLog{}}
	if err := t.decide(ctx); err != nil {
		return nil, err
	}
	if len(t.plan) == 0 || dry {
		return t.done, nil
	}
	if err := logs.Each(ctx, func(f *eventlog.RawFrame) error { return t.frame(ctx, f) }); err != nil {
		return nil, err
	}
	return t.done, t.flush(ctx)
}

// Bounds of what is committed at a time.
const (
	importEvents = 2048
	importBytes  = 16 << 20 // headers and contents as stored; one frame always fits
)

type taker struct {
	s    *eventlog.Store
	from Logs
	done *Imported

	plan   map[uuid.UUID]Taken // sessions with something to add
	order  []uuid.UUID
	logs   map[uuid.UUID]*eventlog.ForeignLog
	events int
	bytes  int
}

// decide compares each session with what the store has under its id.
func (t *taker) decide(ctx context.Context) error {
	for _, l := range t.from.List {
		if l.Session == eventlog.StoreSession {
			continue
		}
		to := Taken{Listed: l, Outcome: OutcomeNew}
		row, err := t.s.Row(l.Session)
		switch {
		case errors.Is(err, eventlog.ErrNotFound):
		case errors.Is(err, eventlog.ErrPurged):
			to.Outcome, to.Was = OutcomePurged, l.Head
		case err != nil:
			return err
		case row.Head >= l.Head:
			to.Outcome, to.Was = OutcomeSame, row.Head
			hash, err := hashAt(ctx, t.s, l.Session, l.Head)
			if err != nil {
				return err
			}
			if hash != l.Hash {
				return t.conflict(ctx, &row, l.Head)
			}
		case !row.Imported:
			return t.conflict(ctx, &row, l.Head)
		default:
			to.Outcome, to.Was = OutcomeContinued, row.Head
			if err := t.conflict(ctx, &row, row.Head); err != nil {
				return err
			}
		}
		t.done.Sessions = append(t.done.Sessions, to)
		if to.Outcome != OutcomeSame && to.Outcome != OutcomePurged {
			t.plan[l.Session] = to
			t.done.Events += l.Head - to.Was
		}
	}
	return nil
}

// conflict finds the first seq up to last at which the store's log is not the
// bundle's. Where all are equal and the log did not come from elsewhere, it is
// the store's own that is shorter, and takes nothing.
func (t *taker) conflict(ctx context.Context, row *eventlog.Row, last uint64) error {
	differs, last := uint64(0), min(last, row.Head)
	err := t.from.Each(ctx, func(f *eventlog.RawFrame) error {
		if f.Session != row.Session || differs != 0 || f.First > last {
			return nil
		}
		var err error
		differs, err = t.differs(ctx, f, min(f.Last(), last))
		return err
	})
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

// differs is the first seq of a frame, up to last, at which the store has another
// event, 0 if there is none. A chain hash stands for all events before it, so
// the last one is compared first.
func (t *taker) differs(ctx context.Context, f *eventlog.RawFrame, last uint64) (uint64, error) {
	same := func(seq uint64) (bool, error) {
		hash, err := hashAt(ctx, t.s, f.Session, seq)
		return hash == f.Events[seq-f.First].Hash, err
	}
	if ok, err := same(last); ok || err != nil {
		return 0, err
	}
	for seq := f.First; seq < last; seq++ {
		if ok, err := same(seq); !ok || err != nil {
			return seq, err
		}
	}
	return last, nil
}

// frame adds what is new of a frame.
func (t *taker) frame(ctx context.Context, f *eventlog.RawFrame) error {
	to, ok := t.plan[f.Session]
	if !ok || f.Last() <= to.Was {
		return nil
	}
	size := len(f.Raw)
	for _, chunks := range f.Chunks {
		for _, c := range chunks {
			size += len(c)
		}
	}
	if t.events > 0 && (t.events+len(f.Events) > importEvents || t.bytes+size > importBytes) {
		if err := t.flush(ctx); err != nil {
			return err
		}
	}
	log := t.logs[f.Session]
	if log == nil {
		log = &eventlog.ForeignLog{Session: f.Session, After: max(f.First-1, to.Was), Prev: f.Prev}
		if log.After == 0 {
			log.Record = t.from.Record
			log.Record.Head, log.Record.Hash = to.Head, to.Hash
		}
		t.logs[f.Session] = log
		t.order = append(t.order, f.Session)
	}
	for k := range f.Events {
		if f.Events[k].Seq <= to.Was {
			log.Prev = f.Events[k].Hash
			continue
		}
		ev, err := eventlog.NewForeignEvent(f.Session, f.Headers[k], f.Chunks[k])
		if err != nil {
			return err
		}
		log.Events = append(log.Events, ev)
		t.events++
	}
	t.bytes += size
	return nil
}

// flush commits what was gathered.
func (t *taker) flush(ctx context.Context) error {
	if t.events == 0 {
		return nil
	}
	logs := make([]eventlog.ForeignLog, len(t.order))
	for k, id := range t.order {
		logs[k] = *t.logs[id]
	}
	if _, err := t.s.ImportLogs(ctx, logs...); err != nil {
		return err
	}
	clear(t.logs)
	t.order, t.events, t.bytes = t.order[:0], 0, 0
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
