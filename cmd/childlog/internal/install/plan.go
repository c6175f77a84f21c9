package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"childlog/cmd/childlog/internal/failure"
	"childlog/eventlog"
)

// Action is what is done to a settings file.
type Action string

// Actions of an installation, then of its undoing.
const (
	Installed Action = "installed"
	Updated   Action = "updated"
	Unchanged Action = "unchanged" // it is as it should be

	Restored Action = "restored" // the original bytes are back
	Deleted  Action = "deleted"  // there was no file before
	Removed  Action = "removed"  // it was edited meanwhile: only our entries went
	Absent   Action = "absent"   // nothing of ours is there
)

// Plan is a change that was worked out and not made.
type Plan struct {
	Harness  *Harness
	Path     string // of the settings file
	Link     string // where Path leads if it is a symbolic link, else ""
	Action   Action
	Command  Command  // that the hooks run
	Backup   string   // of the original bytes: will be there, or is there; "" for none
	Warnings []string // for a person

	file  *settings
	undo  *undo
	after []byte // nil: no file
	base  bool   // the note and the backup of an earlier installation stay true
}

// Changes reports whether the settings file becomes another.
func (p *Plan) Changes() bool { return p.Action != Unchanged && p.Action != Absent }

// Line is the command line that the hooks run.
func (p *Plan) Line() string { return p.Command.line(p.Harness) }

// Diff is what changes, as a unified diff; empty if nothing does.
func (p *Plan) Diff() string {
	if !p.Changes() {
		return ""
	}
	from, to := p.Path, p.Path
	if !p.file.exists {
		from = os.DevNull
	}
	if p.after == nil {
		to = os.DevNull
	}
	return string(diff.Diff(from, p.file.data, to, p.after))
}

// Request asks for an installation. What is nil of it, an installed hook keeps:
// installing again must not widen what a session may do because a flag was left
// out. Of Profile and Policy one at most is given.
type Request struct {
	Harness *Harness
	Env     Env
	Project bool
	Command Command // of it only the paths
	Profile *string
	Policy  *string
	Observe *bool
	Default string // profile where neither the request nor a hook says anything
}

// Install works out how the guard gets into the settings. Errors: ErrInvalid for
// what is not understood, ErrPermission, [OffError].
func Install(r Request) (*Plan, error) {
	h := r.Harness
	path, err := h.Settings(r.Env, r.Project)
	if err != nil {
		return nil, err
	}
	f, u, err := open(path)
	if err != nil {
		return nil, err
	}
	if err := f.writable(); err != nil {
		return nil, err
	}
	p := &Plan{Harness: h, Path: path, Link: f.link(), file: f, undo: u}
	if p.Warnings, err = switchedOff(h, r.Env, r.Project); err != nil {
		return nil, err
	}
	more, err := elsewhere(h, r.Env, path, r.Command.Exe)
	if err != nil {
		return nil, err
	}
	p.Warnings = append(p.Warnings, more...)
	present, err := installed(h, f, r.Command.Exe)
	if err != nil {
		return nil, located(path, err)
	}
	p.Command = r.complete(present)
	if line := p.Command.line(h); !utf8.ValidString(line) {
		return nil, fmt.Errorf("%w: a path that is not UTF-8 can't be written into settings: %q", eventlog.ErrInvalid, line)
	}
	if p.after, err = put(h, f.data, p.Command, r.Command.Exe); err != nil {
		return nil, located(path, err)
	}
	switch {
	case f.exists && string(p.after) == string(f.data):
		p.Action = Unchanged
	case len(present) > 0:
		p.Action = Updated
	default:
		p.Action = Installed
	}
	_, whole := u.original(f)
	p.base = u != nil && (whole || u.Original == "") && (f.is(u.Left) || f.is(u.Original))
	if p.Backup = u.backupPath(f); !p.base && p.Changes() {
		p.Backup = "" // it gets one of its own
	}
	return p, nil
}

// elsewhere warns of what makes an installation that goes well work badly.
func elsewhere(h *Harness, e Env, path, exe string) (warnings []string, err error) {
	states, err := Inspect(h, e, exe)
	if err != nil {
		return nil, err
	}
	for _, s := range states {
		if s.Path != path && len(s.Hooks) > 0 {
			warnings = append(warnings, fmt.Sprintf("the guard is in %s too: here every call is decided and recorded twice", s.Path))
		}
	}
	if strings.Contains(exe, string(filepath.Separator)+"go-build") {
		warnings = append(warnings, exe+" was built for one run and goes away: the hooks can't start it then, and let every call through; go install it, and install again with that")
	}
	return warnings, nil
}

// complete takes from hooks that are installed what the request leaves open.
func (r *Request) complete(present []Command) Command {
	c := r.Command
	c.Profile = r.Default
	if len(present) > 0 {
		old := present[0]
		c.Observe, c.Policy, c.rest = old.Observe, old.Policy, old.rest
		if old.Profile != "" {
			c.Profile = old.Profile
		}
	}
	switch {
	case r.Profile != nil:
		c.Profile, c.Policy = *r.Profile, ""
	case r.Policy != nil:
		c.Policy = *r.Policy
	}
	if c.Policy != "" {
		c.Profile = ""
	}
	if r.Observe != nil {
		c.Observe = *r.Observe
	}
	return c
}

// open reads a settings file and the note beside it.
func open(path string) (*settings, *undo, error) {
	f, err := find(path)
	if err != nil {
		return nil, nil, err
	}
	u, err := f.readUndo()
	return f, u, err
}

func (f *settings) link() string {
	if st, err := os.Lstat(f.path); err == nil && st.Mode()&fs.ModeSymlink != 0 {
		return f.real
	}
	return ""
}

// installed lists the commands of our hooks in a file.
func installed(h *Harness, f *settings, exe string) ([]Command, error) {
	if len(f.data) == 0 {
		return nil, nil
	}
	d, err := parse(f.data)
	if err != nil {
		return nil, nil // put says it better
	}
	all, err := d.hooks(true)
	if err != nil {
		return nil, err
	}
	_, commands := ours(h, all, exe)
	return commands, nil
}

// located names the file that an error is about.
func located(path string, err error) error {
	if err == nil {
		return nil
	}
	return failure.WithHint(fmt.Errorf("%s: %w", path, err), "nothing was changed; mend the file as the message says, and run the command again")
}

// Uninstall works out how the guard gets out of the settings. Settings that can't
// be read as JSON at all are an error. exe is this executable. Errors: ErrInvalid.
func Uninstall(h *Harness, e Env, project bool, exe string) (*Plan, error) {
	path, err := h.Settings(e, project)
	if err != nil {
		return nil, err
	}
	f, u, err := open(path)
	if err != nil {
		return nil, err
	}
	p := &Plan{Harness: h, Path: path, Link: f.link(), Action: Absent, Backup: u.backupPath(f), file: f, undo: u, after: f.data}
	mine := f.mentions(h, exe)
	original, whole := u.original(f)
	switch {
	case u != nil && f.is(u.Original) && !mine: // nothing was written, or it was put back by hand
		return p, nil
	case u != nil && f.is(u.Left) && u.Original == "" && p.Link == "":
		p.Action, p.after = Deleted, nil
		return p, f.writable()
	case u != nil && f.is(u.Left) && whole:
		if _, n, err := take(h, original, nil, exe); err == nil && n == 0 {
			p.Action, p.after = Restored, original
			return p, f.writable()
		}
	}
	after, n, err := take(h, f.data, original, exe)
	if err != nil {
		if p.Backup != "" {
			return nil, failure.WithHint(fmt.Errorf("%s: %w", path, err), "nothing was changed; mend the file, or put the backup "+p.Backup+" in its place")
		}
		return nil, located(path, err)
	}
	if n == 0 {
		return p, nil
	}
	p.Action, p.after = Removed, after
	if u != nil && u.Original == "" && p.Link == "" && bare(after) {
		p.Action, p.after = Deleted, nil
	}
	return p, f.writable()
}

// mentions reports whether hooks of ours are in the file.
func (f *settings) mentions(h *Harness, exe string) bool {
	_, n, err := take(h, f.data, nil, exe)
	return err == nil && n > 0
}

// bare reports whether a file holds an empty object and no comment.
func bare(src []byte) bool {
	d, err := parse(src)
	return err == nil && d.bare(&d.root) && blank(d.root.BeforeExtra) && blank(d.root.AfterExtra)
}

// Apply makes the change. Afterwards Backup is where the original bytes are, ""
// if they are in the file. Errors: ErrConflict if the file changed meanwhile,
// ErrPermission.
func (p *Plan) Apply() error {
	switch p.Action {
	case Unchanged:
		return nil
	case Installed, Updated:
		return p.install()
	}
	return p.uninstall()
}

func (p *Plan) install() error {
	f, note := p.file, p.undo
	if err := f.unchanged(); err != nil {
		return err
	}
	for _, dir := range f.dirs {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return denied(dir, "can't be made", err)
		}
	}
	if !p.base {
		note = &undo{Version: undoVersion}
		if f.exists {
			backup, err := f.keep()
			if err != nil {
				return denied(backup, "can't be written", err)
			}
			note.Original, note.Backup, p.Backup = digest(f.data), filepath.Base(backup), backup
		}
	}
	if note.Left = digest(p.after); len(f.dirs) > 0 {
		note.Dirs = f.dirs
	}
	if err := f.writeUndo(note); err != nil {
		return denied(f.undoPath(), "can't be written", err)
	}
	return f.write(p.after)
}

func (p *Plan) uninstall() error {
	f := p.file
	whole := p.undo != nil && f.is(p.undo.Original)
	switch p.Action {
	case Deleted:
		if err := f.unchanged(); err != nil {
			return err
		}
		if err := os.Remove(f.real); err != nil {
			return denied(f.path, "can't be removed", err)
		}
		whole = true
	case Restored, Removed:
		if err := f.write(p.after); err != nil {
			return err
		}
		whole = p.Action == Restored
	}
	if p.undo == nil {
		return nil
	}
	if err := f.clear(p.undo, whole); err != nil {
		return err
	}
	if whole {
		p.Backup = ""
		removeDirs(p.undo.Dirs)
	}
	return nil
}
