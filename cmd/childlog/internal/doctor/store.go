package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/tokens"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// Room below which a disk is said to be running full, bytes. A store takes a few
// hundred bytes for each call, and 16 MiB for one large content.
const (
	roomWarn    = 256 << 20
	roomProblem = 32 << 20
)

// lagWarn is the index lag, in frames, from which opening takes noticeable time:
// half of what the store itself lets it grow to.
const lagWarn = 16 << 10

// directory looks at the place of the store. False: there is none to look into.
func (r *report) directory() bool {
	dir := access.Abs(r.o.Place)
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.add("store", Problem, dir, "childlog init", "there is no store, so a guard blocks every call")
		return false
	case err != nil:
		r.add("store", Problem, dir, "look at the permissions of the directories above it", "%v", err)
		return false
	case !st.IsDir():
		r.add("store", Problem, dir, "name another place with --store", "it is no directory")
		return false
	case !access.Exists(r.o.Place):
		r.add("store", Problem, dir, "childlog init, or name the store with --store", "no store is in this directory, so a guard blocks every call")
		return false
	}
	if uid, ok := owner(dir); ok && uid != os.Geteuid() {
		r.add("permissions", Problem, dir, "run childlog as the user that the store belongs to", "it belongs to user %d, and this is user %d", uid, os.Geteuid())
	} else if what := private(st); what != "" {
		r.add("permissions", Problem, dir, "chmod 700 "+dir, "mode %04o, want 0700: %s", st.Mode().Perm(), what)
	} else {
		r.add("permissions", OK, dir, "", "mode %04o, for its owner alone", st.Mode().Perm())
	}
	r.disk(dir)
	return true
}

func owner(path string) (uid int, ok bool) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return int(st.Uid), err == nil
}

func (r *report) disk(dir string) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		r.add("disk", Warning, dir, "", "%v", err)
		return
	}
	kind, remote := fileSystem(&st)
	if remote {
		r.add("disk", Problem, dir, "move the store to a disk of this machine: childlog backup, then restore there", "%s is a file system of another machine: locks and syncs are not what a store needs", kind)
	}
	free := uint64(st.Bavail) * uint64(st.Bsize)
	switch {
	case readOnly(&st):
		r.add("disk", Warning, dir, "", "it is mounted read-only: the logs can be read, and a guard blocks every call")
	case free < roomProblem:
		r.add("disk", Problem, dir, "make room; what can't be recorded is blocked", "%s free", size(free))
	case free < roomWarn:
		r.add("disk", Warning, dir, "make room", "%s free", size(free))
	case !remote:
		r.add("disk", OK, dir, "", "%s free", size(free))
	}
}

func size(n uint64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// files looks at what is in the store's directory. Every file in it is the
// owner's alone, whatever it is.
func (r *report) files() {
	dir := access.Abs(r.o.Place)
	entries, err := os.ReadDir(dir)
	if err != nil {
		r.add("permissions", Problem, dir, "look at its permissions", "%v", err)
		return
	}
	fine := true
	for _, e := range entries {
		st, err := e.Info()
		if err != nil || st.Mode()&fs.ModeSymlink != 0 {
			continue // gone meanwhile; or what it leads to is not in this directory
		}
		path := filepath.Join(dir, e.Name())
		if what := private(st); what != "" {
			fine = false
			mode := "600"
			if st.IsDir() {
				mode = "700"
			}
			r.add("permissions", Problem, path, "chmod "+mode+" "+path, "mode %04o, want 0%s: %s", st.Mode().Perm(), mode, what)
		}
		if uid, ok := owner(path); ok && uid != os.Geteuid() {
			fine = false
			r.add("permissions", Problem, path, "give it to the store's owner: chown", "it belongs to user %d, and this is user %d", uid, os.Geteuid())
		}
	}
	if fine {
		r.add("permissions", OK, "its files", "", "for their owner alone")
	}
	r.key(dir)
	r.tokens(dir)
}

// tokens looks at the tokens of the service.
func (r *report) tokens(dir string) {
	path := filepath.Join(dir, tokens.FileName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return
	}
	list, err := tokens.List(dir)
	if err != nil {
		r.add("tokens", Problem, path, failure.Of(err).Hint, "%v", err)
		return
	}
	var expired []string
	now := time.Now()
	for _, t := range list {
		if t.Expired(now) {
			expired = append(expired, t.ID)
		}
	}
	if len(expired) > 0 {
		r.add("tokens", Warning, path, "childlog token revoke ID, for each", "expired, and good for nothing: %s", strings.Join(expired, ", "))
		return
	}
	r.add("tokens", OK, path, "", "%d in force", len(list))
}

// key looks at the signing key that is kept elsewhere; one in the store is a file
// of it.
func (r *report) key(dir string) {
	path := r.o.Place.KeyFile
	if path == "" {
		return
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.add("key", Problem, path, "put the key back, or name it with --key-file", "the signing key is not there, so the store can't be written")
	case err != nil:
		r.add("key", Problem, path, "look at its permissions", "%v", err)
	case private(st) != "":
		r.add("key", Problem, path, "chmod 600 "+path, "mode %04o, want 0600: %s", st.Mode().Perm(), private(st))
	default:
		r.add("key", OK, path, "", "kept outside of %s", dir)
	}
}

// open opens the store for reading.
func (r *report) open(ctx context.Context) {
	dir := access.Abs(r.o.Place)
	err := access.Read(ctx, r.o.Place, func(s *eventlog.Store) error {
		if re := s.RolledBack(); re != nil {
			r.add("store", Problem, dir, failure.Of(re).Hint, "%v", re)
		}
		for _, n := range s.Notices() {
			r.add("store", Warning, dir, "childlog verify", "%s", n)
		}
		st, err := access.Stats(s)
		if err != nil {
			return err
		}
		v := wire.StatsOf(s.Identity(), dir, st)
		r.figures(&v)
		return nil
	})
	var le *eventlog.LockedError
	switch {
	case errors.As(err, &le):
		r.held(le)
	case err != nil:
		r.add("store", Problem, dir, failure.Of(err).Hint, "%v", err)
	}
}

// figures judges what a store says of itself.
func (r *report) figures(st *wire.Stats) {
	dir := access.Abs(r.o.Place)
	r.add("store", OK, dir, "", "format %d, sessions: %d, events: %d", st.Format, st.Sessions, st.Events)
	if st.Backup {
		r.add("store", Problem, dir, "childlog --store NEW restore "+dir, "it is a backup, which is read and never written")
	}
	if st.IndexLag >= lagWarn {
		r.add("index", Warning, dir, "childlog reindex", "%d frames behind the journal: commands start slowly", st.IndexLag)
	} else {
		r.add("index", OK, dir, "", "%d frames behind the journal", st.IndexLag)
	}
	if st.CompactAdvised {
		r.add("store", Warning, dir, "childlog compact", "%s of it is free pages", size(uint64(st.FreePages)*uint64(st.PageSize)))
	}
}
