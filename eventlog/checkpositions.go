package eventlog

import (
	"encoding/binary"
	"fmt"
)

// positionList keeps where a session's frames are in a few bytes each, so that
// a check of a long log stays small. Positions and first seqs only grow within
// a log that is sound; in one that is not they wrap, and come out as they were.
type positionList struct {
	last framePos
	b    []byte // varints: what each frame adds to the one before
}

func (l *positionList) add(p framePos) {
	l.b = binary.AppendUvarint(l.b, p.pos-l.last.pos)
	l.b = binary.AppendUvarint(l.b, p.first-l.last.first)
	l.last = p
}

// reader returns a function that gives the positions in order, and whether
// there is one.
func (l *positionList) reader() func() (framePos, bool) {
	rest, at := l.b, framePos{}
	return func() (framePos, bool) {
		if len(rest) == 0 {
			return framePos{}, false
		}
		for _, field := range []*uint64{&at.pos, &at.first} {
			v, n := binary.Uvarint(rest)
			*field += v
			rest = rest[n:]
		}
		return at, true
	}
}

// keepPositions takes over the positions that the fold gathered.
func (c *checker) keepPositions(e *entry) {
	l := c.positions[e.row.Session]
	if l == nil {
		l = new(positionList)
		c.positions[e.row.Session] = l
	}
	for _, p := range e.pending {
		l.add(p)
	}
	e.pending = e.pending[:0]
}

// comparePage is how many positions of the index are looked up at a time.
const comparePage = 4096

// comparePositions compares where the index says that a session's frames are
// with where the scan found them, and says what differs.
func (c *checker) comparePositions(got, want *entry) string {
	list := c.positions[want.row.Session]
	if list == nil { // of a session that a mark alone names
		list = new(positionList)
	}
	next := list.reader()
	differs, n := "", uint64(0)
	for seq := uint64(1); ; {
		page, err := c.s.st.frames(got, seq, comparePage)
		if err != nil {
			return fmt.Sprintf("the index has %d of %d frame positions: %v", n, got.row.Frames, err)
		}
		fresh := page
		if n > 0 && len(page) > 0 {
			fresh = page[1:] // the last one of the page before
		}
		for _, f := range fresh {
			p, ok := next()
			if ok && f != p && differs == "" {
				differs = fmt.Sprintf("frame %d is not where the index says, but at position %d with seq %d", n, p.pos, p.first)
			}
			n++
		}
		if len(fresh) == 0 || n > got.row.Frames {
			break
		}
		seq = fresh[len(fresh)-1].first
	}
	if n != got.row.Frames {
		return fmt.Sprintf("the index has %d of %d frame positions", n, got.row.Frames)
	}
	if p, ok := next(); ok && differs == "" {
		differs = fmt.Sprintf("frame %d is not where the index says, but at position %d with seq %d", n, p.pos, p.first)
	}
	return differs
}
