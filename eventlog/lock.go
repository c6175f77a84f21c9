package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockFile is the flock target. It is never renamed or replaced: bbolt locks
// the database's inode, so a process that waits for the database while it is
// swapped would go on with the orphan. This lock is taken first.
const lockFile = "LOCK"

// holder is what the LOCK file says about the process that holds it. It is
// only read for an error message; the lock itself is the kernel's.
type holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// dirLock is a held lock.
type dirLock struct{ f *os.File }

// lockPoll is how often a waiting opener looks again.
const lockPoll = 25 * time.Millisecond

// acquireLock takes the directory's lock, exclusive for writing or shared for
// reading, waiting at most wait. A LOCK file that can't be there (read-only
// media) does not keep a reader out.
func acquireLock(ctx context.Context, dir string, exclusive bool, wait time.Duration, command string) (*dirLock, error) {
	path := filepath.Join(dir, lockFile)
	mode, how := os.O_RDONLY, unix.LOCK_SH
	if exclusive {
		mode, how = os.O_RDWR|os.O_CREATE, unix.LOCK_EX
	}
	f, err := os.OpenFile(path, mode|unix.O_CLOEXEC, 0o600)
	if !exclusive && errors.Is(err, os.ErrNotExist) {
		return &dirLock{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	start := time.Now()
	for {
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		waited := time.Since(start)
		if waited >= wait {
			defer f.Close()
			return nil, lockedBy(dir, f, waited)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(min(lockPoll, wait-waited)):
		}
	}
	if exclusive {
		// On a full disk nobody is named. A narrowing fits into the pages that
		// store.db has, and is not kept out for want of words.
		if err := writeHolder(f, command); err != nil && !noSpace(err) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
	return &dirLock{f: f}, nil
}

func writeHolder(f *os.File, command string) error {
	b, err := json.Marshal(holder{PID: os.Getpid(), Command: command, Since: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(b, '\n'), 0)
	return err
}

// HeldBy says who holds the store at dir for writing, nil if nobody says so. It
// goes by what LOCK says and takes no lock: words for who looks for a process
// that is about to serve the store, and no proof either way.
func HeldBy(dir string) *LockedError {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return nil
	}
	defer f.Close()
	if e := lockedBy(dir, f, 0); e.PID > 0 {
		return e
	}
	return nil
}

func lockedBy(dir string, f *os.File, waited time.Duration) *LockedError {
	e := &LockedError{Path: dir}
	if waited >= lockPoll {
		e.Waited = waited
	}
	var h holder
	if b, err := io.ReadAll(io.NewSectionReader(f, 0, 4096)); err != nil || json.Unmarshal(b, &h) != nil {
		return e
	}
	if h.PID > 0 && errors.Is(unix.Kill(h.PID, 0), unix.ESRCH) {
		return e // a writer that was killed; readers hold the lock now
	}
	e.PID, e.Command, e.Since = h.PID, h.Command, h.Since
	return e
}

// release gives the lock back. The file stays, emptied by a writer so that
// nobody is named who does not hold it.
//
// The lock is not left to the end of the descriptor: a process that is being
// started, by whatever part of this program, has all descriptors until it runs
// its own, and would hold the lock for that long.
func (l *dirLock) release(exclusive bool) error {
	if l == nil || l.f == nil {
		return nil
	}
	if exclusive {
		_ = l.f.Truncate(0) // only words for an error message
	}
	err := errors.Join(unix.Flock(int(l.f.Fd()), unix.LOCK_UN), l.f.Close())
	l.f = nil
	return err
}
