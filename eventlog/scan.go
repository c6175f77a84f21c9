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
			c := tx.Bucket(bucketJournal).Cursor()
			k, v := c.Seek(positionKey(at))
			for ; at < end; at++ {
				if len(k) != 8 || binary.BigEndian.Uint64(k) != at {
					if err := fn(tx, at, nil); err != nil {
						return err
					}
					continue
				}
				if err := fn(tx, at, v); err != nil {
					return err
				}
				k, v = c.Next()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
