package eventlog

import (
	"encoding/binary"
	"fmt"
	"io"

	bolt "go.etcd.io/bbolt"
)

// settle makes what an opener sees durable before anybody is told of it.
//
// A process may die, or its last sync may fail, after the meta page of a commit
// was written and before it was on the disk. The next process then sees the
// commit: in the system's memory, from where a power cut takes it back. A
// caller that repeats its unit would be told that it is there, readers would be
// shown it, and both could lose it.
//
// So both meta pages are written again as they are and synced. A sync alone is
// not enough: after one that failed, systems call the page clean and never
// write it. The pages that the meta page leads to were synced before it was
// first written. Bytes are replaced by themselves, so a cut in the middle of
// this changes nothing, and a full disk has the room.
func (j *journal) settle() error {
	metas := make([]byte, 2*j.pageSize)
	if _, err := io.ReadFull(io.NewSectionReader(j.file, 0, int64(len(metas))), metas); err != nil {
		return damageError("store.db", err)
	}
	if _, err := j.file.WriteAt(metas, 0); err != nil {
		return fmt.Errorf("store.db: writing the meta pages again: %w", err)
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("store.db: syncing what the last process wrote: %w", err)
	}
	return nil
}

// believableEnd is the position after the last frame whose key is not far from
// the one before: a flipped bit in the last key makes it any number, up to which
// a reader would look for frames for ever.
func (j *journal) believableEnd() (next uint64, err error) {
	err = j.view(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketJournal).Cursor()
		for k, _ := c.Last(); len(k) == 8; {
			position, before := binary.BigEndian.Uint64(k), uint64(0)
			if k, _ = c.Prev(); len(k) == 8 {
				before = binary.BigEndian.Uint64(k)
			}
			if position >= before && position-before <= maxSearched {
				next = position + 1
				return nil
			}
		}
		return nil
	})
	return next, err
}
