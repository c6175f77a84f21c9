package pagecheck

import (
	"errors"
	"fmt"
	"io"
)

// source is the file behind the chosen meta page.
type source struct {
	r        io.ReaderAt
	pageSize uint64
	hwm      uint64
	// limit is the number of pages that are both below the high water mark and
	// whole in the file. Only these may be read or put into a pageSet.
	limit uint64

	root     uint64
	freelist uint64
}

func readFull(r io.ReaderAt, buf []byte, off int64) error {
	n, err := r.ReadAt(buf, off)
	if n >= len(buf) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("read %d bytes at %d, want %d: %w", max(n, 0), off, len(buf), io.ErrUnexpectedEOF)
	}
	return err
}

// read fills buf from offset off of a page; the bytes must lie in pages below
// the limit.
func (s *source) read(buf []byte, id, off uint64) error {
	return readFull(s.r, buf, int64(id*s.pageSize+off))
}

// metaPage is what could be read of page 0 or 1.
type metaPage struct {
	header header
	meta   meta
	reason string // why it is not valid, empty if it is
	err    error  // the read error, if that is the reason
}

func readMeta(r io.ReaderAt, size, off int64) metaPage {
	buf := make([]byte, headerSize+metaSize)
	if size-off < int64(len(buf)) {
		return metaPage{reason: fmt.Sprintf("the file ends at byte %d, want a meta page at %d", size, off)}
	}
	if err := readFull(r, buf, off); err != nil {
		return metaPage{reason: fmt.Sprintf("reading: %v", err), err: err}
	}
	m, reason := decodeMeta(buf[headerSize:])
	return metaPage{header: decodeHeader(buf), meta: m, reason: reason}
}

// readMetas finds the page size the way bbolt does: page 0 states it, and if
// that is damaged, page 1 is looked for at every place where it could be.
func readMetas(r io.ReaderAt, size int64) [2]metaPage {
	first := readMeta(r, size, 0)
	if first.reason == "" {
		at := int64(first.meta.pageSize)
		second := readMeta(r, size, at)
		if second.reason == "" && int64(second.meta.pageSize) != at {
			second.reason = fmt.Sprintf("page size is %d, want %d as page 0 says", second.meta.pageSize, at)
		}
		return [2]metaPage{first, second}
	}
	missing := metaPage{reason: "no valid meta page found behind a damaged page 0"}
	for at := int64(minPageSize); at <= maxPageSize; at *= 2 {
		second := readMeta(r, size, at)
		if second.reason == "" && int64(second.meta.pageSize) == at {
			return [2]metaPage{first, second}
		}
		if missing.err == nil {
			missing.err = second.err
		}
	}
	return [2]metaPage{first, missing}
}

// chosen is the index of the meta page that bbolt would use, -1 for none.
func chosen(metas [2]metaPage) int {
	valid0, valid1 := metas[0].reason == "", metas[1].reason == ""
	switch {
	case valid0 && valid1:
		if metas[1].meta.txid > metas[0].meta.txid {
			return 1
		}
		return 0
	case valid0:
		return 0
	case valid1:
		return 1
	}
	return -1
}
