package forward

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"childlog/cmd/childlog/internal/gitrepo"
	"childlog/cmd/childlog/internal/inspect"
)

// LostError says that the connection to the holder ended before the command
// did. What the command has done by then nobody knows.
type LostError struct {
	Printed bool // something of its output arrived
	Err     error
}

func (e *LostError) Error() string {
	return "the process that holds the store went away before it answered: " + e.Err.Error()
}

func (e *LostError) Unwrap() error { return e.Err }

// OutputError says that the command went through and that what it printed could
// not be written here.
type OutputError struct{ Err error }

func (e *OutputError) Error() string { return e.Err.Error() }

func (e *OutputError) Unwrap() error { return e.Err }

// ErrStopped says that the holder stopped, and ended the command for that.
var ErrStopped = errors.New("the process that holds the store stopped")

// lastPatience is how long a command may take to end after an interrupt.
const lastPatience = 10 * time.Second

// Run has the command line run by the holder, with what env says, and returns
// its exit code. When ctx ends the holder is told. The connection is closed.
// Errors: *LostError, *OutputError, ErrStopped; all but the first say that the
// command came to its end.
func (c *Call) Run(ctx context.Context, env Env, args []string) (int, error) {
	defer c.link.close()
	h := hello{Version: env.Version, Variables: map[string][]byte{}, Out: consoleOf(env.Out), Err: consoleOf(env.Err), Store: []byte(env.Store)}
	if len(env.Input) <= maxData {
		h.Input = env.Input // else it is asked for, as what is read from elsewhere is
	}
	for _, arg := range args {
		h.Arguments = append(h.Arguments, []byte(arg))
	}
	for _, name := range Variables {
		if value := env.Getenv(name); value != "" {
			h.Variables[name] = []byte(value)
		}
	}
	if err := c.link.sendJSON(kindHello, &h, nil); err != nil {
		return 0, &LostError{Err: err}
	}
	stop := context.AfterFunc(ctx, func() {
		_ = c.link.send(kindInterrupt, nil, nil) // else it is lost, which the reading finds
		_ = c.link.conn.SetReadDeadline(time.Now().Add(lastPatience))
	})
	defer stop()
	k := &caller{link: c.link, env: env, own: named(args), drafts: map[uint32]draft{}}
	defer k.end()
	return k.listen()
}

// caller is the side of the process that was started for the command.
type caller struct {
	*link
	env     Env
	own     opened
	printed bool
	failed  error // of the first output that could not be written

	mu     sync.Mutex
	drafts map[uint32]draft // by the request that made them
	closed bool
}

func (c *caller) listen() (int, error) {
	for {
		k, b, err := c.next()
		if err == nil {
			var x exit
			if k == kindExit {
				err = parse(b, &x)
			}
			switch {
			case err != nil:
			case k != kindExit:
				err = c.take(k, b)
			case c.failed != nil:
				return x.Code, &OutputError{c.failed}
			case x.Stopped && x.Code != 0: // else it was through before it noticed
				return x.Code, ErrStopped
			default:
				return x.Code, nil
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, &LostError{Printed: c.printed, Err: err}
		}
	}
}

func (c *caller) take(k kind, b []byte) error {
	switch k {
	case kindOut:
		c.print(c.env.Stdout, b)
	case kindErr:
		c.print(c.env.Stderr, b)
	case kindRequest:
		var r request
		if err := parse(b, &r); err != nil {
			return err
		}
		go c.answer(r) // a read of stdin, or of a pipe that nobody writes, may take for ever
	default:
		return fmt.Errorf("%w: a frame %q of a holder", ErrProtocol, byte(k))
	}
	return nil
}

// print writes what the command printed. After a failure the rest is dropped,
// but the command comes to its end: it may be about to commit.
func (c *caller) print(w io.Writer, b []byte) {
	c.printed = true
	if c.failed == nil {
		_, c.failed = w.Write(b)
	}
}

// answer replies to a request. That the reply can't be sent is found by who
// reads.
func (c *caller) answer(r request) {
	if r.Op == opStdin {
		c.readStdin(r)
		return
	}
	out, f, err := c.do(r)
	if out.ID = r.ID; err != nil {
		out.Failure, f = failureOf(err), nil
	}
	if f != nil {
		out.File = true
		if r.Op != opCreate && r.Op != opDirectory { // whose descriptors the drafts keep
			defer f.Close()
		}
	}
	_ = c.sendJSON(kindReply, out, f)
}

func (c *caller) readStdin(r request) {
	b := make([]byte, 4+min(max(r.Size, 1), maxData))
	n, err := c.env.Stdin.Read(b[4:])
	if n == 0 && err != nil && !errors.Is(err, io.EOF) {
		_ = c.sendJSON(kindReply, reply{ID: r.ID, Failure: failureOf(err)}, nil)
		return
	}
	binary.BigEndian.PutUint32(b, r.ID)
	_ = c.send(kindData, b[:4+n], nil)
}

// end takes away the drafts that were not committed.
func (c *caller) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, d := range c.drafts {
		d.Discard()
	}
	c.drafts = nil
}

// pageEntries is how many entries of a directory go into a reply: their names
// have at most 255 bytes each.
const pageEntries = 1000

// do does what the holder asks of a file.
func (c *caller) do(r request) (out reply, f *os.File, err error) {
	name, fs := string(r.Name), c.env.Files
	if err := c.own.check(r.Op, name, fs); err != nil {
		return out, nil, err
	}
	switch r.Op {
	case opOpen:
		f, err = fs.Open(name)
		out.Name = r.Name
	case opStat, opLstat:
		stat := fs.Stat
		if r.Op == opLstat {
			stat = fs.Lstat
		}
		fi, statErr := stat(name)
		if err = statErr; err == nil {
			out.Info = infoOf(fi)
		}
	case opReadDir:
		entries, dirErr := fs.ReadDir(name)
		err = dirErr
		if from := min(max(r.From, 0), len(entries)); err == nil {
			page := entries[from:min(from+pageEntries, len(entries))]
			out.Rest = from+len(page) < len(entries)
			for _, e := range page {
				out.Entries = append(out.Entries, entry{[]byte(e.Name()), uint32(e.Type())})
			}
		}
	case opLinks:
		path, linkErr := fs.EvalSymlinks(name)
		out.Path, err = []byte(path), linkErr
	case opAbs:
		path, absErr := fs.Abs(name)
		out.Path, err = []byte(path), absErr
	case opReal:
		names := make([]string, len(r.Names))
		for i := range r.Names {
			names[i] = string(r.Names[i])
		}
		for _, p := range fs.Real(names...) {
			out.Places = append(out.Places, placeOf(p))
		}
	case opGit:
		out.Git = gitOf(gitrepo.Check(fs, inspect.Repository{Dir: name, Index: r.Index, Subs: r.Submodules}))
	case opRewrite:
		f, err = fs.Rewrite(name)
	case opCreate:
		d, draftErr := fs.Create(name)
		if draftErr != nil {
			return out, nil, draftErr
		}
		out.Name = r.Name
		return out, d.File, c.keep(r.ID, d)
	case opCommit, opDiscard:
		err = c.settle(r)
	case opDirectory:
		d, dirErr := fs.Directory(name, r.What)
		if dirErr != nil {
			return out, nil, dirErr
		}
		out.Path = []byte(d.Path)
		return out, d.File(), c.keep(r.ID, d)
	default:
		err = fmt.Errorf("%w: a request for %q", ErrProtocol, r.Op)
	}
	return out, f, err
}

// draft is what gets its name from the holder's verdict.
type draft interface {
	Commit() error
	Discard()
}

// keep keeps a draft until the holder says what becomes of it.
func (c *caller) keep(id uint32, d draft) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.drafts) >= maxQueued {
		d.Discard()
		return fmt.Errorf("%w: too many files at a time", ErrProtocol)
	}
	c.drafts[id] = d
	return nil
}

func (c *caller) settle(r request) error {
	c.mu.Lock()
	d := c.drafts[r.Of]
	delete(c.drafts, r.Of)
	c.mu.Unlock()
	switch {
	case d == nil:
		return fmt.Errorf("%w: no such draft", ErrProtocol)
	case r.Op == opDiscard:
		d.Discard()
		return nil
	}
	return d.Commit()
}
