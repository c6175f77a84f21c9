package pagecheck

import "math/bits"

const (
	chunkWords = 64
	chunkPages = chunkWords * 64
)

// pageSet is a set of page ids below a limit. Memory is taken in chunks of 4096
// pages as they are touched, because a sparse file can claim any size.
type pageSet struct {
	chunks []*[chunkWords]uint64
}

func newPageSet(limit uint64) pageSet {
	return pageSet{chunks: make([]*[chunkWords]uint64, (limit+chunkPages-1)/chunkPages)}
}

// add reports false if the id was a member already. The id must be below the
// limit.
func (s pageSet) add(id uint64) bool {
	c := s.chunks[id/chunkPages]
	if c == nil {
		c = new([chunkWords]uint64)
		s.chunks[id/chunkPages] = c
	}
	w, bit := &c[id%chunkPages/64], uint64(1)<<(id%64)
	if *w&bit != 0 {
		return false
	}
	*w |= bit
	return true
}

func (s pageSet) has(id uint64) bool { return s.word(id)>>(id%64)&1 != 0 }

// word returns the 64 members around id as bits; ids beyond the limit are none.
func (s pageSet) word(id uint64) uint64 {
	i := id / chunkPages
	if i >= uint64(len(s.chunks)) || s.chunks[i] == nil {
		return 0
	}
	return s.chunks[i][id%chunkPages/64]
}

// last returns the highest member from low to high, both included.
func (s pageSet) last(low, high uint64) (uint64, bool) {
	for low <= high {
		if i := high / chunkPages; i >= uint64(len(s.chunks)) || s.chunks[i] == nil {
			if i == 0 {
				return 0, false
			}
			high = i*chunkPages - 1
			continue
		}
		if w := s.word(high) << (63 - high%64); w != 0 {
			id := high - uint64(bits.LeadingZeros64(w))
			return id, id >= low
		}
		if high < 64 {
			return 0, false
		}
		high = high/64*64 - 1
	}
	return 0, false
}
