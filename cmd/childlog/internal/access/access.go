// Package access is the one seam through which the command reaches a store. In
// a process of its own a command opens the directory; in one that holds the
// store it works on that, beside others ([Held]).
package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"childlog/eventlog"
)

// Place says which store is meant and how to open it.
type Place struct {
	Dir     string
	Wait    time.Duration // for the lock; 0: fail at once
	Command string        // named to processes that find the store locked
	KeyFile string        // the signing key, if it is not in the store; "": it is
	Held    *Held         // this process holds the store; nil: it is to be opened
	Waited  time.Duration // for a holder, before Wait; for the words of an error
}

// Shared is the place of a store that this process holds. shown is what whoever
// asks calls its directory.
func Shared(h *Held, shown string, p Place) Place {
	if p.Dir, p.KeyFile, p.Held = h.dir, h.o.KeyFile, h; shown != "" {
		p.Dir = shown
	}
	return p
}

// readerGrace is how long a command without a wait bears with a holder that
// has no name: a reader, or a writer that is just coming or going. Readers
// hold the store for milliseconds, and `log -f` comes back again and again; a
// writer that lives names itself and is reported at once.
const readerGrace = 300 * time.Millisecond

// CloseError says that all work was done and is durable, and that giving the
// store back failed.
type CloseError struct{ Err error }

func (e *CloseError) Error() string {
	return "everything was written, but closing the store failed: " + e.Err.Error()
}

func (e *CloseError) Unwrap() error { return e.Err }

// Read runs fn on the store opened read only: no byte of it changes. fn should
// collect and return, since nobody can write meanwhile.
func Read(ctx context.Context, p Place, fn func(*eventlog.Store) error) error {
	return use(ctx, p, true, fn)
}

// Write runs fn on the store held for writing. A *CloseError is returned only
// if fn succeeded.
func Write(ctx context.Context, p Place, fn func(*eventlog.Store) error) error {
	return use(ctx, p, false, fn)
}

func use(ctx context.Context, p Place, readOnly bool, fn func(*eventlog.Store) error) error {
	if p.Held != nil {
		return p.Held.Use(ctx, fn)
	}
	s, err := patiently(p, func(wait time.Duration) (*eventlog.Store, error) {
		return eventlog.Open(ctx, p.Dir, eventlog.Options{ReadOnly: readOnly, Wait: wait, Command: p.Command, KeyFile: p.KeyFile})
	})
	if err != nil {
		return err
	}
	err = fn(s)
	closeErr := s.Close()
	if err != nil || closeErr == nil {
		return err
	}
	if readOnly {
		return closeErr
	}
	return &CloseError{closeErr}
}

// patiently runs what takes the store, with the grace that readers get.
func patiently[T any](p Place, take func(wait time.Duration) (T, error)) (T, error) {
	v, err := take(p.Wait)
	le := (*eventlog.LockedError)(nil)
	if errors.As(err, &le) && le.PID == 0 && p.Wait < readerGrace {
		v, err = take(readerGrace)
	}
	if errors.As(err, &le) {
		le.Waited += p.Waited
	}
	return v, err
}

// Compact rewrites the store, which nobody may hold; a Held that can, lets go of
// it meanwhile.
func Compact(ctx context.Context, p Place, progress func(done, of int)) (out eventlog.Compacted, err error) {
	if h := p.Held; h != nil {
		err = h.alone(ctx, p, func() (err error) {
			out, err = Compact(ctx, Place{Dir: h.dir, Wait: p.Wait, Command: p.Command}, progress)
			return err
		})
		return out, err
	}
	return patiently(p, func(wait time.Duration) (eventlog.Compacted, error) {
		return eventlog.Compact(ctx, p.Dir, eventlog.CompactOptions{Wait: wait, Command: p.Command, Progress: progress})
	})
}

// Restore makes the store from a backup. Errors: ErrExists.
func Restore(ctx context.Context, backup string, p Place, progress func(done, of int)) (eventlog.Restored, error) {
	return eventlog.Restore(ctx, backup, p.Dir, eventlog.RestoreOptions{Progress: progress, KeyFile: p.KeyFile})
}

// AcceptRollback goes on with a store that was rolled back.
func AcceptRollback(ctx context.Context, p Place, reason string) (eventlog.Accepted, error) {
	return patiently(p, func(wait time.Duration) (eventlog.Accepted, error) {
		return eventlog.AcceptRollback(ctx, p.Dir, eventlog.AcceptOptions{By: "operator", Reason: reason,
			Options: eventlog.Options{Wait: wait, Command: p.Command, KeyFile: p.KeyFile}})
	})
}

// Init creates the store. Errors: ErrExists.
func Init(ctx context.Context, p Place) (eventlog.Identity, error) {
	return eventlog.InitWith(ctx, p.Dir, eventlog.InitOptions{KeyFile: p.KeyFile})
}

// Reindex rebuilds the index of the store, which nobody may hold; a Held that
// can, lets go of it meanwhile.
func Reindex(ctx context.Context, p Place) (id eventlog.Identity, stats eventlog.Stats, err error) {
	if h := p.Held; h != nil {
		err = h.alone(ctx, p, func() (err error) {
			id, stats, err = Reindex(ctx, Place{Dir: h.dir, Wait: p.Wait, Command: p.Command, KeyFile: h.o.KeyFile})
			return err
		})
		return id, stats, err
	}
	stats, err = eventlog.Reindex(ctx, p.Dir, eventlog.Options{Wait: p.Wait, Command: p.Command, KeyFile: p.KeyFile})
	if err != nil {
		return id, stats, err
	}
	err = Read(ctx, p, func(s *eventlog.Store) (err error) {
		id = s.Identity()
		stats, err = Stats(s)
		return err
	})
	return id, stats, err
}

// Salvage saves what is left of the store into a new one at to.
func Salvage(ctx context.Context, p Place, to string, o eventlog.SalvageOptions) (*eventlog.SalvageReport, error) {
	o.Wait = max(p.Wait, readerGrace)
	return eventlog.Salvage(ctx, p.Dir, to, o)
}

// Stats describes a store. Its own session is no agent, and is not counted
// among the sessions; its events are.
func Stats(s *eventlog.Store) (eventlog.Stats, error) {
	stats, err := s.Stats()
	if _, rowErr := s.Row(eventlog.StoreSession); rowErr == nil && stats.Sessions > 0 {
		stats.Sessions--
	}
	return stats, err
}

// Exists reports whether anything of a store is there.
func Exists(p Place) bool {
	if p.Held != nil {
		return true
	}
	_, err := os.Stat(filepath.Join(p.Dir, "IDENTITY"))
	return err == nil
}

// stampBytes are those at the beginning of store.db in which every commit writes:
// bbolt numbers them in its first two pages in turn, of at most 64 KiB each.
const stampBytes = 128 << 10

// Stamp changes whenever something is written to the store, which is not opened
// for it. The time of the file does not tell by itself: many kernels count it in
// ticks of up to 10 ms, in which one writer may follow another, and a commit that
// finds room in the file leaves its size.
func Stamp(p Place) string {
	f, err := os.Open(filepath.Join(p.Dir, "store.db"))
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, stampBytes)); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %d %x", fi.ModTime().UnixNano(), fi.Size(), h.Sum(nil))
}

// Abs is the store's path for people.
func Abs(p Place) string {
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return p.Dir
	}
	return dir
}
