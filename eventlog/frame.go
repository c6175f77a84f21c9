package eventlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/google/uuid"
)

// A frame is one batch of one session, or a part of one that was too large
// for a single frame. It is written once and never changed; its key is its
// position, 8 bytes big endian, in the bucket "journal".
//
//	"CLF1" | len u32le | flags u8 | frames_left | session 16 | first seq | count
//	| prev hash 32 | last_policy | (hlen, header)* | crc32c u32le
//
// len counts the bytes after it, the checksum included. flags bit 0 marks a
// frame that goes on with the atomic unit of the frame before; frames_left is
// the number of the unit's frames still to come. flags bit 1 marks a frame that
// came from another store: its session is evidence, whatever its events say
// (foreign.go). It is in the frame, and so in the tree's leaf, because there it
// can't be lost apart from the events that it is about. prev hash is the chain hash
// before the first event. last_policy is the session's last policy-bearing
// seq after this frame: a reader that finds the head frame finds the whole
// policy by following prev_policy from there, and can't be shown less by an
// index that lost a row. The CRC covers all before it.
const (
	frameMagic    = "CLF1"
	frameHead     = len(frameMagic) + 4
	frameMost     = 96 // bytes of a frame at most, but for its headers
	flagContinues = 1
	flagImported  = 2
	frameFlags    = flagContinues | flagImported
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame is a decoded frame; its events are decoded by next.
type frame struct {
	continues  bool
	imported   bool
	framesLeft uint64
	session    uuid.UUID
	first      uint64
	count      uint64
	prev       Hash
	lastPolicy uint64
	headers    []byte
}

func (f *frame) last() uint64 { return f.first + f.count - 1 }

// appendFrame encodes f with its headers. The length is checked by the
// writer, which splits a batch before it comes here.
func appendFrame(b []byte, f *frame) []byte {
	start := len(b)
	b = append(b, frameMagic...)
	b = append(b, 0, 0, 0, 0)
	var flags byte
	if f.continues {
		flags |= flagContinues
	}
	if f.imported {
		flags |= flagImported
	}
	b = append(b, flags)
	b = appendUvarint(b, f.framesLeft)
	b = append(b, f.session[:]...)
	b = appendUvarint(b, f.first)
	b = appendUvarint(b, f.count)
	b = append(b, f.prev[:]...)
	b = appendUvarint(b, f.lastPolicy)
	b = append(b, f.headers...)
	binary.LittleEndian.PutUint32(b[start+len(frameMagic):], uint32(len(b)-start-frameHead+4))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// checkFrameLength compares a frame's length with the one that it states. A
// damaged page can claim a value of gigabytes: nothing is copied before this.
func checkFrameLength(b []byte) error {
	if len(b) < frameHead+4 || string(b[:len(frameMagic)]) != frameMagic {
		return fmt.Errorf("frame: magic: want %q, got %q", frameMagic, b[:min(len(b), len(frameMagic))])
	}
	if n := uint64(binary.LittleEndian.Uint32(b[len(frameMagic):])); n != uint64(len(b)-frameHead) {
		return fmt.Errorf("frame: length: want %d, got %d", n, len(b)-frameHead)
	}
	return nil
}

// decodeFrame checks the envelope (magic, length, checksum, flags, counts)
// and leaves the headers to next. The result points into b.
func decodeFrame(b []byte) (frame, error) {
	var f frame
	if err := checkFrameLength(b); err != nil {
		return f, err
	}
	body := b[:len(b)-4]
	if want, got := binary.LittleEndian.Uint32(b[len(b)-4:]), crc32.Checksum(body, castagnoli); want != got {
		return f, fmt.Errorf("frame: checksum: want %08x, got %08x", want, got)
	}
	c := byteCursor{b: body[frameHead:]}
	flags := c.u8("flags")
	f.continues, f.imported = flags&flagContinues != 0, flags&flagImported != 0
	f.framesLeft = c.uvarint("frames_left")
	copy(f.session[:], c.take(16, "session"))
	f.first = c.uvarint("first seq")
	f.count = c.uvarint("count")
	copy(f.prev[:], c.take(32, "prev hash"))
	f.lastPolicy = c.uvarint("last_policy")
	f.headers = c.b
	switch {
	case c.fail != "":
		return f, fmt.Errorf("frame: %s", c.fail)
	case flags&^byte(frameFlags) != 0:
		return f, fmt.Errorf("frame: flags: unknown bits in 0x%02x", flags)
	case f.count == 0 || f.count > MaxBatchEvents || f.first == 0 || f.first+f.count < f.first:
		return f, fmt.Errorf("frame: first seq %d and count %d are no range", f.first, f.count)
	case f.framesLeft >= MaxUnitFrames:
		return f, fmt.Errorf("frame: frames_left: want less than %d, got %d", MaxUnitFrames, f.framesLeft)
	case f.lastPolicy > f.last():
		return f, fmt.Errorf("frame: last_policy %d lies after the frame's last seq %d", f.lastPolicy, f.last())
	}
	return f, nil
}

// frameReader decodes a frame's events in order.
type frameReader struct {
	frame
	rest []byte
	at   uint64 // events read so far
}

func newFrameReader(b []byte) (*frameReader, error) {
	f, err := decodeFrame(b)
	if err != nil {
		return nil, err
	}
	return &frameReader{frame: f, rest: f.headers}, nil
}

// next decodes the next event into ev and returns its header's bytes, or nil
// after the last. It checks that seqs are contiguous.
func (r *frameReader) next(ev *Event) ([]byte, error) {
	if r.at == r.count {
		if len(r.rest) != 0 {
			return nil, fmt.Errorf("frame: %d bytes after the last header", len(r.rest))
		}
		return nil, nil
	}
	n, k, err := readUvarint(r.rest)
	if err != nil || n > uint64(len(r.rest)-k) {
		return nil, fmt.Errorf("frame: header %d: length %d of %d bytes left", r.at, n, len(r.rest)-k)
	}
	header := r.rest[k : k+int(n)]
	if err := decodeHeader(header, ev); err != nil {
		return nil, fmt.Errorf("frame: header %d: %w", r.at, err)
	}
	if want := r.first + r.at; ev.Seq != want {
		return nil, fmt.Errorf("frame: header %d: seq: want %d, got %d", r.at, want, ev.Seq)
	}
	ev.Session, ev.Imported = r.session, r.imported
	r.rest = r.rest[k+int(n):]
	r.at++
	return header, nil
}
