package eventlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/vmihailenco/msgpack/v5"
	bolt "go.etcd.io/bbolt"
)

// The positions of a session's frames, 64 to a row, and the flush that writes
// them with everything else.

func posRow(session uuid.UUID, chunk uint64) []byte {
	return binary.BigEndian.AppendUint32(slices.Clone(session[:]), uint32(chunk))
}

// decodePositions reads one row, or its first max positions: pairs of deltas,
// the first from zero.
func decodePositions(key, v []byte, max int) ([]framePos, error) {
	v, err := unseal(key, v, "positions")
	if err != nil {
		return nil, err
	}
	var out []framePos
	var at framePos
	for len(v) > 0 && len(out) < max {
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

func encodePositions(key []byte, list []framePos) []byte {
	var b []byte
	var at framePos
	for _, p := range list {
		b = appendUvarint(appendUvarint(b, p.pos-at.pos), p.first-at.first)
		at = p
	}
	return seal(key, b)
}

// frames returns up to limit positions of the session's first total frames,
// from the frame that holds seq on: a binary search over rows of 64.
func (ix *index) frames(session uuid.UUID, total, seq uint64, limit int) (out []framePos, err error) {
	err = ix.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketPos)
		chunks := (total + positionsChunk - 1) / positionsChunk
		read := func(chunk uint64, max int) ([]framePos, error) {
			var v []byte
			key := posRow(session, chunk)
			if b != nil {
				v = b.Get(key)
			}
			if v == nil {
				return nil, &CorruptError{Session: session, Reason: fmt.Sprintf("index: positions: row %d of %d is missing", chunk, chunks)}
			}
			list, err := decodePositions(key, v, max)
			if err == nil && len(list) == 0 {
				err = &CorruptError{Session: session, Reason: "index: positions: empty row"}
			}
			return list, err
		}
		lo, hi := uint64(0), chunks-1 // the last chunk whose first frame starts at or before seq
		for lo < hi {
			mid := (lo + hi + 1) / 2
			list, err := read(mid, 1)
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
			list, err := read(chunk, positionsChunk)
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

// flush writes a consistent cut of the overlay, the nodes that the tree grew,
// and what both cover.
func (ix *index) flush(cut *changes, nodes map[treeNode]Hash, c cover) error {
	return ix.guard.update(ix.db, "index", func(tx *bolt.Tx) error {
		was, _, err := readCover(tx)
		if err != nil {
			return err
		}
		c.Counts = was.Counts
		var w [len(indexBuckets)]indexWriter
		for i, name := range indexBuckets {
			b, err := tx.CreateBucketIfNotExists(name)
			if err != nil {
				return err
			}
			w[i] = indexWriter{b, &c.Counts[i]}
		}
		rows, pos, names, links, tree := w[0], w[1], w[2], w[3], w[4]
		if err := dropSessions(rows, pos, names, cut.gone); err != nil {
			return err
		}
		for _, id := range sortedIDs(cut.rows) { // in key order: neighbours share pages
			e := cut.rows[id]
			if err := flushPositions(pos, e); err != nil {
				return err
			}
			v, err := msgpack.Marshal(&e.row)
			if err != nil {
				return err
			}
			if err := rows.put(id[:], seal(id[:], v)); err != nil {
				return err
			}
		}
		for n, id := range cut.names {
			key := nameRow(n)
			if err := names.put(key, seal(key, slices.Clone(id[:]))); err != nil {
				return err
			}
		}
		for k, l := range cut.links {
			key := linkRow(k)
			if err := links.put(key, seal(key, appendUvarint(nil, l.Consumed))); err != nil {
				return err
			}
		}
		for n, h := range nodes {
			key := n.key()
			if err := tree.put(key, seal(key, slices.Clone(h[:]))); err != nil {
				return err
			}
		}
		return writeCover(tx, c)
	})
}

func writeCover(tx *bolt.Tx, c cover) error {
	v, err := msgpack.Marshal(&c)
	if err != nil {
		return err
	}
	meta, err := tx.CreateBucketIfNotExists(bucketMeta)
	if err != nil {
		return err
	}
	return meta.Put(keyCover, seal(keyCover, v))
}

// indexWriter puts values and counts those whose key is new.
type indexWriter struct {
	*bolt.Bucket
	count *uint64
}

func (w indexWriter) put(key, value []byte) error {
	if w.Get(key) == nil {
		*w.count++
	}
	return w.Put(key, value)
}

// drop deletes a key that may be there.
func (w indexWriter) drop(key []byte) error {
	if w.Get(key) == nil {
		return nil
	}
	*w.count--
	return w.Delete(key)
}

// dropSessions deletes what the index has of sessions that were purged. Names
// are not kept by session, so all are looked through: a purge is rare.
func dropSessions(rows, pos, names indexWriter, gone map[uuid.UUID]Totals) error {
	if len(gone) == 0 {
		return nil
	}
	var stale [][]byte // deleting moves a cursor
	for _, id := range sortedIDs(gone) {
		if err := rows.drop(id[:]); err != nil {
			return err
		}
		c := pos.Cursor()
		for k, _ := c.Seek(id[:]); bytes.HasPrefix(k, id[:]); k, _ = c.Next() {
			stale = append(stale, bytes.Clone(k))
		}
	}
	for _, k := range stale {
		if err := pos.drop(k); err != nil {
			return err
		}
	}
	stale = stale[:0]
	err := names.ForEach(func(k, v []byte) error {
		v, err := unseal(k, v, "name")
		if err != nil {
			return err
		}
		var id uuid.UUID
		copy(id[:], v)
		n := name{space: nameSpace(k[0])}
		copy(n.hash[:], k[1:])
		if _, ok := gone[n.of(id)]; ok {
			stale = append(stale, bytes.Clone(k))
		}
		return nil
	})
	for _, k := range stale {
		if err == nil {
			err = names.drop(k)
		}
	}
	return err
}

func flushPositions(b indexWriter, e *entry) error {
	list := e.pending
	for chunk := e.flushed / positionsChunk; len(list) > 0; chunk++ {
		var have []framePos
		key := posRow(e.row.Session, chunk)
		if held := e.flushed - min(e.flushed, chunk*positionsChunk); held > 0 && held < positionsChunk {
			v := b.Get(key)
			if v == nil {
				return &CorruptError{Session: e.row.Session, Reason: fmt.Sprintf("index: positions: row %d is missing", chunk)}
			}
			var err error
			if have, err = decodePositions(key, v, positionsChunk); err != nil {
				return err
			}
			have = have[:held]
		}
		n := min(len(list), positionsChunk-len(have))
		if err := b.put(key, encodePositions(key, append(have, list[:n]...))); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}
