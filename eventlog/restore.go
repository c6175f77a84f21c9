package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
)

// RestoreOptions says how a restore reports itself.
type RestoreOptions struct {
	Progress func(done, of int) // positions; called now and then, may be nil
	KeyFile  string             // the new store's signing key, outside of it; made if it is not there. "": a new KEY in it

	at steps
}

// Restored is what a restore made.
type Restored struct {
	Copied
	Identity Identity // of the new store
	From     Identity // of the backup
	Path     string   // of the new store, absolute
	Backup   string   // its path, absolute
}

// Restore makes a store at dir from a backup. dir must not exist or be empty:
// nothing is ever overwritten. The store's id, its logs and all their hashes
// stay; the incarnation is a new one, greater than the backup's and not the same
// for two restores of one backup, since each goes on by itself. So is the origin
// of its checkpoints, and the key. Activations that were open read as
// interrupted. The backup is held to the checkpoint that it carries.
//
// Every frame and content is proven on the way and any damage refuses the
// restore with its place. The store is built under a temporary name with its
// index, read back and compared, synced and renamed: it is there as a whole or
// not at all. The backup is not changed.
//
// Errors: ErrExists, ErrNotFound (no backup there), ErrInvalid (a store and no
// backup), ErrLocked, ErrCorrupt, ErrStoreLost, ErrNoSpace, ErrNewerFormat.
func Restore(ctx context.Context, backup, dir string, o RestoreOptions) (out Restored, err error) {
	if backup, err = filepath.Abs(backup); err != nil {
		return out, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return out, err
	}
	out.Path, out.Backup = dir, backup
	if inside(backup, dir) && !inside(dir, backup) {
		return out, invalidf("restore: %s lies inside the backup", dir)
	}
	if out.From, err = readIdentity(backup); errors.Is(err, ErrNotFound) {
		return out, fmt.Errorf("%w: no backup at %s", ErrNotFound, backup)
	} else if err != nil {
		return out, fmt.Errorf("backup %s: %w", backup, err)
	}
	if !out.From.Backup {
		return out, invalidf("restore: %s is a store and no backup", backup)
	}
	lock, err := acquireLock(ctx, backup, false, 0, "")
	if err != nil {
		return out, err
	}
	defer lock.release(false)
	j, end, err := openSound(ctx, backup, out.From)
	if err != nil {
		return out, fmt.Errorf("backup %s: %w", backup, err)
	}
	defer j.close()
	out.Identity = out.From
	out.Identity.Backup, out.Identity.Key = false, "" // it gets its own
	out.Identity.Incarnation = nextIncarnation(out.From.Incarnation)
	signed, ok, re := heldTo(backup, out.From)
	if re != nil {
		return out, re
	}
	pages, free, err := j.usage()
	if err != nil {
		return out, err
	}
	err = publishDir(ctx, dir, "restore", o.at, func(tmp string) error {
		if err := checkSpace(tmp, (pages-free)*uint64(j.pageSize)); err != nil {
			return err
		}
		c := copying{src: j, end: end, static: true, identity: out.Identity, minted: true, path: filepath.Join(tmp, journalFile),
			pageSize: journalPageSize, progress: o.Progress, at: o.at}
		if ok {
			c.signed = &signed
		}
		var err error
		if out.Copied, err = c.run(ctx); err != nil {
			return err
		}
		if err := nameStore(tmp, out.Identity); err != nil {
			return err
		}
		if _, err := Reindex(ctx, tmp, Options{KeyFile: o.KeyFile}); err != nil { // which also signs it, and shows that it opens for writing
			return err
		}
		out.Identity, err = readIdentity(tmp)
		return err
	})
	if err != nil {
		return out, fmt.Errorf("restore: %w", err)
	}
	return out, nil
}

// nextIncarnation is greater than the one before and drawn from so many that two
// restores of one backup do not meet. It stays below 2^53, which JSON keeps.
func nextIncarnation(before uint64) uint64 {
	return before + 1 + uint64(rand.Uint32())
}
