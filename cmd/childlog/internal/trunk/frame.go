package trunk

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Path is where the upgrade is asked for, and Protocol what both sides must
// speak then. It changes whenever a frame does.
const (
	Path     = "/v1/trunk"
	Protocol = "childlog-trunk/1"
)

// Bounds of a connection.
const (
	// MaxRequest is how large the body of a request may be, bytes. What is larger
	// goes by HTTP, where others do not wait behind it.
	MaxRequest = 64 << 10
	// InFlight is how many requests are under way at a time. A service reads no
	// further ones meanwhile.
	InFlight = 256
	// ReadAhead is how much either side reads with one call, bytes: what some
	// dozens of callers ask for.
	ReadAhead = 32 << 10
)

// ErrProtocol is what the other side sent that is no frame, or none that it may
// send. Nothing that follows it can be understood.
var ErrProtocol = errors.New("not understood")

// Frame is a request or an answer. The package's documentation says what the
// code is.
type Frame struct {
	ID   uint32
	Code uint16
	Body []byte
}

const headerLen = 10

func appendFrame(b []byte, id uint32, code uint16, parts [][]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	b = binary.BigEndian.AppendUint32(b, id)
	b = binary.BigEndian.AppendUint16(b, code)
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// Request reads the frame as one: the operation and the JSON. Errors:
// ErrProtocol.
func (f *Frame) Request() (name string, body []byte, err error) {
	if int(f.Code) > len(f.Body) {
		return "", nil, fmt.Errorf("%w: a name of %d bytes in a request of %d", ErrProtocol, f.Code, len(f.Body))
	}
	return string(f.Body[:f.Code]), f.Body[f.Code:], nil
}

// Reader reads frames. It is for one goroutine.
type Reader struct {
	conn net.Conn
	in   *bufio.Reader
	most int
	slow time.Duration
}

// NewReader reads frames whose bodies are at most so many bytes. in reads conn,
// and may hold what came already. A frame that began has to be whole within
// slow; none need ever begin.
func NewReader(conn net.Conn, in *bufio.Reader, most int, slow time.Duration) *Reader {
	return &Reader{conn, in, most, slow}
}

// Next reads a frame. Memory grows with what arrives, not with what is
// announced. Errors: io.EOF where no frame began; ErrProtocol; those of the
// connection.
func (r *Reader) Next() (f Frame, err error) {
	if _, err := r.in.Peek(1); err != nil {
		return f, err
	}
	limited := false
	limit := func(need int) (err error) { // costs nothing where all is here
		if r.in.Buffered() < need && !limited {
			limited, err = true, r.conn.SetReadDeadline(time.Now().Add(r.slow))
		}
		return err
	}
	if err := limit(headerLen); err != nil {
		return f, err
	}
	var head [headerLen]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return f, whole(err)
	}
	n := binary.BigEndian.Uint32(head[:])
	f.ID, f.Code = binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint16(head[8:])
	if uint64(n) > uint64(r.most) {
		return f, fmt.Errorf("%w: a frame of %d bytes, at most %d", ErrProtocol, n, r.most)
	}
	if err := limit(int(n)); err != nil {
		return f, err
	}
	if n <= MaxRequest {
		f.Body = make([]byte, n)
		_, err = io.ReadFull(r.in, f.Body)
	} else {
		var b bytes.Buffer
		_, err = io.CopyN(&b, r.in, int64(n))
		f.Body = b.Bytes()
	}
	if err == nil && limited {
		err = r.conn.SetReadDeadline(time.Time{})
	}
	return f, whole(err)
}

// whole makes an end inside a frame one that is not expected.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
