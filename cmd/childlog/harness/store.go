package harness

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/ops"
	"childlog/eventlog"
	"childlog/replay"
)

// Store is a [Harness] on a store that this process holds. It needs no
// network and no other process; while it holds the store for writing no other
// process writes it, but through whoever serves it.
type Store struct {
	s      *eventlog.Store
	owned  bool
	closed atomic.Bool
	open   context.Context // ends with Close
	stop   context.CancelFunc

	mu          sync.Mutex
	authorizers map[uuid.UUID]*replay.Authorizer
}

// maxAuthorizers bounds the compiled policies that are kept, some KiB each.
const maxAuthorizers = 1024

// Open opens the store at dir for writing, which this process then holds until
// Close. Errors: those of [eventlog.Open], such as ErrLocked with an
// [eventlog.LockedError] that names the holder, who may serve it ([Dial]), and
// ErrNotFound where [eventlog.Init] made none.
func Open(ctx context.Context, dir string, o eventlog.Options) (*Store, error) {
	s, err := eventlog.Open(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	h := On(s)
	h.owned = true
	return h, nil
}

// On is a harness on a store that is open. The store stays the caller's to
// close, after the harness.
func On(s *eventlog.Store) *Store {
	h := &Store{s: s, authorizers: map[uuid.UUID]*replay.Authorizer{}}
	h.open, h.stop = context.WithCancel(context.Background())
	return h
}

// Close implements [Harness]. It closes the store if Open opened it, which
// waits for what was queued.
func (h *Store) Close() error {
	was := h.closed.Swap(true)
	h.stop() // those who wait for events in a store that stays open
	if was || !h.owned {
		return nil
	}
	return h.s.Close()
}

// Unwrap is the store itself, for what a harness does not do: serving it (package
// serve), erasing, backups. It is the harness's to close if Open opened it.
func (h *Store) Unwrap() *eventlog.Store { return h.s }

// usable refuses calls after Close.
func (h *Store) usable() error {
	if h.closed.Load() {
		return fmt.Errorf("%w: the harness was closed", eventlog.ErrStoreClosed)
	}
	return nil
}

// session finds the session that a request names.
func (h *Store) session(ctx context.Context, name string) (uuid.UUID, error) {
	if err := h.usable(); err != nil {
		return uuid.Nil, err
	}
	if name == "" {
		return uuid.Nil, missing("session")
	}
	return ops.Resolve(ctx, h.s, name)
}

// by finds a session and in whose name a request about it is made.
func (h *Store) by(ctx context.Context, session, caller string) (uuid.UUID, replay.Caller, error) {
	switch caller {
	case "":
		return uuid.Nil, replay.Caller{}, fmt.Errorf("%w: /by: want the parent session, or %s", eventlog.ErrInvalid, Operator)
	case Operator:
		id, err := h.session(ctx, session)
		return id, replay.AsOperator(), err
	}
	id, err := h.session(ctx, session)
	if err != nil {
		return uuid.Nil, replay.Caller{}, err
	}
	c, err := ops.ParentOf(ctx, h.s, caller)
	return id, c, err
}

// authorizer is the one that is kept for a session, or a new one. Beyond the
// bound any of the others goes: it holds nothing that is not in the log.
func (h *Store) authorizer(session uuid.UUID) *replay.Authorizer {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.authorizers[session]
	if a == nil {
		for other := range h.authorizers {
			if len(h.authorizers) < maxAuthorizers {
				break
			}
			delete(h.authorizers, other)
		}
		a = replay.NewAuthorizer(h.s, session)
		h.authorizers[session] = a
	}
	return a
}

// missing is the error of a request without something that it needs.
func missing(key string) error {
	return fmt.Errorf("%w: /%s: missing", eventlog.ErrInvalid, key)
}

var _ Harness = (*Store)(nil)
