package eventlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	bolt "go.etcd.io/bbolt"

	"childlog/eventlog/pagecheck"
)

// Compaction, backup and restore are one operation: what a journal holds below
// a position is read in short transactions, proven, and written into a new file
// in key order. The bytes of frames and contents are never changed, so every
// hash and every position stays what it was; what was deleted is not copied.
const (
	copyPageBytes  = 4 << 20  // copied out of one read transaction, about
	copyPageFrames = 1024     // positions of one read transaction
	copySyncBytes  = 64 << 20 // written between two syncs, so that the last one is short
)

// copiedBuckets are those whose keys begin with a position, in the order in
// which a page visits them.
var copiedBuckets = [...][]byte{bucketJournal, bucketTombstones, bucketContents}

const (
	inJournal = iota
	inTombstones
	inContents
)

// Copied counts what a compaction, a backup or a restore wrote.
type Copied struct {
	Totals
	Contents   uint64
	Erased     uint64 // contents that the source does not have any more either
	Tombstones uint64 // of purged frames
	Lost       uint64 // marks that a salvage left in place of lost frames
	Bytes      int64  // of the new store.db
	PageSize   int    // of the new store.db, bytes
}

// copying is one run of the operation.
type copying struct {
	src      *journal
	end      uint64      // positions below are copied
	static   bool        // nobody writes the source
	identity Identity    // of the copy
	minted   bool        // it is another one than the source's
	signed   *Checkpoint // that the source is held to; nil: none
	path     string      // of the copy; what an interrupted run left there is replaced
	pageSize int         // bytes
	progress func(done, of int)
	at       steps
}

// steps is called at each step of a maintenance operation, for tests that fail
// or crash there. Nil does nothing.
type steps func(step string) error

func (s steps) reached(step string) error {
	if s == nil {
		return nil
	}
	return s(step)
}

// run writes the copy, syncs it, and compares it with what was read. If it
// fails the file is removed. Errors: ErrCorrupt with the place, ErrNoSpace,
// ErrNewerFormat (a bucket that this version does not know).
func (c *copying) run(ctx context.Context) (Copied, error) {
	if err := c.knownBuckets(); err != nil {
		return Copied{}, err
	}
	if err := freshFile(c.path); err != nil {
		return Copied{}, err
	}
	totals, err := c.write(ctx)
	if err != nil {
		err = errors.Join(err, os.Remove(c.path))
	}
	return totals, err
}

// knownBuckets: a bucket of a later version must not be dropped.
func (c *copying) knownBuckets() error {
	return c.src.view(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
			if bytes.Equal(name, bucketMeta) || slices.ContainsFunc(copiedBuckets[:], func(b []byte) bool { return bytes.Equal(b, name) }) {
				return nil
			}
			return fmt.Errorf("%w: store.db has a bucket %q that this version does not know and would drop", ErrNewerFormat, name)
		})
	})
}

func (c *copying) write(ctx context.Context) (Copied, error) {
	if err := c.at.reached("created"); err != nil {
		return Copied{}, err
	}
	db, err := createJournal(c.path, c.pageSize)
	if err != nil {
		return Copied{}, err
	}
	totals, sum, err := c.fill(ctx, db)
	err = errors.Join(err, protect("the copy", db.Close))
	if err != nil {
		if noSpace(err) && !errors.Is(err, ErrNoSpace) {
			err = fmt.Errorf("%w: %w", ErrNoSpace, err)
		}
		return totals, err
	}
	if err := c.at.reached("synced"); err != nil {
		return totals, err
	}
	if err := c.compare(ctx, sum); err != nil {
		return totals, err
	}
	fi, err := os.Stat(c.path)
	if err != nil {
		return totals, err
	}
	totals.Bytes, totals.PageSize = fi.Size(), c.pageSize
	return totals, c.at.reached("compared")
}

// fill copies page by page and ends with what makes the file a journal: its
// sequence and its identity. Without them a cut off copy belongs to no store.
func (c *copying) fill(ctx context.Context, db *bolt.DB) (Copied, *tally, error) {
	sum, proof := newTally(), newProof(c.signed)
	scan := journalScan{j: c.src, end: c.end, static: c.static}
	unsynced := 0
	for {
		if err := ctx.Err(); err != nil {
			return proof.totals, sum, err
		}
		more, err := scan.next()
		if err != nil {
			return proof.totals, sum, err
		}
		if !more {
			break
		}
		for i := range scan.page {
			r := &scan.page[i]
			switch r.bucket {
			case inJournal:
				err = proof.frame(binary.BigEndian.Uint64(r.key), r.value)
			case inTombstones:
				err = proof.tombstone(binary.BigEndian.Uint64(r.key), r.value)
			case inContents:
				err = proof.chunkAt(r.key, r.value)
			}
			if err != nil {
				return proof.totals, sum, err
			}
			sum.add(r)
		}
		if scan.due == nil {
			if err := proof.settled(); err != nil {
				return proof.totals, sum, err
			}
		}
		if err := putRecords(db, scan.page); err != nil {
			return proof.totals, sum, err
		}
		if unsynced += len(scan.arena); unsynced >= copySyncBytes {
			if err := db.Sync(); err != nil {
				return proof.totals, sum, err
			}
			unsynced = 0
		}
		if c.progress != nil {
			c.progress(int(scan.at), int(c.end))
		}
		if err := c.at.reached("page"); err != nil {
			return proof.totals, sum, err
		}
	}
	if err := proof.end(c.end); err != nil {
		return proof.totals, sum, err
	}
	if err := c.seal(db); err != nil {
		return proof.totals, sum, err
	}
	return proof.totals, sum, db.Sync()
}

func putRecords(db *bolt.DB, page []record) error {
	return protect("the copy", func() error {
		return db.Update(func(tx *bolt.Tx) error {
			var buckets [len(copiedBuckets)]*bolt.Bucket
			for i, name := range copiedBuckets {
				buckets[i] = tx.Bucket(name)
				buckets[i].FillPercent = 1 // keys only ever grow at the end
			}
			for i := range page {
				if err := buckets[page[i].bucket].Put(page[i].key, page[i].value); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// seal writes the sequence and what the bucket meta holds, with the copy's
// own identity.
func (c *copying) seal(db *bolt.DB) error {
	raw, err := json.Marshal(c.identity)
	if err != nil {
		return err
	}
	var keys, values [][]byte
	if err := c.src.view(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketMeta).ForEach(func(k, v []byte) error {
			keys, values = append(keys, bytes.Clone(k)), append(values, bytes.Clone(v))
			return nil
		})
	}); err != nil {
		return err
	}
	return protect("the copy", func() error {
		return db.Update(func(tx *bolt.Tx) error {
			meta := tx.Bucket(bucketMeta)
			for i := range keys {
				if err := meta.Put(keys[i], values[i]); err != nil {
					return err
				}
			}
			if c.minted {
				if err := meta.Put(keyIdentity, raw); err != nil {
					return err
				}
			}
			return tx.Bucket(bucketJournal).SetSequence(c.end)
		})
	})
}

// compare reads the copy back as a stranger would: its pages, its identity, its
// end, and every record.
func (c *copying) compare(ctx context.Context, want *tally) error {
	differs := func(what string, want, got any) error {
		return fmt.Errorf("the copy %s differs and was dropped: %s: want %v, got %v", c.path, what, want, got)
	}
	report, err := inspectFile(ctx, c.path)
	if err != nil {
		return err
	}
	if err := report.Err(); err != nil {
		return differs("pages", "sound ones", err)
	}
	j, err := openCopy(c.path)
	if err != nil {
		return err
	}
	defer j.close()
	if _, err := j.checkIdentity(c.identity); err != nil {
		return err
	}
	switch next, sequence, err := j.ends(); {
	case err != nil:
		return err
	case next != c.end || sequence != c.end:
		return differs("end and sequence", c.end, [2]uint64{next, sequence})
	}
	got := newTally()
	scan := journalScan{j: j, end: c.end, static: true}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := scan.next()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		for i := range scan.page {
			got.add(&scan.page[i])
		}
	}
	if got.keys != want.keys {
		return differs("frames, tombstones and chunks", want.keys, got.keys)
	}
	if w, g := want.sum.Sum(nil), got.sum.Sum(nil); !bytes.Equal(w, g) {
		return differs("digest", fmt.Sprintf("%x", w[:8]), fmt.Sprintf("%x", g[:8]))
	}
	return nil
}

// createJournal makes an empty journal file, which must not exist. Its handle
// does not sync: who fills it does, once.
func createJournal(path string, pageSize int) (*bolt.DB, error) {
	var db *bolt.DB
	err := protect("the copy", func() (err error) {
		db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType, PageSize: pageSize, NoSync: true, NoGrowSync: true,
			InitialMmapSize: mapReservation(false),
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				return os.OpenFile(name, flag|os.O_EXCL, mode)
			}})
		if err != nil {
			return err
		}
		return db.Update(func(tx *bolt.Tx) error {
			for _, name := range [][]byte{bucketJournal, bucketContents, bucketTombstones, bucketMeta} {
				if _, err := tx.CreateBucket(name); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		if db != nil {
			_ = db.Close() // what failed is reported
		}
		return nil, err
	}
	return db, nil
}

// freshFile removes what an interrupted run left under the temporary name.
func freshFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func openCopy(path string) (*journal, error) {
	j := new(journal)
	err := protect("the copy", func() (err error) {
		j.db, err = bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				j.file, err = os.OpenFile(name, flag, mode)
				return j.file, err
			}})
		return err
	})
	if err != nil {
		return nil, err
	}
	return j, nil
}

// inspectFile reads every page of a file that nobody writes.
func inspectFile(ctx context.Context, path string) (pagecheck.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return pagecheck.Report{}, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return pagecheck.Report{}, err
	}
	return pagecheck.InspectAll(ctx, f, fi.Size())
}
