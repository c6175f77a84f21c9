package eventlog

import (
	"bytes"
	"context"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
)

// erasure is what a group takes away beside the frames that it brings. Both are
// one transaction: after a crash a content is there, or it is gone and the event
// that says so is in the log. Nothing of a group that failed was erased; its
// units are staged anew like any others.
//
// bbolt keeps the pages of what is deleted until they are used again or the file
// is compacted: the bytes are out of every read's reach at once, and out of the
// file after Compact.
type erasure struct {
	contents []contentRef
	frames   []purgedFrame // the frames of sessions whose purge is recorded
	condemn  []uuid.UUID   // sessions whose purge this group records; their frames go in later groups
	absolve  bool          // the last frames of all that were condemned go with this group
}

// erase commits what plan decides, as Transact does. Once it is queued it is
// waited for, however ctx ends: until its outcome is known no copy may begin,
// and the committer answers every unit.
func (s *Store) erase(ctx context.Context, plan Plan) ([]Result, error) {
	return s.eraseUnit(ctx, &unit{via: EntryErase, plan: plan})
}

func (s *Store) eraseUnit(ctx context.Context, u *unit) ([]Result, error) {
	if err := s.submit(ctx, u); err != nil {
		return nil, err
	}
	return u.wait(context.WithoutCancel(ctx))
}

// contentRef locates a stored content.
type contentRef struct {
	position uint64
	index    uint32
	chunks   uint32
}

// purgedFrame is what stays of a frame: its position and its leaf of the tree.
type purgedFrame struct {
	position uint64
	leaf     Hash
}

// keyPurging holds the ids of sessions whose purge is recorded and whose frames
// are not all gone yet, 16 bytes each. Whoever opens the store to write finishes
// it, see finishPurge.
var keyPurging = []byte("purging")

func (e *erasure) empty() bool {
	return len(e.contents) == 0 && len(e.frames) == 0 && len(e.condemn) == 0 && !e.absolve
}

func (e *erasure) write(tx *bolt.Tx) error {
	contents, meta := tx.Bucket(bucketContents), tx.Bucket(bucketMeta)
	for _, c := range e.contents {
		for chunk := range c.chunks {
			if err := contents.Delete(contentKey(c.position, c.index, chunk)); err != nil {
				return err
			}
		}
	}
	for _, f := range e.frames {
		if err := buryFrame(tx, f); err != nil {
			return err
		}
	}
	if len(e.condemn) > 0 {
		ids := bytes.Clone(meta.Get(keyPurging))
		for _, id := range e.condemn {
			ids = append(ids, id[:]...)
		}
		if err := meta.Put(keyPurging, ids); err != nil {
			return err
		}
	}
	if e.absolve {
		return meta.Delete(keyPurging)
	}
	return nil
}

// buryFrame puts a tombstone in place of a frame and its contents.
func buryFrame(tx *bolt.Tx, f purgedFrame) error {
	contents, key := tx.Bucket(bucketContents), positionKey(f.position)
	var keys [][]byte // deleting moves a cursor
	c := contents.Cursor()
	for k, _ := c.Seek(key); bytes.HasPrefix(k, key); k, _ = c.Next() {
		keys = append(keys, bytes.Clone(k))
	}
	for _, k := range keys {
		if err := contents.Delete(k); err != nil {
			return err
		}
	}
	if err := tx.Bucket(bucketJournal).Delete(key); err != nil {
		return err
	}
	return tx.Bucket(bucketTombstones).Put(key, f.leaf[:])
}

// drop forgets sessions that were purged: rows, and names that lead to them.
// Links stay, since the purge of a child states its parent again: a grant that a
// purged descendant used up stays used up.
func (c *changes) drop(gone map[uuid.UUID]Totals) {
	if len(gone) == 0 {
		return
	}
	if c.gone == nil {
		c.gone = map[uuid.UUID]Totals{}
	}
	for id, t := range gone {
		c.gone[id] = t
		delete(c.rows, id)
	}
	for n, id := range c.names {
		if _, ok := gone[n.of(id)]; ok {
			delete(c.names, n)
		}
	}
}

// counts is what a session adds to the totals of its store.
func (r *Row) counts() Totals { return Totals{Sessions: 1, Events: r.Head, Frames: r.Frames} }

// less takes the counts of purged sessions off. A log of which frames were gone
// before, as a reader finds it inside of an interrupted purge, counted less than
// its row says.
func (t *Totals) less(gone Totals) {
	t.Sessions -= min(t.Sessions, gone.Sessions)
	t.Events -= min(t.Events, gone.Events)
	t.Frames -= min(t.Frames, gone.Frames)
}

// purgedBy lists the sessions that events of the store's own session say were
// purged, with what lookup knows they counted.
func purgedBy(events []Event, lookup func(uuid.UUID) (*entry, error)) (map[uuid.UUID]Totals, error) {
	var gone map[uuid.UUID]Totals
	for i := range events {
		ev := &events[i]
		if ev.Type != TypeSessionPurged || ev.Session != StoreSession || ev.Inherited != nil {
			continue
		}
		id := ev.Facts.UUID("session")
		e, err := lookup(id)
		if err != nil {
			return nil, err
		}
		if gone == nil {
			gone = map[uuid.UUID]Totals{}
		}
		gone[id] = Totals{}
		if e != nil {
			gone[id] = e.row.counts()
		}
	}
	return gone, nil
}
