package eventlog

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
)

// An event's header is what the chain hashes: everything but the content
// bytes, which it commits to.
//
//	version u8 | flags u8 | source u8 | tlen u8 | type | id 16 | seq | time i64le
//	| [prev_policy] | [inherited session 16 | inherited seq]
//	| [media u8 | content length | commitment 32] | facts
//
// Integers without a width are minimal uvarints. The facts run to the end of
// the header, whose length the frame gives.
const (
	flagIgnorable = 1 << iota
	flagPolicy    // prev_policy is present
	flagInherited // the inherited reference is present
	flagContent   // media, length and commitment are present
	headerFlags   = flagIgnorable | flagPolicy | flagInherited | flagContent
)

// pending is an event on its way into a frame: validated, its content
// committed to, its seq and links not yet known.
type pending struct {
	id         uuid.UUID
	typ        string
	version    uint8
	source     Source
	ignorable  bool
	policy     bool
	inherited  *Ref
	time       int64
	facts      Facts
	media      Media
	content    []byte
	salt       Salt
	commitment Hash
	chunks     []storedChunk
	foreign    *foreign // of another store's log: its header is taken as it is
}

func appendHeader(b []byte, p *pending, seq, prevPolicy uint64) []byte {
	var flags byte
	if p.ignorable {
		flags |= flagIgnorable
	}
	if p.policy {
		flags |= flagPolicy
	}
	if p.inherited != nil {
		flags |= flagInherited
	}
	if p.media != MediaNone {
		flags |= flagContent
	}
	b = append(b, p.version, flags, byte(p.source), byte(len(p.typ)))
	b = append(b, p.typ...)
	b = append(b, p.id[:]...)
	b = appendUvarint(b, seq)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.time))
	if p.policy {
		b = appendUvarint(b, prevPolicy)
	}
	if p.inherited != nil {
		b = append(b, p.inherited.Session[:]...)
		b = appendUvarint(b, p.inherited.Seq)
	}
	if p.media != MediaNone {
		b = append(b, byte(p.media))
		b = appendUvarint(b, uint64(len(p.content)))
		b = append(b, p.commitment[:]...)
	}
	if len(p.facts) == 0 {
		return append(b, emptyFacts...)
	}
	return append(b, p.facts...)
}

// typeNames interns the core types, so that decoding one allocates no name.
var typeNames = sync.OnceValue(func() map[string]string {
	m := make(map[string]string, len(coreTypes()))
	for name := range coreTypes() {
		m[name] = name
	}
	return m
})

// byteCursor reads fixed and variable fields; the first failure sticks.
type byteCursor struct {
	b    []byte
	fail string
}

func (c *byteCursor) take(n int, what string) []byte {
	if c.fail != "" {
		return nil
	}
	if len(c.b) < n {
		c.fail = fmt.Sprintf("%s: want %d bytes, got %d", what, n, len(c.b))
		return nil
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

func (c *byteCursor) u8(what string) byte {
	if b := c.take(1, what); b != nil {
		return b[0]
	}
	return 0
}

func (c *byteCursor) uvarint(what string) uint64 {
	if c.fail != "" {
		return 0
	}
	v, n, err := readUvarint(c.b)
	if err != nil {
		c.fail = what + ": " + err.Error()
		return 0
	}
	c.b = c.b[n:]
	return v
}

// decodeHeader reads one header into ev. Facts and the type's name may point
// into b; the caller owns b for as long as ev lives.
func decodeHeader(b []byte, ev *Event) error {
	c := byteCursor{b: b}
	ev.Version = c.u8("version")
	flags := c.u8("flags")
	ev.Source = Source(c.u8("source"))
	typ := c.take(int(c.u8("type length")), "type")
	copy(ev.ID[:], c.take(16, "id"))
	ev.Seq = c.uvarint("seq")
	if t := c.take(8, "time"); t != nil {
		ev.Time = time.Unix(0, int64(binary.LittleEndian.Uint64(t))).UTC()
	}
	ev.Ignorable = flags&flagIgnorable != 0
	ev.PolicyBearing, ev.PrevPolicy = flags&flagPolicy != 0, 0
	if ev.PolicyBearing {
		ev.PrevPolicy = c.uvarint("prev_policy")
	}
	ev.Inherited = nil
	if flags&flagInherited != 0 {
		var ref Ref
		copy(ref.Session[:], c.take(16, "inherited session"))
		ref.Seq = c.uvarint("inherited seq")
		ev.Inherited = &ref
	}
	ev.HasContent, ev.Media, ev.ContentLen, ev.Commitment = flags&flagContent != 0, MediaNone, 0, Hash{}
	if ev.HasContent {
		ev.Media = Media(c.u8("media"))
		ev.ContentLen = c.uvarint("content length")
		copy(ev.Commitment[:], c.take(32, "commitment"))
		if c.fail == "" && (ev.Media < MediaJSON || ev.Media > MediaOctets) {
			c.fail = fmt.Sprintf("media: want 1 to 3, got %d", ev.Media)
		}
		if c.fail == "" && ev.ContentLen > MaxContent {
			c.fail = fmt.Sprintf("content length: want at most %d, got %d", MaxContent, ev.ContentLen)
		}
	}
	if c.fail != "" {
		return fmt.Errorf("header: %s", c.fail)
	}
	if flags&^byte(headerFlags) != 0 {
		return fmt.Errorf("header: flags: unknown bits in 0x%02x", flags)
	}
	if name, ok := typeNames()[string(typ)]; ok {
		ev.Type = name
	} else {
		ev.Type = string(typ)
	}
	if err := CheckType(ev.Type); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	ev.Facts = Facts(c.b)
	if len(c.b) == 0 {
		return fmt.Errorf("header: facts: want a map, got nothing")
	}
	if err := ev.Facts.Check(); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	ev.Content, ev.ContentErr, ev.Redacted, ev.missing, ev.Hash = nil, nil, nil, false, Hash{}
	return nil
}
