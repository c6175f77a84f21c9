package access

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"childlog/eventlog"
)

// HoldOptions say how a store is held.
type HoldOptions struct {
	Command string // named to who needs the store alone and can't have it
	KeyFile string // the signing key that it was opened with, if not its own

	// Reopen opens the store again after it was closed for what needs it alone.
	// With it the Held owns the store: nobody else may use or close it. Without,
	// the store stays the caller's, and what needs it alone is refused.
	Reopen func(context.Context) (*eventlog.Store, error)
}

// Held is a store that this process holds, and on which several commands and
// requests work at the same time. All methods may be called concurrently.
type Held struct {
	dir   string
	o     HoldOptions
	since time.Time
	users *semaphore.Weighted
	s     *eventlog.Store // nil: closed, and not opened again. Guarded by users
	err   error           // why
	ended bool            // by Close. Guarded by users
}

// everybody is the weight of who needs the store alone.
const everybody = 1 << 30

// patience is how long who needs the store alone waits at least for those who
// are at work: they are commands, which come and go.
const patience = 10 * time.Second

// Hold shares an open store.
func Hold(s *eventlog.Store, o HoldOptions) *Held {
	return &Held{dir: s.Dir(), o: o, since: time.Now(), users: semaphore.NewWeighted(everybody), s: s}
}

// Dir is the store's absolute path.
func (h *Held) Dir() string { return h.dir }

// Use runs fn on the store, beside others. fn must not call Use, and must not
// keep the store: afterwards it may be closed and opened anew. Errors: those of
// fn; the end of ctx; eventlog.ErrStoreClosed.
func (h *Held) Use(ctx context.Context, fn func(*eventlog.Store) error) error {
	if err := h.users.Acquire(ctx, 1); err != nil {
		return err
	}
	if h.ill() {
		h.users.Release(1)
		if err := h.mend(ctx); err != nil {
			return err
		}
		if err := h.users.Acquire(ctx, 1); err != nil {
			return err
		}
	}
	defer h.users.Release(1)
	if h.s == nil {
		return h.gone()
	}
	return fn(h.s)
}

// ill reports whether the store must be opened anew before it can be written: a
// commit failed so that nobody knows what it wrote, or opening it again failed.
func (h *Held) ill() bool {
	return h.o.Reopen != nil && !h.ended && (h.s == nil || h.s.Writable() != nil)
}

// mend opens the store anew, unless somebody else did by now. Without it one
// failed commit would keep everybody from writing until the holder is restarted,
// which a command that opens the store itself does by being run again.
func (h *Held) mend(ctx context.Context) error {
	if err := h.users.Acquire(ctx, everybody); err != nil {
		return err
	}
	defer h.users.Release(everybody)
	if !h.ill() {
		return nil
	}
	if h.s != nil {
		_ = h.s.Close() // what it could not write is what it is opened anew for
	}
	if h.s, h.err = h.o.Reopen(context.WithoutCancel(ctx)); h.err != nil {
		h.s = nil
		return h.gone()
	}
	return nil
}

// Changed returns a channel that is closed by the next commit. Errors: as [Held.Use].
func (h *Held) Changed(ctx context.Context) (changed <-chan struct{}, err error) {
	err = h.Use(ctx, func(s *eventlog.Store) error {
		changed = s.Changed()
		return nil
	})
	return changed, err
}

// alone runs fn while this process does not hold the store and nobody uses it.
// Who is at work is waited for, who comes meanwhile waits behind it. Errors:
// eventlog.ErrLocked; those of fn; that the store could not be opened again.
func (h *Held) alone(ctx context.Context, p Place, fn func() error) error {
	if h.o.Reopen == nil {
		return h.locked(0)
	}
	start := time.Now()
	bounded, cancel := context.WithTimeout(ctx, max(p.Wait, patience))
	defer cancel()
	if err := h.users.Acquire(bounded, everybody); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return h.locked(time.Since(start))
	}
	defer h.users.Release(everybody)
	if h.s == nil {
		return h.gone()
	}
	if err := h.s.Close(); err != nil {
		h.s, h.err = nil, err
		return h.gone()
	}
	err := fn()
	h.s, h.err = h.o.Reopen(context.WithoutCancel(ctx)) // whoever asked may be gone, the others are not
	if h.err != nil {
		h.s = nil
		return errors.Join(err, h.gone())
	}
	return err
}

func (h *Held) gone() error {
	if h.err != nil {
		return fmt.Errorf("%w: %s: %w", eventlog.ErrStoreClosed, h.dir, h.err)
	}
	return fmt.Errorf("%w: %s", eventlog.ErrStoreClosed, h.dir)
}

func (h *Held) locked(waited time.Duration) error {
	return &eventlog.LockedError{Path: h.dir, PID: os.Getpid(), Command: h.o.Command, Since: h.since, Waited: waited}
}

// Close ends the sharing: it waits until nobody uses the store, or ctx ends, and
// closes the store if it is the Held's. Closing twice is one close.
func (h *Held) Close(ctx context.Context) error {
	if err := h.users.Acquire(ctx, everybody); err != nil {
		return err
	}
	defer h.users.Release(everybody)
	s := h.s
	h.s, h.ended = nil, true
	if s == nil || h.o.Reopen == nil {
		return nil
	}
	return s.Close()
}

// Serve opens the store for writing and runs fn while this process holds it.
// The store can be closed and opened anew for what needs it alone.
func Serve(ctx context.Context, p Place, fn func(context.Context, *Held) error) error {
	var was eventlog.Identity
	open := func(ctx context.Context) (*eventlog.Store, error) {
		s, err := eventlog.Open(ctx, p.Dir, eventlog.Options{Wait: p.Wait, Command: p.Command, KeyFile: p.KeyFile})
		if err != nil || was.Store == uuid.Nil || s.Identity().Store == was.Store {
			return s, err
		}
		// The directory was moved and another store put in its place: whoever is
		// served asked for the one that was here.
		return nil, errors.Join(fmt.Errorf("%w: store %s lies at %s now, want %s", eventlog.ErrStoreLost, s.Identity().Store, p.Dir, was.Store), s.Close())
	}
	s, err := patiently(p, func(wait time.Duration) (*eventlog.Store, error) {
		p.Wait = wait
		return open(ctx)
	})
	if err != nil {
		return err
	}
	was = s.Identity()
	h := Hold(s, HoldOptions{Command: p.Command, KeyFile: p.KeyFile, Reopen: open})
	err = fn(ctx, h)
	return errors.Join(err, h.Close(context.WithoutCancel(ctx)))
}
