package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
)

// compactFile is the name of the copy that is to become store.db. It is fixed,
// so that whoever opens the store to write knows what is left of a compaction.
const compactFile = journalFile + ".compact"

// compactedIndex is the same of the index.
const compactedIndex = indexFile + ".compact"

// CompactOptions says how Compact gets at the store.
type CompactOptions struct {
	Wait     time.Duration      // how long to wait for the lock; 0: fail at once
	Command  string             // named to processes that find the store locked
	Progress func(done, of int) // positions; called now and then, may be nil

	at steps
}

// Compacted is what a compaction did.
type Compacted struct {
	Copied
	Identity Identity
	Before   int64 // bytes of store.db before; Copied has those after
}

// Compact rewrites store.db of the store at dir so that it holds what is live
// and nothing else: pages come in key order and full, free pages and the bytes
// of what was deleted are gone. Positions, frames, hashes and the identity stay,
// so the index stays valid; where something was erased its free pages go too. The
// store must not be open elsewhere. An interrupted purge is refused: the next
// open for writing finishes it.
//
// The copy is written beside store.db, synced, read back and compared, and then
// takes its name; until that moment nothing of the store was touched, and after
// it everything is done. What a crash leaves is a copy under another name,
// which the next open for writing removes. LOCK is held all the while and never
// replaced: a process that waits for it opens the new file afterwards.
//
// A store with any damage is refused, with its place: pages, checksums, chains,
// units, contents. A copy would carry on what can still be read and drop the
// rest for good; that is for salvage, which says what was lost. Contents that
// were erased and frames that were purged are no damage.
//
// Memory is bounded by one page of the copy (about 4 MiB of records) and grows
// with the number of sessions, about 150 bytes each.
//
// Errors: ErrNotFound, ErrLocked, ErrCorrupt, ErrStoreLost, ErrReadOnly (a
// backup), ErrNoSpace (with what is needed, before anything is written),
// ErrNewerFormat.
func Compact(ctx context.Context, dir string, o CompactOptions) (out Compacted, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return out, err
	}
	if _, err := writableIdentity(dir); err != nil { // before LOCK is touched where it must not be
		return out, err
	}
	if o.Command == "" {
		o.Command = strings.Join(os.Args[:min(len(os.Args), 2)], " ")
	}
	lock, err := acquireLock(ctx, dir, true, o.Wait, o.Command)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, lock.release(true)) }()
	if out.Identity, err = writableIdentity(dir); err != nil {
		return out, err
	}
	if err := undoCompaction(dir); err != nil {
		return out, err
	}
	path := filepath.Join(dir, journalFile)
	was, err := os.Lstat(path)
	if err != nil {
		return out, err
	}
	if !was.Mode().IsRegular() { // the copy would replace a link, and what it leads to would stay
		return out, invalidf("compact: %s is no regular file", path)
	}
	out.Before = was.Size()
	j, end, err := openSound(ctx, dir, out.Identity)
	if err != nil {
		return out, err
	}
	defer j.close()
	if err := j.purged(); err != nil {
		return out, err
	}
	pages, free, err := j.usage()
	if err != nil {
		return out, err
	}
	if err := checkSpace(dir, (pages-free)*uint64(j.pageSize)); err != nil {
		return out, err
	}
	signed, ok, re := heldTo(dir, out.Identity)
	if re != nil {
		return out, re
	}
	c := copying{src: j, end: end, static: true, identity: out.Identity, path: filepath.Join(dir, compactFile), pageSize: journalPageSize, progress: o.Progress, at: o.at}
	if ok {
		c.signed = &signed
	}
	if out.Copied, err = c.run(ctx); err != nil {
		return out, fmt.Errorf("compact %s: %w", dir, err)
	}
	if err := keepOwner(c.path, was); err != nil {
		return out, errors.Join(err, os.Remove(c.path))
	}
	if err := o.at.reached("before rename"); err != nil {
		return out, errors.Join(err, os.Remove(c.path))
	}
	// The point of no return. Before it the store is the old file, whole; after
	// it the new one, synced and compared. A crash before the directory is
	// synced leaves either.
	if err := os.Rename(c.path, path); err != nil {
		return out, errors.Join(err, os.Remove(c.path))
	}
	if err := o.at.reached("renamed"); err != nil {
		return out, err
	}
	if out.Erased+out.Tombstones > 0 {
		err = compactIndex(dir, end)
	}
	return out, errors.Join(err, syncDir(dir))
}

// compactIndex drops the free pages of the index, in which a label or a
// directory may lie that was erased. An index that does not cover the journal to
// its end may even hold them still; it is removed, as one is that can't be copied:
// the next open builds it anew.
func compactIndex(dir string, end uint64) error {
	path, tmp := filepath.Join(dir, indexFile), filepath.Join(dir, compactedIndex)
	err := freshFile(tmp)
	if err == nil {
		err = protect("index", func() error { return copyIndex(path, tmp, end) })
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return errors.Join(removeIndex(dir), freshFile(tmp))
}

func copyIndex(path, tmp string, end uint64) (err error) {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	if err := inspectIndex(path); err != nil {
		return err
	}
	src, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	if err := src.View(func(tx *bolt.Tx) error {
		c, _, err := readCover(tx)
		if err == nil && c.Next != end {
			err = fmt.Errorf("the index covers %d frames of %d", c.Next, end)
		}
		return err
	}); err != nil {
		return err
	}
	dst, err := bolt.Open(tmp, 0o600, &bolt.Options{Timeout: time.Second, NoSync: true})
	if err != nil {
		return err
	}
	err = bolt.Compact(dst, src, 1<<20)
	if err == nil {
		err = dst.Sync()
	}
	return errors.Join(err, dst.Close())
}

// openSound opens a store.db that nobody writes, reads all of its pages and
// refuses any damage. end is the position after the last frame.
func openSound(ctx context.Context, dir string, id Identity) (j *journal, end uint64, err error) {
	if j, err = openJournal(ctx, dir, true, 0); err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.close())
			j = nil
		}
	}()
	if j.damage != nil {
		return j, 0, j.damage
	}
	if err := soundPages(ctx, dir); err != nil {
		return j, 0, err
	}
	if _, err := j.checkIdentity(id); err != nil {
		return j, 0, err
	}
	end, sequence, err := j.ends()
	if err == nil && end != sequence {
		err = &CorruptError{Reason: fmt.Sprintf("store.db: the journal ends at position %d, its sequence says %d", end, sequence)}
	}
	return j, end, err
}

// soundPages reads every page of a store.db that nobody writes. A leaf that
// lost a count hides contents, and what is hidden looks as if it were erased.
func soundPages(ctx context.Context, dir string) error {
	report, err := inspectFile(ctx, filepath.Join(dir, journalFile))
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		return damageError(journalFile, err)
	}
	return nil
}

// keepOwner gives a file the owner of the one it replaces: a compaction by
// another user must not take the store from its own.
func keepOwner(path string, was os.FileInfo) error {
	is, err := os.Stat(path)
	if err != nil {
		return err
	}
	uid, gid, ok := owner(was)
	if u, g, _ := owner(is); !ok || u == uid && g == gid {
		return nil
	}
	return os.Chown(path, uid, gid)
}

func owner(fi os.FileInfo) (uid, gid int, ok bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

// undoCompaction removes what a crashed compaction left: a copy that was not
// store.db yet. Called by who is about to write, under the exclusive lock.
func undoCompaction(dir string) error {
	return errors.Join(freshFile(filepath.Join(dir, compactFile)), freshFile(filepath.Join(dir, compactedIndex)))
}
