package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// proof follows a journal in position order while it is copied and refuses the
// first thing that a full check would report about frames and contents: a
// checksum, a chain that breaks, a unit that is not whole, a content that is
// not what was committed to or that no event has. A copy of damage would look
// newer and sounder than it is, and the good copy it replaces would be gone.
//
// What was erased is no damage: a content of which every chunk is gone, and a
// position with a tombstone in place of its frame. Neither is a mark that a
// salvage left in place of a lost frame: it states the loss, and goes along. A
// hole states nothing.
//
// Memory grows with the number of sessions, about 150 bytes each.
type proof struct {
	totals   Copied
	signed   *Checkpoint // what must be continued, nil: nothing
	tree     treeEdge
	sessions map[uuid.UUID]*proven
	left     uint64       // frames that the open unit still needs
	gaps     uint64       // tombstones so far
	gap      bool         // the position before was one
	due      []dueContent // in order; those before at are settled
	at       int
	chunk    uint32 // chunks that were read of the one at at
	content  []byte
	salt     Salt
	scratch  []byte
}

// proven is how far a session's log was followed.
type proven struct {
	head uint64
	hash Hash
	gaps uint64 // tombstones and marks before the head's frame
}

// dueContent is a content that must come next, or be gone as a whole.
type dueContent struct {
	session    uuid.UUID
	seq        uint64
	position   uint64
	index      uint32
	length     uint64
	typ        string
	commitment Hash
}

func newProof(signed *Checkpoint) *proof {
	return &proof{signed: signed, sessions: map[uuid.UUID]*proven{}}
}

// grow adds a leaf and compares the tree with what was signed, where it has that
// size.
func (p *proof) grow(leaf Hash) error {
	p.tree.add(leaf, nil)
	if p.signed == nil || p.tree.size != p.signed.Size {
		return nil
	}
	if root, err := p.tree.root(); err != nil || root != p.signed.Root {
		return errors.Join(err, &RollbackError{Evidence: RolledBackDiffers, Origin: p.signed.Origin, Size: p.signed.Size, Root: p.signed.Root, Found: p.tree.size})
	}
	return nil
}

func (d *dueContent) damaged(format string, args ...any) error {
	return &CorruptError{Session: d.session, Seq: d.seq, Position: d.position, HasPosition: true, Type: d.typ, Reason: "content: " + fmt.Sprintf(format, args...)}
}

// tombstone notes a purged frame. Which session lost it is not known, so a log
// that goes on behind it is taken up where it goes on.
func (p *proof) tombstone(position uint64, value []byte) error {
	p.gaps++
	p.gap = true
	p.totals.Tombstones++
	leaf, err := purgedLeaf(position, value)
	if err != nil {
		return err
	}
	return p.grow(leaf)
}

// frame checks the frame at a position.
func (p *proof) frame(position uint64, raw []byte) error {
	damaged := func(session uuid.UUID, seq uint64, format string, args ...any) error {
		return &CorruptError{Session: session, Seq: seq, Position: position, HasPosition: true, Reason: fmt.Sprintf(format, args...)}
	}
	if isMark(raw) {
		p.gaps++
		p.gap = true
		p.totals.Lost++
		return p.grow(lostLeaf(position))
	}
	r, err := newFrameReader(raw)
	if err != nil {
		guess, _ := guessFrame(raw)
		return damaged(guess.session, guess.first, "%v", err)
	}
	if !p.gap && (r.continues != (p.left > 0) || p.left > 0 && r.framesLeft != p.left-1) {
		return damaged(r.session, r.first, "unit: the one before wants %d more frames, this frame says continues %t with %d left", p.left, r.continues, r.framesLeft)
	}
	p.left, p.gap = r.framesLeft, false
	s := p.sessions[r.session]
	if s == nil {
		s = &proven{hash: Genesis(r.session)}
		p.sessions[r.session] = s
	}
	if purged := p.gaps > s.gaps; !purged || r.first == s.head+1 {
		if r.first != s.head+1 {
			return damaged(r.session, s.head+1, "missing events: the log goes on with seq %d", r.first)
		}
		if r.prev != s.hash {
			return damaged(r.session, r.first, "chain: previous hash differs")
		}
	}
	hash := r.prev
	var ev Event
	for index := uint32(0); ; index++ {
		header, err := r.next(&ev)
		if err != nil {
			return damaged(r.session, r.first+r.at, "%v", err)
		}
		if header == nil {
			break
		}
		hash, p.scratch = chainNext(hash, header, p.scratch)
		if ev.HasContent {
			p.due = append(p.due, dueContent{session: r.session, seq: ev.Seq, position: position, index: index, length: ev.ContentLen, typ: ev.Type, commitment: ev.Commitment})
		}
	}
	s.head, s.hash, s.gaps = r.last(), hash, p.gaps
	if r.first == 1 {
		p.totals.Sessions++
	}
	p.totals.Frames++
	p.totals.Events += r.count
	return p.grow(r.leaf(hash))
}

// chunkAt checks one stored chunk.
func (p *proof) chunkAt(key, value []byte) error {
	position, index, chunk := binary.BigEndian.Uint64(key), binary.BigEndian.Uint32(key[8:]), binary.BigEndian.Uint32(key[12:])
	for p.at < len(p.due) && (p.due[p.at].position < position || p.due[p.at].position == position && p.due[p.at].index < index) {
		if err := p.erased(); err != nil {
			return err
		}
	}
	if p.at == len(p.due) || p.due[p.at].position != position || p.due[p.at].index != index {
		return corruptf(position, "content: chunk %d of event %d of this frame belongs to no event", chunk, index)
	}
	d := &p.due[p.at]
	if chunk != p.chunk || chunk >= chunkCount(d.length) {
		return d.damaged("chunk %d of %d: chunk %d was due", chunk, chunkCount(d.length), p.chunk)
	}
	if chunk == 0 {
		p.content = p.content[:0]
	}
	var salt Salt
	var err error
	if p.content, salt, err = decodeChunk(p.content, value, chunk == 0, min(chunkSize, int(d.length)-int(chunk)*chunkSize)); err != nil {
		return d.damaged("chunk %d: %v", chunk, err)
	}
	if chunk == 0 {
		p.salt = salt
	}
	if p.chunk++; p.chunk < chunkCount(d.length) {
		return nil
	}
	if got := commit(p.salt, p.content); got != d.commitment {
		return d.damaged("commitment: want %x, got %x", d.commitment[:8], got[:8])
	}
	p.totals.Contents++
	p.at, p.chunk = p.at+1, 0
	return nil
}

// erased passes over the content that was due.
func (p *proof) erased() error {
	if d := &p.due[p.at]; p.chunk > 0 {
		return d.damaged("%v: chunk %d of %d", errContentMissing, p.chunk, chunkCount(d.length))
	}
	p.totals.Erased++
	p.at++
	return nil
}

// settled is called where all contents of the frames so far were read.
func (p *proof) settled() error {
	for p.at < len(p.due) {
		if err := p.erased(); err != nil {
			return err
		}
	}
	p.due, p.at = p.due[:0], 0
	if cap(p.content) > 1<<20 {
		p.content = nil // one large content is no reason to keep its room
	}
	return nil
}

// end checks what only shows at the end.
func (p *proof) end(next uint64) error {
	if p.left > 0 && !p.gap {
		return corruptf(next, "the journal ends inside a unit: %d frames are missing", p.left)
	}
	if p.signed != nil && p.signed.Size > next {
		return &RollbackError{Evidence: RolledBackSmaller, Origin: p.signed.Origin, Size: p.signed.Size, Root: p.signed.Root, Found: next}
	}
	return nil
}
