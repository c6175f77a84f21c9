package forward

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/inspect"
)

// remote are the files of a caller. A request ends at the latest with the
// connection.
type remote struct{ s *served }

var _ files.Files = remote{}

// maxListed bounds the entries of a directory that are kept in memory.
const maxListed = 1 << 20

// ask sends a request and waits for its reply.
func (s *served) ask(r request) (reply, error) {
	c := make(chan reply, 1)
	s.mu.Lock()
	if s.lost != nil {
		defer s.mu.Unlock()
		return reply{}, s.gone()
	}
	s.last++
	r.ID = s.last
	s.waiting[r.ID] = c
	s.mu.Unlock()
	if err := s.sendJSON(kindRequest, r, nil); err != nil {
		return reply{}, err
	}
	select {
	case r := <-c:
		if r.Failure != nil {
			return r, r.Failure.err()
		}
		return r, nil
	case <-s.ended:
		select {
		case r := <-c: // it came before the end
			if r.opened != nil {
				r.opened.Close()
			}
		default:
		}
		return reply{}, s.gone()
	}
}

func (s *served) gone() error {
	if errors.Is(s.lost, ErrStopping) {
		return s.lost
	}
	return fmt.Errorf("the caller of the command is gone: %w", s.lost)
}

// file is ask of a request that opens something.
func (s *served) file(r request) (reply, error) {
	got, err := s.ask(r)
	if err == nil && got.opened == nil {
		err = fmt.Errorf("%w: a reply without the descriptor", ErrProtocol)
	}
	return got, err
}

func (f remote) Open(name string) (*os.File, error) {
	r, err := f.s.file(request{Op: opOpen, Name: []byte(name)})
	return r.opened, err
}

func (f remote) stat(op op, name string) (fs.FileInfo, error) {
	r, err := f.s.ask(request{Op: op, Name: []byte(name)})
	if err != nil {
		return nil, err
	}
	if r.Info == nil {
		return nil, fmt.Errorf("%w: a reply that does not describe the file", ErrProtocol)
	}
	return r.Info.fileInfo(), nil
}

func (f remote) Stat(name string) (fs.FileInfo, error)  { return f.stat(opStat, name) }
func (f remote) Lstat(name string) (fs.FileInfo, error) { return f.stat(opLstat, name) }

func (f remote) EvalSymlinks(name string) (string, error) {
	r, err := f.s.ask(request{Op: opLinks, Name: []byte(name)})
	return string(r.Path), err
}

func (f remote) Abs(name string) (string, error) {
	r, err := f.s.ask(request{Op: opAbs, Name: []byte(name)})
	return string(r.Path), err
}

// Repository implements [gitrepo.Elsewhere]: the caller says whether git runs
// nothing, and hands out no file of the repository.
func (f remote) Repository(use inspect.Repository) *inspect.Refusal {
	r, err := f.s.ask(request{Op: opGit, Name: []byte(use.Dir), Index: use.Index, Submodules: use.Subs})
	return r.repository(err)
}

func (r *reply) repository(err error) *inspect.Refusal {
	switch {
	case err != nil || r.Git == nil:
		return &inspect.Refusal{Why: inspect.WhyRepository, Of: "git", Text: "the repository can't be read: the process of the call did not say what is in it"}
	case !r.Git.May:
		return &inspect.Refusal{Why: inspect.WhyRepository, Of: "git", Text: strings.ToValidUTF8(r.Git.Why[:min(len(r.Git.Why), maxWhy)], "")}
	}
	return nil
}

// maxWhy bounds what a caller says of a repository, bytes.
const maxWhy = 512

func gitOf(why *inspect.Refusal) *git {
	if why == nil {
		return &git{May: true}
	}
	return &git{Why: why.Text}
}

// Requests of places are bounded, so that neither they nor their replies grow too
// long: a path that exists has at most PATH_MAX bytes, 4096 on Linux.
const (
	maxPlaces     = 64
	maxPlaceBytes = 128 << 10
)

func (f remote) Real(names ...string) []files.Place {
	out := make([]files.Place, 0, len(names))
	for len(out) < len(names) {
		r, size := request{Op: opReal}, 0
		for _, name := range names[len(out):min(len(names), len(out)+maxPlaces)] {
			if size += len(name); size > maxPlaceBytes && len(r.Names) > 0 {
				break
			}
			r.Names = append(r.Names, []byte(name))
		}
		got, err := f.s.ask(r)
		if err == nil && len(got.Places) != len(r.Names) {
			err = fmt.Errorf("%w: %d places, %d were asked for", ErrProtocol, len(got.Places), len(r.Names))
		}
		for i := range r.Names {
			if err != nil {
				out = append(out, files.Place{Err: err})
			} else {
				out = append(out, got.Places[i].place())
			}
		}
	}
	return out
}

func (f remote) ReadDir(name string) ([]fs.DirEntry, error) {
	var out []fs.DirEntry
	for from := 0; ; {
		r, err := f.s.ask(request{Op: opReadDir, Name: []byte(name), From: from})
		if err != nil {
			return nil, err
		}
		for _, e := range r.Entries {
			out = append(out, &dirEntry{f, name, string(e.Base), fs.FileMode(e.Type)})
		}
		if from = len(out); len(r.Entries) == 0 || !r.Rest {
			return out, nil
		}
		if from > maxListed {
			return nil, fmt.Errorf("%s: more than %d entries", name, maxListed)
		}
	}
}

// dirEntry is an entry of a caller's directory.
type dirEntry struct {
	f    remote
	dir  string
	base string
	mode fs.FileMode
}

func (d *dirEntry) Name() string               { return d.base }
func (d *dirEntry) IsDir() bool                { return d.mode.IsDir() }
func (d *dirEntry) Type() fs.FileMode          { return d.mode.Type() }
func (d *dirEntry) Info() (fs.FileInfo, error) { return d.f.Lstat(filepath.Join(d.dir, d.base)) }

func (f remote) Rewrite(name string) (*os.File, error) {
	r, err := f.s.file(request{Op: opRewrite, Name: []byte(name)})
	return r.opened, err
}

// Create has the caller make the draft.
func (f remote) Create(name string) (*files.Draft, error) {
	r, err := f.s.file(request{Op: opCreate, Name: []byte(name)})
	if err != nil {
		return nil, err
	}
	return files.NewDraft(r.opened, f.settle(r.ID, opCommit), func() { _ = f.settle(r.ID, opDiscard)() }), nil
}

// Directory has the caller make the directory, as [remote.Create] a file.
func (f remote) Directory(name, what string) (*files.Directory, error) {
	r, err := f.s.file(request{Op: opDirectory, Name: []byte(name), What: what})
	if err != nil {
		return nil, err
	}
	return files.NewDirectory(r.opened, string(r.Path), f.settle(r.ID, opCommit), func() { _ = f.settle(r.ID, opDiscard)() }), nil
}

// settle says what becomes of a draft. What is not settled when the connection
// ends the caller takes away.
func (f remote) settle(id uint32, how op) func() error {
	return func() error {
		_, err := f.s.ask(request{Op: how, Of: id})
		return err
	}
}
