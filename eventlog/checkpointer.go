package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Checkpoints are signed in the background, so that appends wait for none: what
// a crash leaves unsigned is at most this much. The clock sets the pace and
// decides nothing else.
const (
	signFrames = 64 << 10        // positions since the last one
	signAfter  = 5 * time.Second // of the first position that is not signed
)

// checkpointer signs what is durable and owns the goroutine that does so while
// the store is written.
type checkpointer struct {
	s    *Store
	wake chan struct{} // capacity 1
	quit chan struct{}
	done chan struct{} // nil: not running

	mu   sync.Mutex
	last Checkpoint // under the present origin; zero: none yet
}

func newCheckpointer(s *Store) *checkpointer {
	return &checkpointer{s: s, wake: make(chan struct{}, 1), quit: make(chan struct{})}
}

func (c *checkpointer) start() {
	if c.s.key == nil || c.s.opts.accept { // there is no head to sign before the origin has changed
		return
	}
	c.done = make(chan struct{})
	go c.run()
}

func (c *checkpointer) poke() {
	if c.done == nil {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *checkpointer) run() {
	defer close(c.done)
	frames := c.s.opts.signFrames
	if frames == 0 {
		frames = signFrames
	}
	timer := time.NewTimer(signAfter)
	timer.Stop()
	for armed := false; ; {
		select {
		case <-c.quit:
			timer.Stop()
			return
		case <-timer.C:
			armed = false
			_, _ = c.sign(context.Background()) // the next one, or Close, says why not
		case <-c.wake:
			switch n := c.unsigned(); {
			case n >= frames:
				_, _ = c.sign(context.Background())
			case n > 0 && !armed:
				timer.Reset(signAfter)
				armed = true
			}
		}
	}
}

// unsigned is how many durable positions no checkpoint covers.
func (c *checkpointer) unsigned() uint64 {
	next := c.s.st.durable()
	c.mu.Lock()
	defer c.mu.Unlock()
	return next - min(next, c.last.Size)
}

// close ends the goroutine and signs what is new. A store with damage that has
// no tree is closed unsigned: there is no signature over what is not there.
func (c *checkpointer) close() error {
	if c == nil || c.done == nil {
		return nil
	}
	close(c.quit)
	<-c.done
	c.mu.Lock()
	signed := c.last.Origin == c.s.identity.Origin()
	c.mu.Unlock()
	if c.s.st.tree.err != nil || signed && c.unsigned() == 0 {
		return nil
	}
	_, err := c.sign(context.Background())
	return err
}

// sign signs the durable head and writes CHECKPOINT. The head is that of whole
// groups, so no atomic unit is split. What was signed last is on the disk before
// anybody is given it: after a crash the key can't sign another head of the same
// size for somebody else.
func (c *checkpointer) sign(ctx context.Context) (Checkpoint, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.s.key == nil || c.s.opts.accept {
		return Checkpoint{}, fmt.Errorf("%w: the signing key %s", ErrNotFound, c.s.keyPath())
	}
	c.s.st.mu.RLock()
	edge := c.s.st.tree.clone()
	c.s.st.mu.RUnlock()
	head := Checkpoint{Origin: c.s.identity.Origin(), Size: edge.size}
	var err error
	if head.Root, err = edge.root(); err != nil {
		return Checkpoint{}, fmt.Errorf("nothing is signed over what is not there: %w", err)
	}
	if c.last.Origin == head.Origin {
		switch {
		case c.last.Size == head.Size && c.last.Root == head.Root:
			return c.last, nil
		case c.last.Size >= head.Size:
			return Checkpoint{}, &RollbackError{Path: c.s.dir, Evidence: RolledBackDiffers, Origin: head.Origin, Size: c.last.Size, Root: c.last.Root, Found: head.Size}
		}
	}
	if err := ctx.Err(); err != nil {
		return Checkpoint{}, err
	}
	if err := head.sign(c.s.key); err != nil {
		return Checkpoint{}, err
	}
	if err := c.s.inPlace(); err != nil {
		return Checkpoint{}, err
	}
	if err := replaceSynced(filepath.Join(c.s.dir, checkpointFile), head.Note); err != nil {
		if noSpace(err) {
			err = fmt.Errorf("%w: %w", ErrNoSpace, err)
		}
		return Checkpoint{}, fmt.Errorf("%s: %w", checkpointFile, err)
	}
	c.last = head
	return head, nil
}

// inPlace is nil if the store still is where it was opened. Whoever holds one
// for days may find it moved, and another one in its place, to which a signature
// of this one would be a forged one.
func (s *Store) inPlace() error {
	path := filepath.Join(s.dir, journalFile)
	at, err := os.Stat(path)
	if err == nil {
		var is os.FileInfo
		if is, err = s.journal.file.Stat(); err == nil && !os.SameFile(at, is) {
			err = errors.New("it is another file")
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %s is not the store that was opened there any more, so nothing was signed: %w", ErrStoreLost, s.dir, err)
	}
	return nil
}

// Checkpoint signs what is durable now, writes it to CHECKPOINT and returns it.
// If nothing is new it returns the last one, as it was signed.
//
// Errors: ErrReadOnly (see [Store.Signed]), ErrNotFound (no signing key here),
// ErrCorrupt (a frame can't be read: nothing is signed over what is not there),
// ErrStoreLost (the directory was moved or removed), ErrNoSpace, ErrStoreClosed.
func (s *Store) Checkpoint(ctx context.Context) (Checkpoint, error) {
	if err := s.usable(); err != nil {
		return Checkpoint{}, err
	}
	if s.opts.ReadOnly {
		return Checkpoint{}, fmt.Errorf("%w: the store was opened for reading", ErrReadOnly)
	}
	return s.signing.sign(ctx)
}

// Signed is the last checkpoint of the store's present origin, if there is one
// and the journal continues it.
func (s *Store) Signed() (Checkpoint, bool) {
	if errors.Is(s.usable(), ErrStoreClosed) {
		return Checkpoint{}, false
	}
	s.signing.mu.Lock()
	defer s.signing.mu.Unlock()
	return s.signing.last, s.signing.last.Origin != ""
}
