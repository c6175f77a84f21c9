package pagecheck

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/bits"
)

const (
	headerSize       = 16 // page header
	elementSize      = 16 // of a branch and of a leaf alike
	bucketHeaderSize = 16
	metaSize         = 64

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagMeta     = 0x04
	flagFreelist = 0x10

	elementBucket = 0x01 // flag of a leaf element whose value is a bucket

	metaMagic   = 0xED0CDAED
	metaVersion = 2

	// freelistAbsent in place of the freelist's page: it was not stored.
	freelistAbsent = ^uint64(0)
	// countInBody as the count of a freelist: the first id is the count.
	countInBody = 0xFFFF

	firstDataPage = 2

	minPageSize = 1 << 10
	maxPageSize = 1 << 16
	maxPages    = 1 << 32
	maxKeySize  = 32768
	maxLevels   = 64

	maxLeafBytes = 64 << 20
	// A branch is split once it has more than four keys and does not fit its
	// page, so it is at most a page larger than four of the longest keys.
	maxBranchOver = 256 << 10
)

type header struct {
	id       uint64
	flags    uint16
	count    uint16
	overflow uint32
}

// decodeHeader needs headerSize bytes.
func decodeHeader(b []byte) header {
	return header{
		id:       binary.LittleEndian.Uint64(b[0:]),
		flags:    binary.LittleEndian.Uint16(b[8:]),
		count:    binary.LittleEndian.Uint16(b[10:]),
		overflow: binary.LittleEndian.Uint32(b[12:]),
	}
}

func typeName(flags uint16) string {
	switch flags {
	case flagBranch:
		return "branch"
	case flagLeaf:
		return "leaf"
	case flagMeta:
		return "meta"
	case flagFreelist:
		return "freelist"
	}
	return fmt.Sprintf("flags %#04x", flags)
}

type meta struct {
	pageSize uint32
	root     uint64
	freelist uint64
	hwm      uint64 // pages 0 to hwm-1 exist
	txid     uint64
}

// decodeMeta reads the metaSize bytes behind a page header. The reason is empty
// for a meta that bbolt accepts and this package can read; the fields are set
// either way.
func decodeMeta(b []byte) (m meta, reason string) {
	m = meta{
		pageSize: binary.LittleEndian.Uint32(b[8:]),
		root:     binary.LittleEndian.Uint64(b[16:]),
		freelist: binary.LittleEndian.Uint64(b[32:]),
		hwm:      binary.LittleEndian.Uint64(b[40:]),
		txid:     binary.LittleEndian.Uint64(b[48:]),
	}
	if got := binary.LittleEndian.Uint32(b[0:]); got != metaMagic {
		return m, fmt.Sprintf("magic is %#08x, want %#08x", got, uint32(metaMagic))
	}
	if got := binary.LittleEndian.Uint32(b[4:]); got != metaVersion {
		return m, fmt.Sprintf("version is %d, want %d", got, metaVersion)
	}
	if got, want := binary.LittleEndian.Uint64(b[56:]), metaSum(b); got != want {
		return m, fmt.Sprintf("checksum is %016x, want %016x", got, want)
	}
	if m.pageSize < minPageSize || m.pageSize > maxPageSize || bits.OnesCount32(m.pageSize) != 1 {
		return m, fmt.Sprintf("page size is %d, want a power of two from %d to %d", m.pageSize, minPageSize, maxPageSize)
	}
	return m, ""
}

func metaSum(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b[:56])
	return h.Sum64()
}

// bucketHeader is the head of a bucket element's value.
type bucketHeader struct {
	root     uint64 // 0: the bucket's only page follows in the value
	sequence uint64
}

// decodeBucket reports false for a value that is too short or too long to be a
// bucket.
func decodeBucket(v []byte) (bucketHeader, bool) {
	if len(v) < bucketHeaderSize {
		return bucketHeader{}, false
	}
	h := bucketHeader{
		root:     binary.LittleEndian.Uint64(v[0:]),
		sequence: binary.LittleEndian.Uint64(v[8:]),
	}
	if h.root == 0 {
		return h, len(v) >= bucketHeaderSize+headerSize
	}
	return h, len(v) == bucketHeaderSize
}
