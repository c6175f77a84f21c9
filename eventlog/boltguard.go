package eventlog

import (
	"errors"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
)

// guard keeps a database usable, or at least its callers alive, when reading
// through its memory map faults because the disk is gone or the file was cut.
//
// bbolt reads the meta pages under a lock, and a fault there leaves it locked:
// the next call, a commit that is under way and every call that waits already
// would wait for ever. The lock is given back, and the handle answers nothing
// any more.
type guard struct {
	dead  atomic.Pointer[error] // why no transaction begins any more
	stuck atomic.Bool           // a fault may have left a lock of bbolt's locked
}

// begin starts a transaction. It may panic, so it runs inside of protect.
func (g *guard) begin(db *bolt.DB, what string, writable bool) (*bolt.Tx, error) {
	if err := g.dead.Load(); err != nil {
		return nil, *err
	}
	begun := false
	defer func() {
		if begun {
			return
		}
		err := error(&CorruptError{Reason: what + ": the file can't be read any more; open the store again"})
		g.dead.Store(&err)
		g.stuck.Store(true)
		if !writable { // one that writes gives this lock back itself
			metaLock(db).Unlock()
		}
	}()
	tx, err := db.Begin(writable)
	begun = true
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		err = ErrStoreClosed
	}
	return tx, err
}

// metaLock is the lock that a transaction which reads holds while it begins.
// bbolt does not export it. Whatever of its Begin can fault runs under it.
func metaLock(db *bolt.DB) *sync.Mutex {
	field := reflect.ValueOf(db).Elem().FieldByName("metalock")
	return (*sync.Mutex)(unsafe.Pointer(field.UnsafeAddr()))
}

// view runs fn in a transaction that reads.
func (g *guard) view(db *bolt.DB, what string, fn func(*bolt.Tx) error) error {
	return protect(what, func() error {
		tx, err := g.begin(db, what, false)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		return fn(tx)
	})
}

// update runs fn in a transaction that writes, and commits it.
func (g *guard) update(db *bolt.DB, what string, fn func(*bolt.Tx) error) error {
	return g.writing(what, func() error {
		tx, err := g.begin(db, what, true)
		if err != nil {
			return err
		}
		defer tx.Rollback() // after Commit it does nothing
		if err := fn(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// writing is protect for a function that commits. If it panics its rollback may
// have panicked too, and the writer's lock is still locked.
func (g *guard) writing(what string, fn func() error) error {
	return protect(what, func() error {
		returned := false
		defer func() {
			if !returned {
				g.stuck.Store(true)
			}
		}()
		err := fn()
		returned = true
		return err
	})
}

// close closes the database, or, where that could wait for a lock for ever, its
// file. The map stays then, and with it the lock of the file, unless it is
// given back.
func (g *guard) close(db *bolt.DB, file *os.File, what string) error {
	if !g.stuck.Load() {
		return protect(what, db.Close)
	}
	return errors.Join(unix.Flock(int(file.Fd()), unix.LOCK_UN), file.Close())
}
