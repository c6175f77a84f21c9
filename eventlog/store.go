package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Options opens a store. The zero value opens it for writing, at once or not
// at all, with the default limits.
type Options struct {
	ReadOnly bool             // never writes a byte; several may read at a time
	Wait     time.Duration    // how long to wait for the lock; 0: fail at once
	Limits   Limits           // zero fields: the caps
	MaxSize  int              // bytes of store.db, 0: no limit
	Clock    func() time.Time // nil: time.Now. A claim in events, never order
	Command  string           // named to processes that find the store locked

	fresh bool // do not use the index that is there
}

// Store is an open store. All methods may be called concurrently.
type Store struct {
	dir      string
	opts     Options
	limits   Limits
	identity Identity
	boot     uuid.UUID // of this hold of the store; uuid.Nil when read only

	lock    *dirLock
	journal *journal
	st      *state
	windows idWindows
	notices []string // what was put right or passed over at open

	queue         chan *unit
	submitMu      sync.RWMutex // Close excludes submitters
	committerDone chan struct{}
	stopped       atomic.Pointer[error]
	changed       broadcast
	indexer       *indexer
	closeOnce     sync.Once
	closeErr      error
}

// Open opens the store at dir. It brings a lagging index up to date in
// memory; opened read only it changes no file.
//
// Errors: ErrNotFound (no store there), ErrLocked with the holder, ErrCorrupt,
// ErrStoreLost, ErrInvalid (limits, a newer format).
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	limits, err := opts.Limits.withDefaults()
	if err != nil {
		return nil, err
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Command == "" {
		opts.Command = strings.Join(os.Args[:min(len(os.Args), 2)], " ")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if _, err := readIdentity(dir); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, opts: opts, limits: limits, windows: idWindows{sessions: map[uuid.UUID]*idWindow{}}}
	if s.lock, err = acquireLock(ctx, dir, !opts.ReadOnly, opts.Wait, opts.Command); err != nil {
		return nil, err
	}
	if err := s.load(ctx); err != nil {
		s.journal.close()
		if s.st != nil {
			s.st.index.close()
		}
		s.lock.release(!opts.ReadOnly)
		return nil, err
	}
	if !opts.ReadOnly {
		s.queue = make(chan *unit, queueLen)
		s.committerDone = make(chan struct{})
		s.indexer = startIndexer(s)
		go s.runCommitter()
	}
	return s, nil
}

// load reads what the directory holds, under the lock.
func (s *Store) load(ctx context.Context) (err error) {
	if s.identity, err = readIdentity(s.dir); err != nil {
		return err
	}
	if s.journal, err = openJournal(ctx, s.dir, s.opts.ReadOnly, s.opts.MaxSize); err != nil {
		return err
	}
	if err := s.journal.checkIdentity(s.identity); err != nil {
		return err
	}
	next, err := s.journal.next()
	if err != nil && !(s.opts.ReadOnly && errors.Is(err, ErrCorrupt)) {
		return err
	}
	if err != nil {
		s.notices = append(s.notices, err.Error())
	}
	if !s.opts.ReadOnly {
		if s.boot, err = uuid.NewRandom(); err != nil {
			return err
		}
	}
	return s.loadState(ctx, next)
}

// writable says why nothing can be written now, if so.
func (s *Store) writable() error {
	if s.opts.ReadOnly {
		return fmt.Errorf("%w: the store was opened for reading", ErrReadOnly)
	}
	if err := s.stopped.Load(); err != nil {
		return *err
	}
	return nil
}

// stop refuses all further writes of this handle.
func (s *Store) stop(err error) { s.stopped.CompareAndSwap(nil, &err) }

// published wakes followers and the indexer after a group became durable.
func (s *Store) published() {
	s.changed.wake()
	s.indexer.poke()
}

// Close waits for queued appends, brings the index up to date and gives the
// store back. Appends after it fail with ErrStoreClosed. Closing twice is one
// close.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.stop(fmt.Errorf("%w: %s", ErrStoreClosed, s.dir))
		if !s.opts.ReadOnly {
			s.submitMu.Lock() // no submitter is between its check and the queue
			close(s.queue)
			s.submitMu.Unlock()
			<-s.committerDone
			s.closeErr = s.indexer.close()
		}
		s.changed.wake()
		s.closeErr = errors.Join(s.closeErr, s.st.index.close(), s.journal.close(), s.lock.release(!s.opts.ReadOnly))
	})
	return s.closeErr
}

// Closed reports whether the handle still serves; a capture dies with it.
func (s *Store) Closed() bool {
	err := s.stopped.Load()
	return err != nil && errors.Is(*err, ErrStoreClosed)
}

// Dir is the store's absolute path.
func (s *Store) Dir() string { return s.dir }

// Identity says which store this is.
func (s *Store) Identity() Identity { return s.identity }

// Boot is the id of this hold of the store, uuid.Nil when read only.
func (s *Store) Boot() uuid.UUID { return s.boot }

// Notices lists what was passed over or rebuilt at open, for an operator.
func (s *Store) Notices() []string { return s.notices }

// broadcast wakes any number of waiters.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

// wait returns a channel that the next wake closes.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
