package eventlog

import (
	"context"
	"encoding/binary"

	bolt "go.etcd.io/bbolt"
)

// scanPage is how many frames one read transaction of a scan visits: reads
// never hold a transaction for long, which would keep pages from being freed.
const scanPage = 1024

// eachFrame calls fn with every position from..to-1, raw nil where the
// journal has no frame. raw lives during the call only.
func (s *Store) eachFrame(ctx context.Context, from, to uint64, fn func(tx *bolt.Tx, position uint64, raw []byte) error) error {
	for at := from; at < to; {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(to, at+scanPage)
		err := s.journal.view(func(tx *bolt.Tx) error {
			return eachPosition(tx, at, end, func(position uint64, raw []byte) error { return fn(tx, position, raw) })
		})
		if err != nil {
			return err
		}
		at = end
	}
	return nil
}

// eachPosition visits the positions from..to-1 of one transaction in order. It
// goes along a cursor, which finds a frame also where a damaged key would lead
// a search astray. A page that can't be followed ends the walk: the position
// that was due is looked up on its own, and the walk taken up behind it.
func eachPosition(tx *bolt.Tx, from, to uint64, fn func(position uint64, raw []byte) error) error {
	b := tx.Bucket(bucketJournal)
	for at := from; at < to; {
		var stop error
		err := protect("store.db", func() error {
			w := newWalk(b, at)
			for at < to {
				if stop = fn(at, w.frame(at)); stop != nil {
					break
				}
				at++
			}
			return nil
		})
		if stop == nil && err != nil {
			raw, err := getCopy(b, positionKey(at))
			if err != nil {
				raw = nil
			}
			stop = fn(at, raw)
			at++
		}
		if stop != nil {
			return stop
		}
	}
	return nil
}

// walk is a cursor over the journal that looks one entry ahead.
type walk struct {
	c         *bolt.Cursor
	key, next uint64
	raw, rawN []byte // nil behind the last entry
}

func newWalk(b *bolt.Bucket, from uint64) *walk {
	w := &walk{c: b.Cursor()}
	w.next, w.rawN = w.entry(w.c.Seek(positionKey(from)))
	w.step()
	return w
}

func (w *walk) step() {
	if w.key, w.raw = w.next, w.rawN; w.raw != nil {
		w.next, w.rawN = w.entry(w.c.Next())
	}
}

// entry reads an entry; keys of another length are no position.
func (w *walk) entry(k, v []byte) (uint64, []byte) {
	for k != nil && len(k) != 8 {
		k, v = w.c.Next()
	}
	if k == nil {
		return 0, nil
	}
	if v == nil {
		v = []byte{}
	}
	return binary.BigEndian.Uint64(k), v
}

// frame returns the frame at a position, nil if there is none. Positions come
// in order. An entry that is greater than the one behind it, or smaller than
// the position due, does not belong where it is and is passed over.
func (w *walk) frame(at uint64) []byte {
	for w.raw != nil && (w.key < at || w.key > at && w.rawN != nil && w.next < w.key) {
		w.step()
	}
	if w.raw == nil || w.key != at {
		return nil
	}
	raw := w.raw
	w.step()
	return raw
}
