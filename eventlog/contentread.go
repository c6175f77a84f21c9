package eventlog

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"

	bolt "go.etcd.io/bbolt"
)

// contentReader reads the contents of one transaction and compares them with
// their commitments. Contents that are asked for in the order of the journal
// are found along a cursor. One that is only verified is hashed where it lies,
// chunk by chunk: memory does not grow with it.
type contentReader struct {
	walk  keyWalk
	get   func(key []byte) []byte // instead of walk: chunks that are not in a transaction
	tx    *bolt.Tx
	ahead *readAhead
	sum   hash.Hash
	plain []byte // a chunk that was compressed
	bytes uint64 // of chunks read, as stored

	head [len(tagContent) + len(Salt{}) + 8]byte // what is hashed before a content
	got  Hash
}

// in moves the reader to a transaction.
func (r *contentReader) in(tx *bolt.Tx) *contentReader {
	r.walk, r.tx = keyWalk{b: tx.Bucket(bucketContents)}, tx
	return r
}

// load fills in an event's content, or the reason why it is not there. index
// is the event's in its frame; the content's bytes come from mem.
func (r *contentReader) load(ev *Event, index uint32, mem *arena) {
	if !ev.HasContent {
		return
	}
	err := protect("store.db", func() error {
		if ev.ContentLen > MaxContent { // before memory is taken for it
			return contentTooLong(ev.ContentLen)
		}
		content, _, err := r.read(ev, index, mem.take(int(ev.ContentLen)), true)
		if err == nil {
			ev.Content = content
		}
		return err
	})
	r.note(ev, err)
}

// verify compares an event's content with its commitment and leaves it where
// it is; ContentErr says what is wrong.
func (r *contentReader) verify(ev *Event, index uint32) {
	if !ev.HasContent {
		return
	}
	r.note(ev, protect("store.db", func() error {
		_, _, err := r.read(ev, index, nil, false)
		return err
	}))
}

func (r *contentReader) note(ev *Event, err error) {
	if err == nil {
		return
	}
	r.walk.forget()
	ev.missing = errors.Is(err, errContentMissing)
	if ev.missing && ev.Imported {
		ev.ContentErr = fmt.Errorf("%w: session %s: seq %d", ErrWithheld, ev.Session, ev.Seq)
		return
	}
	ev.ContentErr = &CorruptError{Session: ev.Session, Seq: ev.Seq, Position: ev.Position, HasPosition: true, Type: ev.Type, Reason: err.Error()}
}

var errContentMissing = errors.New("missing")

func contentTooLong(n uint64) error {
	return fmt.Errorf("content: length: want at most %d, got %d", MaxContent, n)
}

// read checks a content against its commitment and, with keep, appends it to
// dst. ErrContentMissing tells an erased content from a damaged one.
func (r *contentReader) read(ev *Event, index uint32, dst []byte, keep bool) (content []byte, salt Salt, err error) {
	if ev.ContentLen > MaxContent {
		return nil, salt, contentTooLong(ev.ContentLen)
	}
	if r.sum == nil {
		r.sum = sha256.New()
	}
	for chunk, n := uint32(0), chunkCount(ev.ContentLen); chunk < n; chunk++ {
		var value []byte
		if r.get != nil {
			value = r.get(contentKey(ev.Position, index, chunk))
		} else {
			value = r.walk.chunk(ev.Position, index, chunk)
		}
		if value == nil {
			return nil, salt, fmt.Errorf("content: %w: chunk %d of %d", errContentMissing, chunk, n)
		}
		r.ahead.note(r.tx, value)
		want := min(chunkSize, int(ev.ContentLen)-int(chunk)*chunkSize)
		plain, s, err := openChunk(value, chunk == 0, want, &r.plain)
		if err != nil {
			return nil, salt, fmt.Errorf("content: chunk %d: %w", chunk, err)
		}
		if chunk == 0 {
			salt = s
			at := copy(r.head[:], tagContent)
			at += copy(r.head[at:], salt[:])
			binary.BigEndian.PutUint64(r.head[at:], ev.ContentLen)
			r.sum.Reset()
			r.sum.Write(r.head[:])
		}
		if keep { // the copy is what is hashed: it is what the caller gets
			at := len(dst)
			dst = append(dst, plain...)
			plain = dst[at:]
		}
		r.sum.Write(plain)
		r.bytes += uint64(len(value))
	}
	if r.sum.Sum(r.got[:0]); r.got != ev.Commitment {
		return nil, salt, fmt.Errorf("content: commitment: want %x, got %x", ev.Commitment[:8], r.got[:8])
	}
	return dst, salt, nil
}

// loadContent reads one content by itself.
func loadContent(tx *bolt.Tx, ev *Event, index uint32) {
	var r contentReader
	r.in(tx).load(ev, index, new(arena))
}

// readContent reads a content through get, which returns a stored chunk or nil.
func readContent(ev *Event, index uint32, get func(key []byte) []byte) (content []byte, salt Salt, err error) {
	if ev.ContentLen > MaxContent { // before memory is taken for it
		return nil, salt, contentTooLong(ev.ContentLen)
	}
	r := contentReader{get: get}
	return r.read(ev, index, make([]byte, 0, ev.ContentLen), true)
}
