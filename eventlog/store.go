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
	MaxSize  int              // bytes of store.db, 0: no limit. The end of it is kept for what ends or narrows
	Clock    func() time.Time // nil: time.Now. A claim in events, never order
	Command  string           // named to processes that find the store locked

	// KeyFile is the signing key of a store that does not have it in its
	// directory. A store that has no key yet gets this one; it is made if it is
	// not there.
	KeyFile string

	fresh      bool   // do not use the index that is there
	signFrames uint64 // see checkpointer; 0: signFrames

	accept      bool   // go on although the store was rolled back, and sign nothing
	incarnation uint64 // which it gets, now that this was accepted; 0: its own
	groupBytes  uint64 // bytes after which a transaction is closed; 0: groupBytes
}

// Store is an open store. All methods may be called concurrently.
type Store struct {
	dir      string
	places   []string // see Places
	opts     Options
	limits   Limits
	identity Identity
	boot     uuid.UUID // of this hold of the store; uuid.Nil when read only

	lock    *dirLock
	journal *journal
	st      *state
	windows idWindows
	notices []Finding // what was put right or passed over at open

	condemned atomic.Pointer[map[uuid.UUID]bool] // sessions of a purge that was interrupted; nil: none

	queue         chan *unit
	submitMu      sync.RWMutex // Close excludes submitters
	committerDone chan struct{}
	closed        atomic.Bool
	stopped       atomic.Pointer[error] // a failure that refuses further writes
	changed       broadcast
	passage       turnstile    // of copies and erasers
	erasing       sync.RWMutex // held while a group that erases is committed and published
	purges        sync.Mutex   // one purge at a time
	markers       markers
	indexer       *indexer
	signing       *checkpointer
	key           *signKey // nil: nothing is signed
	evidence      *RollbackError
	closeOnce     sync.Once
	closeErr      error
}

// Open opens the store at dir. It brings a lagging index up to date in
// memory; opened read only it changes no file.
//
// Errors: ErrNotFound (no store there), ErrLocked with the holder, ErrCorrupt,
// ErrStoreLost, ErrInvalid (limits), ErrNewerFormat, ErrReadOnly (a backup),
// ErrNoSpace, ErrRollback (a *RollbackError).
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	limits, err := opts.Limits.withDefaults()
	if err != nil {
		return nil, err
	}
	if opts.groupBytes == 0 {
		opts.groupBytes = groupBytes
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
	identify := writableIdentity
	if opts.ReadOnly {
		identify = readIdentity
	}
	if _, err := identify(dir); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, places: placesOf(dir), opts: opts, limits: limits, windows: idWindows{sessions: map[uuid.UUID]*idWindow{}}}
	if s.lock, err = acquireLock(ctx, dir, !opts.ReadOnly, opts.Wait, opts.Command); err != nil {
		return nil, err
	}
	if err := s.load(ctx); err != nil {
		if noSpace(err) && !errors.Is(err, ErrNoSpace) { // of what makes the last commit durable, or finishes a purge
			err = fmt.Errorf("%w: %w", ErrNoSpace, err)
		}
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
		s.signing.start()
		go s.runCommitter()
	}
	return s, nil
}

// load reads what the directory holds, under the lock.
func (s *Store) load(ctx context.Context) (err error) {
	if s.identity, err = readIdentity(s.dir); err != nil {
		return err
	}
	if !s.opts.ReadOnly {
		if err := undoCompaction(s.dir); err != nil {
			return err
		}
	}
	if s.journal, err = openJournal(ctx, s.dir, s.opts.ReadOnly, s.opts.MaxSize); err != nil {
		return err
	}
	inside, err := s.journal.checkIdentity(s.identity)
	if err != nil {
		return err
	}
	if s.opts.incarnation != 0 {
		if inside, err = s.changeOrigin(inside); err != nil {
			return err
		}
	}
	if was := s.identity; !s.opts.ReadOnly && (was.Incarnation != inside.Incarnation || was.Key != inside.Key) {
		if err := s.replaceIdentity(inside); err != nil {
			return err
		}
	}
	s.identity = inside
	next, unsure, err := s.journalEnd()
	if err != nil {
		return err
	}
	if !s.opts.ReadOnly {
		if s.boot, err = uuid.NewRandom(); err != nil {
			return err
		}
		if err := s.journal.settle(); err != nil {
			return err
		}
		if err := s.journal.finishPurge(ctx); err != nil {
			return err
		}
	} else if err := s.noteCondemned(); errors.Is(err, ErrCorrupt) {
		s.notice(FindPages, 0, "whether a purge was interrupted can't be read: "+err.Error())
	} else if err != nil {
		return err
	}
	if err := s.loadState(ctx, next); err != nil {
		return err
	}
	s.st.unsure = unsure
	if err := s.heldToCheckpoint(ctx); err != nil || s.opts.ReadOnly {
		return err
	}
	return s.loadKey()
}

// maxSearched bounds how many positions past the last frame a reader looks for
// when the journal's sequence says that there are more.
const maxSearched = 1 << 20

// journalEnd finds the position after the last frame. A writer gets an error
// if there is any doubt about it. A reader is let in, to see what is left, but
// any session may then have lost its newest events, a narrowing among them:
// unsure says why no policy may be read.
func (s *Store) journalEnd() (next uint64, unsure string, err error) {
	next, sequence, err := s.journal.ends()
	if err != nil {
		return 0, "", err
	}
	if s.journal.damage != nil {
		s.notice(FindPages, 0, s.journal.damage.Error())
	}
	if s.journal.oneMeta {
		unsure = "store.db: one meta page is invalid, the last commit may be missing"
	}
	if next != sequence {
		var readErr error
		err := &CorruptError{Reason: fmt.Sprintf("store.db: the journal ends at position %d, its sequence says %d", next, sequence)}
		if !s.opts.ReadOnly {
			return 0, "", err
		}
		s.notice(FindMissing, next, err.Error())
		unsure = err.Reason
		if next > sequence && next-sequence > maxSearched { // a damaged key: nobody counts up to it
			if next, readErr = s.journal.believableEnd(); readErr != nil {
				return 0, "", readErr
			}
		}
		if sequence > next && sequence-next <= maxSearched {
			next = sequence
		}
	}
	return next, unsure, nil
}

func (s *Store) notice(kind string, position uint64, detail string) {
	if len(s.notices) < maxFindings {
		s.notices = append(s.notices, Finding{Kind: kind, Position: position, Detail: detail})
	}
}

// usable says why the handle serves nothing any more, if so.
func (s *Store) usable() error {
	if s.closed.Load() {
		return fmt.Errorf("%w: %s", ErrStoreClosed, s.dir)
	}
	return nil
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

// Writable says why the handle takes no appends any more, nil if it does: it was
// closed or opened for reading, or a commit failed so that its outcome is not
// known (ErrOutcomeUnknown) or that nothing more can be written.
func (s *Store) Writable() error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.writable()
}

// stop refuses all further writes of this handle.
func (s *Store) stop(err error) { s.stopped.CompareAndSwap(nil, &err) }

// published wakes followers and the indexer after a group became durable.
func (s *Store) published() {
	s.changed.wake()
	s.indexer.poke()
	s.signing.poke()
}

// Close commits and answers what is queued, brings the index up to date, signs
// a checkpoint if anything is new, and gives the store back. Calls after it fail with ErrStoreClosed. Closing twice
// is one close.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.closed.Store(true)
		if !s.opts.ReadOnly {
			s.submitMu.Lock() // no submitter is between its check and the queue
			close(s.queue)
			s.submitMu.Unlock()
			<-s.committerDone
			s.closeErr = errors.Join(s.indexer.close(), s.signing.close())
		}
		s.changed.wake()
		s.closeErr = errors.Join(s.closeErr, s.st.index.close(), s.journal.close())
		if !s.opts.ReadOnly && s.st.index != nil && s.st.index.damaged() != nil {
			s.closeErr = errors.Join(s.closeErr, removeIndex(s.dir)) // the next open builds it anew
		}
		s.closeErr = errors.Join(s.closeErr, s.lock.release(!s.opts.ReadOnly))
	})
	return s.closeErr
}

// Closed reports whether the handle was closed; a capture dies with it.
func (s *Store) Closed() bool { return s.closed.Load() }

// Dir is the store's absolute path.
func (s *Store) Dir() string { return s.dir }

// Places are the absolute paths that the store's directory has: the one that it
// was opened by and, where links are on the way, the one that they lead to. Who
// keeps tools out of it has to know both. The caller must not change them.
func (s *Store) Places() []string { return s.places }

func placesOf(dir string) []string {
	if to, err := filepath.EvalSymlinks(dir); err == nil && to != dir {
		return []string{dir, to}
	}
	return []string{dir}
}

// Identity says which store this is.
func (s *Store) Identity() Identity { return s.identity }

// Now is the store's clock, a claim. Nothing is ordered by it; deadlines are
// held against it.
func (s *Store) Now() time.Time { return s.opts.Clock() }

// Boot is the id of this hold of the store, uuid.Nil when read only.
func (s *Store) Boot() uuid.UUID { return s.boot }

// Notices lists what was passed over or rebuilt at open, for an operator.
func (s *Store) Notices() []string {
	out := make([]string, len(s.notices))
	for i, n := range s.notices {
		out[i] = n.Detail
	}
	return out
}

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
