package eventlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/vmihailenco/msgpack/v5"
	bolt "go.etcd.io/bbolt"
)

// index is index.db: rows, positions, names and links, derived from the
// journal and disposable. It says up to which position it covers the journal
// and with which leaf there; an index that is ahead, of another store or of
// another fold is not used. Every value carries a checksum, since bbolt has
// none: a damaged row is an error, never another row.
type index struct {
	db *bolt.DB
}

var (
	bucketRows  = []byte("rows")
	bucketPos   = []byte("positions")
	bucketNames = []byte("names")
	bucketLinks = []byte("links")
	bucketMeta  = []byte("meta")
	keyCover    = []byte("cover")
)

const (
	indexFile      = "index.db"
	positionsChunk = 64 // frame positions a row
)

// cover is the index's own statement of what it covers.
type cover struct {
	_msgpack    struct{} `msgpack:",as_array"` //nolint:unused
	Store       uuid.UUID
	Incarnation uint64
	Fold        int
	Next        uint64 // positions below are covered
	Last        Hash   // SHA-256 of the last covered frame
	Totals      Totals
	Lost        []uint64
}

func openIndex(dir string, readOnly bool) (*index, error) {
	path := filepath.Join(dir, indexFile)
	if readOnly {
		if fi, err := os.Stat(path); err != nil || fi.Size() == 0 {
			return nil, fmt.Errorf("no index: %w", os.ErrNotExist)
		}
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: readOnly, Timeout: time.Second, FreelistType: bolt.FreelistMapType, InitialMmapSize: mapReservation(readOnly)})
	if err != nil {
		return nil, err
	}
	return &index{db: db}, nil
}

func (ix *index) close() error {
	if ix == nil {
		return nil
	}
	return ix.db.Close()
}

// sealed values end in a CRC.
func seal(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func unseal(b []byte, what string) ([]byte, error) {
	if len(b) < 4 || binary.LittleEndian.Uint32(b[len(b)-4:]) != crc32.Checksum(b[:len(b)-4], castagnoli) {
		return nil, &CorruptError{Reason: "index: " + what + ": checksum differs; run reindex"}
	}
	return b[:len(b)-4], nil
}

func (ix *index) cover() (c cover, ok bool, err error) {
	err = ix.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketMeta)
		if b == nil {
			return nil
		}
		v := b.Get(keyCover)
		if v == nil {
			return nil
		}
		if v, err = unseal(v, "cover"); err != nil {
			return err
		}
		ok = true
		return msgpack.Unmarshal(v, &c)
	})
	return c, ok, err
}

// view runs fn in a short read transaction; damage becomes an error.
func (ix *index) view(fn func(*bolt.Tx) error) error {
	return protect("index", func() error { return ix.db.View(fn) })
}

func (ix *index) get(bucket, key []byte, what string, use func([]byte) error) error {
	return ix.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucket)
		if b == nil {
			return nil
		}
		v := b.Get(key)
		if v == nil {
			return nil
		}
		v, err := unseal(v, what)
		if err != nil {
			return err
		}
		return use(v)
	})
}

func (ix *index) row(id uuid.UUID) (row *Row, err error) {
	err = ix.get(bucketRows, id[:], "row", func(v []byte) error {
		row = new(Row)
		if err := msgpack.Unmarshal(v, row); err != nil || row.Session != id {
			return &CorruptError{Session: id, Reason: fmt.Sprintf("index: row: %v", err)}
		}
		return nil
	})
	return row, err
}

// eachRow calls fn with every covered row from the id on.
func (ix *index) eachRow(from uuid.UUID, fn func(*Row) (bool, error)) error {
	return ix.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketRows)
		if b == nil {
			return nil
		}
		c := b.Cursor()
		for k, v := c.Seek(from[:]); k != nil; k, v = c.Next() {
			v, err := unseal(v, "row")
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

func (ix *index) byName(n name) (id uuid.UUID, err error) {
	err = ix.get(bucketNames, nameRow(n), "name", func(v []byte) error { copy(id[:], v); return nil })
	return id, err
}

func linkRow(k linkKey) []byte { return append(slices.Clone(k.parent[:]), k.child[:]...) }

func (ix *index) link(k linkKey) (l link, err error) {
	err = ix.get(bucketLinks, linkRow(k), "link", func(v []byte) error {
		n, _, err := readUvarint(v)
		l.Consumed = n
		return err
	})
	return l, err
}

func (ix *index) children(parent uuid.UUID, fn func(uuid.UUID)) error {
	return ix.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketLinks)
		if b == nil {
			return nil
		}
		c := b.Cursor()
		for k, _ := c.Seek(parent[:]); k != nil && bytes.HasPrefix(k, parent[:]); k, _ = c.Next() {
			fn(uuid.UUID(k[16:]))
		}
		return nil
	})
}

func posRow(session uuid.UUID, chunk uint64) []byte {
	return binary.BigEndian.AppendUint32(slices.Clone(session[:]), uint32(chunk))
}

// decodePositions reads one row: pairs of deltas, the first from zero.
func decodePositions(v []byte) ([]framePos, error) {
	v, err := unseal(v, "positions")
	if err != nil {
		return nil, err
	}
	var out []framePos
	var at framePos
	for len(v) > 0 {
		pos, n, err := readUvarint(v)
		if err != nil {
			return nil, err
		}
		first, m, err := readUvarint(v[n:])
		if err != nil {
			return nil, err
		}
		v = v[n+m:]
		at.pos += pos
		at.first += first
		out = append(out, at)
	}
	return out, nil
}

func encodePositions(list []framePos) []byte {
	var b []byte
	var at framePos
	for _, p := range list {
		b = appendUvarint(appendUvarint(b, p.pos-at.pos), p.first-at.first)
		at = p
	}
	return seal(b)
}

// frames returns up to limit positions of the session's first total frames,
// from the frame that holds seq on: a binary search over rows of 64.
func (ix *index) frames(session uuid.UUID, total, seq uint64, limit int) (out []framePos, err error) {
	err = ix.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketPos)
		chunks := (total + positionsChunk - 1) / positionsChunk
		read := func(chunk uint64) ([]framePos, error) {
			var v []byte
			if b != nil {
				v = b.Get(posRow(session, chunk))
			}
			if v == nil {
				return nil, &CorruptError{Session: session, Reason: fmt.Sprintf("index: positions: row %d of %d is missing", chunk, chunks)}
			}
			list, err := decodePositions(v)
			if err == nil && len(list) == 0 {
				err = &CorruptError{Session: session, Reason: "index: positions: empty row"}
			}
			return list, err
		}
		lo, hi := uint64(0), chunks-1 // the last chunk whose first frame starts at or before seq
		for lo < hi {
			mid := (lo + hi + 1) / 2
			list, err := read(mid)
			if err != nil {
				return err
			}
			if list[0].first <= seq {
				lo = mid
			} else {
				hi = mid - 1
			}
		}
		for chunk := lo; chunk < chunks && len(out) < limit; chunk++ {
			list, err := read(chunk)
			if err != nil {
				return err
			}
			want := uint64(positionsChunk)
			if chunk == chunks-1 {
				want = total - chunk*positionsChunk
			}
			if uint64(len(list)) < want {
				return &CorruptError{Session: session, Reason: fmt.Sprintf("index: positions: row %d: want %d frames, got %d", chunk, want, len(list))}
			}
			list = list[:want]
			if chunk == lo {
				i, found := slices.BinarySearchFunc(list, seq, func(p framePos, seq uint64) int {
					switch {
					case p.first < seq:
						return -1
					case p.first > seq:
						return 1
					}
					return 0
				})
				if !found && i > 0 {
					i--
				}
				list = list[i:]
			}
			out = append(out, list[:min(len(list), limit-len(out))]...)
		}
		return nil
	})
	return out, err
}

// flush writes a consistent cut of the overlay and what it covers.
func (ix *index) flush(cut *changes, c cover) error {
	return protect("index", func() error {
		return ix.db.Update(func(tx *bolt.Tx) error {
			var b [5]*bolt.Bucket
			for i, name := range [][]byte{bucketRows, bucketPos, bucketNames, bucketLinks, bucketMeta} {
				var err error
				if b[i], err = tx.CreateBucketIfNotExists(name); err != nil {
					return err
				}
			}
			rows, pos, names, links, meta := b[0], b[1], b[2], b[3], b[4]
			for _, id := range sortedIDs(cut.rows) { // in key order: neighbours share pages
				e := cut.rows[id]
				if err := flushPositions(pos, e); err != nil {
					return err
				}
				v, err := msgpack.Marshal(&e.row)
				if err != nil {
					return err
				}
				if err := rows.Put(id[:], seal(v)); err != nil {
					return err
				}
			}
			for n, id := range cut.names {
				if err := names.Put(nameRow(n), seal(slices.Clone(id[:]))); err != nil {
					return err
				}
			}
			for k, l := range cut.links {
				if err := links.Put(linkRow(k), seal(appendUvarint(nil, l.Consumed))); err != nil {
					return err
				}
			}
			v, err := msgpack.Marshal(&c)
			if err != nil {
				return err
			}
			return meta.Put(keyCover, seal(v))
		})
	})
}

func flushPositions(b *bolt.Bucket, e *entry) error {
	list := e.pending
	for chunk := e.flushed / positionsChunk; len(list) > 0; chunk++ {
		var have []framePos
		if held := e.flushed - min(e.flushed, chunk*positionsChunk); held > 0 && held < positionsChunk {
			v := b.Get(posRow(e.row.Session, chunk))
			if v == nil {
				return &CorruptError{Session: e.row.Session, Reason: fmt.Sprintf("index: positions: row %d is missing", chunk)}
			}
			var err error
			if have, err = decodePositions(v); err != nil {
				return err
			}
			have = have[:held]
		}
		n := min(len(list), positionsChunk-len(have))
		if err := b.Put(posRow(e.row.Session, chunk), encodePositions(append(have, list[:n]...))); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}
