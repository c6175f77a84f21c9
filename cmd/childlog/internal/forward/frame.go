package forward

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// kind is the first byte of a frame.
type kind byte

const (
	kindHello     kind = 'H'
	kindOut       kind = 'o'
	kindErr       kind = 'e'
	kindRequest   kind = 'q'
	kindReply     kind = 'R'
	kindData      kind = 'D'
	kindInterrupt kind = 'C'
	kindExit      kind = 'x'
)

// Bounds of a frame's bytes. A command line is at most 2 MiB on Linux, and JSON
// makes it longer by a third.
const (
	maxHello = 4 << 20
	maxReply = 1 << 20
	maxData  = 64 << 10
)

// limit is how many bytes a frame may have.
func (k kind) limit() (int, bool) {
	switch k {
	case kindHello:
		return maxHello, true
	case kindRequest, kindReply:
		return maxReply, true
	case kindOut, kindErr:
		return maxData, true
	case kindData:
		return maxData + 4, true
	case kindExit:
		return 64, true
	case kindInterrupt:
		return 0, true
	}
	return 0, false
}

const headerLen = 5

// ErrProtocol is what the other side sent that is no frame, or none that it may
// send.
var ErrProtocol = errors.New("not understood")

// maxQueued bounds descriptors that came and were not taken yet.
const maxQueued = 16

// receiver reads a stream and collects the descriptors that come along. They
// stand in the order of the frames that they belong to.
type receiver struct {
	conn  *net.UnixConn
	ready []byte // read before
	mu    sync.Mutex
	fds   []int
	oob   [256]byte
}

func (r *receiver) Read(p []byte) (int, error) {
	if len(r.ready) > 0 {
		n := copy(p, r.ready)
		r.ready = r.ready[n:]
		return n, nil
	}
	n, oobn, flags, _, err := r.conn.ReadMsgUnix(p, r.oob[:])
	if oobn > 0 {
		if queueErr := r.queue(r.oob[:oobn]); err == nil {
			err = queueErr
		}
	}
	switch {
	case err != nil:
		return max(n, 0), err // -1 if nothing was read
	case flags&unix.MSG_CTRUNC != 0:
		return n, fmt.Errorf("%w: more descriptors than were asked for", ErrProtocol)
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

func (r *receiver) queue(oob []byte) error {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // no descriptors
		}
		r.fds = append(r.fds, fds...)
	}
	if len(r.fds) > maxQueued {
		return fmt.Errorf("%w: more descriptors than were asked for", ErrProtocol)
	}
	return nil
}

// take is the next descriptor.
func (r *receiver) take() (int, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.fds) == 0 {
		return -1, false
	}
	fd := r.fds[0]
	r.fds = r.fds[1:]
	return fd, true
}

// drop closes the descriptors that nobody took.
func (r *receiver) drop() {
	for fd, ok := r.take(); ok; fd, ok = r.take() {
		unix.Close(fd)
	}
}

// link is a connection that speaks frames. Writing may be done concurrently.
type link struct {
	conn *net.UnixConn
	recv *receiver
	in   *bufio.Reader
	mu   sync.Mutex // of writing
	torn error      // a frame was sent in part, so none can follow. Guarded by mu

	pace sync.Mutex    // of slow and the deadline that it makes
	slow time.Duration // after which a write is given up; 0: never
}

// within gives the write that comes its time.
func (l *link) within() error {
	l.pace.Lock()
	defer l.pace.Unlock()
	if l.slow == 0 {
		return nil
	}
	return l.conn.SetWriteDeadline(time.Now().Add(l.slow))
}

// hurry leaves the write that is under way, and each that comes, so much time.
func (l *link) hurry(slow time.Duration) {
	l.pace.Lock()
	l.slow = slow
	l.pace.Unlock()
	_ = l.within() // of a connection that ended: no write waits on it
}

// newLink speaks frames on conn. ready is what was read of it before.
func newLink(conn *net.UnixConn, ready []byte) *link {
	recv := &receiver{conn: conn, ready: ready}
	return &link{conn: conn, recv: recv, in: bufio.NewReaderSize(recv, maxData)}
}

// close ends the connection, and drops what came with it.
func (l *link) close() {
	l.conn.Close()
	l.recv.drop()
}

// next reads a frame. Memory grows with what arrives, not with what is
// announced.
func (l *link) next() (kind, []byte, error) { return readFrame(l.in) }

func readFrame(in io.Reader) (kind, []byte, error) {
	var head [headerLen]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, nil, err
	}
	k, n := kind(head[0]), int64(binary.BigEndian.Uint32(head[1:]))
	most, known := k.limit()
	if !known {
		return 0, nil, fmt.Errorf("%w: a frame of kind %q", ErrProtocol, byte(k))
	}
	if n > int64(most) {
		return 0, nil, fmt.Errorf("%w: a frame %q of %d bytes, at most %d", ErrProtocol, byte(k), n, most)
	}
	if n <= maxData {
		b := make([]byte, n)
		_, err := io.ReadFull(in, b)
		return k, b, whole(err)
	}
	var b bytes.Buffer
	_, err := io.CopyN(&b, in, n)
	return k, b.Bytes(), whole(err)
}

// whole makes an end inside a frame one that is not expected.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// send writes a frame, with a descriptor if f is not nil.
func (l *link) send(k kind, payload []byte, f *os.File) error {
	frame := make([]byte, headerLen, headerLen+len(payload))
	frame[0] = byte(k)
	binary.BigEndian.PutUint32(frame[1:], uint32(len(payload)))
	frame = append(frame, payload...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.torn == nil {
		l.torn = l.write(frame, f)
	}
	return l.torn
}

func (l *link) write(frame []byte, f *os.File) error {
	if err := l.within(); err != nil {
		return err
	}
	if f != nil {
		raw, err := f.SyscallConn()
		if err != nil {
			return err
		}
		var n int
		var sendErr error
		if err := raw.Control(func(fd uintptr) {
			n, _, sendErr = l.conn.WriteMsgUnix(frame, unix.UnixRights(int(fd)), nil)
		}); err != nil {
			return err
		}
		if sendErr != nil {
			return sendErr
		}
		frame = frame[n:] // a full socket takes a part, and the descriptor with it
	}
	_, err := l.conn.Write(frame)
	return err
}

// sendJSON is send of a message.
func (l *link) sendJSON(k kind, v any, f *os.File) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if most, _ := k.limit(); len(b) > most {
		return fmt.Errorf("%w: a frame %q of %d bytes, at most %d", ErrProtocol, byte(k), len(b), most)
	}
	return l.send(k, b, f)
}

// parse reads a message.
func parse(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return nil
}
