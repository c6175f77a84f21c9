package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// FormatVersion is the version of the store's layout on disk. A store with a
// newer one is refused; an older one opens and is read as it was written.
// Numbers are never reused.
//
//	1  frames CLF1, contents beside them, index.db apart
const FormatVersion = 1

const (
	identityFile = "IDENTITY"
	journalFile  = "store.db"
)

// Identity says which store a directory is. It stands in IDENTITY and, so
// that neither can be exchanged alone, inside store.db.
type Identity struct {
	Store       uuid.UUID `json:"store"`
	Format      int       `json:"format"`
	Incarnation uint64    `json:"incarnation"` // a restore mints a greater one
	Created     time.Time `json:"created"`
	Backup      bool      `json:"backup,omitzero"` // a backup: never written, a restore makes a store of it

	// Key is the verifier key of the store's checkpoints, in the spelling of the
	// package note; "" until something was signed.
	Key string `json:"key,omitzero"`

	// Salvaged: frames were lost, and a position without one is no damage.
	Salvaged bool `json:"salvaged,omitzero"`

	// Accepted is the incarnation up to which a rollback was accepted: what was
	// signed under it, or under one before, binds the store no more.
	Accepted uint64 `json:"accepted,omitzero"`
}

// Init is InitWith without options.
func Init(ctx context.Context, dir string) (Identity, error) {
	return InitWith(ctx, dir, InitOptions{})
}

// InitOptions say how a store begins.
type InitOptions struct {
	// KeyFile is where the signing key is or is to be, outside of the store. It
	// is made if it is not there. "": KEY in the store.
	KeyFile string
}

// InitWith creates an empty store at dir, which must not exist or be empty,
// with a key and a signed checkpoint of the empty journal. The directory is
// built under a temporary name, synced and renamed, so that a crash never leaves
// half a store at dir. Errors: ErrExists, ErrInvalid (the key file).
func InitWith(ctx context.Context, dir string, o InitOptions) (Identity, error) {
	id := Identity{Format: FormatVersion, Incarnation: 1, Created: time.Now().UTC().Truncate(time.Second)}
	var err error
	if id.Store, err = uuid.NewRandom(); err != nil {
		return id, err
	}
	err = publishDir(ctx, dir, "new", nil, func(tmp string) error {
		path := o.KeyFile
		if path == "" {
			path = filepath.Join(tmp, keyFile)
		}
		key, err := openSignKey(path, id.Store)
		if err != nil {
			return fmt.Errorf("signing key: %w", err)
		}
		id.Key = key.verifier
		first, err := firstCheckpoint(key, id)
		if err != nil {
			return err
		}
		return errors.Join(fillStore(tmp, id, journalPageSize), writeSynced(filepath.Join(tmp, checkpointFile), first.Note))
	})
	return id, err
}

// publishDir makes a directory at dir, which must not exist or be empty. It is
// built under a temporary name beside dir, which says what for, and renamed
// once fill is through and all is synced: a crash never leaves half of it at
// dir, only the temporary directory. Errors: ErrExists, those of fill.
func publishDir(ctx context.Context, dir, what string, at steps, fill func(tmp string) error) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
		if _, err := os.Stat(filepath.Join(dir, identityFile)); err == nil {
			return fmt.Errorf("%w: a store at %s", ErrExists, dir)
		}
		return fmt.Errorf("%w: %s holds other files", ErrExists, dir)
	}
	if fi, err := os.Lstat(dir); err == nil && !fi.IsDir() {
		return fmt.Errorf("%w: %s is not a directory", ErrExists, dir)
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+"."+what+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := fill(tmp); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if err := errors.Join(syncDir(tmp), at.reached("built")); err != nil {
		return err
	}
	// Not os.Rename, which refuses an empty directory at the new name.
	if err := unix.Rename(tmp, dir); err != nil {
		if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("%w: %s was created by another process", ErrExists, dir)
		}
		return fmt.Errorf("%s: %w", dir, err)
	}
	if err := at.reached("renamed"); err != nil {
		return err
	}
	return syncDir(parent)
}

// fillStore makes an empty store, or backup, in an empty directory.
func fillStore(dir string, id Identity, pageSize int) error {
	if err := nameStore(dir, id); err != nil {
		return err
	}
	raw, err := json.Marshal(id)
	if err != nil {
		return err
	}
	db, err := createJournal(filepath.Join(dir, journalFile), pageSize)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyIdentity, raw) })
	return errors.Join(err, db.Sync(), db.Close())
}

// nameStore writes what a store has beside its databases.
func nameStore(dir string, id Identity) error {
	raw, err := json.Marshal(id)
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(dir, lockFile), nil); err != nil {
		return err
	}
	return writeSynced(filepath.Join(dir, identityFile), append(raw, '\n'))
}

// readIdentity tells a store from no store and from a lost one.
func readIdentity(dir string) (Identity, error) {
	var id Identity
	raw, err := os.ReadFile(filepath.Join(dir, identityFile))
	_, journalErr := os.Stat(filepath.Join(dir, journalFile))
	switch {
	case errors.Is(err, os.ErrNotExist) && errors.Is(journalErr, os.ErrNotExist):
		return id, fmt.Errorf("%w: no store at %s", ErrNotFound, dir)
	case errors.Is(err, os.ErrNotExist):
		return id, fmt.Errorf("%w: %s has a %s but no %s", ErrStoreLost, dir, journalFile, identityFile)
	case err != nil:
		return id, err
	case errors.Is(journalErr, os.ErrNotExist):
		return id, fmt.Errorf("%w: %s has an %s but no %s", ErrStoreLost, dir, identityFile, journalFile)
	}
	if err := json.Unmarshal(raw, &id); err != nil {
		return id, &CorruptError{Reason: fmt.Sprintf("%s: %v", identityFile, err)}
	}
	if id.Format < 1 {
		return id, &CorruptError{Reason: fmt.Sprintf("%s: store format: want at least 1, got %d", identityFile, id.Format)}
	}
	if id.Format > FormatVersion {
		return id, fmt.Errorf("%w: store format: want 1 to %d, got %d; it was written by a newer childlog", ErrNewerFormat, FormatVersion, id.Format)
	}
	return id, nil
}

// writableIdentity is readIdentity for who will write: it refuses a backup.
func writableIdentity(dir string) (Identity, error) {
	id, err := readIdentity(dir)
	if err == nil && id.Backup {
		err = &BackupError{Path: dir, Store: id.Store}
	}
	return id, err
}

// checkIdentity compares IDENTITY with the copy inside store.db, and returns
// the one that counts: a change is written into store.db first, so IDENTITY may
// be one change behind.
func (j *journal) checkIdentity(id Identity) (Identity, error) {
	var raw []byte
	if err := j.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketMeta)
		if b == nil {
			return &CorruptError{Reason: "store.db: bucket meta is missing"}
		}
		raw = bytes.Clone(b.Get(keyIdentity))
		return nil
	}); err != nil {
		return id, err
	}
	var inside Identity
	if err := json.Unmarshal(raw, &inside); err != nil {
		return id, &CorruptError{Reason: fmt.Sprintf("store.db: identity: %v", err)}
	}
	accepted := inside.Store == id.Store && inside.Accepted == id.Incarnation && inside.Incarnation > id.Incarnation
	switch {
	case inside.Store != id.Store || inside.Incarnation != id.Incarnation && !accepted:
		return id, &CorruptError{Reason: fmt.Sprintf("store.db belongs to store %s incarnation %d, IDENTITY says %s incarnation %d", inside.Store, inside.Incarnation, id.Store, id.Incarnation)}
	case inside.Backup != id.Backup:
		return id, &CorruptError{Reason: fmt.Sprintf("store.db says that it is a backup: %t, IDENTITY says %t", inside.Backup, id.Backup)}
	case inside.Key != id.Key && id.Key != "":
		return id, &CorruptError{Reason: fmt.Sprintf("store.db says that the store signs with %q, IDENTITY says %q", inside.Key, id.Key)}
	}
	return inside, nil
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// replaceSynced gives a file another content at once: a crash leaves the old
// one or the new one.
func replaceSynced(path string, b []byte) error {
	tmp := path + ".new"
	if err := errors.Join(freshFile(tmp), writeSynced(tmp, b)); err != nil {
		return errors.Join(err, freshFile(tmp))
	}
	if err := os.Rename(tmp, path); err != nil {
		return errors.Join(err, freshFile(tmp))
	}
	return syncDir(filepath.Dir(path))
}

// replaceIdentity changes who the store is, inside store.db first. A crash in
// between is mended by the next open for writing.
func (s *Store) replaceIdentity(id Identity) error {
	raw, err := json.Marshal(id)
	if err != nil {
		return err
	}
	if _, err := s.journal.write(func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyIdentity, raw) }); err != nil {
		return err
	}
	if err := replaceSynced(filepath.Join(s.dir, identityFile), append(raw, '\n')); err != nil {
		return err
	}
	s.identity = id
	return nil
}
