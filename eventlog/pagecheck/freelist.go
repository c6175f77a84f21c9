package pagecheck

import "encoding/binary"

// freelist is where the ids of the free pages are.
type freelist struct {
	id     uint64
	ok     bool // the ids can be read
	stored bool
	body   uint64 // offset of the first id
	count  uint64
	room   uint64 // ids from body to the end of the page
}

// claimFreelist checks the head of the freelist and takes its pages, before any
// bucket can refer to them.
func (in *inspector) claimFreelist() freelist {
	f := freelist{id: in.src.freelist, body: headerSize}
	if f.id == freelistAbsent {
		return f
	}
	f.stored = true
	if !in.claim(top(f.id, "the freelist")) {
		return f
	}
	var buf [headerSize + 8]byte
	if err := in.src.read(buf[:], f.id, 0); err != nil {
		in.readFailed(f.id, err)
		return f
	}
	h := decodeHeader(buf[:])
	switch {
	case h.id != f.id:
		in.probs.add(f.id, KindIDMismatch, "page states id %d, want %d, the freelist", h.id, f.id)
		return f
	case h.flags != flagFreelist:
		in.probs.add(f.id, KindWrongType, "%s, want freelist", typeName(h.flags))
		return f
	}
	pages := uint64(h.overflow) + 1
	if rest := in.src.limit - f.id; pages > rest {
		kind := KindTruncated
		if pages > in.src.hwm-f.id {
			kind = KindOutOfRange
		}
		in.probs.add(f.id, kind, "the freelist spans %d pages, want at most %d", pages, rest)
		return f
	}
	for i := uint64(1); i < pages; i++ {
		in.live.add(f.id + i)
	}
	f.room = (pages*in.src.pageSize - headerSize) / 8
	f.count = uint64(h.count)
	if h.count == countInBody {
		f.count = binary.LittleEndian.Uint64(buf[headerSize:])
		f.body += 8
		f.room--
		if f.count < countInBody {
			in.probs.add(f.id, KindFreelistDamaged, "count in the body is %d, want %d or more", f.count, countInBody)
			return f
		}
	}
	if f.count > f.room {
		in.probs.add(f.id, KindFreelistDamaged, "count is %d, the page has room for %d", f.count, f.room)
		return f
	}
	in.rep.Free = f.count
	f.ok = true
	return f
}

// checkFreelist compares the ids with the pages in use; all buckets must have
// been walked. It reports whether the list is stored and was read in full.
func (in *inspector) checkFreelist(f freelist, all bool) (complete bool, err error) {
	if !f.ok {
		return false, nil
	}
	c := freeChecker{in: in, list: f.id, all: all, prev: firstDataPage - 1, owner: firstDataPage - 1}
	// One id more than the count is read: bbolt clears the page first, so one
	// that is not zero means that the count got smaller.
	want := min(f.count+1, f.room)
	buf := make([]byte, min(want*8, 64<<10))
	for done := uint64(0); done < want; {
		if err := in.ctx.Err(); err != nil {
			return false, err
		}
		n := min(want-done, uint64(len(buf))/8)
		if err := in.src.read(buf[:n*8], f.id, f.body+done*8); err != nil {
			in.readFailed(f.id, err)
			return false, nil
		}
		for i := range n {
			id := binary.LittleEndian.Uint64(buf[i*8:])
			if done+i < f.count {
				c.check(done+i, id)
			} else if id != 0 {
				in.probs.add(f.id, KindFreelistDamaged, "count is %d, but id %d follows", f.count, id)
			}
		}
		done += n
	}
	return true, nil
}

// freeChecker takes the ids of the freelist one after the other.
type freeChecker struct {
	in   *inspector
	list uint64
	all  bool

	prev uint64 // the id before

	// owner is the last page in use in front of prev, and ownerLast the last
	// page of it. Kept so that the whole list scans the pages once.
	owner, ownerLast uint64
}

func (c *freeChecker) check(i, id uint64) {
	in := c.in
	if id < firstDataPage || id >= in.src.hwm {
		in.probs.add(c.list, KindFreelistDamaged, "id %d is %d, want %d or more and below the high water mark %d",
			i, id, firstDataPage, in.src.hwm)
		return
	}
	if id >= in.src.limit {
		c.prev = id
		return // the file is truncated, which was reported
	}
	if in.live.has(id) {
		in.probs.add(id, KindFreelistLivePage, "id %d of the freelist is in use", i)
	}
	in.free.add(id)
	switch {
	case id == c.prev:
		in.probs.add(c.list, KindFreelistDamaged, "id %d is %d, as the one before", i, id)
		return
	case id < c.prev:
		in.probs.add(c.list, KindFreelistDamaged, "id %d is %d, want above %d", i, id, c.prev)
		return
	}
	if !c.all && !in.live.has(id) {
		c.checkOverflow(i, id)
	}
	c.prev = id
}

// checkOverflow finds a free page inside the overflow of a leaf. The leaf can only
// be the page in use next in front of it, so that one's head is read.
func (c *freeChecker) checkOverflow(i, id uint64) {
	in := c.in
	if owner, ok := in.live.last(c.prev, id-1); ok && owner > c.owner {
		c.owner, c.ownerLast = owner, owner
		if in.leaves.has(owner) {
			if last, ok := in.peekLeaf(owner); ok {
				c.ownerLast = last
			}
		}
	}
	if id <= c.ownerLast {
		in.probs.add(id, KindFreelistLivePage, "id %d of the freelist is overflow of leaf %d", i, c.owner)
	}
}
