package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"childlog/cmd/childlog/internal/failure"
	"childlog/eventlog"
)

// settings is a settings file as it was found.
type settings struct {
	path   string // as the harness names it
	real   string // where it is, with all links followed
	exists bool
	data   []byte
	mode   fs.FileMode
	dirs   []string // that are missing above it, the outermost first
}

// find reads a settings file. What is not a plain file of this user is refused,
// since putting another in its place would change what it is. Errors: ErrInvalid.
func find(path string) (*settings, error) {
	f := &settings{path: path, real: path, mode: 0o600}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s: %s", eventlog.ErrInvalid, path, fmt.Sprintf(format, args...))
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return f, f.above()
	} else if err != nil {
		return nil, fail("%v", errors.Unwrap(err))
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fail("a link that leads nowhere; mend or remove it")
	}
	f.real = real
	var st unix.Stat_t
	if err := unix.Stat(real, &st); err != nil {
		return nil, fail("%v", err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fail("want a file, got a directory or a device")
	case st.Size > maxSettings:
		return nil, fail("got %d bytes, want at most %d", st.Size, maxSettings)
	}
	if f.data, err = os.ReadFile(real); err != nil {
		return nil, denied(path, "can't be read", err)
	}
	f.exists, f.mode = true, fs.FileMode(st.Mode&0o777)
	return f, nil
}

// above finds the directories that have to be made. A file that has to go into
// something that is no directory is refused.
func (f *settings) above() error {
	for dir := filepath.Dir(f.path); ; dir = filepath.Dir(dir) {
		st, err := os.Stat(dir)
		if err == nil && st.IsDir() {
			real, err := filepath.EvalSymlinks(filepath.Dir(f.path))
			if err == nil {
				f.real = filepath.Join(real, filepath.Base(f.path))
			}
			return nil
		}
		if _, linked := os.Lstat(dir); err == nil || linked == nil || dir == filepath.Dir(dir) {
			return fmt.Errorf("%w: %s: %s is no directory", eventlog.ErrInvalid, f.path, dir)
		}
		f.dirs = append([]string{dir}, f.dirs...)
	}
}

// readPlain reads a file that is somebody's settings, or was written beside them. What
// is not a plain file may never end, or never begin. Errors: ErrInvalid and
// those of package os.
func readPlain(path string, limit int64) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s: want a file, got a directory or a device", eventlog.ErrInvalid, path)
	}
	if st.Size() > limit {
		return nil, fmt.Errorf("%w: %s: got %d bytes, want at most %d", eventlog.ErrInvalid, path, st.Size(), limit)
	}
	return os.ReadFile(path)
}

// writable refuses a file that a person does not want changed, or that replacing
// would change in more than its text. Errors: ErrPermission, ErrInvalid.
func (f *settings) writable() error {
	if !f.exists {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Stat(f.real, &st); err != nil {
		return denied(f.path, "can't be looked at", err)
	}
	switch {
	case st.Mode&0o200 == 0:
		return failure.WithHint(denied(f.path, "is read-only", fs.ErrPermission), "if it may be changed: chmod u+w "+quote(f.real))
	case int(st.Uid) != os.Geteuid():
		return failure.WithHint(denied(f.path, fmt.Sprintf("belongs to user %d, and this is user %d", st.Uid, os.Geteuid()), fs.ErrPermission), "run it as the user that the file belongs to")
	case st.Nlink > 1:
		return fmt.Errorf("%w: %s: has %d names (hard links), which would come apart", eventlog.ErrInvalid, f.path, st.Nlink)
	}
	return nil
}

// denied says what can't be done with a file, and that rights are missing if they
// are.
func denied(path, what string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: %s: %w", path, what, err)
	}
	return failure.WithHint(fmt.Errorf("%s: %s: %w", path, what, fs.ErrPermission), "look at the permissions of "+path+" and of its directory")
}

// unchanged refuses to go on if the file is not any more what was read: the
// harness writes its settings too. Errors: ErrConflict.
func (f *settings) unchanged() error {
	now, err := os.ReadFile(f.real)
	if errors.Is(err, fs.ErrNotExist) && !f.exists || err == nil && f.exists && bytes.Equal(now, f.data) {
		return nil
	}
	return failure.WithHint(fmt.Errorf("%w: %s changed while it was being edited", eventlog.ErrConflict, f.path), "nothing was written to it; run the command again")
}

// write puts data in the file's place at once: after a crash it holds the one or
// the other.
func (f *settings) write(data []byte) error {
	if err := f.unchanged(); err != nil {
		return err
	}
	if err := replaceFile(f.real, data, f.mode); err != nil {
		return denied(f.path, "can't be written", err)
	}
	return nil
}

func replaceFile(path string, data []byte, mode fs.FileMode) (err error) {
	t, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".childlog-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = t.Close()
			_ = os.Remove(t.Name())
		}
	}()
	if _, err = t.Write(data); err != nil {
		return err
	}
	if err = t.Chmod(mode); err != nil {
		return err
	}
	if err = t.Sync(); err != nil {
		return err
	}
	if err = t.Close(); err != nil {
		return err
	}
	if err = os.Rename(t.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// createFile writes a file that must not be there yet, for its owner alone.
func createFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(path)
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}

const (
	backupSuffix = ".childlog-backup"
	undoSuffix   = ".childlog-undo"
)

// keep writes a backup under a name that nothing has. It returns the name.
func (f *settings) keep() (string, error) {
	for n := 1; ; n++ {
		path := f.path + backupSuffix
		if n > 1 {
			path += "." + strconv.Itoa(n)
		}
		err := createFile(path, f.data)
		if errors.Is(err, fs.ErrExist) && n < 1000 {
			continue
		}
		return path, err
	}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
