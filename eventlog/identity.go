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
	Incarnation uint64    `json:"incarnation"` // a restore mints the next one
	Created     time.Time `json:"created"`
}

// Init creates an empty store at dir, which must not exist or be empty. The
// directory is built under a temporary name, synced and renamed, so that a
// crash never leaves half a store at dir. Errors: ErrExists.
func Init(ctx context.Context, dir string) (Identity, error) {
	id := Identity{Format: FormatVersion, Incarnation: 1, Created: time.Now().UTC().Truncate(time.Second)}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return id, err
	}
	if id.Store, err = uuid.NewRandom(); err != nil {
		return id, err
	}
	if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
		if _, err := os.Stat(filepath.Join(dir, identityFile)); err == nil {
			return id, fmt.Errorf("%w: a store at %s", ErrExists, dir)
		}
		return id, fmt.Errorf("%w: %s holds other files", ErrExists, dir)
	}
	if fi, err := os.Lstat(dir); err == nil && !fi.IsDir() {
		return id, fmt.Errorf("%w: %s is not a directory", ErrExists, dir)
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return id, err
	}
	tmp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".new-")
	if err != nil {
		return id, err
	}
	defer os.RemoveAll(tmp)
	if err := ctx.Err(); err != nil {
		return id, err
	}
	if err := fillStore(tmp, id); err != nil {
		return id, fmt.Errorf("init %s: %w", dir, err)
	}
	// Not os.Rename, which refuses an empty directory at the new name.
	if err := unix.Rename(tmp, dir); err != nil {
		if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
			return id, fmt.Errorf("%w: %s was created by another process", ErrExists, dir)
		}
		return id, fmt.Errorf("init %s: %w", dir, err)
	}
	return id, syncDir(parent)
}

func fillStore(dir string, id Identity) error {
	raw, err := json.Marshal(id)
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(dir, lockFile), nil); err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(dir, identityFile), append(raw, '\n')); err != nil {
		return err
	}
	db, err := bolt.Open(filepath.Join(dir, journalFile), 0o600, &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{bucketJournal, bucketContents, bucketTombstones, bucketMeta} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketMeta).Put(keyIdentity, raw)
	})
	return errors.Join(err, db.Close(), syncDir(dir))
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

// checkIdentity compares IDENTITY with the copy inside store.db.
func (j *journal) checkIdentity(id Identity) error {
	var raw []byte
	if err := j.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketMeta)
		if b == nil {
			return &CorruptError{Reason: "store.db: bucket meta is missing"}
		}
		raw = bytes.Clone(b.Get(keyIdentity))
		return nil
	}); err != nil {
		return err
	}
	var inside Identity
	if err := json.Unmarshal(raw, &inside); err != nil {
		return &CorruptError{Reason: fmt.Sprintf("store.db: identity: %v", err)}
	}
	if inside.Store != id.Store || inside.Incarnation != id.Incarnation {
		return &CorruptError{Reason: fmt.Sprintf("store.db belongs to store %s incarnation %d, IDENTITY says %s incarnation %d", inside.Store, inside.Incarnation, id.Store, id.Incarnation)}
	}
	return nil
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
