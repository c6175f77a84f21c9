package eventlog

import (
	"fmt"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// NoSpaceError says that a copy was not begun because it would not fit.
type NoSpaceError struct {
	Path       string // where it would have been written
	Need, Free uint64 // bytes; Free is what this user may still take
}

func (e *NoSpaceError) Error() string {
	return fmt.Sprintf("no space: %s: want %d bytes free, got %d", e.Path, e.Need, e.Free)
}

func (e *NoSpaceError) Unwrap() error { return ErrNoSpace }

// freeSpace is what a user without privileges may still take of the file
// system at path, bytes. Variable for tests.
var freeSpace = func(path string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, fmt.Errorf("free space at %s: %w", path, err)
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil // FreeBSD counts below zero what is kept for root
}

// copyMargin is what a copy may take beyond the pages that are in use, bytes:
// a page of other size may hold less, and the copy has a few free pages too.
const copyMargin = 1 << 20

// checkSpace refuses a copy of inUse bytes of pages into dir if it may not fit.
func checkSpace(dir string, inUse uint64) error {
	free, err := freeSpace(dir)
	if err != nil {
		return err
	}
	if need := inUse + inUse/8 + copyMargin; free < need {
		return &NoSpaceError{Path: dir, Need: need, Free: free}
	}
	return nil
}

// usage is how many pages the journal has and how many of them are free.
func (j *journal) usage() (pages, free uint64, err error) {
	var size int64
	if err := j.view(func(tx *bolt.Tx) error { size = tx.Size(); return nil }); err != nil {
		return 0, 0, err
	}
	// bbolt counts them when a transaction that writes ends, and not before.
	free = j.freeOpen
	if st := j.db.Stats(); st.FreelistInuse > 0 {
		free = uint64(st.FreePageN + st.PendingPageN)
	}
	return uint64(size) / uint64(j.pageSize), free, nil
}
