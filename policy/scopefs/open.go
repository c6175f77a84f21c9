package scopefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"childlog/policy"
)

// ErrChanged marks a target that is no longer what was checked: a directory or
// the file was swapped while it was being opened. The error is also
// [policy.ErrOutside]. Nothing was written; a caller may try again, and should
// wonder who is at work.
var ErrChanged = errors.New("changed between check and open")

// maxAttempts is how often a file is looked at again because somebody replaced
// it, as editors do on every save, before that counts as an attack.
const maxAttempts = 8

// OpenWithin checks target as [Check] does and opens the file there, with the
// flags and permissions of [os.OpenFile]; permissions are the lower nine bits.
// The file is opened in the very directory that was checked, by a handle on it:
// swapping a directory for a link in between fails with [ErrChanged], and so
// does swapping the file. Only regular files are opened, also for reading, and
// directories on the way are not created.
//
// Nothing is created or truncated outside, not even for an instant: a new file
// is created exclusively, and an old one is truncated only after it was found
// to be the one that was checked.
//
// Beside the errors of Check it returns those of the open itself, such as
// [fs.ErrNotExist] for a missing directory.
func OpenWithin(root string, scope policy.Scope, target string, flag int, perm fs.FileMode, opts Options) (*os.File, error) {
	c, err := newCheck(root, scope, opts)
	if err != nil {
		return nil, err
	}
	p, err := c.target(target)
	if err != nil {
		return nil, err
	}
	opts.reached(stageChecked)
	dir, name := path.Split(p.rel)
	if name == "." {
		return nil, notAFile(target, p.rel)
	}
	o := opening{check: c, target: target, rel: p.rel, reached: opts.reached}
	parent, err := o.descend(dir)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return o.open(parent, name, flag, perm)
}

// opening is one call of OpenWithin, for its errors.
type opening struct {
	*check
	target, rel string
	reached     func(stage)
}

func (o *opening) changed(want string) error {
	return &policy.TargetError{Target: o.target, Resolved: o.rel, Want: want, Err: ErrChanged}
}

func notAFile(target, rel string) error {
	return &policy.TargetError{Target: target, Resolved: rel, Want: "a regular file, not a directory"}
}

// descend opens the directories from the root down, one at a time. A handle of
// os.Root follows links as long as they stay below it, which is not enough: a
// link from one directory of the workspace to another stays below the root and
// leaves the scope. So each step is compared with the entry it went through.
func (o *opening) descend(dir string) (*os.Root, error) {
	at, err := os.OpenRoot(o.root)
	if err != nil {
		return nil, err
	}
	// The root was resolved before it was opened; a directory above it may have
	// become a link since.
	if info, err := at.Stat("."); err != nil || !os.SameFile(info, o.info) {
		at.Close()
		return nil, o.changed("the workspace that was checked")
	}
	for segment := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		if segment == "" {
			continue
		}
		next, err := o.step(at, segment)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// step opens the directory called segment in at, if it is one.
func (o *opening) step(at *os.Root, segment string) (*os.Root, error) {
	isDir := func() (fs.FileInfo, error) {
		info, err := at.Lstat(segment)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, o.changed(fmt.Sprintf("a directory at %q, not %s", segment, kindOrFile(info.Mode())))
		}
		return info, nil
	}
	// Before, so that a FIFO does not block and a link is not even followed.
	if _, err := isDir(); err != nil {
		return nil, err
	}
	o.reached(stageDir)
	next, err := at.OpenRoot(segment)
	if err != nil {
		// Refused because it was swapped, or for some reason of its own?
		if _, swapped := isDir(); swapped != nil {
			return nil, swapped
		}
		return nil, o.refused(err)
	}
	o.reached(stageDirOpened)
	// After, because only now it is known what was opened. If the entry is a
	// directory and the same one, it was reached by its own name: had a link
	// been followed, another directory would be open.
	opened, err := next.Stat(".")
	if err == nil {
		var named fs.FileInfo
		if named, err = isDir(); err == nil {
			switch {
			case !os.SameFile(opened, named):
				err = o.changed(fmt.Sprintf("the directory %q that was checked", segment))
			case o.sameAsProtected(opened):
				err = o.changed("no protected directory")
			}
		}
	}
	if err != nil {
		next.Close()
		return nil, err
	}
	return next, nil
}

// refused tells an entry that was swapped and swapped back, so that it looks
// right again, from a system that cannot open files now. What was checked had
// no links, so it is the first if os.Root refused to follow one, for which it
// has an error of its own and no number, or if the kernel found one too many.
func (o *opening) refused(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) && errno != syscall.ELOOP && errno != syscall.ENOTDIR {
		return err
	}
	return &policy.TargetError{Target: o.target, Resolved: o.rel, Want: "directories and a file that stay in place", Err: errors.Join(ErrChanged, err)}
}

func kindOrFile(m fs.FileMode) string {
	if m.IsRegular() {
		return "a file"
	}
	return kind(m)
}

// open opens the file called name in the directory it was checked in.
func (o *opening) open(parent *os.Root, name string, flag int, perm fs.FileMode) (*os.File, error) {
	create, exclusive := flag&os.O_CREATE != 0, flag&os.O_EXCL != 0
	for range maxAttempts {
		info, err := parent.Lstat(name)
		o.reached(stageFile)
		switch {
		case errors.Is(err, fs.ErrNotExist) && create:
			// Exclusively: whatever has come to this name since, a link above
			// all, makes the open fail instead of being followed.
			f, err := parent.OpenFile(name, flag|os.O_EXCL, perm)
			if errors.Is(err, fs.ErrExist) && !exclusive {
				continue // look again at what came
			}
			return f, err
		case err != nil:
			return nil, err
		case create && exclusive:
			return nil, &fs.PathError{Op: "open", Path: o.rel, Err: fs.ErrExist}
		}
		f, err := o.existing(parent, name, info, flag)
		if f != nil || err != nil {
			return f, err
		}
	}
	return nil, o.changed("a file that stays in place while it is opened")
}

// existing opens the file that info describes. It returns neither a file nor an
// error if another file took its place, to be looked at again.
func (o *opening) existing(parent *os.Root, name string, info fs.FileInfo, flag int) (*os.File, error) {
	if info.IsDir() {
		return nil, notAFile(o.target, o.rel)
	}
	if want := ordinary(info); want != "" {
		return nil, o.changed(want)
	}
	// Without any effect on what is opened, since a link may have taken its
	// place and os.Root would follow it within the directory.
	f, err := parent.OpenFile(name, flag&^(os.O_CREATE|os.O_EXCL|os.O_TRUNC)|nonblock, 0)
	if err != nil {
		// Refused because it was swapped, or for some reason of its own?
		info, statErr := parent.Lstat(name)
		switch {
		case errors.Is(statErr, fs.ErrNotExist):
			return nil, nil
		case statErr == nil && ordinary(info) != "":
			return nil, o.changed(ordinary(info))
		}
		return nil, o.refused(err)
	}
	o.reached(stageFileOpened)
	if again, err := o.opened(parent, name, f); again || err != nil {
		f.Close()
		return nil, err
	}
	if flag&os.O_TRUNC != 0 {
		if err := f.Truncate(0); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// opened compares an open file with the entry it was opened by. again asks to
// look once more, because the entry is an ordinary file, but another one.
func (o *opening) opened(parent *os.Root, name string, f *os.File) (again bool, err error) {
	got, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := parent.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	}
	for _, info := range []fs.FileInfo{named, got} {
		if want := ordinary(info); want != "" {
			return false, o.changed(want)
		}
	}
	return !os.SameFile(named, got), nil
}
