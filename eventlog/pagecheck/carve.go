package pagecheck

import (
	"context"
	"fmt"
	"io"
)

// Entry is a key and a value of a leaf page, and the place of the value: its
// bytes begin at Offset of the file. Index counts the page's elements, those
// that could not be relied on included.
type Entry struct {
	Key, Value []byte
	Offset     int64
	Index      int
}

// Leaf is a leaf page as far as its elements line up.
type Leaf struct {
	// Page is its id; it goes on over Pages-1 overflow pages.
	Page, Pages uint64
	// Sound: nothing is wrong with the page itself, and its keys keep to the
	// range that the branches above give to it. CarveLeaf knows no branches.
	Sound   bool
	Entries []Entry
	// Gaps are the data of elements that do not line up, or have flags: keys and
	// values as the page packs them. Whoever knows their form can tell them apart.
	Gaps []Gap
}

// Gap is the data of elements Index to Index+Count-1 of a page. Behind the last
// element of the page may be zeros that belong to none.
type Gap struct {
	Index, Count int
	Bytes        []byte
	Offset       int64 // of the bytes in the file
	Last         bool  // the page ends with it
}

// WalkLeaves is [Walk] by leaf pages. The leaf is valid until fn returns. A
// bucket that is stored in the leaf of the root bucket comes as a leaf that has
// the root bucket's page. Nested buckets are no entries: what lies there is a gap.
func WalkLeaves(ctx context.Context, r io.ReaderAt, size int64, bucket []byte, fn func(Leaf) error) ([]Problem, error) {
	in, err := open(ctx, r, size)
	if err != nil {
		return nil, err
	}
	if in.rep.PageSize == 0 {
		return in.probs.done(), fmt.Errorf("%w: no valid meta page", ErrDamaged)
	}
	in.wanted = bucket
	before := in.probs.total()
	if err := in.rootBucket(); err != nil {
		return in.probs.done(), err
	}
	rootSound := in.probs.total() == before
	err = fmt.Errorf("%w: %q", ErrNoBucket, bucket)
	for _, b := range in.rep.Buckets {
		if string(b.Name) != string(bucket) {
			continue
		}
		if b.Inline {
			w := in.wantedPage
			err = fn(Leaf{Page: w.page, Pages: 1, Sound: rootSound, Entries: w.table.entries(nil, w.base, 0), Gaps: w.table.gaps(w.base, 0)})
			break
		}
		var list []Entry
		t := &tree{height: unknownHeight, leaf: func(at ref, p page, t *table) error {
			base := int64(p.id * in.src.pageSize)
			list = t.entries(list[:0], base, 0)
			return fn(Leaf{Page: p.id, Pages: uint64(len(p.buf)) / in.src.pageSize, Sound: in.probs.total() == in.pageStart, Entries: list, Gaps: t.gaps(base, 0)})
		}}
		err = in.visit(t, b.top())
		break
	}
	return in.probs.done(), err
}

// entries lists the elements that can be relied on and have these flags. base
// is the place of the table's first byte in the file.
func (t *table) entries(list []Entry, base int64, flags uint32) []Entry {
	for i := range t.n {
		if e, ok := t.element(i); ok && e.flags == flags {
			list = append(list, Entry{Key: t.key(e), Value: t.value(e), Offset: base + int64(e.start+e.ksize), Index: i})
		}
	}
	return list
}

// gaps lists what lies between the elements that entries lists.
func (t *table) gaps(base int64, flags uint32) (gaps []Gap) {
	from := t.dataStart()
	for i := 0; i < t.n; {
		if e, ok := t.element(i); ok && e.flags == flags {
			from, i = e.end(), i+1
			continue
		}
		k, to := i+1, uint64(len(t.buf))
		for ; k < t.n; k++ {
			if e, ok := t.element(k); ok && e.flags == flags {
				to = e.start
				break
			}
		}
		if from < to && to <= uint64(len(t.buf)) {
			gaps = append(gaps, Gap{Index: i, Count: k - i, Bytes: t.buf[from:to], Offset: base + int64(from), Last: k == t.n})
		}
		i = k
	}
	return gaps
}

// overflowReads is how many times the size of the file a carver reads of
// overflow pages: what any page claims to be long may be claimed by each.
const overflowReads = 8

// Carver reads single pages of a file, whatever else is wrong with it. It is
// not for concurrent use.
type Carver struct {
	r        io.ReaderAt
	size     int64
	pageSize uint64
	buf      []byte
	list     []Entry
	budget   uint64 // bytes of overflow pages that may still be read
}

// NewCarver returns a carver for pages of pageSize bytes, of a file of size
// bytes. The page size has to be one of those that the package reads.
func NewCarver(r io.ReaderAt, size int64, pageSize int) (*Carver, error) {
	if pageSize < minPageSize || pageSize > maxPageSize || pageSize&(pageSize-1) != 0 {
		return nil, fmt.Errorf("page size is %d, want a power of two from %d to %d", pageSize, minPageSize, maxPageSize)
	}
	return &Carver{r: r, size: size, pageSize: uint64(pageSize), budget: overflowReads*uint64(max(size, 0)) + maxLeafBytes}, nil
}

// Pages is the number of whole pages in the file.
func (c *Carver) Pages() uint64 { return uint64(c.size) / c.pageSize }

// Leaf reads the page as a leaf, also if its header does not say so: whoever
// asks knows by other means what to expect of it and has to check what comes.
// ok is false for a page without an element that lines up. The leaf is valid
// until the next call. All calls together read overflow pages of at most eight
// times the size of the file; what is beyond counts as one page. The error is
// that of reading the file.
func (c *Carver) Leaf(id uint64) (leaf Leaf, ok bool, err error) {
	return c.leaf(id, 0)
}

// NoLeaf reports whether the page's header says that it is another page than a
// leaf, and where it stands.
func (c *Carver) NoLeaf(id uint64) bool {
	var buf [headerSize]byte
	if id >= c.Pages() || readFull(c.r, buf[:], int64(id*c.pageSize)) != nil {
		return false
	}
	h := decodeHeader(buf[:])
	return h.id == id && (h.flags == flagBranch || h.flags == flagFreelist)
}

// RootBucket reads the page as a leaf of the root bucket and returns the
// buckets in it. ok is false if it is no such page, whole and by its header.
// Root and Sequence of a bucket are what the page says, unchecked.
func (c *Carver) RootBucket(id uint64) (buckets []Bucket, ok bool, err error) {
	leaf, ok, err := c.leaf(id, elementBucket)
	if err != nil || !ok || !leaf.Sound {
		return nil, false, err
	}
	for _, e := range leaf.Entries {
		h, ok := decodeBucket(e.Value)
		if !ok {
			return nil, false, nil
		}
		buckets = append(buckets, Bucket{Name: append([]byte(nil), e.Key...), Root: h.root, Sequence: h.sequence, Inline: h.root == 0})
	}
	return buckets, true, nil
}

// leaf returns the elements with these flags.
func (c *Carver) leaf(id uint64, flags uint32) (leaf Leaf, ok bool, err error) {
	if id >= c.Pages() {
		return leaf, false, nil
	}
	ps := c.pageSize
	c.buf = resize(c.buf, ps)
	if err := readFull(c.r, c.buf, int64(id*ps)); err != nil {
		return leaf, false, err
	}
	h := decodeHeader(c.buf)
	t, problem := newTable(c.buf, h.count, true, false)
	if t.n == 0 {
		return leaf, false, nil
	}
	leaf = Leaf{Page: id, Pages: 1, Sound: problem == "" && h.id == id && h.flags == flagLeaf}
	// The table stands on the first page. Its last element that can be true says
	// how far the page goes.
	most := min(maxLeafBytes, (c.Pages()-id)*ps)
	for i := t.n - 1; i >= 0; i-- {
		if at := headerSize + elementSize*(i+1); uint64(at) > ps {
			continue
		}
		if e := t.raw(i); e.ksize > 0 && e.ksize <= maxKeySize && e.start >= t.dataStart() && e.end() <= most {
			leaf.Pages = (e.end() + ps - 1) / ps
			break
		}
	}
	if n := (leaf.Pages - 1) * ps; n > c.budget {
		leaf.Pages, leaf.Sound = 1, false
	} else {
		c.budget -= n
	}
	if leaf.Pages > 1 {
		c.buf = resize(c.buf, leaf.Pages*ps)
		if err := readFull(c.r, c.buf[ps:], int64((id+1)*ps)); err != nil {
			c.buf, leaf.Pages, leaf.Sound = c.buf[:ps], 1, false
		}
		t, _ = newTable(c.buf, uint16(t.n), true, false)
	}
	leaf.Sound = leaf.Sound && t.whole && leaf.Pages == uint64(h.overflow)+1
	base := int64(id * ps)
	c.list = t.entries(c.list[:0], base, flags)
	leaf.Sound = leaf.Sound && len(c.list) == t.n
	leaf.Gaps = t.gaps(base, flags)
	leaf.Entries = c.list
	return leaf, len(leaf.Entries)+len(leaf.Gaps) > 0, nil
}

// Survey is [InspectAll] and says of each page whether it is in use, free or
// neither.
func Survey(ctx context.Context, r io.ReaderAt, size int64) (Report, PageStates, error) {
	in, err := open(ctx, r, size)
	if err != nil {
		return Report{}, PageStates{}, err
	}
	var states PageStates
	if in.rep.PageSize > 0 {
		complete, err := in.run(true)
		if err != nil {
			return Report{}, PageStates{}, err
		}
		states = PageStates{free: in.free, limit: in.src.limit, freelist: complete}
	}
	in.rep.Problems = in.probs.done()
	for _, p := range in.rep.Problems {
		switch p.Kind {
		case KindFreelistDamaged, KindFreelistLivePage, KindMore:
			states.freelist = false
		}
	}
	return in.rep, states, nil
}

// PageStates are the states of a file's pages, from [Survey].
type PageStates struct {
	free     pageSet
	limit    uint64
	freelist bool
}

// FreelistSound reports whether the list of free pages was read in full and
// nothing is wrong with it. Else Free proves nothing.
func (s PageStates) FreelistSound() bool { return s.freelist }

// Free reports whether the page is in the list of free pages, or beyond the
// pages that the file uses.
func (s PageStates) Free(id uint64) bool { return id >= s.limit || s.free.has(id) }
