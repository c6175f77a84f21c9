package pagecheck

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// element is an entry of a page's element table. Offsets count from the page's
// header and may point anywhere until the element was accepted.
type element struct {
	start, ksize, vsize uint64
	flags               uint32 // leaf
	child               uint64 // branch
}

func (e element) end() uint64 { return e.start + e.ksize + e.vsize }

// table reads the elements of a branch page, a leaf page or an inline page.
type table struct {
	buf   []byte // from the page header to the end of the last overflow page
	leaf  bool
	exact bool // inline: the data ends where buf ends
	n     int
	// whole: every element lines up, so none needs a look at its neighbours.
	whole bool
}

// newTable settles the number of elements. The page states it twice, as its count
// and by where the data of the first element starts; when they differ, the
// elements that follow tell which one is damaged. The problem is empty if it is
// not the count.
func newTable(buf []byte, count uint16, leaf, exact bool) (t table, problem string) {
	t = table{buf: buf, leaf: leaf, exact: exact, n: int(count)}
	room := (len(buf) - headerSize) / elementSize
	implied, ok := t.implied(room)
	switch {
	case ok && implied == t.n:
	case ok && t.believes(implied, room):
		problem = fmt.Sprintf("count is %d, the data starts behind %d elements", t.n, implied)
		t.n = implied
	case t.n > room:
		problem = fmt.Sprintf("count is %d, the page has room for %d elements", t.n, room)
		t.n = room
	}
	t.whole = t.linesUp()
	return t, problem
}

func (t *table) linesUp() bool {
	at := t.dataStart()
	for i := range t.n {
		e := t.raw(i)
		if e.start != at || e.ksize == 0 || e.ksize > maxKeySize {
			return false
		}
		at = e.end()
	}
	return at == uint64(len(t.buf)) || at < uint64(len(t.buf)) && !t.exact
}

// implied is the count according to the first element.
func (t *table) implied(room int) (int, bool) {
	if room == 0 || allZero(t.buf[headerSize:headerSize+elementSize]) {
		return 0, true
	}
	table := t.raw(0).start - headerSize
	n := table / elementSize
	return int(n), table%elementSize == 0 && n >= 1 && n <= uint64(min(room, 0xFFFE))
}

// believes decides between the stated count and another one.
func (t *table) believes(implied, room int) bool {
	if t.n >= 2 && t.n <= room {
		first, second := t.raw(0), t.raw(1)
		if second.start == t.dataStart()+first.ksize+first.vsize {
			return false // the second element agrees with the count
		}
		if implied == 0 && second.ksize != 0 {
			return false // there are elements, only the first one is gone
		}
	}
	return implied < 2 || t.raw(1).start == t.raw(0).end()
}

func (t *table) dataStart() uint64 { return headerSize + elementSize*uint64(t.n) }

// raw decodes element i without any check.
func (t *table) raw(i int) element {
	at := headerSize + elementSize*i
	return decodeElement(t.buf[at:at+elementSize], uint64(at), t.leaf)
}

// decodeElement reads a table entry that is at offset at of its page.
func decodeElement(b []byte, at uint64, leaf bool) element {
	if !leaf {
		return element{
			start: at + uint64(binary.LittleEndian.Uint32(b[0:])),
			ksize: uint64(binary.LittleEndian.Uint32(b[4:])),
			child: binary.LittleEndian.Uint64(b[8:]),
		}
	}
	return element{
		flags: binary.LittleEndian.Uint32(b[0:]),
		start: at + uint64(binary.LittleEndian.Uint32(b[4:])),
		ksize: uint64(binary.LittleEndian.Uint32(b[8:])),
		vsize: uint64(binary.LittleEndian.Uint32(b[12:])),
	}
}

// broken reports whether element i does not start where the one before it ends.
// Element 0 has to start behind the table, and "element n" is the end of an
// inline page; the end of other pages is not stated to the byte.
func (t *table) broken(i int) bool {
	start := uint64(len(t.buf))
	if i < t.n {
		start = t.raw(i).start
	} else if !t.exact {
		return false
	}
	if i == 0 {
		return start != t.dataStart()
	}
	return start != t.raw(i-1).end()
}

// element returns element i and whether it can be relied on. A damaged pos breaks
// the line on both sides of an element, a damaged size breaks it behind the
// element only; the neighbours are kept in both cases. When only the line in
// front of the last element is broken it could be either, and both go.
func (t *table) element(i int) (element, bool) {
	e := t.raw(i)
	if t.whole {
		return e, true
	}
	if e.ksize == 0 || e.ksize > maxKeySize || e.start < t.dataStart() || e.end() > uint64(len(t.buf)) {
		return e, false
	}
	before, behind := t.broken(i), t.broken(i+1)
	if i == t.n-1 && before {
		return e, false
	}
	if behind {
		return e, !before && i+1 < t.n && t.broken(i+2)
	}
	return e, true
}

// key and value need an accepted element.
func (t *table) key(e element) []byte { return t.buf[e.start : e.start+e.ksize : e.start+e.ksize] }
func (t *table) value(e element) []byte {
	return t.buf[e.start+e.ksize : e.end() : e.end()]
}

// keyRange is the range of keys that the branches above leave for a page: from
// lower, up to but without upper. Nil is open.
type keyRange struct{ lower, upper []byte }

func (k keyRange) String() string {
	switch {
	case k.lower == nil && k.upper == nil:
		return "all keys"
	case k.lower == nil:
		return fmt.Sprintf("keys below %s", hexKey(k.upper))
	case k.upper == nil:
		return fmt.Sprintf("keys from %s", hexKey(k.lower))
	}
	return fmt.Sprintf("keys from %s to below %s", hexKey(k.lower), hexKey(k.upper))
}

func hexKey(k []byte) string {
	const shown = 24
	if len(k) > shown {
		return fmt.Sprintf("%x... (%d bytes)", k[:shown], len(k))
	}
	return fmt.Sprintf("%x", k)
}

// checkElements adds at most one problem of a kind for a page. With plain set
// no element may be a bucket.
func (in *inspector) checkElements(id uint64, t *table, keys keyRange, plain bool) {
	var (
		damaged, disorder int
		why, where        string
		prev              []byte
	)
	for i := range t.n {
		e, ok := t.element(i)
		if !ok {
			if damaged++; why == "" {
				why = t.complaint(i)
			}
			continue
		}
		if t.leaf && (e.flags&^elementBucket != 0 || plain && e.flags != 0) {
			if damaged++; why == "" {
				why = fmt.Sprintf("element %d has flags %#x", i, e.flags)
			}
		}
		key := t.key(e)
		switch {
		case prev != nil && bytes.Compare(key, prev) <= 0:
			if disorder++; where == "" {
				where = fmt.Sprintf("key %d is %s, want above %s", i, hexKey(key), hexKey(prev))
			}
		case prev == nil && keys.lower != nil && bytes.Compare(key, keys.lower) < 0:
			if disorder++; where == "" {
				where = fmt.Sprintf("key %d is %s, want %v", i, hexKey(key), keys)
			}
		}
		prev = key
	}
	if prev != nil && keys.upper != nil && bytes.Compare(prev, keys.upper) >= 0 {
		if disorder++; where == "" {
			where = fmt.Sprintf("last key is %s, want %v", hexKey(prev), keys)
		}
	}
	if damaged > 0 {
		in.probs.add(id, KindElementDamaged, "%d of %d elements: %s", damaged, t.n, why)
	}
	if disorder > 0 {
		in.probs.add(id, KindKeysOutOfOrder, "%d of %d keys: %s", disorder, t.n, where)
	}
}

// complaint says why an element was not accepted.
func (t *table) complaint(i int) string {
	e := t.raw(i)
	switch {
	case e.ksize == 0 || e.ksize > maxKeySize:
		return fmt.Sprintf("element %d has a key of %d bytes, want 1 to %d", i, e.ksize, maxKeySize)
	case e.start < t.dataStart() || e.end() > uint64(len(t.buf)):
		return fmt.Sprintf("element %d is at bytes %d to %d, want inside %d to %d", i, e.start, e.end(), t.dataStart(), len(t.buf))
	}
	return fmt.Sprintf("element %d at bytes %d to %d does not line up with its neighbours", i, e.start, e.end())
}

// checkSize compares the end of the last element with the overflow. Bytes behind
// it are zero, because bbolt writes from cleared buffers; so a last element that
// lost some bytes shows.
func (in *inspector) checkSize(p page, t *table) {
	if p.clipped {
		return
	}
	used := uint64(headerSize)
	if t.n > 0 {
		e, ok := t.element(t.n - 1)
		if !ok {
			return
		}
		used = e.end()
	}
	want := (used + in.src.pageSize - 1) / in.src.pageSize
	switch got := uint64(p.overflow) + 1; {
	case got != want:
		in.probs.add(p.id, KindSizeMismatch, "the page spans %d pages, its elements need %d", got, want)
	case !allZero(p.buf[used:]):
		in.probs.add(p.id, KindSizeMismatch, "non-zero bytes behind the last element at byte %d", used)
	}
}

func allZero(b []byte) bool {
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
