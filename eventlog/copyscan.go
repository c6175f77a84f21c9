package eventlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"

	bolt "go.etcd.io/bbolt"
)

// record is one key, copied out of its transaction.
type record struct {
	bucket     int
	key, value []byte
}

// journalScan reads positions 0 to end-1 with their contents, a page at a time.
type journalScan struct {
	j      *journal
	end    uint64
	static bool     // nobody writes: behind end there must be nothing
	at     uint64   // positions below are read, contents included
	until  uint64   // frames and tombstones below are read
	due    []byte   // the content to go on with, nil: the first of at
	page   []record // live until the next call
	arena  []byte
}

// next reads a page, in one short transaction. It returns false at the end.
func (s *journalScan) next() (more bool, err error) {
	if s.at == s.end {
		return false, nil
	}
	if s.arena == nil { // not grown: records would hold on to what it grew from
		s.arena = make([]byte, 0, copyPageBytes+maxFrame+chunkSize)
	}
	s.page, s.arena = s.page[:0], s.arena[:0]
	err = s.j.view(func(tx *bolt.Tx) error {
		if s.at == s.until {
			if err := s.frames(tx); err != nil {
				return err
			}
		}
		return s.contents(tx)
	})
	if ce := (*CorruptError)(nil); errors.As(err, &ce) && !ce.HasPosition {
		err = corruptf(s.at, "%s, at this position or at most %d behind it", ce.Reason, copyPageFrames)
	}
	return true, err
}

func (s *journalScan) add(bucket int, key, value []byte) {
	n := len(s.arena)
	s.arena = append(append(s.arena, key...), value...)
	s.page = append(s.page, record{bucket, s.arena[n : n+len(key) : n+len(key)], s.arena[n+len(key):]})
}

func (s *journalScan) frames(tx *bolt.Tx) error {
	frames, purged := tx.Bucket(bucketJournal).Cursor(), tx.Bucket(bucketTombstones).Cursor()
	fk, fv := frames.Seek(positionKey(s.at))
	tk, tv := purged.Seek(positionKey(s.at))
	for s.until < min(s.end, s.at+copyPageFrames) && len(s.arena) < copyPageBytes {
		key := positionKey(s.until)
		isFrame, isPurged := bytes.Equal(fk, key), bytes.Equal(tk, key)
		switch {
		case fk != nil && len(fk) != len(key) || tk != nil && len(tk) != len(key):
			return corruptf(s.until, "a key that is no position stands here")
		case isFrame && isPurged:
			return corruptf(s.until, "a frame and a tombstone")
		case isFrame:
			s.add(inJournal, fk, fv)
			fk, fv = frames.Next()
		case isPurged:
			s.add(inTombstones, tk, tv)
			tk, tv = purged.Next()
		default:
			return corruptf(s.until, "no frame and no tombstone")
		}
		s.until++
	}
	return nil
}

func (s *journalScan) contents(tx *bolt.Tx) error {
	c := tx.Bucket(bucketContents).Cursor()
	k, v := c.Seek(positionKey(s.at))
	switch {
	case s.due != nil:
		k, v = c.Seek(s.due)
	case s.at == 0:
		k, v = c.First()
	}
	for ; k != nil; k, v = c.Next() {
		if len(k) != contentKeyLen {
			return corruptf(s.at, "content: a key of %d bytes, want %d", len(k), contentKeyLen)
		}
		if position := binary.BigEndian.Uint64(k); position >= s.until {
			if s.static && s.until == s.end {
				return corruptf(position, "content: no frame has this position")
			}
			break
		}
		if len(s.arena) >= copyPageBytes {
			s.due = bytes.Clone(k)
			return nil
		}
		s.add(inContents, k, v)
	}
	s.at, s.due = s.until, nil
	return nil
}

// tally counts and digests records in the order in which they are read, so
// that a copy can be compared with what was copied.
type tally struct {
	sum  hash.Hash
	keys [len(copiedBuckets)]uint64
}

func newTally() *tally { return &tally{sum: sha256.New()} }

func (t *tally) add(r *record) {
	var head [9]byte
	head[0] = byte(r.bucket)
	binary.LittleEndian.PutUint32(head[1:], uint32(len(r.key)))
	binary.LittleEndian.PutUint32(head[5:], uint32(len(r.value)))
	t.sum.Write(head[:])
	t.sum.Write(r.key)
	t.sum.Write(r.value)
	t.keys[r.bucket]++
}
