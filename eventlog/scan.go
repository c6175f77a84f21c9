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

// eachPosition visits the positions from..to-1 of one transaction in order.
// It runs along a cursor as long as the keys are the ones expected. A position
// that the cursor does not have is looked up on its own, so that a damaged key
// or page costs the frames in it and none behind it.
func eachPosition(tx *bolt.Tx, from, to uint64, fn func(position uint64, raw []byte) error) error {
	b := tx.Bucket(bucketJournal)
	for at := from; at < to; {
		var stop error
		_ = protect("store.db", func() error { // a page that can't be followed ends the run
			c := b.Cursor()
			for k, v := c.Seek(positionKey(at)); at < to && len(k) == 8 && binary.BigEndian.Uint64(k) == at; k, v = c.Next() {
				if stop = fn(at, v); stop != nil {
					break
				}
				at++
			}
			return nil
		})
		if stop != nil {
			return stop
		}
		if at < to {
			raw, err := getCopy(b, positionKey(at))
			if err != nil {
				raw = nil
			}
			if err := fn(at, raw); err != nil {
				return err
			}
			at++
		}
	}
	return nil
}
