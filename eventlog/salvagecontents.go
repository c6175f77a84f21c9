package eventlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"childlog/eventlog/pagecheck"
)

// addChunks adds the chunks of contents that a leaf holds and returns how many
// there were.
func (s *salvager) addChunks(l pagecheck.Leaf) (n int) {
	if s.noContents {
		return 0
	}
	s.chunks, n = findChunks(s.chunks, l)
	return n
}

// addStaleChunks takes those that can only be of the unproven tail.
func (s *salvager) addStaleChunks(l pagecheck.Leaf) int {
	before := len(s.tailChunks)
	var n int
	s.tailChunks, n = findChunks(s.tailChunks, l)
	kept := s.tailChunks[:before]
	for _, c := range s.tailChunks[before:] {
		if c.position >= s.end && s.opts.IncludeTail && s.report.Base != BaseNone && s.report.Base != BaseRoot {
			kept = append(kept, c)
		}
	}
	s.tailChunks = kept
	return n
}

func findChunks(list []foundChunk, l pagecheck.Leaf) ([]foundChunk, int) {
	n := 0
	add := func(key, value []byte, offset int64) {
		if len(key) != contentKeyLen || !soundChunk(value) {
			return
		}
		n++
		list = append(list, foundChunk{position: binary.BigEndian.Uint64(key), index: binary.BigEndian.Uint32(key[8:]),
			chunk: binary.BigEndian.Uint32(key[12:]), offset: uint64(offset), size: uint32(len(value))})
	}
	for _, e := range l.Entries {
		add(e.Key, e.Value, e.Offset)
	}
	for _, g := range l.Gaps { // a chunk does not say how long it is; two neighbours do
		if g.Count == 1 && !g.Last && len(g.Bytes) > contentKeyLen {
			add(g.Bytes[:contentKeyLen], g.Bytes[contentKeyLen:], g.Offset+contentKeyLen)
		}
	}
	return list, n
}

// soundChunk checks a chunk's checksum. Whether it is the right one is for the
// commitment to say.
func soundChunk(v []byte) bool {
	n := len(v) - 4
	return n > 0 && binary.LittleEndian.Uint32(v[n:]) == crc32.Checksum(v[:n], castagnoli)
}

func cmpChunk(a, b foundChunk) int {
	if c := cmpUint(a.position, b.position); c != 0 {
		return c
	}
	if c := cmpUint(uint64(a.index), uint64(b.index)); c != 0 {
		return c
	}
	return cmpUint(uint64(a.chunk), uint64(b.chunk))
}

func (s *salvager) sortChunks() {
	slices.SortStableFunc(s.chunks, cmpChunk) // the tree's come before those of cut off pages
	s.chunks = slices.CompactFunc(s.chunks, func(a, b foundChunk) bool { return cmpChunk(a, b) == 0 })
}

// takeTail adds the unproven tail to what is written, if it was asked for.
func (s *salvager) takeTail() error {
	if !s.opts.IncludeTail || len(s.tail) == 0 {
		return nil
	}
	slices.SortStableFunc(s.tailChunks, cmpChunk)
	s.chunks = append(s.chunks, slices.CompactFunc(s.tailChunks, func(a, b foundChunk) bool { return cmpChunk(a, b) == 0 })...)
	s.frames = append(s.frames, s.tail...)
	s.report.Frames.Tail = uint64(len(s.tail))
	for i := range s.tail {
		f := &s.tail[i]
		raw, err := s.readFrame(f, nil)
		if err != nil {
			return err
		}
		r, err := newFrameReader(raw)
		if err != nil {
			return corruptf(f.position, "the file changed while it was read: %v", err)
		}
		s.frameFirst = r.first
		for ev := new(Event); ; {
			header, err := r.next(ev)
			if err != nil {
				return corruptf(f.position, "the file changed while it was read: %v", err)
			}
			if header == nil {
				break
			}
			ev.Position = f.position
			if err := s.content(new(salvagedLog), f, ev); err != nil {
				return err
			}
		}
	}
	return nil
}

// content reads the content of an event and marks its chunks as whole if it is
// what the event committed to. Half a content is none: nothing could vouch for
// its bytes.
func (s *salvager) content(l *salvagedLog, f *foundFrame, ev *Event) error {
	s.report.Events++
	if ev.Type == TypeContentRedacted {
		s.noteMarker(ev)
	}
	if !ev.HasContent {
		return nil
	}
	index := uint32(ev.Seq - s.frameFirst)
	at, _ := slices.BinarySearchFunc(s.chunks, foundChunk{position: f.position, index: index}, cmpChunk)
	used := 0
	var failed error
	_, _, err := readContent(ev, index, func(key []byte) []byte {
		k := at + used
		if k >= len(s.chunks) || cmpChunk(s.chunks[k], foundChunk{position: f.position, index: index, chunk: binary.BigEndian.Uint32(key[12:])}) != 0 {
			return nil
		}
		used++
		value, err := s.readChunk(&s.chunks[k], nil)
		if err != nil {
			failed = err
		}
		return value
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		l.absent = append(l.absent, absentContent(ev))
		return nil
	}
	for k := range used {
		s.chunks[at+k].whole = true
	}
	s.report.Contents++
	return nil
}

func (s *salvager) readChunk(c *foundChunk, buf []byte) ([]byte, error) {
	buf = slices.Grow(buf[:0], int(c.size))[:c.size]
	if n, err := s.r.ReadAt(buf, int64(c.offset)); n < len(buf) {
		return nil, corruptf(c.position, "a content can't be read any more: %v", err)
	}
	if !soundChunk(buf) {
		return nil, corruptf(c.position, "%s", fmt.Sprintf("the file changed while it was read: content of event %d", c.index))
	}
	return buf, nil
}
