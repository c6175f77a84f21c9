// Package gitrepo says whether a repository is known to run nothing when git
// reads it.
//
// What git runs is said less by its arguments than by the configuration of the
// repository that it finds: core.fsmonitor and filters on status and diff,
// diff.external and textconv on diff, show and blame, core.pager on a terminal,
// gpg.program with log.showSignature or a format, an ssh command or a remote helper
// where a promisor remote lacks an object, and the hook post-index-change where the
// index is refreshed. Includes and worktree configuration bring more of it in.
//
// Who could have written it? A clone brings none: git refuses a tracked .git. But
// an archive brings a .git as it was packed, and a clone may bring a directory that
// looks like a bare repository, which git takes for one as soon as it runs in it.
// An agent that edits files without a shell can make such a directory too; the name
// .git is closed to it, but only where its sandbox is workspace-write. So nobody
// is trusted here, not even the repository that a session works in: its
// configuration is read, and every key that is not known to run nothing refuses it.
// What the person has in their own or in the system's configuration, in the
// environment and on the PATH is theirs, like the profile of their shell.
//
// What is read can change before git reads it. The agents of a guard can't change
// it, except one whose sandbox is danger-full-access, which has other ways to run
// what it likes; who else could is not bound by a guard at all.
package gitrepo

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"childlog/cmd/childlog/internal/inspect"
	"childlog/policy"
)

// Files is the file system in which git will run. Errors are those of package os.
type Files interface {
	Open(name string) (*os.File, error)
	Lstat(name string) (fs.FileInfo, error)
	EvalSymlinks(name string) (string, error)
}

// Elsewhere are Files of another process that looks into a repository itself, so
// that nothing of it leaves that process, and one question is enough.
type Elsewhere interface {
	Files
	// Repository is Check, there. What can't be asked refuses.
	Repository(use inspect.Repository) *inspect.Refusal
}

// The limits of what is read, bytes.
const (
	maxConfig  = 256 << 10
	maxPointer = 4 << 10
)

// Verdict is the verdict on a command that was judged by its words, once its
// repositories were looked at too. Cwd is the working directory of the call, "" if
// nobody knows it.
func Verdict(files Files, r inspect.Result, cwd string) policy.Classified {
	for _, use := range r.Repositories {
		if use.Dir == "" {
			use.Dir = cwd
		}
		if why := Check(files, use); why != nil {
			r.Refused = why
			break
		}
	}
	return r.Verdict()
}

// Check says why git must not be run, nil if it may. The directory of the use is
// absolute. Where git finds no repository, none says what it runs.
func Check(files Files, use inspect.Repository) *inspect.Refusal {
	if !filepath.IsAbs(use.Dir) {
		return refuse("git runs in a directory that nobody knows: say `git -C DIR` with an absolute one")
	}
	if there, ok := files.(Elsewhere); ok {
		return there.Repository(use)
	}
	dir, err := files.EvalSymlinks(use.Dir) // as git has it
	if err != nil {
		return refuse("the directory of git can't be followed")
	}
	for ; ; dir = filepath.Dir(dir) {
		at, found, why := find(files, dir)
		switch {
		case why != nil:
			return why
		case found:
			return at.check(files, use)
		case dir == filepath.Dir(dir):
			return nil
		}
	}
}

func refuse(text string) *inspect.Refusal {
	return &inspect.Refusal{Why: inspect.WhyRepository, Of: "git", Text: text}
}

// repository is where git keeps its things.
type repository struct {
	top    string // the work tree
	own    string // of this work tree
	common string // of all work trees: objects, configuration, hooks
}

// find looks for a repository in one directory. What git might take for one, or
// not, refuses: it would look further up, and find another one than this.
func find(files Files, dir string) (r repository, found bool, why *inspect.Refusal) {
	git := filepath.Join(dir, ".git")
	info, err := files.Lstat(git)
	if absent(err) {
		if _, err := files.Lstat(filepath.Join(dir, "HEAD")); !absent(err) {
			return r, false, refuse("a directory on the way looks like a repository: whoever made it says what git runs")
		}
		return r, false, nil
	}
	if err != nil {
		return r, false, refuse("the repository can't be read")
	}
	r = repository{top: dir, own: git}
	switch {
	case info.Mode().IsRegular(): // of a linked work tree or a submodule
		to, ok := pointer(files, git, "gitdir: ", dir)
		if !ok {
			return r, false, refuse(".git points to no repository")
		}
		r.own = to
	case !info.IsDir():
		return r, false, refuse(".git is neither a directory nor a file")
	}
	r.common = r.own
	if name := filepath.Join(r.own, "commondir"); !missing(files, name) {
		to, ok := pointer(files, name, "", r.own)
		if !ok {
			return r, false, refuse("commondir points to no repository")
		}
		r.common = to
	}
	if !r.whole(files) {
		return r, false, refuse("the repository is not whole: git may take another one")
	}
	return r, true, nil
}

// whole reports whether git takes this for a repository in any version: else it
// goes on further up, where the configuration is another one. Sources:
// is_git_directory and validate_headref in git's source.
func (r *repository) whole(files Files) bool {
	head, err := read(files, filepath.Join(r.own, "HEAD"), maxPointer)
	if err != nil {
		return false
	}
	ref := strings.TrimSuffix(string(head), "\n")
	if detached := strings.Trim(ref, "0123456789abcdef") == "" && (len(ref) == 40 || len(ref) == 64); !detached && !strings.HasPrefix(ref, "ref: refs/") {
		return false
	}
	for _, name := range []string{"objects", "refs"} { // and may be entered
		if _, err := files.Lstat(filepath.Join(r.common, name) + "/."); err != nil {
			return false
		}
	}
	return !missing(files, filepath.Join(r.common, "config"))
}

func (r *repository) check(files Files, use inspect.Repository) *inspect.Refusal {
	c := settings{oid: 20}
	doc, err := read(files, filepath.Join(r.common, "config"), maxConfig)
	if err != nil {
		return refuse("the configuration of the repository can't be read")
	}
	if why := c.read(doc); why != nil {
		return why
	}
	if name := filepath.Join(r.own, "config.worktree"); c.worktree && !missing(files, name) {
		if doc, err = read(files, name, maxConfig); err != nil {
			return refuse("the configuration of the work tree can't be read")
		}
		if why := c.read(doc); why != nil {
			return why
		}
	}
	if use.Index && (c.hooks || !missing(files, filepath.Join(r.common, "hooks", "post-index-change"))) {
		return refuse("the repository has hooks of its own, and the index may be refreshed: say `git --no-optional-locks status`, or compare commits by `git diff-tree -p`")
	}
	if !use.Subs {
		return nil
	}
	if !missing(files, filepath.Join(r.top, ".gitmodules")) || !missing(files, filepath.Join(r.common, "modules")) || !r.single(files, c.oid) {
		return refuse("the repository has submodules, whose configuration is not read, or an index that could: add --ignore-submodules")
	}
	return nil
}

// pointer reads a file that holds a path.
func pointer(files Files, name, prefix, from string) (string, bool) {
	doc, err := read(files, name, maxPointer)
	if err != nil {
		return "", false
	}
	to, ok := strings.CutPrefix(strings.TrimRight(string(doc), "\r\n"), prefix)
	if !ok || to == "" || strings.ContainsAny(to, "\n\x00") {
		return "", false
	}
	if !filepath.IsAbs(to) {
		to = from + "/" + to // not joined: a/.. is another place where a is a link
	}
	to, err = files.EvalSymlinks(to)
	return to, err == nil
}

// read reads a regular file of at most limit bytes.
func read(files Files, name string, limit int) ([]byte, error) {
	info, err := files.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait
		return nil, fs.ErrInvalid
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && (len(b) > limit || bytes.IndexByte(b, 0) >= 0) {
		err = fs.ErrInvalid
	}
	return b, err
}

// missing reports whether a file is known not to be there.
func missing(files Files, name string) bool {
	_, err := files.Lstat(name)
	return absent(err)
}

func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }
