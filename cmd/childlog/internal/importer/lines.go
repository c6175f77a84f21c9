package importer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"sync"
)

// Line is one whole line of an input, without its newline.
type Line struct {
	Number int64    // from 1
	Offset int64    // of its first byte, in the uncompressed input
	Bytes  []byte   // valid until the next line is read; nil if TooLong
	Len    int64    // bytes, also of one that is too long
	Sum    [32]byte // SHA-256 of its bytes
	// TooLong marks a line over the reader's limit. Only its length and its
	// digest are known.
	TooLong bool
}

// Prefix is the part of an input that consists of whole lines.
type Prefix struct {
	Lines int64
	Bytes int64
	Sum   [32]byte // SHA-256 of those bytes, newlines included
}

// LineReader reads whole lines of any length in bounded memory.
type LineReader struct {
	r      *bufio.Reader
	limit  int
	line   []byte
	lines  int64
	offset int64     // behind the last whole line
	whole  hash.Hash // of the whole lines
	torn   int64
	err    error
}

// buffers are the readers' own, used again once a pass is over.
var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 256<<10) }}

// NewLineReader reads r. A line of more than limit bytes is TooLong.
func NewLineReader(r io.Reader, limit int) *LineReader {
	buf := buffers.Get().(*bufio.Reader)
	buf.Reset(r)
	return &LineReader{r: buf, limit: limit, whole: sha256.New()}
}

// Next returns the next whole line. io.EOF means that the input ended, maybe
// inside a line (see Torn); any other error is the input's own, and the lines
// before it are sound. After an error every call returns it again.
func (l *LineReader) Next() (Line, error) {
	if l.err != nil {
		return Line{}, l.err
	}
	l.line = l.line[:0]
	// Until its newline was seen a line may be torn, and must not be in the
	// digest of the whole lines. A long one is hashed aside as it streams by.
	var long, aside hash.Hash
	var size int64
	for {
		part, err := l.r.ReadSlice('\n')
		text := bytes.TrimSuffix(part, []byte{'\n'})
		size += int64(len(text))
		if long == nil && size > int64(l.limit) {
			long, aside = sha256.New(), cloneHash(l.whole)
			long.Write(l.line)
			aside.Write(l.line)
			l.line = l.line[:0]
		}
		if long != nil {
			long.Write(text)
			aside.Write(text)
		} else {
			l.line = append(l.line, text...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			l.err, l.torn = err, size
			return Line{}, err
		}
		break
	}
	l.lines++
	out := Line{Number: l.lines, Offset: l.offset, Bytes: l.line, Len: size}
	l.offset += size + 1
	if long != nil {
		aside.Write([]byte{'\n'})
		l.whole = aside
		out.TooLong, out.Bytes = true, nil
		long.Sum(out.Sum[:0])
		return out, nil
	}
	out.Sum = sha256.Sum256(l.line)
	l.whole.Write(l.line)
	l.whole.Write([]byte{'\n'})
	return out, nil
}

// release gives the buffer back: the reader is done with, and so is its last line.
func (l *LineReader) release() {
	if l.r != nil {
		l.r.Reset(nil)
		buffers.Put(l.r)
	}
	if l.r = nil; l.err == nil {
		l.err = errReleased
	}
}

var errReleased = errors.New("another pass over the input has begun, or it was closed")

// Torn is the number of bytes behind the last newline, known once Next
// returned an error.
func (l *LineReader) Torn() int64 { return l.torn }

// Prefix describes the whole lines read so far.
func (l *LineReader) Prefix() Prefix {
	p := Prefix{Lines: l.lines, Bytes: l.offset}
	l.whole.Sum(p.Sum[:0])
	return p
}

// cloneHash copies a running SHA-256, which crypto/sha256 promises to support.
func cloneHash(h hash.Hash) hash.Hash {
	c, err := h.(hash.Cloner).Clone()
	if err != nil {
		return sha256.New()
	}
	return c
}
