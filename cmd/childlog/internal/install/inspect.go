package install

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/tailscale/hujson"

	"childlog/cmd/childlog/internal/guard"
)

// State is what one settings file says about the guard.
type State struct {
	Path    string
	Exists  bool
	Hooks   []Hook // ours
	Foreign []Hook // that run a guard and are not ours: Event and Line only
	Noted   bool   // install was here, and uninstall was not
	Err     error  // that the harness, or install, can't read it
}

// Hook is a hook of ours as it stands in a settings file.
type Hook struct {
	Event      string
	Line       int
	Command    Command
	Seconds    int      // its timeout; 0: the harness's own
	MatchesAll bool     // no matcher keeps calls from it
	Added      []string // names in it that install does not write, such as async or if
	FailsOpen  bool     // the harness could be told to block where the hook itself fails, and is not

	group, handler int
}

// Inspect reads every settings file that may hold hooks of ours: those of the
// project in the working directory first, then the user's. exe is this
// executable. Errors: ErrInvalid without a home directory.
func Inspect(h *Harness, e Env, exe string) ([]State, error) {
	paths, err := h.layers(e)
	if err != nil {
		return nil, err
	}
	var out []State
	for _, path := range paths {
		out = append(out, inspect(h, path, exe))
	}
	return out, nil
}

func inspect(h *Harness, path, exe string) State {
	f, err := find(path)
	s := State{Path: path, Err: err}
	if err == nil {
		_, gone := os.Lstat(f.undoPath())
		s.Noted = gone == nil
	}
	if err != nil || !f.exists || blank(f.data) {
		s.Exists = err == nil && f.exists
		return s
	}
	s.Exists = true
	if _, _, s.Err = understand(h, f.data, exe); errors.Is(s.Err, errForeign) {
		s.Err = nil
	}
	d, err := parse(f.data) // also where the harness drops it: what is in it counts for nothing, and is told
	if err != nil {
		return s
	}
	all, _ := d.hooks(false)
	for _, k := range all {
		if _, ok := parseCommand(h, k.command, exe); !ok && mentions(k.command) {
			s.Foreign = append(s.Foreign, Hook{Event: k.event, Line: k.line})
		}
	}
	mine, commands := ours(h, all, exe)
	for i := range mine {
		k := &mine[i]
		one := Hook{Event: k.event, Line: k.line, Command: commands[i], MatchesAll: k.matchesAll(), group: k.group, handler: k.handler}
		e, _ := h.event(k.event)
		one.FailsOpen = e.closes && !one.Command.Observe
		for _, m := range k.value().Value.(*hujson.Object).Members {
			switch name := nameOf(&m); name {
			case "type", "command":
			case "timeout":
				if l, ok := m.Value.Value.(hujson.Literal); ok {
					one.Seconds = int(l.Float())
				}
			case onFailure:
				if one.FailsOpen && literal(&m.Value) == failureBlocks {
					one.FailsOpen = false
					continue
				}
				fallthrough
			default:
				one.Added = append(one.Added, name)
			}
		}
		s.Hooks = append(s.Hooks, one)
	}
	return s
}

// Missing lists the events that no hook is there for.
func (h *Harness) Missing(hooks []Hook) (out []string) {
	there := map[string]bool{}
	for _, k := range hooks {
		there[k.Event] = true
	}
	for _, e := range h.events() {
		if !there[e.name] {
			out = append(out, e.name)
		}
	}
	return out
}

// Blocks reports whether an event's hook can keep something from happening, so
// that its timeout counts: a harness that gives it up goes on.
func Blocks(event string) bool {
	switch guard.KindOf(event) {
	case guard.KindCall, guard.KindPermission, guard.KindPrompt, guard.KindStart, guard.KindAgentStart:
		return true
	}
	return false
}

// Off says what keeps the harness from running hooks in the working directory,
// nil if nothing does. Errors: ErrInvalid for settings that can't be read.
func Off(h *Harness, e Env) (*OffError, error) {
	_, err := switchedOff(h, e, true)
	if off, ok := err.(*OffError); ok {
		return off, nil
	}
	return nil, err
}

// Untrusted lists our hooks that Codex passes over, each with the reason: it
// keeps in config.toml what the person said of each hook in /hooks. A hook that
// was trusted and has changed since is not found out, because that takes Codex's
// own digest of it.
func Untrusted(e Env, s State) (off, unasked []string, err error) {
	home, err := Codex.Home(e)
	if err != nil {
		return nil, nil, err
	}
	t, err := readCodex(filepath.Join(home, "config.toml"))
	if err != nil {
		return nil, nil, err
	}
	paths := []string{s.Path}
	if real, err := filepath.EvalSymlinks(s.Path); err == nil && real != s.Path {
		paths = append(paths, real)
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(s.Path)); err == nil {
		paths = append(paths, filepath.Join(dir, filepath.Base(s.Path)))
	}
	for _, k := range s.Hooks {
		trusted := false
		for _, path := range paths {
			key := fmt.Sprintf("%s:%s:%d:%d", path, snake(k.Event), k.group, k.handler)
			if on, ok := t.at("hooks", "state", key, "enabled").(bool); ok && !on {
				off = append(off, k.Event)
				trusted = true
				break
			}
			if _, ok := t.at("hooks", "state", key, "trusted_hash").(string); ok {
				trusted = true
				break
			}
		}
		if !trusted {
			unasked = append(unasked, k.Event)
		}
	}
	return off, unasked, nil
}

// ProjectTrusted reports whether Codex reads the hooks of the project in the
// working directory.
func ProjectTrusted(e Env) bool {
	home, err := Codex.Home(e)
	if err != nil {
		return false
	}
	t, err := readCodex(filepath.Join(home, "config.toml"))
	if err != nil {
		return false
	}
	for dir := e.Dir; ; dir = filepath.Dir(dir) {
		if t.at("projects", dir, "trust_level") == "trusted" {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// snake is an event's name in Codex's keys.
func snake(event string) string {
	var b strings.Builder
	for i, r := range event {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
