package pagecheck

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// maxNameBytes limits the memory of Report.Buckets, counting 64 bytes a bucket
// besides its name.
const maxNameBytes = 4 << 20

// Inspect checks everything that a wrong write could follow from: the meta
// pages, the freelist, all branch pages, and that no page in use is listed as
// free. The pages of the root bucket are read; of the other buckets only the
// branches and the last leaf are, and the leaves are known by their ids (see the
// package comment for the exceptions). It reads each of those pages once, and 32
// bytes for each run of free pages that follows a leaf. size is the size of the file in bytes.
//
// When nothing is wrong but pages are left over that cannot belong to the buckets
// it saw, Inspect goes on as [InspectAll]. Then a bucket lost pages, or there are
// nested buckets, which only the leaves name; do not count on nested buckets to
// be noticed, and call InspectAll on files that have some.
//
// Damage is in the report, not in the error, and an unreadable page counts as
// damage. An error means that the report says nothing: ctx was done, size is
// negative or beyond the page limit, or neither meta page could be read.
func Inspect(ctx context.Context, r io.ReaderAt, size int64) (Report, error) {
	return inspect(ctx, r, size, false)
}

// InspectAll is [Inspect] and reads every leaf too, including those of nested
// buckets: that the elements lie inside of their page, that the keys ascend
// and keep to the range their parents give, and that every page below the high
// water mark is either in use or free. It takes as long as reading the file.
func InspectAll(ctx context.Context, r io.ReaderAt, size int64) (Report, error) {
	return inspect(ctx, r, size, true)
}

func inspect(ctx context.Context, r io.ReaderAt, size int64, all bool) (Report, error) {
	in, err := open(ctx, r, size)
	if err != nil {
		return Report{}, err
	}
	if in.rep.PageSize > 0 {
		complete, err := in.run(all)
		if err != nil {
			return Report{}, err
		}
		if !all && complete && len(in.probs.list) == 0 && in.leftOver() {
			return inspect(ctx, r, size, true)
		}
	}
	in.rep.Problems = in.probs.done()
	return in.rep, nil
}

// inspector is the state of one call.
type inspector struct {
	ctx   context.Context
	src   source
	rep   Report
	probs problems

	live   pageSet // in use, with overflow where it was read
	leaves pageSet // first pages of leaves known by id
	peeked pageSet // leaves whose head was read
	free   pageSet // in the freelist

	leafBuf    []byte
	branchBufs [maxLevels][]byte
	tables     [maxLevels]table
	small      [headerSize + elementSize]byte

	pageStart uint64 // problems.total before the page in visit was read

	// Of the bucket with this name an inline page is kept.
	wanted     []byte
	wantedPage inlinePage
	nameBytes  int
}

// open reads the meta pages. Without a valid one the report's PageSize stays 0.
func open(ctx context.Context, r io.ReaderAt, size int64) (*inspector, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if size < 0 {
		return nil, fmt.Errorf("file size is %d, want 0 or more", size)
	}
	metas := readMetas(r, size)
	in := &inspector{ctx: ctx}
	for i, m := range metas {
		in.rep.Metas[i] = MetaState{Valid: m.reason == "", Reason: m.reason, Txid: m.meta.txid}
	}
	pick := chosen(metas)
	if pick < 0 {
		for _, m := range metas {
			if m.err != nil {
				return nil, fmt.Errorf("no meta page could be read: %w", m.err)
			}
		}
		in.probs.add(0, KindNoValidMeta, "page 0: %s; page 1: %s", metas[0].reason, metas[1].reason)
		return in, nil
	}
	m := metas[pick].meta
	in.rep.PageSize, in.rep.Pages, in.rep.Txid = int(m.pageSize), m.hwm, m.txid
	whole := uint64(size) / uint64(m.pageSize)
	in.src = source{
		r: r, pageSize: uint64(m.pageSize),
		hwm: m.hwm, limit: min(m.hwm, whole),
		root: m.root, freelist: m.freelist,
	}
	if in.src.limit > maxPages {
		return nil, fmt.Errorf("file has %d pages, want at most %d", in.src.limit, uint64(maxPages))
	}
	for i, m := range metas {
		switch {
		case m.reason != "":
			in.probs.add(uint64(i), KindOneMetaInvalid, "%s; using page %d of transaction %d", m.reason, pick, in.rep.Txid)
		case m.header.id != uint64(i):
			in.probs.add(uint64(i), KindIDMismatch, "page states id %d, want %d", m.header.id, i)
		case m.header.flags != flagMeta:
			in.probs.add(uint64(i), KindWrongType, "%s, want meta", typeName(m.header.flags))
		}
	}
	if m.hwm > whole {
		in.probs.add(whole, KindTruncated, "file has %d bytes, want %d pages of %d bytes", size, m.hwm, m.pageSize)
	}
	in.live = newPageSet(in.src.limit)
	for id := range min(firstDataPage, in.src.limit) {
		in.live.add(id)
	}
	return in, nil
}

// run reports whether every page is known to be in use, free or neither, so
// that pages may be missed.
func (in *inspector) run(all bool) (complete bool, err error) {
	list := in.claimFreelist()
	in.free = newPageSet(in.src.limit)
	if !all {
		in.leaves, in.peeked = newPageSet(in.src.limit), newPageSet(in.src.limit)
	}
	if err := in.rootBucket(); err != nil {
		return false, err
	}
	for _, b := range in.rep.Buckets {
		if b.Inline {
			continue
		}
		t := &tree{height: unknownHeight}
		if all {
			t.leaf = in.nestedBuckets
		} else {
			t.byID, t.height = true, in.height(b.Root)
		}
		if err := in.visit(t, b.top()); err != nil {
			return false, err
		}
	}
	complete, err = in.checkFreelist(list, all)
	if err == nil && all && complete {
		for from, to := range in.unknownRuns {
			in.probs.add(from, KindUnaccounted, "%d pages from %d are neither in use nor free", to-from, from)
		}
	}
	return complete, err
}

// rootBucket walks the root bucket and fills in Report.Buckets.
func (in *inspector) rootBucket() error {
	t := &tree{height: unknownHeight, leaf: in.collect}
	return in.visit(t, top(in.src.root, "the root bucket"))
}

// collect takes the buckets from a leaf of the root bucket.
func (in *inspector) collect(_ ref, p page, t *table) error {
	for i := range t.n {
		e, ok := t.element(i)
		if !ok {
			continue // reported with the page
		}
		name, value := t.key(e), t.value(e)
		if e.flags&elementBucket == 0 {
			in.probs.add(p.id, KindBucketDamaged, "element %d (%s) of the root bucket is not a bucket", i, hexKey(name))
			continue
		}
		h, inl, ok := in.bucket(p.id, name, value)
		if !ok {
			continue
		}
		if in.nameBytes += len(name) + 64; in.nameBytes > maxNameBytes {
			in.probs.add(p.id, KindTooLarge, "names of the buckets exceed %d bytes, the rest is not read", maxNameBytes)
			return nil
		}
		in.rep.Buckets = append(in.rep.Buckets, Bucket{
			Name: bytes.Clone(name), Root: h.root, Sequence: h.sequence, Inline: h.root == 0,
		})
		if h.root == 0 && in.wantedPage.page == 0 && bytes.Equal(name, in.wanted) {
			in.wantedPage = inlinePage{page: p.id, table: inl, base: int64(p.id*in.src.pageSize + e.start + e.ksize + bucketHeaderSize)}
			in.wantedPage.table.buf = bytes.Clone(inl.buf)
		}
	}
	return nil
}

// inlinePage is a bucket's page inside of a leaf.
type inlinePage struct {
	page  uint64
	table table
	base  int64 // of the table in the file
}

// bucket checks a bucket's value, and for an inline bucket its page, which it
// returns.
func (in *inspector) bucket(id uint64, name, value []byte) (bucketHeader, table, bool) {
	h, ok := decodeBucket(value)
	switch {
	case !ok:
		in.probs.add(id, KindBucketDamaged, "bucket %s has %d bytes and root %d, want %d bytes or an inline page with root 0",
			hexKey(name), len(value), h.root, bucketHeaderSize)
		return h, table{}, false
	case h.root != 0:
		return h, table{}, true
	}
	buf := value[bucketHeaderSize:]
	head := decodeHeader(buf)
	if head.flags != flagLeaf || head.id != 0 || head.overflow != 0 {
		in.probs.add(id, KindBucketDamaged, "inline page of bucket %s is %s with id %d and overflow %d, want leaf, 0 and 0",
			hexKey(name), typeName(head.flags), head.id, head.overflow)
		return h, table{}, false
	}
	t, problem := newTable(buf, head.count, true, true)
	if problem != "" {
		in.probs.add(id, KindCountMismatch, "inline bucket %s: %s", hexKey(name), problem)
	}
	in.checkElements(id, &t, keyRange{}, true)
	if t.n == 0 && len(buf) != headerSize {
		in.probs.add(id, KindSizeMismatch, "empty inline bucket %s has %d bytes, want %d", hexKey(name), len(buf), headerSize)
	}
	return h, t, true
}

// nestedBuckets walks the buckets that a leaf names.
func (in *inspector) nestedBuckets(at ref, p page, t *table) error {
	// The leaf's buffer is gone once the first of them is walked.
	var roots []uint64
	for i := range t.n {
		e, ok := t.element(i)
		if !ok || e.flags&elementBucket == 0 {
			continue
		}
		if h, _, ok := in.bucket(p.id, t.key(e), t.value(e)); ok && h.root != 0 {
			roots = append(roots, h.root)
		}
	}
	for _, root := range roots {
		t := &tree{height: unknownHeight, leaf: in.nestedBuckets}
		nested := top(root, fmt.Sprintf("a nested bucket in page %d", p.id))
		nested.level = at.level + 1
		if err := in.visit(t, nested); err != nil {
			return err
		}
	}
	return nil
}

// unknownRuns yields the runs of pages from one up to another that are neither
// in use nor free, as far as is known.
func (in *inspector) unknownRuns(yield func(from, to uint64) bool) {
	var from uint64 // 0: no run
	for id := uint64(0); id < in.src.limit; id += 64 {
		known := in.live.word(id) | in.free.word(id)
		if known == ^uint64(0) && from == 0 {
			continue
		}
		for i := id; i < min(id+64, in.src.limit); i++ {
			switch unknown := known>>(i%64)&1 == 0; {
			case unknown && from == 0:
				from = i
			case !unknown && from != 0:
				if !yield(from, i) {
					return
				}
				from = 0
			}
		}
	}
	if from != 0 {
		yield(from, in.src.limit)
	}
}

// leftOver reports whether some unknown pages cannot be the overflow of a leaf
// in front of them. A leaf's head is read only if the run behind it is longer than
// all before, so that a file of many leaves with overflow takes a few reads.
func (in *inspector) leftOver() bool {
	var longest uint64
	for from, to := range in.unknownRuns {
		if !in.leaves.has(from - 1) {
			return true
		}
		if to-from <= longest {
			continue
		}
		if last, ok := in.peekLeaf(from - 1); !ok || last != to-1 {
			return true
		}
		longest = to - from
	}
	return false
}
