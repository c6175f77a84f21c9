package bundle

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// Options of an export.
type Options struct {
	Sessions []uuid.UUID // nil: the whole store
	Note     []byte      // a signed checkpoint of the store; nil: none
	Key      string      // the verifier key that goes with it, for information
	// Filter rewrites what it finds secrets in. A bundle is hashed, so it holds no
	// content that was rewritten: one that would be is left out, with its salt.
	// Facts can't be left out: an event whose facts would be rewritten ends the
	// export. nil: none.
	Filter   func(text []byte) []byte
	Progress func(done, of uint64) // positions; nil: none
}

// Written is what an export wrote.
type Written struct {
	Sessions, Frames, Events, Contents uint64
	Withheld                           uint64 // contents left out by Filter
	Absent                             uint64 // contents that the store has no more
	TreeSize                           uint64
	TreeRoot                           eventlog.Hash
}

// Export writes a bundle of the store, or of some sessions and the store's own,
// to w. The same state of the store gives the same bytes. The store is read and
// not changed, and must not be appended to meanwhile. Memory is bounded by the
// number of sessions and one batch's contents.
//
// Errors: ErrNotFound (a session); ErrInvalid (facts that Filter would rewrite); ErrCorrupt: damage is never handed on;
// ErrConflict: the store was appended to; those of w.
func Export(ctx context.Context, s *eventlog.Store, w io.Writer, o Options) (Written, error) {
	e := &exporter{s: s, o: o, size: s.Durable(), logs: map[uuid.UUID]*logState{}}
	if o.Note != nil {
		note, err := eventlog.ParseCheckpoint(o.Note)
		if err != nil {
			return e.done, err
		}
		if note.Size > e.size {
			return e.done, fmt.Errorf("%w: the checkpoint is of %d positions, the store has %d", eventlog.ErrRollback, note.Size, e.size)
		}
		e.note = &note
	}
	ids, err := e.sessions(ctx)
	if err != nil {
		return e.done, err
	}
	e.w = newRecordWriter(w)
	if err := e.head(ids); err != nil {
		return e.done, err
	}
	if err := s.EachRaw(ctx, 0, e.size, e.wanted, e.position); err != nil {
		return e.done, err
	}
	return e.done, e.end()
}

// logState is how far a session's log was followed.
type logState struct {
	head     uint64
	hash     eventlog.Hash
	wantHead uint64
	wantHash eventlog.Hash
	imported bool
}

type exporter struct {
	s    *eventlog.Store
	o    Options
	w    *recordWriter
	note *eventlog.Checkpoint
	size uint64
	logs map[uuid.UUID]*logState
	tree frontier
	gap  gap
	done Written
}

// sessions reads the rows of what is exported, in id order.
func (e *exporter) sessions(ctx context.Context) (ids []uuid.UUID, err error) {
	take := func(row *eventlog.Row) error {
		if len(row.Damage) > 0 {
			return &eventlog.CorruptError{Session: row.Session, Seq: row.Damage[0].From, Reason: row.Damage[0].Reason + "; damage is not exported"}
		}
		ids = append(ids, row.Session)
		e.logs[row.Session] = &logState{hash: eventlog.Genesis(row.Session), wantHead: row.Head, wantHash: row.Hash, imported: row.Imported}
		return nil
	}
	if e.o.Sessions == nil {
		err = e.s.EachRow(ctx, func(row *eventlog.Row) (bool, error) { return true, take(row) })
		return ids, err
	}
	for _, id := range append([]uuid.UUID{eventlog.StoreSession}, e.o.Sessions...) {
		if e.logs[id] != nil {
			continue
		}
		row, err := e.s.Row(id)
		if id == eventlog.StoreSession && errors.Is(err, eventlog.ErrNotFound) {
			continue // nothing was ever bound to the store
		}
		if err == nil {
			err = take(&row)
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return ids, nil
}

func (e *exporter) wanted(session uuid.UUID) bool { return e.logs[session] != nil }

func (e *exporter) head(ids []uuid.UUID) error {
	id := e.s.Identity()
	var flags byte
	if e.o.Sessions == nil {
		flags |= flagWhole
	}
	if e.o.Filter != nil {
		flags |= flagFiltered
	}
	e.w.record(kindHead, []byte{formatVersion, flags}, id.Store[:], uvarint(id.Incarnation), uvarint(e.size))
	if e.o.Key != "" {
		e.w.record(kindKey, []byte(e.o.Key))
	}
	if e.note != nil {
		e.w.record(kindNote, e.o.Note)
	}
	for _, id := range ids {
		l := e.logs[id]
		flags := byte(0)
		if l.imported {
			flags = flagImported
		}
		e.w.record(kindSession, id[:], []byte{flags}, uvarint(l.wantHead), l.wantHash[:])
	}
	e.done.Sessions = uint64(len(ids))
	return e.w.err
}

// position writes what stands at the next position, or keeps its leaf for a
// subtree.
func (e *exporter) position(f *eventlog.RawFrame) error {
	if e.o.Progress != nil && (f.Position%4096 == 0 || f.Position+1 == e.size) {
		e.o.Progress(f.Position+1, e.size)
	}
	if e.note != nil && f.Position == e.note.Size { // no subtree spans what was signed and what was not
		if err := e.signed(); err != nil {
			return err
		}
	}
	leaf := node{0, f.Position, f.Leaf}
	if err := e.tree.add(leaf); err != nil {
		return err
	}
	l := e.logs[f.Session]
	switch {
	case l != nil || f.Tombstone && e.o.Sessions == nil:
	case e.o.Sessions == nil && !f.Lost:
		return &eventlog.ConflictError{Session: f.Session, Actual: f.Last()} // it was begun after the rows were read
	default:
		e.gap.add(leaf)
		return nil
	}
	if err := e.closeGap(); err != nil {
		return err
	}
	if f.Tombstone {
		return e.w.record(kindTomb, uvarint(f.Position), f.Leaf[:])
	}
	if f.First != l.head+1 || f.Prev != l.hash {
		return &eventlog.CorruptError{Session: f.Session, Seq: f.First, Position: f.Position, HasPosition: true, Reason: "the log does not follow its own chain"}
	}
	l.head, l.hash = f.Last(), f.After()
	e.done.Frames++
	e.done.Events += uint64(len(f.Events))
	e.w.record(kindFrame, uvarint(f.Position), f.Raw)
	for i := range f.Events {
		if err := e.content(f, i); err != nil {
			return err
		}
	}
	return e.w.err
}

func (e *exporter) content(f *eventlog.RawFrame, i int) error {
	ev, chunks := &f.Events[i], f.Chunks[i]
	if e.o.Filter != nil {
		facts, err := ev.Facts.JSON()
		if err != nil {
			return err
		}
		if !bytes.Equal(e.o.Filter(facts), facts) {
			return fmt.Errorf("%w: session %s: seq %d: %s: the filter finds something in its facts, which a bundle can't leave out", eventlog.ErrInvalid, ev.Session, ev.Seq, ev.Type)
		}
	}
	switch {
	case !ev.HasContent:
		return nil
	case chunks == nil:
		e.done.Absent++
		return nil
	}
	if e.o.Filter != nil {
		content, err := eventlog.DecodeChunks(ev, chunks)
		if err != nil {
			return err
		}
		if !bytes.Equal(e.o.Filter(content), content) {
			e.done.Withheld++
			return e.w.record(kindWithout, uvarint(uint64(i)), []byte{withheldByFilter})
		}
	}
	e.done.Contents++
	for n, c := range chunks {
		e.w.record(kindChunk, uvarint(uint64(i)), uvarint(uint64(n)), c)
	}
	return e.w.err
}

func (e *exporter) closeGap() error {
	for _, n := range e.gap.nodes {
		e.w.record(kindSubtree, []byte{n.level}, uvarint(n.index), n.hash[:])
	}
	e.gap.nodes = e.gap.nodes[:0]
	return e.w.err
}

// signed compares the tree with the checkpoint, where the two are of one size.
func (e *exporter) signed() error {
	if root := e.tree.root(); root != e.note.Root {
		return fmt.Errorf("%w: the checkpoint says that the tree of %d positions is %x, the store's is %x", eventlog.ErrRollback, e.note.Size, e.note.Root[:8], root[:8])
	}
	return e.closeGap()
}

func (e *exporter) end() error {
	if e.note != nil && e.note.Size == e.size {
		if err := e.signed(); err != nil {
			return err
		}
	}
	if err := e.closeGap(); err != nil {
		return err
	}
	for id, l := range e.logs {
		if l.head != l.wantHead || l.hash != l.wantHash {
			return &eventlog.ConflictError{Session: id, Expected: l.wantHead, Actual: l.head}
		}
	}
	e.done.TreeSize, e.done.TreeRoot = e.size, e.tree.root()
	var counts []byte
	for _, n := range []uint64{e.done.Sessions, e.done.Frames, e.done.Events, e.done.Contents, e.done.Withheld} {
		counts = binary.AppendUvarint(counts, n)
	}
	e.w.record(kindEnd, counts, e.done.TreeRoot[:], e.w.sum.Sum(nil))
	return e.w.flush()
}
