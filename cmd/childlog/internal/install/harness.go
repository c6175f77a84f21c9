package install

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"childlog/cmd/childlog/internal/guard"
	"childlog/eventlog"
)

// Harness is a program whose tool calls a guard decides.
type Harness struct {
	Name  string // as in the command, such as "claude-code"
	Title string // for people

	homeVar    string // the variable that moves the directory of its settings
	dir        string // that directory, in the home directory and in a project
	user       string // the settings file of the user
	project    string // the settings file of a project that is this person's
	endSeconds int
	rootNames  []string // the only names at the root that it accepts; nil: any
	bom        bool     // it passes over a byte order mark
	closes     bool     // it knows onFailure
}

// event is one hook to register.
type event struct {
	name    string
	matcher string // "" for events that have nothing to match
	seconds int    // after which the harness gives the hook up, and goes on without it
	closes  bool   // the harness can be told to block where the hook itself fails
}

// hookSeconds is longer than the guard allows itself, which blocks in time; a
// harness that gives up first would let the call through.
const hookSeconds = 30

// Seconds that a hook at the end of a session may take, where nothing can be
// blocked. Codex cuts it at three.
const (
	endSecondsClaude = 10
	endSecondsCodex  = 3
)

// ClaudeCode and Codex are the harnesses that have a guard.
var (
	ClaudeCode = &Harness{
		Name: string(guard.ClaudeCode), Title: "Claude Code",
		homeVar: "CLAUDE_CONFIG_DIR", dir: ".claude", user: "settings.json", project: "settings.local.json", endSeconds: endSecondsClaude, bom: true, closes: true,
	}
	Codex = &Harness{
		Name: string(guard.Codex), Title: "Codex",
		homeVar: "CODEX_HOME", dir: ".codex", user: "hooks.json", project: "hooks.json", endSeconds: endSecondsCodex, rootNames: []string{"description", "hooks"},
	}
)

// Harnesses lists them.
func Harnesses() []*Harness { return []*Harness{ClaudeCode, Codex} }

// Names lists their names.
func Names() []string {
	var out []string
	for _, h := range Harnesses() {
		out = append(out, h.Name)
	}
	return out
}

// ByName finds a harness. Errors: ErrInvalid.
func ByName(name string) (*Harness, error) {
	for _, h := range Harnesses() {
		if h.Name == name {
			return h, nil
		}
	}
	return nil, fmt.Errorf("%w: harness: got %q, want one of %s", eventlog.ErrInvalid, name, strings.Join(Names(), ", "))
}

// Events are the names of the events that a hook is registered for: those that
// the guard wants to be told of.
func (h *Harness) Events() []string { return guard.Harness(h.Name).Events() }

// events are they with what their hooks need. What is about a call can be
// matched by the tool's name, and the guard is asked about every tool.
func (h *Harness) events() (out []event) {
	for _, name := range h.Events() {
		e := event{name: name, seconds: hookSeconds}
		kind := guard.KindOf(name)
		e.closes = h.closes && (kind == guard.KindCall || kind == guard.KindPermission || kind == guard.KindPrompt)
		switch kind {
		case guard.KindCall, guard.KindPermission, guard.KindResult, guard.KindFailure:
			e.matcher = "*"
		case guard.KindEnd:
			e.seconds = h.endSeconds
		}
		out = append(out, e)
	}
	return out
}

func (h *Harness) event(name string) (event, bool) {
	events := h.events()
	i := slices.IndexFunc(events, func(e event) bool { return e.name == name })
	if i < 0 {
		return event{}, false
	}
	return events[i], true
}

// Env is what is asked of the surroundings. Nothing else of them is.
type Env struct {
	Getenv func(string) string
	Dir    string // the working directory, absolute: the project's
	System string // the root of the file system, "/" but in tests
}

// Home is the directory of the harness's settings for this user. Errors:
// ErrInvalid without a home directory.
func (h *Harness) Home(e Env) (string, error) {
	if dir := e.Getenv(h.homeVar); dir != "" {
		return e.abs(dir), nil
	}
	home := e.Getenv("HOME")
	if home == "" {
		return "", fmt.Errorf("%w: no home directory: set HOME, or %s for %s alone", eventlog.ErrInvalid, h.homeVar, h.Title)
	}
	return filepath.Join(e.abs(home), h.dir), nil
}

// Settings is the file that hooks are put into: the user's, or one of the
// project in the working directory. Claude Code has two there; the shared one
// would hand the paths of this machine to everybody, whose hooks then fail,
// and a hook that fails lets the call through.
func (h *Harness) Settings(e Env, project bool) (string, error) {
	if project {
		return filepath.Join(e.Dir, h.dir, h.project), nil
	}
	home, err := h.Home(e)
	return filepath.Join(home, h.user), err
}

// layers lists every file of this harness that may hold hooks, those that the
// administrator did not write: the one that counts most comes first.
func (h *Harness) layers(e Env) ([]string, error) {
	home, err := h.Home(e)
	if err != nil {
		return nil, err
	}
	files := []string{filepath.Join(e.Dir, h.dir, h.project)}
	if h.user != h.project {
		files = append(files, filepath.Join(e.Dir, h.dir, h.user))
	}
	if user := filepath.Join(home, h.user); !slices.Contains(files, user) {
		files = append(files, user)
	}
	return files, nil
}

func (e Env) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(e.Dir, path)
}

func (e Env) system(path string) string { return filepath.Join(e.System, path) }
