package eventlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/vmihailenco/msgpack/v5"
	bolt "go.etcd.io/bbolt"

	"childlog/eventlog/pagecheck"
)

// index is index.db: rows, positions, names and links, derived from the
// journal and disposable. It says up to which position it covers the journal
// and with which leaf there; an index that is ahead, of another store or of
// another fold is not used. bbolt has no checksums: a flipped bit changes a
// value, moves it to another key or hides it, and a row that is not found reads
// as a session that does not exist. So every value is sealed together with its
// key, the cover counts the rows of each bucket, and before the first answer
// that rests on a row being absent the whole index is verified against both.
type index struct {
	db    *bolt.DB
	file  *os.File
	guard guard
	once  sync.Once
	bad   atomic.Pointer[error] // what verifying found
}

// verifyAtOpen is up to which size in bytes an index is verified at open, a few
// milliseconds, where it can be rebuilt on the spot. A larger one is verified
// when an answer needs it, and what is found ends that answer.
var verifyAtOpen int64 = 4 << 20 // variable for tests

var (
	bucketRows  = []byte("rows")
	bucketPos   = []byte("positions")
	bucketNames = []byte("names")
	bucketLinks = []byte("links")
	bucketTree  = []byte("tree") // level u8 | n u64be -> inner node of the tree
	bucketMeta  = []byte("meta")
	keyCover    = []byte("cover")

	indexBuckets = [5][]byte{bucketRows, bucketPos, bucketNames, bucketLinks, bucketTree}
)

// errIndex marks damage of the index, which is disposable, apart from damage
// of the journal, which is not.
var errIndex = errors.New("index damaged; run reindex")

const (
	indexFile      = "index.db"
	positionsChunk = 64      // frame positions a row
	indexAllocSize = 1 << 20 // bytes by which the file grows at a time
)

// cover is the index's own statement of what it covers.
type cover struct {
	_msgpack    struct{} `msgpack:",as_array"` //nolint:unused
	Store       uuid.UUID
	Incarnation uint64
	Fold        int
	Next        uint64 // positions below are covered
	Last        Hash   // leaf of the last covered position, zero if it can't be read
	Totals      Totals
	Lost        []uint64
	Counts      [5]uint64 // rows by bucket, in the order of indexBuckets
	Edge        []Hash    // of the tree over them, see treeEdge
}

func openIndex(dir string, readOnly bool) (*index, error) {
	path := filepath.Join(dir, indexFile)
	if readOnly {
		if fi, err := os.Stat(path); err != nil || fi.Size() == 0 {
			return nil, fmt.Errorf("no index: %w", os.ErrNotExist)
		}
	}
	ix := new(index)
	err := protect("index", func() (err error) { // bbolt asserts what a damaged freelist says
		ix.db, err = bolt.Open(path, 0o600, &bolt.Options{ReadOnly: readOnly, Timeout: time.Second, FreelistType: bolt.FreelistMapType, InitialMmapSize: mapReservation(readOnly),
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				ix.file, err = os.OpenFile(name, flag, mode)
				return ix.file, err
			}})
		return err
	})
	if err != nil {
		return nil, err
	}
	ix.db.AllocSize = indexAllocSize
	return ix, nil
}

// inspectIndex runs the raw reader over an index that is there: every page of
// one that is verified at open, else what a store is held to before it is
// written. Nothing of an index with damaged pages is used, since bbolt may
// follow them for ever. A missing or empty file is no error.
func inspectIndex(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || fi.Size() == 0 {
		return err
	}
	inspect := pagecheck.Inspect
	if fi.Size() <= verifyAtOpen {
		inspect = pagecheck.InspectAll
	}
	report, err := inspect(context.Background(), f, fi.Size())
	if err == nil {
		err = report.Err()
	}
	return err
}

func (ix *index) close() error {
	if ix == nil {
		return nil
	}
	return ix.guard.close(ix.db, ix.file, "index")
}

// A sealed value ends in a CRC over its key and itself.
func seal(key, b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, b))
}

func unseal(key, b []byte, what string) ([]byte, error) {
	n := len(b) - 4
	if n < 0 || binary.LittleEndian.Uint32(b[n:]) != crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, b[:n]) {
		return nil, &CorruptError{Reason: "index: " + what + ": checksum differs"}
	}
	return b[:n], nil
}

// sound is nil if an absent row means that there is none.
func (ix *index) sound() error {
	ix.once.Do(func() {
		if err := ix.verify(); err != nil && !errors.Is(err, ErrStoreClosed) {
			ix.bad.Store(&err)
		}
	})
	return ix.damaged()
}

func (ix *index) damaged() error {
	if err := ix.bad.Load(); err != nil {
		return *err
	}
	return nil
}

// size is how much of the file is in use, bytes.
func (ix *index) size() (n int64, err error) {
	err = ix.view(func(tx *bolt.Tx) error { n = tx.Size(); return nil })
	return n, err
}

// verify walks every value of the index.
func (ix *index) verify() error {
	return ix.view(func(tx *bolt.Tx) error {
		c, _, err := readCover(tx)
		if err != nil {
			return err
		}
		for i, name := range indexBuckets {
			n := uint64(0)
			if b := tx.Bucket(name); b != nil {
				c := b.Cursor()
				for k, v := c.First(); k != nil; k, v = c.Next() {
					if _, err := unseal(k, v, string(name)); err != nil {
						return err
					}
					n++
				}
			}
			if n != c.Counts[i] {
				return &CorruptError{Reason: fmt.Sprintf("index: %s: want %d rows, got %d", name, c.Counts[i], n)}
			}
		}
		return nil
	})
}

func (ix *index) cover() (c cover, ok bool, err error) {
	err = ix.view(func(tx *bolt.Tx) error {
		c, ok, err = readCover(tx)
		return err
	})
	return c, ok, err
}

func readCover(tx *bolt.Tx) (c cover, ok bool, err error) {
	b := tx.Bucket(bucketMeta)
	if b == nil {
		return c, false, nil
	}
	v := b.Get(keyCover)
	if v == nil {
		return c, false, nil
	}
	if v, err = unseal(keyCover, v, "cover"); err != nil {
		return c, false, err
	}
	return c, true, msgpack.Unmarshal(v, &c)
}

// view runs fn in a short read transaction. All it can fail with is damage, or
// that the store was closed.
func (ix *index) view(fn func(*bolt.Tx) error) error {
	err := ix.guard.view(ix.db, "index", fn)
	if err == nil || errors.Is(err, ErrStoreClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", errIndex, err)
}

func (ix *index) get(bucket, key []byte, what string, use func([]byte) error) (found bool, err error) {
	err = ix.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucket)
		if b == nil {
			return nil
		}
		v := b.Get(key)
		if v == nil {
			return nil
		}
		found = true
		v, err := unseal(key, v, what)
		if err != nil {
			return err
		}
		return use(v)
	})
	return found, err
}

// need is get for a reader to whom a missing value says something.
func (ix *index) need(bucket, key []byte, what string, use func([]byte) error) error {
	if found, err := ix.get(bucket, key, what, use); found || err != nil {
		return err
	}
	return ix.sound()
}

// row returns a session's row, nil if the index has none; not verified, a row
// may also be hidden by damage.
func (ix *index) row(id uuid.UUID, verified bool) (row *Row, err error) {
	found := false
	err = ix.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketRows)
		if b == nil {
			return nil
		}
		v := b.Get(id[:])
		if v == nil {
			return nil
		}
		found = true
		v, err := unseal(id[:], v, "row")
		if err != nil {
			return err
		}
		row = new(Row)
		if err := msgpack.Unmarshal(v, row); err != nil || row.Session != id {
			return &CorruptError{Session: id, Reason: fmt.Sprintf("index: row: %v", err)}
		}
		return newest(tx, row)
	})
	if err == nil && !found && verified {
		err = ix.sound()
	}
	if err != nil {
		return nil, err
	}
	return row, nil
}

// newest refuses a row that is an older version of itself. One flipped bit in
// a branch page leads to a leaf that was replaced: every seal in it holds, and
// a head that the session once had would hide a narrowing behind it. The
// positions are other pages, written with the row, so they end where it ends.
func newest(tx *bolt.Tx, row *Row) error {
	stale := func(what string) error {
		return &CorruptError{Session: row.Session, Reason: "index: row: " + what}
	}
	b := tx.Bucket(bucketPos)
	if b == nil || row.Frames == 0 {
		return stale("it has no positions")
	}
	chunk := (row.Frames - 1) / positionsChunk
	key := posRow(row.Session, chunk)
	list, err := decodePositions(key, b.Get(key), positionsChunk)
	if err != nil {
		return err
	}
	if want := row.Frames - chunk*positionsChunk; uint64(len(list)) != want || list[want-1].pos != row.LastPos {
		return stale(fmt.Sprintf("it ends at frame %d, position %d, and its positions do not", row.Frames, row.LastPos))
	}
	if b.Get(posRow(row.Session, chunk+1)) != nil {
		return stale(fmt.Sprintf("it ends at frame %d and its positions go on", row.Frames))
	}
	return nil
}

// eachRow calls fn with every covered row from the id on.
func (ix *index) eachRow(from uuid.UUID, fn func(*Row) (bool, error)) error {
	if err := ix.sound(); err != nil {
		return err
	}
	return ix.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketRows)
		if b == nil {
			return nil
		}
		c := b.Cursor()
		for k, v := c.Seek(from[:]); k != nil; k, v = c.Next() {
			v, err := unseal(k, v, "row")
			if err != nil {
				return err
			}
			row := new(Row)
			if err := msgpack.Unmarshal(v, row); err != nil || !bytes.Equal(row.Session[:], k) {
				return &CorruptError{Reason: fmt.Sprintf("index: row %x: %v", k, err)}
			}
			if more, err := fn(row); err != nil || !more {
				return err
			}
		}
		return nil
	})
}

func nameRow(n name) []byte { return append([]byte{byte(n.space)}, n.hash[:]...) }

// byName needs the whole index to be sound before it says that there is no such
// name, but for a call and a batch: reading all of a large index would be the
// longest part of a process that decides one call, and what a name hidden by
// damage costs is a second record, decided on the policy of its own moment.
func (ix *index) byName(n name) (id uuid.UUID, err error) {
	if n.space == nameCall || n.space == nameBatch {
		_, err = ix.get(bucketNames, nameRow(n), "name", func(v []byte) error { copy(id[:], v); return nil })
		return id, err
	}
	err = ix.need(bucketNames, nameRow(n), "name", func(v []byte) error { copy(id[:], v); return nil })
	return id, err
}

// A link's key is both ids; one to copies has a byte more, and so stands apart
// from that of a child.
func linkRow(k linkKey) []byte {
	key := append(slices.Clone(k.parent[:]), k.child[:]...)
	if k.copies {
		key = append(key, 'c')
	}
	return key
}

func (ix *index) link(k linkKey) (l link, err error) {
	err = ix.need(bucketLinks, linkRow(k), "link", func(v []byte) error {
		n, _, err := readUvarint(v)
		l.Consumed = n
		return err
	})
	return l, err
}

func (ix *index) linked(parent uuid.UUID, copies bool, fn func(uuid.UUID)) error {
	if err := ix.sound(); err != nil {
		return err
	}
	return ix.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketLinks)
		if b == nil {
			return nil
		}
		c := b.Cursor()
		for k, _ := c.Seek(parent[:]); k != nil && bytes.HasPrefix(k, parent[:]); k, _ = c.Next() {
			if child := k[16:]; copies == (len(child) == 17) {
				fn(uuid.UUID(child[:16]))
			}
		}
		return nil
	})
}
