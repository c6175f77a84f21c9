package pagecheck

import (
	"errors"
	"io"
)

// page is a branch or leaf page with its overflow. A leaf's buffer is valid until
// the next load, a branch's until the next load at the same level.
type page struct {
	id uint64
	header
	buf []byte
	// clipped: buf is shorter than the header says, which was reported.
	clipped bool
}

func resize(b []byte, n uint64) []byte {
	if uint64(cap(b)) >= n {
		return b[:n]
	}
	grown := make([]byte, n)
	copy(grown, b)
	return grown
}

// claim takes a page for the place that refers to it. It reports false, with
// the problem added, if the page does not exist or is taken.
func (in *inspector) claim(at ref) bool {
	switch {
	case at.id < firstDataPage || at.id >= in.src.hwm:
		in.probs.add(at.id, KindOutOfRange, "named by %v, want %d or more and below the high water mark %d",
			at, firstDataPage, in.src.hwm)
	case at.id >= in.src.limit:
		in.probs.add(at.id, KindTruncated, "named by %v, the file ends at page %d", at, in.src.limit)
	case !in.live.add(at.id):
		in.probs.add(at.id, KindReferencedTwice, "named by %v, but in use elsewhere", at)
	default:
		return true
	}
	return false
}

func (in *inspector) readFailed(id uint64, err error) {
	kind := KindUnreadable
	if errors.Is(err, io.ErrUnexpectedEOF) {
		kind = KindTruncated
	}
	in.probs.add(id, kind, "%v", err)
}

// load reads a claimed page and claims its overflow. It reports false, with the
// problem added, for a page that is not a branch or leaf of that id: its content
// may be from another place or time.
func (in *inspector) load(at ref) (page, bool) {
	ps := in.src.pageSize
	in.leafBuf = resize(in.leafBuf, ps)
	if err := in.src.read(in.leafBuf, at.id, 0); err != nil {
		in.readFailed(at.id, err)
		return page{}, false
	}
	p := page{id: at.id, header: decodeHeader(in.leafBuf)}
	switch {
	case p.header.id != at.id:
		in.probs.add(at.id, KindIDMismatch, "page states id %d, want %d, named by %v", p.header.id, at.id, at)
		return page{}, false
	case p.flags != flagBranch && p.flags != flagLeaf:
		in.probs.add(at.id, KindWrongType, "%s, want branch or leaf, named by %v", typeName(p.flags), at)
		return page{}, false
	}

	pages := in.extent(&p, in.leafBuf)
	in.leafBuf = resize(in.leafBuf, pages*ps)
	if pages > 1 {
		if err := in.src.read(in.leafBuf[ps:], at.id, ps); err != nil {
			in.readFailed(at.id, err)
			p.clipped, pages = true, 1
		}
	}
	p.buf = in.leafBuf[:pages*ps]
	if p.flags == flagBranch {
		// The page is needed until its last child is done, while the leaf
		// buffer is reused by each of them.
		in.branchBufs[at.level] = append(in.branchBufs[at.level][:0], p.buf...)
		p.buf = in.branchBufs[at.level]
	}
	return p, true
}

// extent is the number of pages to read for p, of which head is the first. It
// claims the overflow pages. An overflow that is too large must not take the pages
// behind it away from their owners, so the end of the last element counts where
// it says less.
func (in *inspector) extent(p *page, head []byte) uint64 {
	ps := in.src.pageSize
	pages := uint64(p.overflow) + 1
	clip := func(to uint64) { pages, p.clipped = to, true }

	if used, ok := in.usedPages(*p, head); ok && used < pages {
		in.probs.add(p.id, KindSizeMismatch, "the page spans %d pages, its elements need %d", pages, used)
		clip(used)
	}
	if rest := in.src.limit - p.id; pages > rest {
		if pages > in.src.hwm-p.id {
			in.probs.add(p.id, KindOutOfRange, "the page spans %d pages, want at most %d up to the high water mark",
				pages, in.src.hwm-p.id)
		} else {
			in.probs.add(p.id, KindTruncated, "the page spans %d pages, the file has %d of them", pages, rest)
		}
		clip(rest)
	}
	largest := uint64(maxLeafBytes)
	if p.flags == flagBranch {
		largest = ps + maxBranchOver
	}
	if pages*ps > largest {
		in.probs.add(p.id, KindTooLarge, "%s page of %d bytes, want at most %d", typeName(p.flags), pages*ps, largest)
		clip(1)
	}
	for i := uint64(1); i < pages; i++ {
		if !in.live.add(p.id + i) {
			in.probs.add(p.id+i, KindReferencedTwice, "overflow of page %d, but in use elsewhere", p.id)
			clip(i)
		}
	}
	return pages
}

// usedPages is how many pages the elements need, from the last one's end. It
// reports false if there is no overflow to check or the count is in doubt.
func (in *inspector) usedPages(p page, head []byte) (uint64, bool) {
	if p.overflow == 0 {
		return 0, false
	}
	if p.count == 0 {
		return 1, allZero(head[headerSize : headerSize+elementSize])
	}
	leaf := p.flags == flagLeaf
	dataStart := headerSize + elementSize*uint64(p.count)
	// bbolt splits a page before its table outgrows the first page.
	if dataStart > uint64(len(head)) || decodeElement(head[headerSize:], headerSize, leaf).start != dataStart {
		return 0, false
	}
	last := dataStart - elementSize
	ps := in.src.pageSize
	return (decodeElement(head[last:], last, leaf).end() + ps - 1) / ps, true
}

// peekLeaf reads the head of a leaf that is known by its id only, and returns
// its last page. It adds a problem once for each page.
func (in *inspector) peekLeaf(id uint64) (last uint64, ok bool) {
	first := in.peeked.add(id)
	report := func(kind Kind, format string, args ...any) (uint64, bool) {
		if first {
			in.probs.add(id, kind, format, args...)
		}
		return 0, false
	}
	buf := in.small[:]
	if err := in.src.read(buf, id, 0); err != nil {
		if first {
			in.readFailed(id, err)
		}
		return 0, false
	}
	h := decodeHeader(buf)
	last = id + uint64(h.overflow)
	switch {
	case h.id != id:
		return report(KindIDMismatch, "page states id %d, want %d", h.id, id)
	case h.flags != flagLeaf:
		return report(KindWrongType, "%s, want leaf", typeName(h.flags))
	case last >= in.src.hwm:
		return report(KindOutOfRange, "the page spans pages to %d, the high water mark is %d", last, in.src.hwm)
	}
	got, want := uint64(headerSize), headerSize+elementSize*uint64(h.count)
	if entry := buf[headerSize:]; h.count > 0 || !allZero(entry) {
		got = decodeElement(entry, headerSize, true).start
	}
	if got != want {
		report(KindCountMismatch, "the data starts at byte %d, want %d behind %d elements", got, want, h.count)
	}
	return last, true
}
