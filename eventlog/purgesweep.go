package eventlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
)

func unixMilli(ns int64) time.Time { return time.UnixMilli(ns / int64(time.Millisecond)).UTC() }

// eachLeaf calls fn with the leaf of each frame of a session, in order, and the
// number of chunks of its contents. It proves the chain on the way: a leaf that
// is kept in place of a frame must be that of the frame.
func (s *Store) eachLeaf(ctx context.Context, e *entry, fn func(f purgedFrame, chunks uint32) error) error {
	hash, seq := Genesis(e.row.Session), uint64(1)
	var d decoder
	for seq <= e.row.Head {
		if err := ctx.Err(); err != nil {
			return err
		}
		list, err := s.st.frames(e, seq, sweepFrames)
		if err != nil {
			return err
		}
		before := seq
		for _, p := range list {
			if p.first < seq {
				continue
			}
			var f frame
			var events []Event
			if err := s.journal.view(func(tx *bolt.Tx) error {
				raw, err := txSource{s.st, tx}.frame(p.pos)
				if err == nil && raw == nil {
					err = damagedFrame(e.row.Session, p, "frame is missing")
				}
				if err == nil {
					f, err = promised(raw, e.row.Session, p)
				}
				if err == nil {
					events, err = d.events(nil, &f, p.pos)
				}
				return err
			}); err != nil {
				if !errors.Is(err, ErrCorrupt) {
					err = damagedFrame(e.row.Session, p, err.Error())
				}
				return err
			}
			if p.first != seq || f.prev != hash {
				return damagedFrame(e.row.Session, p, "chain: previous hash or seq differs")
			}
			var chunks uint32
			for i := range events {
				if events[i].HasContent {
					chunks += chunkCount(events[i].ContentLen)
				}
			}
			seq, hash = f.last()+1, events[len(events)-1].Hash
			if err := fn(purgedFrame{p.pos, f.leaf(hash)}, chunks); err != nil {
				return err
			}
		}
		if seq == before {
			return &CorruptError{Session: e.row.Session, Seq: seq, Reason: "missing event"}
		}
	}
	if hash != e.row.Hash {
		return &CorruptError{Session: e.row.Session, Seq: e.row.Head, Reason: "the log's last hash is not that of its row"}
	}
	return nil
}

// sweep removes the frames of a recorded purge through the one writer. It asks
// no state where they are: for that the sessions are gone.
func (p *purge) sweep(ctx context.Context) error {
	for left := p.frames; ; {
		var due erasure
		var chunks uint32
		for len(left) > 0 && len(due.frames) < sweepFrames && (chunks == 0 || chunks+left[0].chunks <= sweepChunks) {
			due.frames = append(due.frames, left[0].purgedFrame)
			chunks += left[0].chunks
			left = left[1:]
		}
		due.absolve = len(left) == 0
		if _, err := p.s.eraseUnit(ctx, &unit{via: EntryErase, sweep: &due}); err != nil {
			return err
		}
		if err := p.r.at.reached("swept"); err != nil || len(left) == 0 {
			return err
		}
	}
}

// purged is nil if no purge waits to be finished.
func (j *journal) purged() error {
	ids, err := j.condemned()
	if err == nil && len(ids) > 0 {
		err = fmt.Errorf("%w: the purge of %d sessions was interrupted; whoever opens the store anew to write finishes it", ErrReadOnly, len(ids))
	}
	return err
}

// noteCondemned makes scans pass over what an interrupted purge left.
func (s *Store) noteCondemned() error {
	ids, err := s.journal.condemned()
	if len(ids) > 0 {
		s.condemned.Store(&ids)
	}
	return err
}

func (j *journal) condemned() (ids map[uuid.UUID]bool, err error) {
	err = j.view(func(tx *bolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			return nil
		}
		raw := meta.Get(keyPurging)
		if len(raw) == 0 {
			return nil
		}
		ids = map[uuid.UUID]bool{}
		for ; len(raw) >= 16; raw = raw[16:] {
			ids[uuid.UUID(raw[:16])] = true
		}
		return nil
	})
	return ids, err
}

// finishPurge removes what an interrupted purge left, before anything is read of
// the store. The purge is recorded; which frames are left is found by looking
// through the journal. Dying here too only means that there is less to do next
// time. A frame that was damaged since stays, for a check to report.
func (j *journal) finishPurge(ctx context.Context) error {
	ids, err := j.condemned()
	if err != nil || len(ids) == 0 {
		return err
	}
	for from, more := uint64(0), true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var due erasure
		if from, more, err = j.condemnedFrames(from, ids, &due); err != nil {
			return err
		}
		due.absolve = !more
		if due.empty() {
			continue
		}
		if _, err := j.write(due.write); err != nil {
			return fmt.Errorf("finishing an interrupted purge: %w", err)
		}
	}
	return nil
}

// condemnedFrames collects frames of sessions, from a position on, as many as one commit
// takes. It returns where to go on, and whether there may be more.
func (j *journal) condemnedFrames(from uint64, ids map[uuid.UUID]bool, due *erasure) (next uint64, more bool, err error) {
	err = j.view(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketJournal).Cursor()
		n := 0
		for k, v := c.Seek(positionKey(from)); k != nil; k, v = c.Next() {
			if n++; n > scanPage || len(due.frames) == sweepFrames {
				more = true
				return nil
			}
			if len(k) != 8 {
				continue
			}
			next = binary.BigEndian.Uint64(k) + 1
			if f, ok := guessFrame(v); !ok || !ids[f.session] {
				continue
			}
			if leaf, _, err := frameLeaf(v, nil); err == nil {
				due.frames = append(due.frames, purgedFrame{next - 1, leaf})
			}
		}
		return nil
	})
	return next, more, err
}
