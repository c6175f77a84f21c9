package bundle

import (
	"context"
	"fmt"
	"io"

	"github.com/google/uuid"

	"childlog/eventlog"
)

// Head is how a bundle begins.
type Head struct {
	Whole       bool // of the whole store
	Filtered    bool // a filter left contents out
	Store       uuid.UUID
	Incarnation uint64
	Size        uint64 // positions that it accounts for
	Key         string // verifier key that the store named; informs, proves nothing
	Note        []byte // signed checkpoint, nil: none
}

// Listed is a session that a bundle holds.
type Listed struct {
	Session  uuid.UUID
	Imported bool
	Head     uint64
	Hash     eventlog.Hash
}

// visitor is what read hands over, in the order of the file.
type visitor struct {
	head    func(*Head) error // once the sessions are known
	frame   func(f *eventlog.RawFrame, withheld []bool) error
	subtree func(n node, tomb bool) error // what stands for positions without a frame
}

// trailer is how a bundle ends.
type trailer struct {
	sessions, frames, events, contents, withheld uint64
	root                                         eventlog.Hash
	digest                                       eventlog.Hash // of the file before the trailer
}

// reader reads a bundle from front to end and holds it to the format. What it
// says of chains, trees and policies is for the visitor to judge.
type reader struct {
	rr   *recordReader
	head Head
	list []Listed
	v    visitor

	frame    *eventlog.RawFrame
	withheld []bool
	bytes    uint64 // of contents of the frame, uncompressed
	stored   uint64 // the same, as they lie in the file
	event    uint64 // index of the content read last
	seen     trailer
}

// read reads a bundle. Errors: ErrInvalid (it is none, or of a newer version),
// ErrCorrupt (it is damaged or cut off), those of the visitor.
func read(ctx context.Context, in io.Reader, v visitor) (*Head, []Listed, trailer, error) {
	r := &reader{v: v}
	err := r.all(ctx, in)
	return &r.head, r.list, r.seen, err
}

func (r *reader) all(ctx context.Context, in io.Reader) (err error) {
	if r.rr, err = newRecordReader(in); err != nil {
		return err
	}
	stage := byte(kindHead)
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		at := r.rr.at
		kind, body, digest, err := r.rr.next()
		if err != nil {
			return err
		}
		if (n == 0) != (kind == kindHead) || order[kind] < order[stage] {
			return malformed(at, "a record of kind %c is out of order", kind)
		}
		if stage = kind; order[kind] > order[kindSession] && r.v.head != nil {
			if err := r.v.head(&r.head); err != nil {
				return err
			}
			r.v.head = nil
		}
		if kind != kindChunk && kind != kindWithout {
			if err := r.endFrame(); err != nil {
				return err
			}
		}
		if err := r.record(at, kind, body); err != nil {
			return err
		}
		if kind == kindEnd {
			return r.end(at, body, digest)
		}
	}
}

// order is the order of records; those of the journal share a place.
var order = [256]int{kindHead: 0, kindKey: 1, kindNote: 2, kindSession: 3, kindFrame: 4, kindChunk: 4, kindWithout: 4, kindTomb: 4, kindSubtree: 4, kindEnd: 5}

func (r *reader) record(at int64, kind byte, body []byte) error {
	c := &cursor{b: body}
	bad := func(what string) error { return malformed(at, "record %c: %s", kind, what) }
	switch kind {
	case kindHead:
		version, flags := c.take(1)[0], c.take(1)[0]
		if version != formatVersion {
			return fmt.Errorf("%w: bundle: want version %d, got %d", eventlog.ErrNewerFormat, formatVersion, version)
		}
		r.head = Head{Whole: flags&flagWhole != 0, Filtered: flags&flagFiltered != 0, Store: uuid.UUID(c.take(16)), Incarnation: c.uvarint(), Size: c.uvarint()}
		if !c.end() || flags&^(flagWhole|flagFiltered) != 0 || r.head.Size > 1<<maxLevel {
			return bad("fields")
		}
	case kindKey:
		if r.head.Key != "" || r.head.Note != nil {
			return bad("there is one already")
		}
		r.head.Key = string(body)
	case kindNote:
		if r.head.Note != nil {
			return bad("there is one already")
		}
		r.head.Note = append([]byte{}, body...)
	case kindSession:
		id, flags := uuid.UUID(c.take(16)), c.take(1)[0]
		l := Listed{Session: id, Imported: flags&flagImported != 0, Head: c.uvarint(), Hash: eventlog.Hash(c.take(32))}
		if n := len(r.list); !c.end() || flags&^flagImported != 0 || l.Head == 0 || n > 0 && string(r.list[n-1].Session[:]) >= string(id[:]) {
			return bad("fields, or the order of ids")
		}
		r.list = append(r.list, l)
	case kindFrame:
		return r.beginFrame(at, c)
	case kindChunk, kindWithout:
		return r.content(kind, c, bad)
	case kindTomb:
		n := node{0, c.uvarint(), eventlog.Hash(c.take(32))}
		if !c.end() {
			return bad("fields")
		}
		return r.v.subtree(n, true)
	case kindSubtree:
		n := node{c.take(1)[0], c.uvarint(), eventlog.Hash(c.take(32))}
		if !c.end() {
			return bad("fields")
		}
		return r.v.subtree(n, false)
	}
	return nil
}

func (r *reader) beginFrame(at int64, c *cursor) error {
	position := c.uvarint()
	if c.bad {
		return malformed(at, "record F: position")
	}
	f, err := eventlog.ParseRawFrame(append([]byte{}, c.b...))
	if err != nil {
		return malformed(at, "record F: position %d: %v", position, err)
	}
	f.Position = position
	r.frame, r.withheld, r.bytes, r.stored, r.event = f, make([]bool, len(f.Events)), 0, 0, 0
	return nil
}

// content takes one chunk of a content of the frame, or that it was left out.
func (r *reader) content(kind byte, c *cursor, bad func(string) error) error {
	i := c.uvarint()
	if r.frame == nil || c.bad || i >= uint64(len(r.frame.Events)) || i < r.event {
		return bad("it belongs to no event before it")
	}
	ev := &r.frame.Events[i]
	if !ev.HasContent || r.withheld[i] {
		return bad("the event takes none")
	}
	r.event = i
	if kind == kindWithout {
		if reason := c.take(1)[0]; !c.end() || reason != withheldByFilter || r.frame.Chunks[i] != nil {
			return bad("reason")
		}
		r.withheld[i] = true
		r.seen.withheld++
		return nil
	}
	if n := c.uvarint(); c.bad || n != uint64(len(r.frame.Chunks[i])) {
		return bad("chunks are not in order")
	}
	if len(r.frame.Chunks[i]) == 0 {
		if r.bytes += ev.ContentLen; r.bytes > eventlog.MaxBatchContent {
			return bad("the contents of one frame are more than a batch can hold")
		}
		r.seen.contents++
	}
	if r.stored += uint64(len(c.b)); r.stored > 2*eventlog.MaxBatchContent {
		return bad("the contents of one frame are more than a batch can hold")
	}
	r.frame.Chunks[i] = append(r.frame.Chunks[i], append([]byte{}, c.b...))
	if uint64(len(r.frame.Chunks[i])) > ev.ContentLen/eventlog.ChunkSize+1 {
		return bad("more chunks than the content has")
	}
	return nil
}

// endFrame hands a frame over once its contents were read.
func (r *reader) endFrame() error {
	if r.frame == nil {
		return nil
	}
	f := r.frame
	r.frame = nil
	r.seen.frames++
	r.seen.events += uint64(len(f.Events))
	return r.v.frame(f, r.withheld)
}

// end compares the trailer with what was read.
func (r *reader) end(at int64, body []byte, digest eventlog.Hash) error {
	c := &cursor{b: body}
	got := trailer{c.uvarint(), c.uvarint(), c.uvarint(), c.uvarint(), c.uvarint(), eventlog.Hash(c.take(32)), eventlog.Hash(c.take(32))}
	r.seen.sessions = uint64(len(r.list))
	r.seen.root, r.seen.digest = got.root, digest
	switch {
	case !c.end():
		return malformed(at, "record E: fields")
	case got.digest != digest:
		return malformed(at, "record E: the digest of the file: want %x, got %x", got.digest[:8], digest[:8])
	case got != r.seen:
		return malformed(at, "record E: the counts are not those of the file")
	}
	return r.rr.ended()
}
