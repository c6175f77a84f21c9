package forward

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// ServeOptions bound what a caller may keep waiting. Zero fields are the
// defaults.
type ServeOptions struct {
	Hello time.Duration // for the whole hello to arrive; 10 s
	Slow  time.Duration // for a caller to take 64 KiB of output; 10 min: somebody may be reading page by page
}

// lastWrite is how long a caller has to take what is printed after the holder's
// patience ended.
const lastWrite = time.Second

// Runner runs one command line for whoever env is of, and returns its exit code.
type Runner func(ctx context.Context, env Env, args []string) int

// ErrStopping is the cause of a context that ended because the holder stops.
var ErrStopping = errors.New("the holder of the store stops")

// Serve runs one command for a caller on an upgraded connection, of which ready
// was read already, and closes it. It returns once the command has ended. The
// command's context ends with ctx, with the connection, and when the caller got
// a signal; stopping is closed when the holder stops, for those that only wait.
// After ctx the command waits for the caller no more. Errors are about the
// caller, for a log: ErrProtocol, those of the connection, the cause of ctx.
func Serve(ctx context.Context, stopping <-chan struct{}, conn *net.UnixConn, ready []byte, run Runner, o ServeOptions) error {
	if o.Hello == 0 {
		o.Hello = 10 * time.Second
	}
	if o.Slow == 0 {
		o.Slow = 10 * time.Minute
	}
	l := newLink(conn, ready)
	defer l.close()
	l.slow = o.Slow
	var h hello
	if err := readHello(l, &h, o.Hello); err != nil {
		return err
	}
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &served{link: l, cancel: cancel, ended: make(chan struct{}), waiting: map[uint32]chan reply{}}
	// A command may wait for its caller, who may have stopped: for its stdin, for
	// a file, for room to print. None of them knows of the context.
	late := context.AfterFunc(outer, func() {
		s.end(context.Cause(outer))
		l.hurry(lastWrite)
	})
	defer late()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.listen()
	}()
	env := s.env(&h)
	env.Stopping = stopping
	code := run(ctx, env, arguments(&h))
	stopped := errors.Is(context.Cause(outer), ErrStopping)
	s.end(errEnded) // what the command left behind waits for nothing any more
	err := l.sendJSON(kindExit, exit{Code: code, Stopped: stopped}, nil)
	conn.Close()
	<-done
	if s.lost != nil && !errors.Is(s.lost, errEnded) {
		return s.lost
	}
	return err
}

var errEnded = errors.New("the command has ended")

func readHello(l *link, h *hello, within time.Duration) error {
	if err := l.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	k, b, err := l.next()
	if err != nil {
		return err
	}
	if k != kindHello {
		return fmt.Errorf("%w: a frame %q before the hello", ErrProtocol, byte(k))
	}
	if err := parse(b, h); err != nil {
		return err
	}
	return l.conn.SetReadDeadline(time.Time{})
}

func arguments(h *hello) []string {
	args := make([]string, len(h.Arguments))
	for i, a := range h.Arguments {
		args[i] = string(a)
	}
	return args
}

// served is a command that runs for a caller.
type served struct {
	*link
	cancel context.CancelFunc
	ended  chan struct{} // closed after cancel was called

	mu      sync.Mutex
	lost    error // why nothing more comes; set before ended is closed
	last    uint32
	waiting map[uint32]chan reply
}

func (s *served) env(h *hello) Env {
	vars := make(map[string]string, len(h.Variables))
	for name, value := range h.Variables {
		if slices.Contains(Variables, name) {
			vars[name] = string(value)
		}
	}
	in := io.Reader(stdin{s})
	if h.Input != nil {
		in = bytes.NewReader(h.Input)
	}
	return Env{Stdin: in, Input: h.Input, Stdout: output{s, kindOut}, Stderr: output{s, kindErr}, Out: h.Out.term(), Err: h.Err.term(),
		Getenv: func(name string) string { return vars[name] }, Files: remote{s}, Store: string(h.Store), Version: h.Version}
}

// listen takes the caller's frames until the connection ends, and then ends the
// command.
func (s *served) listen() {
	for {
		k, b, err := s.next()
		if err == nil {
			err = s.take(k, b)
		}
		if err != nil {
			s.end(err)
			return
		}
	}
}

func (s *served) take(k kind, b []byte) error {
	var r reply
	switch k {
	case kindInterrupt:
		s.cancel()
		return nil
	case kindData:
		if len(b) < 4 {
			return fmt.Errorf("%w: data without a number", ErrProtocol)
		}
		r.ID, r.data = binary.BigEndian.Uint32(b), b[4:]
	case kindReply:
		if err := parse(b, &r); err != nil {
			return err
		}
		if r.File {
			fd, ok := s.recv.take()
			if !ok {
				return fmt.Errorf("%w: a reply without the descriptor", ErrProtocol)
			}
			r.opened = os.NewFile(uintptr(fd), string(r.Name))
		}
	default:
		return fmt.Errorf("%w: a frame %q of a caller", ErrProtocol, byte(k))
	}
	if !s.answer(r) {
		if r.opened != nil {
			r.opened.Close()
		}
		return fmt.Errorf("%w: a reply that nobody waits for", ErrProtocol)
	}
	return nil
}

// answer hands a reply to who waits for it: the channel has room for the one.
func (s *served) answer(r reply) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.waiting[r.ID]
	if !ok {
		return false
	}
	delete(s.waiting, r.ID)
	c <- r
	return true
}

// end makes every request that waits, and every later one, fail. The command's
// context has ended by then: one that asks why a request failed finds out.
func (s *served) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.lost = why
		s.cancel()
		close(s.ended)
	}
}

// output is stdout or stderr of the caller.
type output struct {
	s *served
	k kind
}

func (o output) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), maxData)]
		if err := o.s.send(o.k, part, nil); err != nil {
			o.s.cancel() // nobody reads any more
			return n, err
		}
		n += len(part)
		p = p[len(part):]
	}
	return n, nil
}

// stdin is that of the caller, read only when a command reads it.
type stdin struct{ s *served }

func (in stdin) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r, err := in.s.ask(request{Op: opStdin, Size: min(len(p), maxData)})
	if err != nil {
		return 0, err
	}
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	if len(r.data) > len(p) {
		return 0, fmt.Errorf("%w: %d bytes of stdin, %d were asked for", ErrProtocol, len(r.data), len(p))
	}
	return copy(p, r.data), nil
}
