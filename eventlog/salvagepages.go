package eventlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"childlog/eventlog/pagecheck"
)

// origin is where a frame was found; the lower one counts more.
type origin uint8

const (
	fromTree   origin = iota
	fromCutOff        // a page of the tree that no branch leads to
	fromStale         // a free page, or one of which nothing is known
)

var originNames = [...]string{fromTree: "tree", fromCutOff: "cutoff", fromStale: "carved"}

// foundFrame is a frame whose checksum holds, and where it stands: 24 bytes.
type foundFrame struct {
	position uint64
	place    uint64 // origin, then 56 bits of the value's offset in the file
	size     uint32
	crc      uint32
}

func (f foundFrame) origin() origin { return origin(f.place >> 56) }
func (f foundFrame) offset() int64  { return int64(f.place & (1<<56 - 1)) }
func (f foundFrame) same(g foundFrame) bool {
	return f.size == g.size && f.crc == g.crc
}

// foundChunk is a chunk of a content: 32 bytes.
type foundChunk struct {
	position     uint64
	index, chunk uint32
	offset       uint64
	size         uint32
	whole        bool // the content that it belongs to fits its commitment
}

// foundTomb is a tombstone.
type foundTomb struct {
	position uint64
	value    []byte
}

// brokenFrame is a frame of the tree whose checksum does not hold: what its
// start still says.
type brokenFrame struct {
	position uint64
	frame    frame
	named    bool
}

// readTree walks the three buckets of the tree. Of a frame it keeps the place
// and not the bytes, so that memory is bounded by the number of frames.
func (s *salvager) readTree() error {
	s.used = make([]uint64, s.carver.Pages()/64+1)
	s.tombsSound = true
	s.journalPages = map[uint64]bool{}
	walk := func(bucket []byte, fn func(pagecheck.Leaf)) (sound bool, err error) {
		problems, err := pagecheck.WalkLeaves(s.ctx, s.r, s.size, bucket, func(l pagecheck.Leaf) error {
			for id := l.Page; id < l.Page+l.Pages; id++ {
				s.used[id/64] |= 1 << (id % 64)
			}
			fn(l)
			s.progress(stageTree, l.Pages)
			return s.ctx.Err()
		})
		if isStop(err) {
			return false, err
		}
		if bytes.Equal(bucket, bucketJournal) {
			for _, p := range problems {
				s.journalPages[p.Page] = true
			}
		}
		return err == nil && !slices.ContainsFunc(problems, ofTheTree), nil
	}
	if s.report.Base == BaseNone {
		s.tombsSound = false
		return nil
	}
	var err error
	if s.tombsSound, err = walk(bucketTombstones, func(l pagecheck.Leaf) { s.addTombs(l) }); err != nil {
		return err
	}
	s.sortTombs()
	s.journalSound, err = walk(bucketJournal, func(l pagecheck.Leaf) { s.addFrames(l, fromTree) })
	if err != nil {
		return err
	}
	if _, err = walk(bucketContents, func(l pagecheck.Leaf) { s.addChunks(l) }); err != nil {
		return err
	}
	s.sortFrames()
	s.placeAlone()
	return nil
}

// ofTheTree leaves out problems that say nothing about what a walk hands out.
func ofTheTree(p pagecheck.Problem) bool { return p.Kind != pagecheck.KindOneMetaInvalid }

func (s *salvager) isUsed(id uint64) bool { return s.used[id/64]>>(id%64)&1 != 0 }

// carve reads every other page of the file as if it were a leaf. Pages that
// the tree does not use and that are not free either are its own: a branch that
// led to them is damaged, or their header is. Free pages hold older copies; they
// count only where the hash chain proves a frame, and contents in them may have
// been erased, so they give none.
//
// What a content holds is no page, whatever it looks like. The pages behind a
// leaf that can be read are its own as far as its elements reach. Behind a page
// that can't be read they may be, so those prove nothing by where they stand
// until a page comes that is known to be none of it.
func (s *salvager) carve() error {
	sure := true
	for id := uint64(2); id < s.carver.Pages(); id++ {
		if s.isUsed(id) {
			sure = true
			continue
		}
		if id%1024 == 0 {
			if err := s.ctx.Err(); err != nil {
				return err
			}
		}
		s.progress(stageCarving, 1)
		own := s.states.FreelistSound() && !s.states.Free(id)
		sure = sure || !own
		from := fromStale
		if own && sure {
			from = fromCutOff
		}
		l, ok, err := s.carver.Leaf(id)
		if err != nil {
			s.report.PagesDamaged++
		}
		n := 0
		if ok {
			n = s.addFrames(l, from)
			if own {
				n += s.addChunks(l)
			} else {
				n += s.addStaleChunks(l)
			}
			if n == 0 && from == fromCutOff && !s.tombsSound && l.Sound {
				n = s.addTombs(l)
			}
		}
		switch {
		case n > 0 && n == len(l.Entries) && l.Sound:
			id += l.Pages - 1
		case own && !s.journalPages[id] && !s.carver.NoLeaf(id):
			sure = false
		}
	}
	s.sortTombs()
	s.sortFrames()
	s.sortChunks()
	return nil
}

// addTombs adds the tombstones of a leaf and returns how many there were.
func (s *salvager) addTombs(l pagecheck.Leaf) (n int) {
	for _, e := range l.Entries {
		if len(e.Key) != 8 || len(e.Value) != len(Hash{}) {
			continue
		}
		s.tombs = append(s.tombs, foundTomb{binary.BigEndian.Uint64(e.Key), bytes.Clone(e.Value)})
		n++
	}
	return n
}

func (s *salvager) sortTombs() {
	slices.SortStableFunc(s.tombs, func(a, b foundTomb) int { return cmpUint(a.position, b.position) })
	s.tombs = slices.CompactFunc(s.tombs, func(a, b foundTomb) bool { return a.position == b.position })
}

func (s *salvager) tomb(position uint64) (foundTomb, bool) {
	i := sort.Search(len(s.tombs), func(i int) bool { return s.tombs[i].position >= position })
	if i < len(s.tombs) && s.tombs[i].position == position {
		return s.tombs[i], true
	}
	return foundTomb{}, false
}

// leafFrame is an entry of a leaf with the key of a frame.
type leafFrame struct {
	foundFrame
	index  int
	raw    []byte
	intact bool
	sure   bool // of its position
}

// addFrames adds the frames of a leaf whose position is certain, and returns
// how many entries were sound frames.
func (s *salvager) addFrames(l pagecheck.Leaf, from origin) (n int) {
	list := s.leafFrames[:0]
	add := func(key, value []byte, offset int64, index int) {
		it := leafFrame{index: index, raw: value}
		it.position = binary.BigEndian.Uint64(key)
		if _, err := decodeFrame(value); err == nil {
			it.intact = true
			it.size, it.crc = uint32(len(value)), crcOf(value)
			it.place = uint64(from)<<56 | uint64(offset)
			n++
		}
		list = append(list, it)
	}
	for _, e := range l.Entries {
		if len(e.Key) == 8 {
			add(e.Key, e.Value, e.Offset, e.Index)
		}
	}
	for _, g := range l.Gaps { // a frame says itself how long it is
		for i, rest, at := 0, g.Bytes, g.Offset; i < g.Count; i++ {
			raw := leadingFrame(rest)
			if raw == nil {
				break
			}
			add(rest[:8], raw, at+8, g.Index+i)
			rest, at = rest[8+len(raw):], at+8+int64(len(raw))
		}
	}
	slices.SortStableFunc(list, func(a, b leafFrame) int { return a.index - b.index })
	s.leafFrames = list
	if n == 0 && from != fromTree {
		return 0
	}
	if len(list) == 1 {
		list[0].sure = l.Sound
	} else {
		s.place(list)
	}
	for i := range list {
		switch it := &list[i]; {
		case !it.sure && it.intact && from == fromTree && l.Sound:
			s.alone = append(s.alone, it.foundFrame)
		case !it.sure:
			s.report.Unplaced++
		case it.intact:
			s.addFrame(it.foundFrame)
		case from == fromTree && len(s.broken) < maxSearched:
			f, ok := guessFrame(it.raw)
			s.broken = append(s.broken, brokenFrame{it.position, f, ok})
		}
	}
	return n
}

// leadingFrame returns the frame that follows the key at the start of b, if its
// length and its checksum say that there is one.
func leadingFrame(b []byte) []byte {
	if len(b) < 8+frameHead || string(b[8:8+len(frameMagic)]) != frameMagic {
		return nil
	}
	n := frameHead + int(binary.LittleEndian.Uint32(b[8+len(frameMagic):]))
	if n > maxFrame+frameHead || 8+n > len(b) {
		return nil
	}
	if _, err := decodeFrame(b[8 : 8+n]); err != nil {
		return nil
	}
	return b[8 : 8+n]
}

// addFrame keeps a frame of the tree. Of others it keeps what the tree has not.
func (s *salvager) addFrame(f foundFrame) {
	if f.origin() == fromTree {
		s.frames = append(s.frames, f)
		return
	}
	if _, gone := s.tomb(f.position); gone {
		return
	}
	for _, g := range s.at(f.position) {
		if g.same(f) {
			return
		}
		if g.origin() == fromTree {
			s.report.conflict(f.position, originNames[fromTree])
			return
		}
	}
	if f.origin() == fromCutOff && f.position >= s.end {
		s.doubt(fmt.Sprintf("a page of the tree has a frame at position %d, behind the end at %d", f.position, s.end))
	}
	s.other = append(s.other, f)
}

// at returns the frames of a position, as far as they are sorted in.
func (s *salvager) at(position uint64) []foundFrame {
	i := sort.Search(len(s.frames), func(i int) bool { return s.frames[i].position >= position })
	k := i
	for k < len(s.frames) && s.frames[k].position == position {
		k++
	}
	return s.frames[i:k]
}
