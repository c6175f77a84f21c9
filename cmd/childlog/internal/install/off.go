package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"childlog/eventlog"
)

// OffError says that the harness would not run the hooks: with them installed a
// person would believe in a guard that is not there.
type OffError struct {
	Harness *Harness
	Path    string // of the file that says so
	Setting string
}

func (e *OffError) Error() string {
	return fmt.Sprintf("%s would not run the hooks: %s: %s", e.Harness.Title, e.Path, e.Setting)
}

// switchedOff looks into everything that can turn hooks off, and warns of what
// does so in this project only. Errors: *OffError, ErrInvalid for a file that
// can't be read, since it may hold anything.
func switchedOff(h *Harness, e Env, project bool) (warnings []string, err error) {
	if h == Codex {
		return codexOff(h, e, project)
	}
	managed, err := filepath.Glob(filepath.Join(escapeGlob(claudeManaged(e)), "managed-settings.d", "*.json"))
	if err != nil {
		return nil, err
	}
	for _, path := range append([]string{filepath.Join(claudeManaged(e), "managed-settings.json")}, managed...) {
		for _, name := range []string{"disableAllHooks", "allowManagedHooksOnly"} {
			if set, on, err := jsonSwitch(path, name); err != nil {
				return nil, err
			} else if set && on {
				return nil, &OffError{h, path, name}
			}
		}
	}
	layers, err := h.layers(e)
	if err != nil {
		return nil, err
	}
	target, err := h.Settings(e, project)
	if err != nil {
		return nil, err
	}
	for _, path := range layers {
		set, on, err := jsonSwitch(path, "disableAllHooks")
		switch {
		case err != nil && path == target:
			return nil, nil // it is going to be read more closely
		case err != nil:
			warnings = append(warnings, err.Error())
		case !set:
		case !on:
			return warnings, nil // what counts less is overridden
		case project || path == target:
			return nil, &OffError{h, path, "disableAllHooks"}
		default:
			warnings = append(warnings, (&OffError{h, path, "disableAllHooks"}).Error())
		}
	}
	return warnings, nil
}

// claudeManaged is where an administrator's settings of Claude Code are. Where
// one of the two does not exist, nothing is read.
func claudeManaged(e Env) string {
	if mac := e.system("/Library/Application Support/ClaudeCode"); isDir(mac) {
		return mac
	}
	return e.system("/etc/claude-code")
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// escapeGlob makes a path mean itself in a pattern.
func escapeGlob(path string) string {
	var out []byte
	for i := 0; i < len(path); i++ {
		if slices.Contains([]byte(`*?[\`), path[i]) {
			out = append(out, '\\')
		}
		out = append(out, path[i])
	}
	return string(out)
}

// jsonSwitch reads one name at the root of a JSON file that may not be there.
func jsonSwitch(path, name string) (set, on bool, err error) {
	b, err := readPlain(path, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return false, false, unreadable(path, err)
	}
	d, err := parse(b)
	if err != nil {
		if len(b) == 0 {
			return false, false, nil
		}
		return false, false, unreadable(path, err)
	}
	m := member(d.root.Value.(*hujson.Object), name)
	if m == nil {
		return false, false, nil
	}
	return true, string(d.text(&m.Value)) != "false" && m.Value.Value.Kind() != 'n', nil
}

func unreadable(path string, err error) error {
	return fmt.Errorf("%w: %s: can't tell whether it turns hooks off: %w", eventlog.ErrInvalid, path, err)
}

// maxCodex bounds a configuration of Codex, bytes. It keeps what a person trusts
// there, hook by hook and project by project.
const maxCodex = 16 << 20

// table is a TOML table. Codex's settings grow with its versions, so only what is
// asked for is looked at.
type table map[string]any

// readCodex reads a TOML file of Codex, nil if it is not there. Errors: ErrInvalid.
func readCodex(path string) (t table, err error) {
	b, err := readPlain(path, maxCodex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = toml.Unmarshal(b, &t)
	}
	if de := (*toml.DecodeError)(nil); errors.As(err, &de) {
		row, column := de.Position()
		err = fmt.Errorf("line %d, column %d: %w", row, column, err)
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	return t, nil
}

// at finds a value by the names that lead to it.
func (t table) at(names ...string) any {
	var v any = map[string]any(t)
	for _, name := range names {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// codexOff looks into Codex's own configuration, the administrator's first. That
// of the project in the working directory counts for the project's hooks only.
func codexOff(h *Harness, e Env, project bool) (warnings []string, err error) {
	home, err := h.Home(e)
	if err != nil {
		return nil, err
	}
	managed := []string{e.system("/etc/codex/requirements.toml"), e.system("/etc/codex/managed_config.toml"), e.system("/etc/codex/config.toml")}
	own := filepath.Join(e.Dir, h.dir, "config.toml")
	for _, path := range append(managed, filepath.Join(home, "config.toml"), own) {
		t, err := readCodex(path)
		if err != nil {
			return nil, err
		}
		if t.at("allow_managed_hooks_only") == true && slices.Contains(managed, path) {
			return nil, &OffError{h, path, "allow_managed_hooks_only = true"}
		}
		for _, name := range []string{"hooks", "codex_hooks"} { // the second is the first one's old name
			on, ok := t.at("features", name).(bool)
			if !ok {
				continue
			}
			off := &OffError{h, path, "[features] " + name + " = false"}
			switch {
			case on:
			case path == own && !project:
				warnings = append(warnings, off.Error())
			default:
				return nil, off
			}
			break
		}
		if command := inlineGuard(t.at("hooks")); command != "" {
			return nil, fmt.Errorf("%w: %s: its [hooks] run a guard already (%.200s): every call would be recorded twice; take it out first", eventlog.ErrInvalid, path, command)
		}
	}
	return warnings, nil
}

// inlineGuard finds a guard among the hooks that a config.toml holds itself.
func inlineGuard(v any) string {
	switch v := v.(type) {
	case string:
		if mentions(v) {
			return v
		}
	case []any:
		for _, x := range v {
			if c := inlineGuard(x); c != "" {
				return c
			}
		}
	case map[string]any:
		for name, x := range v {
			if name == "state" {
				continue
			}
			if c := inlineGuard(x); c != "" {
				return c
			}
		}
	}
	return ""
}
