package trunk

import (
	"encoding/binary"
	"math"
	"net"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Writer writes the frames of many goroutines. One goroutine, which runs
// [Writer.Run], takes all that is queued at a time and hands it to the system in
// one call. A frame that has nothing to share a call with is handed over by who
// sends it, as far as the system takes it at once: waking the other goroutine
// would cost as much as the call.
type Writer struct {
	conn *net.UnixConn
	raw  syscall.RawConn // nil: there is none
	room int             // bytes that may be queued before Send waits
	slow time.Duration   // after which a write is given up

	mu     sync.Mutex
	more   sync.Cond // there is something to write, or nothing will follow
	less   sync.Cond // the queue was taken, or writing has ended
	queue  []byte
	rest   int    // bytes at its beginning that end a frame the system has the others of
	queued uint64 // frames, ever
	taken  uint64 // of these, those that the system has whole
	next   uint64 // and those that it was offered
	busy   bool   // it is offered some now
	closed bool
	err    error
}

// keptQueue is how large a queue is kept for the next frames.
const keptQueue = 1 << 20

// NewWriter writes to conn, whose other side has to take each piece within slow.
// Send waits while more than room bytes are queued; 0: it never does, which is
// for who bounds the frames otherwise.
func NewWriter(conn *net.UnixConn, room int, slow time.Duration) *Writer {
	w := &Writer{conn: conn, room: room, slow: slow}
	w.more.L, w.less.L = &w.mu, &w.mu
	if raw, err := conn.SyscallConn(); err == nil {
		w.raw = raw
	}
	return w
}

// Send queues a frame whose body is the parts, and returns which one it is.
// alone says that no other one is about to be sent. After Close and once writing
// has failed it is dropped: whoever reads the connection learns of that.
func (w *Writer) Send(id uint32, code uint16, alone bool, parts ...[]byte) (number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.room > 0 && len(w.queue) > w.room && !w.closed && w.err == nil {
		w.less.Wait()
	}
	if w.closed || w.err != nil {
		return math.MaxUint64 // is never taken
	}
	first := len(w.queue) == 0
	w.queue = appendFrame(w.queue, id, code, parts)
	w.queued++
	if first && alone && !w.busy {
		if n := w.try(); n > 0 {
			w.next = w.queued
			w.queue = w.queue[:copy(w.queue, w.queue[n:])]
			if w.rest = len(w.queue); w.rest == 0 {
				w.taken, first = w.next, false
			}
		}
	}
	if first {
		w.more.Signal()
	}
	return w.queued
}

// try hands the queue to the system without waiting for anything, and returns
// how many bytes it took. A failure will be seen by the next write.
func (w *Writer) try() (n int) {
	if w.raw == nil {
		return 0
	}
	err := w.raw.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), w.queue) // the descriptor does not block
		return true
	})
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Taken reports whether the other side may have a frame. Half of one is none: it
// will not be made whole, and nobody acts on it. Once Run has returned it is known
// of each.
func (w *Writer) Taken(number uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return number <= w.taken || w.err == nil && number <= w.next
}

// Close lets Run return when everything that was queued is written.
func (w *Writer) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.more.Signal()
	w.less.Broadcast()
}

// Run writes until Close, or until it fails, which leaves half a frame: the
// connection has to be closed then.
func (w *Writer) Run() error {
	var b []byte
	for {
		var rest int
		if b, rest = w.take(b); len(b) == 0 {
			return nil
		}
		n, err := w.write(b)
		w.mu.Lock()
		w.busy, w.err = false, err
		if w.taken += ended(b, rest, n); err != nil {
			w.less.Broadcast()
		}
		w.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

func (w *Writer) write(b []byte) (n int, err error) {
	if err := w.conn.SetWriteDeadline(time.Now().Add(w.slow)); err != nil {
		return 0, err
	}
	if n, err = w.conn.Write(b); err != nil {
		return n, err
	}
	return n, w.conn.SetWriteDeadline(time.Time{}) // else it would pass for a later try
}

// ended counts the frames that end within the first n bytes of b, which begins
// with the last rest bytes of one, and holds the others whole.
func ended(b []byte, rest, n int) (frames uint64) {
	end := rest
	if rest > 0 && rest <= n {
		frames++
	}
	for end < n {
		if end += headerLen + int(binary.BigEndian.Uint32(b[end:])); end <= n {
			frames++
		}
	}
	return frames
}

// take waits for something to write and returns it, and how much of it ends a
// frame that was begun before. The frames before, which are written, leave their
// memory to the next ones.
func (w *Writer) take(written []byte) (b []byte, rest int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 && !w.closed {
		w.more.Wait()
	}
	// Others who are about to send were woken by the same commit, or by answers
	// that came with one read: let them come first, and share the call.
	w.mu.Unlock()
	runtime.Gosched()
	w.mu.Lock()
	if cap(written) > keptQueue {
		written = nil
	}
	b, rest = w.queue, w.rest
	w.queue, w.rest, w.next, w.busy = written[:0], 0, w.queued, len(b) > 0
	w.less.Broadcast()
	return b, rest
}
