package codex

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// seeds finds, for the lines that a thread replays, the events of its ancestor
// that they are copies of: those with the same payload. A copy's timestamp and
// ordinal are its own.
type seeds struct {
	s        *eventlog.Store
	ancestor uuid.UUID
	byCopy   map[[16]byte]uint64 // seq by digest of the payload
}

// maxSeed bounds the events of an ancestor that are looked through.
const maxSeed = 1 << 18

// of names the original of an inherited line. found is false if the ancestor's
// log is not in the store, or has none such; then the place is the one that the
// same line would have there.
func (sd *seeds) of(ctx context.Context, flush func(context.Context) error, f *file, out *mapped, line importer.Line) (ref *eventlog.Ref, found bool, err error) {
	id := f.Parent
	if f.h.forked != "" || id == uuid.Nil {
		if id, err = sd.session(f); err != nil {
			return nil, false, err
		}
	}
	if sd.byCopy == nil || sd.ancestor != id {
		if err := flush(ctx); err != nil {
			return nil, false, err
		}
		if err := sd.read(ctx, id); err != nil {
			return nil, false, err
		}
	}
	if out.rec.doc != nil {
		if seq, ok := sd.byCopy[copyOf(out.rec.p.raw)]; ok {
			return &eventlog.Ref{Session: id, Seq: seq}, true, nil
		}
	}
	return &eventlog.Ref{Session: id, Seq: uint64(line.Number)}, false, nil
}

// session is the ancestor's, as far as it can be named.
func (sd *seeds) session(f *file) (uuid.UUID, error) {
	name := f.h.ancestor()
	if name == "" {
		name = "ancestor of " + f.Key // the copies come from somewhere, and not from this thread
	}
	id, err := sd.s.ByExternal(System, name)
	if errors.Is(err, eventlog.ErrNotFound) {
		return importer.SessionID(System, name), nil
	}
	return id, err
}

func (sd *seeds) read(ctx context.Context, id uuid.UUID) error {
	sd.ancestor, sd.byCopy = id, map[[16]byte]uint64{}
	row, err := sd.s.Row(id)
	if importer.Gone(err) || err == nil && !row.Evidence {
		return nil
	}
	if err != nil {
		return err
	}
	enough := errors.New("enough")
	err = sd.s.ReplayBorrowed(ctx, id, true, func(ev *eventlog.Event) error {
		if len(sd.byCopy) >= maxSeed {
			return enough
		}
		if ev.Media != eventlog.MediaJSON || ev.ContentErr != nil || ev.Source != eventlog.SourceImport {
			return nil
		}
		if body := importer.At(jsontext.Value(ev.Content), "payload"); body != nil {
			if key := copyOf(body); sd.byCopy[key] == 0 {
				sd.byCopy[key] = ev.Seq
			}
		}
		return nil
	})
	if ce := (*eventlog.CorruptError)(nil); errors.Is(err, enough) || errors.As(err, &ce) {
		return nil // the ancestor's own damage is not this thread's
	}
	return err
}

func copyOf(payload jsontext.Value) (key [16]byte) {
	sum := sha256.Sum256(payload)
	copy(key[:], sum[:])
	return key
}

// turnsOf tells which turns a file's ancestor has, nil if that is not known or
// does not matter.
func (r *run) turnsOf(ctx context.Context, f *file) (func(string) bool, error) {
	if f.h.seedState != absent || f.h.ancestor() == "" {
		return nil, nil
	}
	id, err := r.seeds.session(f)
	if place := r.tree.ByKey(f.h.ancestor()); place != nil {
		id, err = place.Session, nil
	}
	if err != nil {
		return nil, err
	}
	if out := r.done[id]; out != nil && out.notes.turns != nil {
		return func(turn string) bool { return out.notes.turns[turn] }, nil
	}
	turns, err := storedTurns(ctx, r.S, id)
	if turns == nil || err != nil {
		return nil, err
	}
	return func(turn string) bool { return turns[importer.Code(turn)] }, nil
}
