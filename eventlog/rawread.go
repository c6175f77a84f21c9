package eventlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
)

// RawFrame is a frame as it is stored, decoded: what is needed to hand a log on
// byte for byte and to prove it.
type RawFrame struct {
	Position  uint64
	Tombstone bool // the frame was purged: nothing but Leaf is left
	Lost      bool // a salvage stated that the frame is lost: likewise
	Raw       []byte
	Session   uuid.UUID
	First     uint64 // seq of the first event
	Prev      Hash   // chain hash before it
	Imported  bool
	Events    []Event    // with chain hashes; their facts point into Raw
	Headers   [][]byte   // of the events, in Raw
	Chunks    [][][]byte // of the events' contents, as stored; nil without content, and where it was erased
	Leaf      Hash       // in the tree over positions
}

// Last is the seq of the last event.
func (f *RawFrame) Last() uint64 { return f.First + uint64(len(f.Events)) - 1 }

// After is the chain hash after the last event.
func (f *RawFrame) After() Hash { return f.Events[len(f.Events)-1].Hash }

// MaxRawFrame bounds the bytes of a frame as it is stored.
const MaxRawFrame = maxFrame

// ChunkSize is how many bytes of a content a chunk holds, uncompressed.
const ChunkSize = chunkSize

// MaxChunk bounds the bytes of a stored chunk of a content.
const MaxChunk = chunkSize + 64

// ParseRawFrame decodes a frame that came from anywhere; the result points into
// raw. Nothing that raw says makes it take more memory than a small multiple of
// raw. Errors: ErrCorrupt.
func ParseRawFrame(raw []byte) (*RawFrame, error) {
	r, err := newFrameReader(raw)
	if err != nil {
		return nil, &CorruptError{Reason: err.Error()}
	}
	damaged := func(reason string) (*RawFrame, error) {
		return nil, &CorruptError{Session: r.session, Seq: r.first, Reason: reason}
	}
	if r.count > uint64(len(r.rest)) {
		return damaged(fmt.Sprintf("frame: %d events in %d bytes", r.count, len(r.rest)))
	}
	f := &RawFrame{Raw: raw, Session: r.session, First: r.first, Prev: r.prev, Imported: r.imported,
		Events: make([]Event, r.count), Headers: make([][]byte, r.count), Chunks: make([][][]byte, r.count)}
	hash := r.prev
	var scratch []byte
	for i := range f.Events {
		header, err := r.next(&f.Events[i])
		if err != nil {
			return damaged(err.Error())
		}
		f.Events[i].prev = hash
		hash, scratch = chainNext(hash, header, scratch)
		f.Events[i].Hash, f.Headers[i] = hash, header
	}
	if _, err := r.next(nil); err != nil { // bytes after the last header
		return damaged(err.Error())
	}
	f.Leaf = r.frame.leaf(hash)
	return f, nil
}

// rawPage is how many bytes one read transaction of EachRaw copies out, but for
// the contents of the last frame.
const rawPage = 1 << 20

// EachRaw calls fn with what stands at the positions from..to-1, in order, and
// with the contents of the sessions for which want is true; a nil want is true
// for all. Every content is compared with its commitment. No transaction is open
// while fn runs. Memory is bounded by one batch's contents.
//
// Errors: ErrCorrupt where a frame is missing or damaged, or a content is
// damaged: damage is never handed on.
func (s *Store) EachRaw(ctx context.Context, from, to uint64, want func(session uuid.UUID) bool, fn func(*RawFrame) error) error {
	if err := s.usable(); err != nil {
		return err
	}
	if durable := s.st.durable(); to > durable {
		return fmt.Errorf("%w: position %d: the journal ends at %d", ErrNotFound, to, durable)
	}
	for at := from; at < to; {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, err := s.rawPage(at, to, want)
		if err != nil {
			return err
		}
		for _, f := range page {
			if err := fn(f); err != nil {
				return err
			}
		}
		at += uint64(len(page))
	}
	return nil
}

// rawPage copies out frames from position at on.
func (s *Store) rawPage(at, to uint64, want func(uuid.UUID) bool) (page []*RawFrame, err error) {
	size := 0
	err = s.journal.view(func(tx *bolt.Tx) error {
		frames, contents := keyWalk{b: tx.Bucket(bucketJournal)}, new(contentReader).in(tx)
		for ; at < to && size < rawPage; at++ {
			var f *RawFrame
			err := protect("store.db", func() (err error) {
				f, err = rawAt(tx, &frames, at, s.identity.Salvaged)
				if err == nil && f.Raw != nil && (want == nil || want(f.Session)) {
					var n int
					n, err = f.loadChunks(contents)
					size += n
				}
				return err
			})
			if err != nil {
				return err
			}
			size += len(f.Raw) + 512
			page = append(page, f)
		}
		return nil
	})
	return page, err
}

// rawAt reads what stands at a position.
func rawAt(tx *bolt.Tx, frames *keyWalk, position uint64, salvaged bool) (*RawFrame, error) {
	raw := frames.position(position)
	if raw == nil || isMark(raw) {
		leaf, _, err := leafOf(tx, position, raw, salvaged, nil)
		purged := raw == nil && tx.Bucket(bucketTombstones).Get(positionKey(position)) != nil
		return &RawFrame{Position: position, Tombstone: purged, Lost: !purged, Leaf: leaf}, err
	}
	f, err := ParseRawFrame(bytes.Clone(raw))
	if err != nil {
		if ce := (*CorruptError)(nil); errors.As(err, &ce) {
			ce.Position, ce.HasPosition = position, true
		}
		return nil, err
	}
	f.Position = position
	for i := range f.Events {
		f.Events[i].Position = position
	}
	return f, nil
}

// loadChunks copies the contents of a frame's events and checks them.
func (f *RawFrame) loadChunks(r *contentReader) (size int, err error) {
	for i := range f.Events {
		ev := &f.Events[i]
		if !ev.HasContent {
			continue
		}
		var chunks [][]byte
		for n := uint32(0); n < chunkCount(ev.ContentLen); n++ {
			value := r.walk.chunk(f.Position, uint32(i), n)
			if value == nil && n == 0 {
				break // erased; a later chunk that is left over is found below
			}
			if len(value) > MaxChunk {
				return size, &CorruptError{Session: ev.Session, Seq: ev.Seq, Position: f.Position, HasPosition: true, Reason: fmt.Sprintf("content: chunk %d of %d bytes", n, len(value))}
			}
			chunks = append(chunks, bytes.Clone(value))
			size += len(value)
		}
		if chunks == nil {
			continue
		}
		one := contentReader{sum: r.sum, plain: r.plain, get: func(key []byte) []byte { return chunks[binary.BigEndian.Uint32(key[12:])] }}
		_, _, err := one.read(ev, uint32(i), nil, false)
		r.sum, r.plain = one.sum, one.plain
		if err != nil {
			return size, &CorruptError{Session: ev.Session, Seq: ev.Seq, Position: f.Position, HasPosition: true, Type: ev.Type, Reason: err.Error()}
		}
		f.Chunks[i] = chunks
	}
	return size, nil
}

// Durable is the position after the last durable frame.
func (s *Store) Durable() uint64 { return s.st.durable() }

// ParseRawEvent decodes the header of an event of session whose chain hash before
// it is prev; the event's facts point into header. Errors: ErrCorrupt.
func ParseRawEvent(session uuid.UUID, header []byte, prev Hash) (Event, error) {
	var ev Event
	if err := decodeHeader(header, &ev); err != nil {
		return Event{}, &CorruptError{Session: session, Reason: err.Error()}
	}
	ev.Session, ev.prev = session, prev
	ev.Hash, _ = chainNext(prev, header, nil)
	return ev, nil
}

// ChunkSalt is the salt of a content, which its first stored chunk holds.
func ChunkSalt(ev *Event, chunks [][]byte) (Salt, error) {
	if len(chunks) == 0 {
		return Salt{}, errContentMissing
	}
	_, salt, err := decodeChunk(nil, chunks[0], true, min(chunkSize, int(min(ev.ContentLen, MaxContent))))
	return salt, err
}
