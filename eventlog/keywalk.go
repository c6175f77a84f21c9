package eventlog

import (
	"bytes"
	"encoding/binary"

	bolt "go.etcd.io/bbolt"
)

// keyWalk looks up keys of one bucket that are asked for in ascending order.
// It goes along a cursor and descends from the root only where the next entry
// is not the one that is wanted. It lives inside one transaction, and after a
// panic it must be forgotten.
type keyWalk struct {
	b    *bolt.Bucket
	c    *bolt.Cursor
	k, v []byte
	key  [contentKeyLen]byte // scratch: the key that is due
}

// position returns the value at a position, nil if there is none. It lies in
// the map.
func (w *keyWalk) position(position uint64) []byte {
	binary.BigEndian.PutUint64(w.key[:], position)
	return w.get(w.key[:8])
}

// chunk returns a stored chunk of a content, nil if there is none.
func (w *keyWalk) chunk(position uint64, index, chunk uint32) []byte {
	binary.BigEndian.PutUint64(w.key[:], position)
	binary.BigEndian.PutUint32(w.key[8:], index)
	binary.BigEndian.PutUint32(w.key[12:], chunk)
	return w.get(w.key[:])
}

func (w *keyWalk) get(key []byte) []byte {
	switch {
	case w.c == nil:
		w.c = w.b.Cursor()
		w.k, w.v = w.c.Seek(key)
	case !bytes.Equal(w.k, key):
		if w.k != nil {
			w.k, w.v = w.c.Next()
		}
		if !bytes.Equal(w.k, key) {
			w.k, w.v = w.c.Seek(key)
		}
	}
	if !bytes.Equal(w.k, key) {
		return nil
	}
	return w.v
}

// forget begins anew with the next key.
func (w *keyWalk) forget() { w.c, w.k, w.v = nil, nil, nil }
