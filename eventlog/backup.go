package eventlog

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
)

// BackupError says that a directory is a backup and was to be written.
type BackupError struct {
	Path  string
	Store uuid.UUID // that it is a backup of
}

func (e *BackupError) Error() string {
	return fmt.Sprintf("read only: %s is a backup of store %s and is never written", e.Path, e.Store)
}

func (e *BackupError) Unwrap() error { return ErrReadOnly }

// BackupOptions says how a backup reports itself.
type BackupOptions struct {
	Progress func(done, of int) // positions; called now and then, may be nil

	at steps
}

// BackedUp is what a backup holds.
type BackedUp struct {
	Copied
	Identity Identity // as the backup states it
	Path     string   // absolute
}

// Backup writes a copy of the store to dir, which must not exist or be empty.
// The store may be written meanwhile: the backup holds exactly what was durable
// when the call began, frames, contents and tombstones, which is a prefix that
// never splits an atomic unit. It is read in short transactions, so writers do
// not wait for it; it is never made of the file's pages, in which the bytes of
// what was deleted still lie. The last checkpoint is in it, signed now if the
// key is here, and the copy is held to it; a signing key and the index are not.
//
// The directory is built under a temporary name beside dir, read back and
// compared, synced and renamed: it is there as a whole or not at all. It is a
// store that can be opened for reading, to be verified or shown, and never for
// writing (BackupError): two stores would then go on under one identity. Restore
// makes a store of it.
//
// Damage ends it with its place, and nothing is left at dir: a backup is kept in
// place of an older one, and one that carries damage would some day replace the
// last sound copy. What can be read of a damaged store is for salvage. What was
// erased is no damage. A backup and an erasure wait for each other, so what is
// missing in a backup is told of in it.
//
// Memory is bounded as that of Compact. Errors: ErrExists, ErrCorrupt,
// ErrInvalid (dir lies inside the store), ErrNoSpace, ErrNewerFormat,
// ErrStoreClosed.
func (s *Store) Backup(ctx context.Context, dir string, o BackupOptions) (BackedUp, error) {
	return s.backup(ctx, dir, o, func(dir string, fill func(tmp string) error) error {
		return publishDir(ctx, dir, "backup", o.at, fill)
	})
}

// BackupInto is [Store.Backup] into a directory that is there, empty, and gets
// its name from somebody else, once this returned ([PublishDir]): a process that
// holds the store for others must not go by their names. What is there after an
// error is no backup.
func (s *Store) BackupInto(ctx context.Context, dir string, o BackupOptions) (BackedUp, error) {
	return s.backup(ctx, dir, o, func(dir string, fill func(tmp string) error) error { return fill(dir) })
}

// PublishDir makes a directory at dir, which must not exist or be empty: fill
// fills it under a temporary name beside dir, which says what for; then it is
// synced and renamed. It is there as a whole or not at all. Errors: ErrExists,
// those of fill.
func PublishDir(ctx context.Context, dir, what string, fill func(tmp string) error) error {
	return publishDir(ctx, dir, what, nil, fill)
}

func (s *Store) backup(ctx context.Context, dir string, o BackupOptions, publish func(dir string, fill func(tmp string) error) error) (BackedUp, error) {
	var out BackedUp
	if err := s.usable(); err != nil {
		return out, err
	}
	if err := s.passage.enter(ctx, copies); err != nil {
		return out, err
	}
	defer s.passage.leave(copies)
	if err := s.journal.purged(); err != nil {
		return out, err
	}
	if err := s.sound(ctx); err != nil {
		return out, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return out, err
	}
	if inside(s.dir, dir) {
		return out, invalidf("backup: %s lies inside the store and would be lost with it", dir)
	}
	signed, err := s.signedNow(ctx)
	if err != nil {
		return out, fmt.Errorf("backup: %w", err)
	}
	end := s.st.durable()
	out.Path, out.Identity = dir, s.identity
	if out.Identity.Backup = true; signed == nil {
		out.Identity.Key = "" // a store that names one has a checkpoint
	}
	pages, free, err := s.journal.usage()
	if err != nil {
		return out, err
	}
	err = publish(dir, func(tmp string) error {
		if err := checkSpace(tmp, (pages-min(pages, free))*uint64(s.journal.pageSize)); err != nil {
			return err
		}
		c := copying{src: s.journal, end: end, static: s.opts.ReadOnly, identity: out.Identity, minted: true, signed: signed, path: filepath.Join(tmp, journalFile),
			pageSize: journalPageSize, progress: o.Progress, at: o.at}
		var err error
		if out.Copied, err = c.run(ctx); err != nil {
			return err
		}
		if signed != nil {
			if err := writeSynced(filepath.Join(tmp, checkpointFile), signed.Note); err != nil {
				return err
			}
		}
		return nameStore(tmp, out.Identity)
	})
	if err != nil {
		return out, fmt.Errorf("backup: %w", err)
	}
	return out, nil
}

// signedNow is the checkpoint that a copy carries: a new one if the key is here,
// else the last one. It is nil if there is none.
func (s *Store) signedNow(ctx context.Context) (*Checkpoint, error) {
	if s.key != nil {
		c, err := s.Checkpoint(ctx)
		return &c, err
	}
	if c, ok := s.Signed(); ok {
		return &c, nil
	}
	return nil, nil
}

// sound is nil if nothing speaks against what the store reads. Of a store that
// is being written the pages move, and only its frames and contents can be
// proven.
func (s *Store) sound(ctx context.Context) error {
	if s.journal.damage != nil {
		return s.journal.damage
	}
	if err := s.st.whole(); err != nil || !s.opts.ReadOnly {
		return err
	}
	return soundPages(ctx, s.dir)
}

// inside reports whether path is dir or lies below it, links resolved as far as
// the path exists.
func inside(dir, path string) bool {
	real := func(p string) string {
		for rest := ""; ; p, rest = filepath.Dir(p), filepath.Join(filepath.Base(p), rest) {
			if r, err := filepath.EvalSymlinks(p); err == nil {
				return filepath.Join(r, rest)
			} else if p == filepath.Dir(p) {
				return filepath.Join(p, rest)
			}
		}
	}
	rel, err := filepath.Rel(real(dir), real(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
