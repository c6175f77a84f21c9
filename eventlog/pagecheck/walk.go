package pagecheck

import (
	"context"
	"fmt"
	"io"
)

// Walk calls fn with every key and value of a top-level bucket that can still be
// read, and returns what is wrong with the pages on the way. For a bucket without
// damage that is what a bbolt cursor gives, in the same order; a nested bucket
// comes as its name and a nil value.
//
// A page that cannot be read, that is of a wrong type or that states another id
// is left out with all that is below it; the problem names the range of keys. A
// page with a damaged count or element is used as far as its elements line up. Keys
// out of order are reported and handed out, so with damage fn may see keys in any
// order, and keys and values with flipped bits. Pages are handed out once each. The
// freelist is not looked at.
//
// page is the leaf that holds the pair, and for an inline bucket the leaf of the
// root bucket. key and value are valid until fn returns, and must not be
// changed. An error of fn ends the walk and is returned as it is.
//
// The problems are returned along with any error. Other errors are those of
// [Inspect], ErrDamaged if no meta page is valid, and ErrNoBucket.
func Walk(ctx context.Context, r io.ReaderAt, size int64, bucket []byte, fn func(page uint64, key, value []byte) error) ([]Problem, error) {
	in, err := open(ctx, r, size)
	if err != nil {
		return nil, err
	}
	if in.rep.PageSize == 0 {
		return in.probs.done(), fmt.Errorf("%w: no valid meta page", ErrDamaged)
	}
	in.wanted = bucket
	if err := in.rootBucket(); err != nil {
		return in.probs.done(), err
	}
	err = in.walkBucket(bucket, fn)
	return in.probs.done(), err
}

func (in *inspector) walkBucket(name []byte, fn func(page uint64, key, value []byte) error) error {
	for _, b := range in.rep.Buckets {
		if string(b.Name) != string(name) {
			continue
		}
		if b.Inline {
			return in.handOut(in.wantedPage.page, &in.wantedPage.table, fn)
		}
		t := &tree{height: unknownHeight, leaf: func(_ ref, p page, t *table) error {
			return in.handOut(p.id, t, fn)
		}}
		return in.visit(t, b.top())
	}
	return fmt.Errorf("%w: %q", ErrNoBucket, name)
}

// handOut passes on a leaf's elements that can be relied on.
func (in *inspector) handOut(id uint64, t *table, fn func(page uint64, key, value []byte) error) error {
	for i := range t.n {
		e, ok := t.element(i)
		if !ok {
			continue // reported with the page
		}
		key, value := t.key(e), t.value(e)
		if e.flags&elementBucket != 0 {
			// A flipped flag makes a bucket of a value, which bbolt then hides.
			if _, _, ok := in.bucket(id, key, value); ok {
				value = nil
			}
		}
		if err := fn(id, key, value); err != nil {
			return err
		}
	}
	return nil
}
