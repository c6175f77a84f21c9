package eventlog

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// place decides at which positions the entries of a leaf stand. Keys have no
// checksum, but the journal holds positions one after the other, so a key that
// follows on the one before it, or is followed by the next, is right; between
// them lie at most positions that have tombstones. Between two right keys with
// room for just as many as stand between them, those are known as well.
func (s *salvager) place(list []leafFrame) {
	follows := func(i int) bool { // entry i on the one before
		low, high := list[i-1].position, list[i].position
		for skip := list[i].index - list[i-1].index - 1; low+1 < high; low++ {
			if _, ok := s.tomb(low + 1); !ok {
				if skip--; skip < 0 {
					return false
				}
			}
		}
		return low+1 == high
	}
	for i := 1; i < len(list); i++ {
		if follows(i) {
			list[i-1].sure, list[i].sure = true, true
		}
	}
	last := -1 // the sure entry before
	for i := range list {
		if !list[i].sure {
			continue
		}
		if last >= 0 && i > last+1 && list[i].position-list[last].position == uint64(list[i].index-list[last].index) {
			for k := last + 1; k < i; k++ {
				list[k].position, list[k].sure = list[last].position+uint64(list[k].index-list[last].index), true
			}
		}
		last = i
	}
}

// placeAlone adds the frames of the tree that follow on no other of their page
// but on one of the next page: at a hole that is older than the damage.
func (s *salvager) placeAlone() {
	for _, f := range s.alone {
		if f.position > 0 && len(s.at(f.position-1)) > 0 || len(s.at(f.position+1)) > 0 {
			s.other = append(s.other, f)
		} else {
			s.report.Unplaced++
		}
	}
	s.alone = nil
	s.sortFrames()
}

// sortFrames puts the frames in order. Different ones of one rank for one
// position prove nothing: they go to those that the chain has to prove.
func (s *salvager) sortFrames() {
	s.frames = append(s.frames, s.other...)
	s.other = nil
	slices.SortStableFunc(s.frames, func(a, b foundFrame) int {
		if c := cmpUint(a.position, b.position); c != 0 {
			return c
		}
		return int(a.origin()) - int(b.origin())
	})
	kept := s.frames[:0]
	for i := 0; i < len(s.frames); {
		k := i + 1
		for k < len(s.frames) && s.frames[k].position == s.frames[i].position {
			k++
		}
		group, f := s.frames[i:k], s.frames[i]
		i = k
		if _, gone := s.tomb(f.position); gone {
			continue
		}
		alone := f.origin() != fromStale || s.report.Base == BaseNone
		for _, g := range group[1:] {
			if g.origin() == f.origin() && !g.same(f) {
				alone = false
			}
		}
		if f.origin() != fromStale && slices.ContainsFunc(group, func(g foundFrame) bool { return !g.same(f) }) {
			taken := "none"
			if alone {
				taken = originNames[f.origin()]
			}
			s.report.conflict(f.position, taken)
		}
		if alone && f.position < s.end {
			kept = append(kept, f)
			continue
		}
		s.stale = append(s.stale, group...)
	}
	s.frames = slices.Clip(kept)
}

// findEnd decides where the journal ends. Its sequence, which every commit
// sets, says so without a checksum; the last key says it a second time.
func (s *salvager) findEnd() {
	top := uint64(0)
	if n := len(s.frames); n > 0 {
		top = s.frames[n-1].position + 1
	}
	if n := len(s.tombs); n > 0 {
		top = max(top, s.tombs[n-1].position+1)
	}
	for _, b := range s.broken {
		top = max(top, b.position+1)
	}
	switch most := s.pages.Pages * uint64(s.report.PageSize) / minPositionBytes; {
	case s.report.Base == BaseNone:
		s.end = uint64(s.size) / minPositionBytes // until the pages were read
	case s.sequence >= top && s.sequence <= max(top, most):
		s.end = s.sequence
	case len(s.pages.Problems) == 0:
		// Every page is accounted for, so no leaf is missing: the number is damaged.
		s.end = top
		s.report.Problems = append(s.report.Problems, fmt.Sprintf("the journal's sequence says %d, its last position is %d", s.sequence, top))
	default:
		s.end = top
		s.doubt(fmt.Sprintf("the journal ends at position %d, its sequence says %d", top, s.sequence))
	}
}

// minPositionBytes is what a position takes in the file at least, be it a frame
// or a tombstone: a journal can't be longer than the file has room for.
const minPositionBytes = 32

func crcOf(frame []byte) uint32 { return binary.LittleEndian.Uint32(frame[len(frame)-4:]) }

func cmpUint(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
