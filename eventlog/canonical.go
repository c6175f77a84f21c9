package eventlog

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// Facts are msgpack in one canonical form, so that equal facts have equal
// bytes and hashes: map keys are strings in strictly ascending byte order,
// every length and integer is in its shortest form, and there are no floats,
// no integers beyond 2^53, no strings over 4 KiB, no extension types and no
// trailing bytes. This file reads that form and refuses every other; facts.go
// writes it.

type factKind uint8

const (
	kindNil factKind = iota
	kindBool
	kindInt
	kindString
	kindBytes
	kindList
	kindMap
)

var factKindNames = [...]string{"null", "bool", "integer", "string", "bytes", "list", "map"}

func (k factKind) String() string { return factKindNames[k] }

// item is one token. For lists and maps n is the number of elements or pairs
// that follow; for strings and bytes raw is the payload.
type item struct {
	kind factKind
	neg  bool
	n    uint64 // bool, magnitude of an int, or a length
	raw  []byte
}

// factReader walks canonical msgpack without allocating.
type factReader struct {
	b   []byte
	off int
}

func (r *factReader) fail(format string, args ...any) error {
	return fmt.Errorf("%w: facts: byte %d: %s", ErrInvalid, r.off, fmt.Sprintf(format, args...))
}

// uint reads size big-endian bytes and refuses a value below min, which would
// have had a shorter form.
func (r *factReader) uint(size int, min uint64) (uint64, error) {
	if len(r.b)-r.off < size {
		return 0, r.fail("truncated: want %d more bytes, got %d", size, len(r.b)-r.off)
	}
	var v uint64
	for _, c := range r.b[r.off : r.off+size] {
		v = v<<8 | uint64(c)
	}
	r.off += size
	if v < min {
		return 0, r.fail("overlong: %d fits a shorter form", v)
	}
	return v, nil
}

func (r *factReader) payload(kind factKind, size int, min uint64) (item, error) {
	n := min
	if size > 0 {
		var err error
		if n, err = r.uint(size, min); err != nil {
			return item{}, err
		}
	}
	if uint64(len(r.b)-r.off) < n {
		return item{}, r.fail("truncated: want %d more bytes, got %d", n, len(r.b)-r.off)
	}
	it := item{kind: kind, n: n, raw: r.b[r.off : r.off+int(n)]}
	r.off += int(n)
	if kind == kindString && n > maxFactString {
		return item{}, r.fail("string of %d bytes: longer than %d is content", n, maxFactString)
	}
	if kind == kindString && !utf8.Valid(it.raw) {
		return item{}, r.fail("string is not valid UTF-8")
	}
	return it, nil
}

func (r *factReader) next() (item, error) {
	if r.off >= len(r.b) {
		return item{}, r.fail("truncated: want a value, got the end")
	}
	c := r.b[r.off]
	r.off++
	sized := func(kind factKind, size int, min uint64) (item, error) {
		n, err := r.uint(size, min)
		if err == nil && n > maxInteger {
			err = r.fail("integer %d is beyond 2^53", n)
		}
		return item{kind: kind, n: n}, err
	}
	negative := func(size int, limit int64) (item, error) {
		u, err := r.uint(size, 0)
		if err != nil {
			return item{}, err
		}
		shift := 64 - 8*size
		v := int64(u<<shift) >> shift
		if v >= limit {
			return item{}, r.fail("overlong: %d fits a shorter form", v)
		}
		if v < -maxInteger {
			return item{}, r.fail("integer %d is beyond 2^53", v)
		}
		return item{kind: kindInt, neg: true, n: uint64(-v)}, nil
	}
	switch {
	case c <= 0x7f:
		return item{kind: kindInt, n: uint64(c)}, nil
	case c <= 0x8f:
		return item{kind: kindMap, n: uint64(c & 0x0f)}, nil
	case c <= 0x9f:
		return item{kind: kindList, n: uint64(c & 0x0f)}, nil
	case c <= 0xbf:
		return r.payload(kindString, 0, uint64(c&0x1f))
	case c >= 0xe0:
		return item{kind: kindInt, neg: true, n: uint64(-int64(int8(c)))}, nil
	}
	switch c {
	case 0xc0:
		return item{kind: kindNil}, nil
	case 0xc2, 0xc3:
		return item{kind: kindBool, n: uint64(c - 0xc2)}, nil
	case 0xc4:
		return r.payload(kindBytes, 1, 0)
	case 0xc5:
		return r.payload(kindBytes, 2, 1<<8)
	case 0xc6:
		return r.payload(kindBytes, 4, 1<<16)
	case 0xcc:
		return sized(kindInt, 1, 1<<7)
	case 0xcd:
		return sized(kindInt, 2, 1<<8)
	case 0xce:
		return sized(kindInt, 4, 1<<16)
	case 0xcf:
		return sized(kindInt, 8, 1<<32)
	case 0xd0:
		return negative(1, -32)
	case 0xd1:
		return negative(2, math.MinInt8)
	case 0xd2:
		return negative(4, math.MinInt16)
	case 0xd3:
		return negative(8, math.MinInt32)
	case 0xd9:
		return r.payload(kindString, 1, 1<<5)
	case 0xda:
		return r.payload(kindString, 2, 1<<8)
	case 0xdb:
		return r.payload(kindString, 4, 1<<16)
	case 0xdc:
		return sized(kindList, 2, 1<<4)
	case 0xdd:
		return sized(kindList, 4, 1<<16)
	case 0xde:
		return sized(kindMap, 2, 1<<4)
	case 0xdf:
		return sized(kindMap, 4, 1<<16)
	}
	r.off--
	return item{}, r.fail("code 0x%02x is not canonical (float, extension or unused)", c)
}

// skip walks one whole value, checking everything below it. depth is the
// number of lists and maps around it.
func (r *factReader) skip(depth int) error {
	it, err := r.next()
	if err != nil {
		return err
	}
	if err := it.checkDepth(depth); err != nil {
		return err
	}
	switch it.kind {
	case kindList:
		for range it.n {
			if err := r.skip(depth + 1); err != nil {
				return err
			}
		}
	case kindMap:
		var prev []byte
		for i := range it.n {
			key, err := r.key(i, prev)
			if err != nil {
				return err
			}
			prev = key
			if err := r.skip(depth + 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkDepth refuses a list or a map below too many others.
func (it *item) checkDepth(depth int) error {
	if (it.kind == kindList || it.kind == kindMap) && depth >= MaxNesting {
		return &TooLargeError{What: "nesting of facts", Limit: MaxNesting, Size: uint64(depth) + 1}
	}
	return nil
}

// key reads the i-th key of a map, behind prev.
func (r *factReader) key(i uint64, prev []byte) ([]byte, error) {
	key, err := r.next()
	switch {
	case err != nil:
		return nil, err
	case key.kind != kindString:
		return nil, r.fail("map key: want string, got %s", key.kind)
	case i > 0 && string(key.raw) <= string(prev):
		return nil, r.fail("map key %q: keys must ascend strictly, got it after %q", key.raw, prev)
	}
	return key.raw, nil
}

// appendUvarint writes a minimal uvarint.
func appendUvarint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

// readUvarint reads a minimal uvarint; an overlong one would give one frame
// two encodings and so two hashes.
func readUvarint(b []byte) (v uint64, n int, err error) {
	v, n = binary.Uvarint(b)
	if n <= 0 {
		return 0, 0, fmt.Errorf("uvarint: truncated or over 64 bits")
	}
	if n > 1 && b[n-1] == 0 {
		return 0, 0, fmt.Errorf("uvarint: overlong form of %d", v)
	}
	return v, n, nil
}
