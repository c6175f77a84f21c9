package bundle

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"childlog/eventlog"
)

// magic begins every bundle, 16 bytes.
const magic = "childlog/bundle\n"

// formatVersion is the version in the head. Numbers are never reused.
const formatVersion = 1

// Kinds of records. They are letters, so that a dump can be read.
const (
	kindHead    = 'H'
	kindKey     = 'K'
	kindNote    = 'N'
	kindSession = 'S'
	kindFrame   = 'F'
	kindChunk   = 'C'
	kindWithout = 'W'
	kindTomb    = 'T'
	kindSubtree = 'P'
	kindEnd     = 'E'
)

// most bounds the body of each kind of record, bytes: a reader takes no more
// memory than that for what a length says.
var most = [256]int{kindHead: 256, kindKey: 1 << 10, kindNote: 64 << 10, kindSession: 128, kindFrame: eventlog.MaxRawFrame + 16,
	kindChunk: eventlog.MaxChunk + 32, kindWithout: 32, kindTomb: 64, kindSubtree: 64, kindEnd: 256}

const recordHead = 1 + 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// malformed is what is wrong with a file as a bundle.
func malformed(at int64, format string, args ...any) error {
	return &eventlog.CorruptError{Reason: fmt.Sprintf("bundle: byte %d: %s", at, fmt.Sprintf(format, args...))}
}

// recordWriter frames records and hashes the whole file.
type recordWriter struct {
	w    *bufio.Writer
	sum  hash.Hash
	head [recordHead]byte
	err  error // the first; nothing is written behind it
}

func newRecordWriter(w io.Writer) *recordWriter {
	r := &recordWriter{w: bufio.NewWriterSize(w, 256<<10), sum: sha256.New()}
	r.bytes([]byte(magic))
	return r
}

func (r *recordWriter) bytes(b []byte) {
	if r.err == nil {
		r.sum.Write(b)
		_, r.err = r.w.Write(b)
	}
}

// record writes one record; its body is the parts, one behind the other.
func (r *recordWriter) record(kind byte, parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if r.err == nil && n > most[kind] {
		r.err = &eventlog.TooLargeError{What: "record of a bundle in bytes", Limit: uint64(most[kind]), Size: uint64(n)}
	}
	r.head[0] = kind
	binary.LittleEndian.PutUint32(r.head[1:], uint32(n))
	crc := crc32.Checksum(r.head[:], castagnoli)
	r.bytes(r.head[:])
	for _, p := range parts {
		crc = crc32.Update(crc, castagnoli, p)
		r.bytes(p)
	}
	r.bytes(binary.LittleEndian.AppendUint32(nil, crc))
	return r.err
}

func (r *recordWriter) flush() error {
	if r.err == nil {
		r.err = r.w.Flush()
	}
	return r.err
}

// recordReader reads records and hashes the whole file.
type recordReader struct {
	r    *bufio.Reader
	sum  hash.Hash
	at   int64 // bytes read
	body []byte
}

func newRecordReader(r io.Reader) (*recordReader, error) {
	rr := &recordReader{r: bufio.NewReaderSize(r, 256<<10), sum: sha256.New()}
	var b [len(magic)]byte
	if err := rr.full(b[:]); err != nil || string(b[:]) != magic {
		return nil, fmt.Errorf("%w: it is no bundle: want %q at the beginning", eventlog.ErrInvalid, magic)
	}
	return rr, nil
}

// full reads exactly len(b) bytes.
func (r *recordReader) full(b []byte) error {
	n, err := io.ReadFull(r.r, b)
	r.at += int64(n)
	r.sum.Write(b[:n])
	return err
}

// next reads one record. Its body lives until the next call. digest is the
// SHA-256 of all bytes before the record.
func (r *recordReader) next() (kind byte, body []byte, digest eventlog.Hash, err error) {
	start := r.at
	r.sum.Sum(digest[:0])
	var head [recordHead]byte
	if err := r.full(head[:]); err != nil {
		return 0, nil, digest, r.cut(start, err)
	}
	kind = head[0]
	n, limit := int64(binary.LittleEndian.Uint32(head[1:])), most[kind]
	if limit == 0 || n > int64(limit) {
		return 0, nil, digest, malformed(start, "a record of kind 0x%02x and %d bytes", kind, n)
	}
	if cap(r.body) < int(n)+4 {
		r.body = make([]byte, n+4)
	}
	b := r.body[:n+4]
	if err := r.full(b); err != nil {
		return 0, nil, digest, r.cut(start, err)
	}
	crc := crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, b[:n])
	if want := binary.LittleEndian.Uint32(b[n:]); want != crc {
		return 0, nil, digest, malformed(start, "checksum of the record: want %08x, got %08x", want, crc)
	}
	return kind, b[:n:n], digest, nil
}

// cut tells a file that was cut off from one that can't be read.
func (r *recordReader) cut(start int64, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return malformed(start, "the file ends here, without a trailer: it was cut off")
	}
	return err
}

// ended checks that nothing follows.
func (r *recordReader) ended() error {
	if _, err := r.r.ReadByte(); err == nil {
		return malformed(r.at, "bytes behind the trailer")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// cursor reads the fields of a body; the first failure sticks.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n int) []byte {
	if c.bad || len(c.b) < n {
		c.bad = true
		return make([]byte, n)
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

// uvarint reads a minimal uvarint.
func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if c.bad || n <= 0 || n > 1 && c.b[n-1] == 0 {
		c.bad = true
		return 0
	}
	c.b = c.b[n:]
	return v
}

// end reports whether all was read and nothing is left.
func (c *cursor) end() bool { return !c.bad && len(c.b) == 0 }

func uvarint(v uint64) []byte { return binary.AppendUvarint(nil, v) }
