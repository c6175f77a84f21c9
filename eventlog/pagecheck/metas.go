package pagecheck

import (
	"bytes"
	"encoding/binary"
	"io"
)

// Patch is what a file should hold at an offset.
type Patch struct {
	Offset int64
	Bytes  []byte
}

// Patched reads a file with patches in place; nothing is written. Later patches
// win.
type Patched struct {
	R       io.ReaderAt
	Patches []Patch
}

// ReadAt is io.ReaderAt.
func (p Patched) ReadAt(b []byte, off int64) (int, error) {
	n, err := p.R.ReadAt(b, off)
	for _, patch := range p.Patches {
		from, to := max(off, patch.Offset), min(off+int64(n), patch.Offset+int64(len(patch.Bytes)))
		if from < to {
			copy(b[from-off:to-off], patch.Bytes[from-patch.Offset:])
		}
	}
	return n, err
}

// RepairMetas finds what a meta page said before one byte of it was damaged.
// The checksum decides: of the 16,320 pages that differ in one byte, one fits
// by chance once in 10^15 files, and it also has to be a page that bbolt would
// write at that place. It returns a patch for each page that it can repair.
func RepairMetas(r io.ReaderAt, size int64) []Patch {
	var patches []Patch
	metas := readMetas(r, size)
	repair := func(page uint64, off int64) bool {
		buf := make([]byte, headerSize+metaSize)
		if size-off < int64(len(buf)) || readFull(r, buf, off) != nil {
			return false
		}
		good, ok := repairMeta(buf[headerSize:], page)
		if ok && (page == 0 || int64(binary.LittleEndian.Uint32(good[8:])) == off) {
			patches = append(patches, Patch{Offset: off + headerSize, Bytes: good})
			return true
		}
		return false
	}
	if metas[0].reason != "" {
		repair(0, 0)
	}
	if metas[1].reason != "" {
		if ps := pageSizeOf(r, size, patches); ps > 0 {
			repair(1, int64(ps))
		} else {
			for at := int64(minPageSize); at <= maxPageSize && !repair(1, at); at *= 2 {
				continue
			}
		}
	}
	return patches
}

// pageSizeOf is the page size of page 0, 0 if that is not valid.
func pageSizeOf(r io.ReaderAt, size int64, patches []Patch) uint32 {
	if m := readMeta(Patched{r, patches}, size, 0); m.reason == "" {
		return m.meta.pageSize
	}
	return 0
}

// repairMeta changes one byte of b, which is invalid, so that it is valid.
func repairMeta(b []byte, page uint64) ([]byte, bool) {
	plausible := func(b []byte) bool {
		m, reason := decodeMeta(b)
		return reason == "" && m.txid%2 == page && m.root >= firstDataPage && m.root < m.hwm && m.hwm <= maxPages
	}
	good := bytes.Clone(b[:metaSize])
	want, got := metaSum(good), binary.LittleEndian.Uint64(good[56:])
	for i := range 8 { // the checksum itself: seven of its bytes fit
		if (want^got)&^(0xff<<(8*i)) == 0 {
			binary.LittleEndian.PutUint64(good[56:], want)
			return good, plausible(good)
		}
	}
	for i := range 56 {
		was := good[i]
		for v := range 256 {
			if good[i] = byte(v); good[i] != was && metaSum(good) == got && plausible(good) {
				return good, true
			}
		}
		good[i] = was
	}
	return nil, false
}

// MetaFor is a patch that makes page 0 a valid meta page which leads to a root
// bucket: a way to walk a tree that no meta page names any more. The freelist
// counts as not stored.
func MetaFor(pageSize int, root, pages, txid uint64) Patch {
	b := make([]byte, headerSize+metaSize)
	binary.LittleEndian.PutUint16(b[8:], flagMeta)
	m := b[headerSize:]
	binary.LittleEndian.PutUint32(m[0:], metaMagic)
	binary.LittleEndian.PutUint32(m[4:], metaVersion)
	binary.LittleEndian.PutUint32(m[8:], uint32(pageSize))
	binary.LittleEndian.PutUint64(m[16:], root)
	binary.LittleEndian.PutUint64(m[32:], freelistAbsent)
	binary.LittleEndian.PutUint64(m[40:], pages)
	binary.LittleEndian.PutUint64(m[48:], txid)
	binary.LittleEndian.PutUint64(m[56:], metaSum(m))
	return Patch{Offset: 0, Bytes: b}
}

// NoMeta is a patch that makes a meta page invalid: the file is then read from
// the other one. page is 0 or 1.
func NoMeta(page, pageSize int) Patch {
	return Patch{Offset: int64(page*pageSize) + headerSize, Bytes: make([]byte, metaSize)}
}

// GuessPageSize finds the page size of a file without a valid meta page: at the
// right one, pages state their own ids. It looks at the first 4,096 pages of
// each size; 0 means that no page does.
func GuessPageSize(r io.ReaderAt, size int64) int {
	best, most := 0, 0
	for ps := int64(minPageSize); ps <= maxPageSize; ps *= 2 {
		n := 0
		var buf [headerSize]byte
		for id := int64(1); id < 4096 && (id+1)*ps <= size; id++ {
			if readFull(r, buf[:], id*ps) != nil {
				continue
			}
			switch h := decodeHeader(buf[:]); {
			case h.id != uint64(id):
			case h.flags == flagLeaf, h.flags == flagBranch, h.flags == flagFreelist, h.flags == flagMeta && id == 1:
				n++
			}
		}
		if n > most {
			best, most = int(ps), n
		}
	}
	return best
}
