package claudecode

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// origins finds, for lines that a file copied from another session, the events
// that they are copies of. A line is a copy if it says so (forkedFrom), or if
// its uuid is that of a line of a session that the file began as a copy of.
type origins struct {
	r       *run
	f       *file
	loaded  map[uuid.UUID]map[key]uint64
	guessed int // copies whose original is not known
}

func (r *run) origins(f *file) *origins {
	return &origins{r: r, f: f, loaded: map[uuid.UUID]map[key]uint64{}}
}

// of names the original of a line, nil if it is no copy.
func (o *origins) of(ctx context.Context, e *entry, line int64) (*eventlog.Ref, error) {
	if e == nil {
		return nil, nil
	}
	if named, _ := importer.Text(e.forkedFrom, "sessionId"); named != "" && importer.Bounded(named) != o.f.h.session {
		return o.stated(ctx, importer.Bounded(named), e, line)
	}
	id := str(e.uuid)
	if id == "" {
		return nil, nil
	}
	for _, source := range o.f.sources {
		seqs, err := o.uuids(ctx, source)
		if err != nil {
			return nil, err
		}
		if seq := seqs[keyOf(id)]; seq > 0 {
			return &eventlog.Ref{Session: source, Seq: seq}, nil
		}
	}
	return nil, nil
}

// stated is the original that a line names. If its log is not there the line
// is a copy all the same, of a place that is not known.
func (o *origins) stated(ctx context.Context, session string, e *entry, line int64) (*eventlog.Ref, error) {
	source, native, err := o.r.plan.tree.Resolve(session)
	if err != nil {
		return nil, err
	}
	if native { // nothing is ever linked to one
		source = importer.SessionID(System, "copied from "+session)
	}
	id, _ := importer.Text(e.forkedFrom, "messageUuid")
	if id == "" {
		id = str(e.uuid)
	}
	seqs, err := o.uuids(ctx, source)
	if err != nil {
		return nil, err
	}
	if seq := seqs[keyOf(id)]; seq > 0 {
		return &eventlog.Ref{Session: source, Seq: seq}, nil
	}
	o.guessed++
	return &eventlog.Ref{Session: source, Seq: uint64(line) + 1}, nil
}

// uuids are the seqs of a session's lines: as this run found them, or as the
// store has them.
func (o *origins) uuids(ctx context.Context, session uuid.UUID) (map[key]uint64, error) {
	if done := o.r.done[session]; done != nil && done.notes.uuids != nil {
		return done.notes.uuids, nil
	}
	seqs, ok := o.loaded[session]
	if ok {
		return seqs, nil
	}
	row, err := o.r.S.Row(session)
	if err != nil && !importer.Gone(err) {
		return nil, err
	}
	if err == nil && row.Evidence {
		if seqs, err = stored(ctx, o.r.S, session); err != nil {
			return nil, err
		}
	}
	o.loaded[session] = seqs
	return seqs, nil
}

// stored reads the uuids of a session in the store. What is damaged there is
// that session's own trouble.
func stored(ctx context.Context, s *eventlog.Store, session uuid.UUID) (map[key]uint64, error) {
	seqs := map[key]uint64{}
	for cursor := importer.NewCursor(s, session); len(seqs) < maxSeen; {
		ev, err := cursor.Next(ctx)
		if ce := (*eventlog.CorruptError)(nil); ev == nil && err == nil || errors.As(err, &ce) {
			break
		}
		if err != nil {
			return nil, err
		}
		if id := ev.Facts.Str("uuid"); id != "" && ev.Facts.Str("line") != lineDuplicate {
			if k := keyOf(id); seqs[k] == 0 {
				seqs[k] = ev.Seq
			}
		}
	}
	return seqs, nil
}
