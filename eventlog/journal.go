package eventlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"childlog/eventlog/pagecheck"
)

// The journal is store.db, the only truth. Everything that knows bbolt's
// transactions and their traps stands in this file.
var (
	bucketJournal    = []byte("journal")    // position u64be -> frame
	bucketContents   = []byte("contents")   // see content.go
	bucketTombstones = []byte("tombstones") // position u64be -> leaf hash of a purged frame
	keyIdentity      = []byte("identity")
)

// allocSize is how much the file grows at a time, bytes. bbolt's own 16 MiB
// would make a new store and a nearly full disk fail early.
const allocSize = 4 << 20

// journalPageSize is the size in bytes of the pages of a new store.db, and of
// one that was compacted; others keep theirs. Against 4 KiB, bbolt's own choice
// here, pages in use for each byte of content of 300 bytes (BenchmarkPageSize):
//
//	              4 KiB  8 KiB  16 KiB  32 KiB
//	 1 child, 1   2.28   2.02   2.00    2.04     an event a batch
//	 1 child, 8   2.15   1.71   1.65    1.61     eight events a batch
//	64 children   1.92   1.84   1.82    1.83
//	512 children  1.91   1.83   1.82    1.81
//
// A commit took the same time within the noise with 4 and 8 KiB (one child 3.4
// against 3.4 ms, 64 children 7.4 against 7.7 ms, 512 children 46 against 33
// ms), though one child's wrote 48 KiB in place of 26; larger pages write 95 and
// 186 KiB for next to nothing.
const journalPageSize = 8 << 10

// mapReservation is how much address space the writer's map reserves, bytes.
// Without it the first remap waits for every open reader.
func mapReservation(readOnly bool) int {
	if readOnly || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return 0
	}
	return min(64<<30, math.MaxInt) // the smaller where int has 32 bits, for the compiler
}

type journal struct {
	db       *bolt.DB
	file     *os.File
	pageSize int
	damage   error  // what the pages say, if a reader was let in all the same
	oneMeta  bool   // one of the two meta pages is invalid
	freeOpen uint64 // free pages at open
	guard    guard
	room     roomGauge
}

// openJournal opens store.db after the guards that bbolt lacks: an empty file
// is a lost store and not a new one, the file must be the one the path still
// names, and before anything may be written the meta pages, the branch pages
// and the freelist must agree.
func openJournal(ctx context.Context, dir string, readOnly bool, maxSize int) (*journal, error) {
	path := filepath.Join(dir, journalFile)
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if fi.Size() == 0 {
		return nil, fmt.Errorf("%w: %s is empty", ErrStoreLost, path)
	}
	j := new(journal)
	if err := j.inspectPages(ctx, path, fi.Size(), readOnly); err != nil {
		return nil, err
	}
	err = protect("store.db", func() (err error) {
		j.db, err = bolt.Open(path, 0o600, &bolt.Options{ReadOnly: readOnly, Timeout: time.Second, FreelistType: bolt.FreelistMapType,
			InitialMmapSize: mapReservation(readOnly), MaxSize: maxSize,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				j.file, err = os.OpenFile(name, flag&^os.O_CREATE, mode)
				return j.file, err
			}})
		return err
	})
	if err != nil {
		if j.file != nil {
			j.file.Close() // bbolt did, unless it panicked: then its lock would stay
		}
		if errors.Is(err, berrors.ErrTimeout) {
			return nil, &LockedError{Path: dir}
		}
		return nil, damageError("store.db", err)
	}
	if j.db.AllocSize = allocSize; maxSize > 0 { // it is added to what a commit needs
		j.db.AllocSize = min(allocSize, maxSize/8)
	}
	j.pageSize = j.db.Info().PageSize
	j.measureRoom()
	at, err1 := os.Stat(path)
	is, err2 := j.file.Stat()
	if err1 != nil || err2 != nil || !os.SameFile(at, is) {
		j.db.Close()
		return nil, fmt.Errorf("%w: %s was replaced while it was opened; open it again", ErrLocked, path)
	}
	return j, nil
}

// inspectPages runs the raw reader. A reader of a damaged file is let in,
// since it must be able to say what is left; every frame it reads has a
// checksum of its own.
func (j *journal) inspectPages(ctx context.Context, path string, size int64, readOnly bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	report, err := pagecheck.Inspect(ctx, f, size)
	if err != nil {
		return damageError("store.db", err)
	}
	if err := report.Err(); err != nil {
		j.damage = damageError("store.db", err)
	}
	j.freeOpen = report.Free
	j.oneMeta = !report.Metas[0].Valid || !report.Metas[1].Valid
	if readOnly && (report.Metas[0].Valid || report.Metas[1].Valid) && !endless(report) {
		return nil
	}
	return j.damage
}

// endless reports whether a cursor may never come to an end: bbolt follows a
// branch that leads back to itself until the memory is gone.
func endless(r pagecheck.Report) bool {
	return slices.ContainsFunc(r.Problems, func(p pagecheck.Problem) bool {
		return p.Kind == pagecheck.KindReferencedTwice || p.Kind == pagecheck.KindTooDeep
	})
}

func damageError(what string, err error) error {
	if errors.Is(err, ErrCorrupt) || errors.Is(err, os.ErrPermission) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &CorruptError{Reason: what + ": " + err.Error()}
}

// protect turns a panic and a fault through the memory map into an error.
// bbolt asserts and dereferences what a damaged page says.
func protect(what string, fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &CorruptError{Reason: what + ": " + panicText(p)}
		}
	}()
	return fn()
}

// panicText says what a panic found. An index or an address out of range, in
// the runtime's words, tells a person nothing about a file.
func panicText(p any) string {
	if re, ok := p.(runtime.Error); ok {
		for _, where := range []string{"out of range", "invalid memory address", "unexpected fault address"} {
			if strings.Contains(re.Error(), where) {
				return "a damaged page leads out of the file"
			}
		}
	}
	return strings.TrimPrefix(fmt.Sprint(p), "assertion failed: ")
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.guard.close(j.db, j.file, "store.db")
}

func (j *journal) view(fn func(*bolt.Tx) error) error {
	return j.guard.view(j.db, "store.db", fn)
}

// getCopy returns a copy of a value, nil if there is none. Damage in the pages
// that lead to it, or below it, fails this one value and not the transaction.
func getCopy(b *bolt.Bucket, key []byte) (value []byte, err error) {
	err = protect("store.db", func() error {
		value = bytes.Clone(b.Get(key))
		return nil
	})
	return value, err
}

func positionKey(position uint64) []byte {
	return binary.BigEndian.AppendUint64(nil, position)
}

// ends returns the position after the last frame in two ways. The journal's
// sequence is set to it in every commit: a leaf that lost a count would hide
// frames, and the two numbers then differ.
func (j *journal) ends() (next, sequence uint64, err error) {
	err = j.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketJournal)
		if b == nil || tx.Bucket(bucketContents) == nil || tx.Bucket(bucketTombstones) == nil {
			return &CorruptError{Reason: "store.db: a bucket is missing"}
		}
		for _, bucket := range []*bolt.Bucket{b, tx.Bucket(bucketTombstones)} {
			if k, _ := bucket.Cursor().Last(); len(k) == 8 {
				next = max(next, binary.BigEndian.Uint64(k)+1)
			}
		}
		sequence = b.Sequence()
		return nil
	})
	return next, sequence, err
}

// commitOutcome says what is known after a failed commit.
type commitOutcome int

const (
	committed    commitOutcome = iota
	notCommitted               // the file shows the old transaction; writing may go on
	brokenFile                 // not committed, but the file must be reopened first
	unknown                    // the file shows the new transaction, unsynced
)

// write runs fn in one transaction and commits it. What happened after a
// failure is read off the file: the visible transaction id is the old one or
// the new one.
func (j *journal) write(fn func(*bolt.Tx) error) (commitOutcome, error) {
	var before, txid int
	committing := false
	err := j.guard.writing("store.db", func() error {
		tx, err := j.guard.begin(j.db, "store.db", true)
		if err != nil {
			return err
		}
		defer tx.Rollback() // after Commit it does nothing
		txid = tx.ID()
		before = txid - 1
		if err := fn(tx); err != nil {
			return err
		}
		committing = true
		return tx.Commit()
	})
	if err == nil {
		j.measureRoom()
		return committed, nil
	}
	if errors.Is(err, ErrCorrupt) && !committing {
		return brokenFile, err
	}
	if committing {
		visible := before
		if viewErr := j.view(func(tx *bolt.Tx) error { visible = tx.ID(); return nil }); viewErr != nil {
			return unknown, fmt.Errorf("%w: the commit failed, and the file can't be read to see how far it came: %w", ErrOutcomeUnknown, errors.Join(err, viewErr))
		}
		if visible != before {
			return unknown, fmt.Errorf("%w: the commit's last sync failed: %w", ErrOutcomeUnknown, err)
		}
	}
	if noSpace(err) {
		return notCommitted, fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	if errno := syscall.Errno(0); !errors.As(err, &errno) {
		err = damageError("store.db", err) // not the system's: what bbolt says of the file
	}
	return brokenFile, err
}

// noSpace recognizes what more room would cure. bbolt keeps only the text of
// some causes.
func noSpace(err error) bool {
	for _, errno := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, berrors.ErrMaxSizeReached} {
		if errors.Is(err, errno) || strings.HasSuffix(err.Error(), ": "+errno.Error()) {
			return true
		}
	}
	return false
}
