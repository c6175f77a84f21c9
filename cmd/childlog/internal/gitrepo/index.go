package gitrepo

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"
)

// maxEntries bounds the files of an index that are looked through.
const maxEntries = 4 << 20

// single reports whether the index is known to hold no submodule. Any entry with
// the mode of one counts, named in .gitmodules or not: status and diff run git in
// its directory, where another configuration says what else runs.
func (r *repository) single(files Files, oid int) bool {
	name := filepath.Join(r.own, "index")
	info, err := files.Lstat(name)
	if absent(err) {
		return true
	}
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := files.Open(name)
	if err != nil {
		return false
	}
	defer f.Close() // read only
	return plainIndex(bufio.NewReader(f), oid) == nil
}

// errIndex ends the reading of an index that is not known to be plain.
var errIndex = errors.New("an index with submodules, or of another form")

// plainIndex reads an index of version 2 to 4 to its end. An extension that has
// to be understood refuses it: it takes entries from elsewhere (link of a split
// index), or has directories for entries (sdir of a sparse one). Source:
// Documentation/gitformat-index.txt of git.
func plainIndex(r *bufio.Reader, oid int) error {
	var head [12]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	version, entries := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint32(head[8:])
	if string(head[:4]) != "DIRC" || version < 2 || version > 4 || entries > maxEntries {
		return errIndex
	}
	for range entries {
		if err := plainEntry(r, version, oid); err != nil {
			return err
		}
	}
	for {
		next, err := r.Peek(oid + 1)
		if len(next) == oid && err == io.EOF { // the checksum
			return nil
		}
		if err != nil {
			return err
		}
		var ext [8]byte
		if _, err := io.ReadFull(r, ext[:]); err != nil {
			return err
		}
		if ext[0] < 'A' || ext[0] > 'Z' {
			return errIndex
		}
		if _, err := io.CopyN(io.Discard, r, int64(binary.BigEndian.Uint32(ext[4:]))); err != nil {
			return err
		}
	}
}

// plainEntry reads one entry: times, modes and sizes, the object, flags, the name.
func plainEntry(r *bufio.Reader, version uint32, oid int) error {
	const stat, mode = 40, 24
	fixed := make([]byte, stat+oid+2, stat+oid+4)
	if _, err := io.ReadFull(r, fixed); err != nil {
		return err
	}
	if kind := binary.BigEndian.Uint32(fixed[mode:]) >> 12; kind != 0o10 && kind != 0o12 { // a file, a link
		return errIndex
	}
	if extended := fixed[stat+oid]&0x40 != 0; extended {
		fixed = fixed[:cap(fixed)]
		if _, err := io.ReadFull(r, fixed[stat+oid+2:]); err != nil {
			return err
		}
	}
	if version == 4 { // how much of the name before is dropped, seven bits a byte
		for more := true; more; {
			b, err := r.ReadByte()
			if err != nil {
				return err
			}
			more = b&0x80 != 0
		}
	}
	n := 0
	for more := true; more; { // a name may be longer than the reader's buffer
		part, err := r.ReadSlice(0)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		n, more = n+len(part), !bytes.HasSuffix(part, []byte{0})
	}
	if version == 4 {
		return nil
	}
	pad := (8 - (len(fixed)+n)%8) % 8 // one of its zeros ended the name
	_, err := r.Discard(pad)
	return err
}
