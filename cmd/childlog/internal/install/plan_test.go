package install

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tailscale/hujson"
	"golang.org/x/sys/unix"

	"childlog/eventlog"
)

// placed is a home directory with settings of Claude Code.
func placed(t *testing.T, settings string) (r Request, path string) {
	home := t.TempDir()
	r = request(ClaudeCode, home)
	path = filepath.Join(home, ".claude", "settings.json")
	write(t, path, settings, 0o640)
	return r, path
}

func uninstalled(t *testing.T, r Request) *Plan {
	p, err := Uninstall(r.Harness, r.Env, r.Project, r.Command.Exe)
	require.NoError(t, err)
	require.NoError(t, p.Apply())
	return p
}

func read(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func names(t *testing.T, dir string) (out []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// TestInterrupted: install that ended after any of its steps is undone exactly,
// or done again, and nothing is left over.
func TestInterrupted(t *testing.T) {
	const src = "{\"model\": \"x\"}\n"
	for _, step := range []string{"nothing", "backup", "note"} {
		for _, again := range []bool{false, true} {
			r, path := placed(t, src)
			p, err := Install(r)
			require.NoError(t, err)
			switch step {
			case "backup":
				_, err := p.file.keep()
				require.NoError(t, err)
			case "note":
				backup, err := p.file.keep()
				require.NoError(t, err)
				require.NoError(t, p.file.writeUndo(&undo{Version: undoVersion, Original: digest([]byte(src)), Left: digest(p.after), Backup: filepath.Base(backup)}))
			}
			if again {
				applied(t, r)
				require.Contains(t, read(t, path), "guard claude-code")
			}
			u := uninstalled(t, r)
			if again {
				require.Equal(t, Restored, u.Action)
			} else {
				require.Equal(t, Absent, u.Action)
			}
			require.Equal(t, src, read(t, path))
			rest := names(t, filepath.Dir(path))
			if step == "backup" { // nobody knows of it: it stays, since it may be a person's
				require.Len(t, rest, 2)
				continue
			}
			require.Equal(t, []string{"settings.json"}, rest, step)
		}
	}
}

// TestChangedMeanwhile: what somebody writes between reading and writing is not
// written over.
func TestChangedMeanwhile(t *testing.T) {
	r, path := placed(t, "{}")
	p, err := Install(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(`{"a":1}`), 0o600))
	require.ErrorIs(t, p.Apply(), eventlog.ErrConflict)
	require.Equal(t, `{"a":1}`, read(t, path))
	require.Equal(t, []string{"settings.json"}, names(t, filepath.Dir(path)))
	applied(t, r)
	p, err = Uninstall(r.Harness, r.Env, false, r.Command.Exe)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(`{"a":2}`), 0o600))
	require.ErrorIs(t, p.Apply(), eventlog.ErrConflict)
	require.Equal(t, `{"a":2}`, read(t, path))
}

// TestSecondInstallation: the original is kept once, over every later
// installation, and a file that was edited in between gets a backup of its own.
func TestSecondInstallation(t *testing.T) {
	const src = "{\"model\": \"x\"}\n"
	r, path := placed(t, src)
	first := applied(t, r)
	narrow, observe := "read-only", true
	r.Profile, r.Observe = &narrow, &observe
	second := applied(t, r)
	require.Equal(t, Updated, second.Action)
	require.Equal(t, first.Backup, second.Backup)
	require.Contains(t, read(t, path), "--profile read-only --observe")
	// A flag that is left out widens nothing.
	r.Profile, r.Observe = nil, nil
	again, err := Install(r)
	require.NoError(t, err)
	require.Equal(t, Unchanged, again.Action)
	require.Equal(t, "read-only", again.Command.Profile)
	require.Equal(t, Restored, uninstalled(t, r).Action)
	require.Equal(t, src, read(t, path))

	applied(t, r)
	edited := strings.Replace(read(t, path), `"x"`, `"y"`, 1)
	require.NoError(t, os.WriteFile(path, []byte(edited), 0o640))
	r.Profile = &narrow
	third := applied(t, r)
	require.Equal(t, path+".childlog-backup.2", third.Backup)
	require.Equal(t, edited, read(t, third.Backup))
	require.Equal(t, src, read(t, path+".childlog-backup"))
	require.Equal(t, Removed, uninstalled(t, r).Action)
	require.Equal(t, strings.Replace(src, `"x"`, `"y"`, 1), read(t, path))
	require.Equal(t, Absent, uninstalled(t, r).Action)
	require.Equal(t, []string{"settings.json", "settings.json.childlog-backup", "settings.json.childlog-backup.2"}, names(t, filepath.Dir(path)))
}

// TestTwice: a second place for the same guard, and an executable that goes away,
// are told.
func TestTwice(t *testing.T) {
	r, path := placed(t, "{}")
	require.Empty(t, applied(t, r).Warnings)
	r.Project = true
	require.NoError(t, os.Mkdir(r.Env.Dir, 0o700))
	require.Equal(t, []string{"the guard is in " + path + " too: here every call is decided and recorded twice"}, applied(t, r).Warnings)
	r = request(Codex, t.TempDir())
	r.Command.Exe = "/tmp/go-build12/b001/exe/childlog"
	require.Contains(t, applied(t, r).Warnings[0], "built for one run")
}

// TestModes: the file keeps its mode, what is beside it is for its owner alone.
func TestModes(t *testing.T) {
	r, path := placed(t, "{}")
	p := applied(t, r)
	for file, want := range map[string]fs.FileMode{path: 0o640, p.Backup: 0o600, path + undoSuffix: 0o600} {
		st, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, want, st.Mode().Perm(), file)
	}
	r = request(Codex, t.TempDir())
	p = applied(t, r)
	for file, want := range map[string]fs.FileMode{p.Path: 0o600, filepath.Dir(p.Path): 0o700} {
		st, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, want, st.Mode().Perm(), file)
	}
	require.Equal(t, Deleted, uninstalled(t, r).Action)
	require.NoDirExists(t, filepath.Dir(p.Path))
}

// TestRefusedFiles: what is no plain file of this user is left alone.
func TestRefusedFiles(t *testing.T) {
	for name, c := range map[string]struct {
		make    func(t *testing.T, path string)
		message string
	}{
		"directory": {func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, "want a file, got a directory"},
		"loop":      {func(t *testing.T, path string) { require.NoError(t, os.Symlink(path, path)) }, "a link that leads nowhere"},
		"dangling":  {func(t *testing.T, path string) { require.NoError(t, os.Symlink("nowhere", path)) }, "a link that leads nowhere"},
		"hard link": {func(t *testing.T, path string) {
			write(t, path, "{}", 0o600)
			require.NoError(t, os.Link(path, path+"2"))
		}, "2 names"},
		"read-only":  {func(t *testing.T, path string) { write(t, path, "{}", 0o444) }, "is read-only"},
		"large":      {func(t *testing.T, path string) { write(t, path, "{}"+strings.Repeat(" ", maxSettings), 0o600) }, "at most 1048576"},
		"bad note":   {func(t *testing.T, path string) { write(t, path+undoSuffix, `{"childlog":9}`, 0o600) }, "version 9"},
		"note path":  {func(t *testing.T, path string) { write(t, path+undoSuffix, `{"childlog":1,"backup":"../x"}`, 0o600) }, "undo"},
		"other note": {func(t *testing.T, path string) { write(t, path+undoSuffix, `{"x":1}`, 0o600) }, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(ClaudeCode, t.TempDir())
			path, err := r.Harness.Settings(r.Env, false)
			require.NoError(t, err)
			require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
			c.make(t, path)
			before := names(t, filepath.Dir(path))
			_, err = Install(r)
			require.ErrorContains(t, err, c.message)
			require.Equal(t, before, names(t, filepath.Dir(path)))
		})
	}
	r := request(ClaudeCode, t.TempDir())
	write(t, filepath.Join(r.Env.Getenv("HOME"), ".claude"), "", 0o600)
	_, err := Install(r)
	require.ErrorContains(t, err, ".claude is no directory")
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
	require.NoError(t, os.Chmod(path, mode)) // whatever the umask takes away
}

// TestSwitchedOff: no guard is put where it would not run, and the place that
// says so is named.
func TestSwitchedOff(t *testing.T) {
	home := func(r Request, path string) string { return filepath.Join(r.Env.Getenv("HOME"), path) }
	for name, c := range map[string]struct {
		h       *Harness
		file    string
		text    string
		project bool
		off     string // the setting; "": it may be installed
	}{
		"user":             {ClaudeCode, ".claude/settings.json", `{"disableAllHooks": true}`, false, "disableAllHooks"},
		"managed":          {ClaudeCode, "system/etc/claude-code/managed-settings.json", `{"allowManagedHooksOnly": true}`, false, "allowManagedHooksOnly"},
		"drop-in":          {ClaudeCode, "system/etc/claude-code/managed-settings.d/10.json", `{"disableAllHooks": true}`, false, "disableAllHooks"},
		"macOS":            {ClaudeCode, "system/Library/Application Support/ClaudeCode/managed-settings.json", `{"disableAllHooks": true}`, false, "disableAllHooks"},
		"on":               {ClaudeCode, ".claude/settings.json", `{"disableAllHooks": false}`, false, ""},
		"shared":           {ClaudeCode, "work/.claude/settings.json", `{"disableAllHooks": true}`, true, "disableAllHooks"},
		"user of project":  {ClaudeCode, ".claude/settings.json", `{"disableAllHooks": true}`, true, "disableAllHooks"},
		"another project":  {ClaudeCode, "work/.claude/settings.json", `{"disableAllHooks": true}`, false, ""},
		"codex":            {Codex, ".codex/config.toml", "[features]\nhooks = false\n", false, "[features] hooks = false"},
		"codex old name":   {Codex, ".codex/config.toml", "[features]\ncodex_hooks = false\n", true, "[features] codex_hooks = false"},
		"codex project":    {Codex, "work/.codex/config.toml", "[features]\nhooks = false\n", true, "[features] hooks = false"},
		"codex in another": {Codex, "work/.codex/config.toml", "[features]\nhooks = false\n", false, ""},
		"codex both names": {Codex, ".codex/config.toml", "[features]\nhooks = true\ncodex_hooks = false\n", false, ""},
		"codex managed":    {Codex, "system/etc/codex/requirements.toml", "allow_managed_hooks_only = true\n", false, "allow_managed_hooks_only = true"},
		"codex other":      {Codex, ".codex/config.toml", "model = \"x\"\nfeatures = 1\n[hooks.state.\"childlog guard\"]\nenabled = true\n", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(c.h, t.TempDir())
			r.Project = c.project
			write(t, home(r, c.file), c.text, 0o600)
			p, err := Install(r)
			if c.off == "" {
				require.NoError(t, err)
				require.Equal(t, strings.Contains(name, "another"), len(p.Warnings) == 1)
				return
			}
			var off *OffError
			require.ErrorAs(t, err, &off)
			require.Equal(t, home(r, c.file), off.Path)
			require.Equal(t, c.off, off.Setting)
		})
	}
	for name, text := range map[string]string{"line 1": "hooks = [", "run a guard already": "[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"/usr/bin/childlog guard codex\"\n"} {
		r := request(Codex, t.TempDir())
		write(t, home(r, ".codex/config.toml"), text, 0o600)
		_, err := Install(r)
		require.ErrorIs(t, err, eventlog.ErrInvalid)
		require.ErrorContains(t, err, name)
	}
}

// TestPlaces: the variables of the harnesses move their settings.
func TestPlaces(t *testing.T) {
	vars := map[string]string{"HOME": "/h"}
	e := Env{Getenv: func(n string) string { return vars[n] }, Dir: "/w", System: "/"}
	path := func(h *Harness, project bool) string {
		p, err := h.Settings(e, project)
		require.NoError(t, err)
		return p
	}
	require.Equal(t, "/h/.claude/settings.json", path(ClaudeCode, false))
	require.Equal(t, "/w/.claude/settings.local.json", path(ClaudeCode, true))
	require.Equal(t, "/h/.codex/hooks.json", path(Codex, false))
	require.Equal(t, "/w/.codex/hooks.json", path(Codex, true))
	vars["CLAUDE_CONFIG_DIR"], vars["CODEX_HOME"] = "/c", "rel"
	require.Equal(t, "/c/settings.json", path(ClaudeCode, false))
	require.Equal(t, "/w/rel/hooks.json", path(Codex, false))
	_, err := ClaudeCode.Settings(Env{Getenv: func(string) string { return "" }, Dir: "/w"}, false)
	require.ErrorContains(t, err, "set HOME, or CLAUDE_CONFIG_DIR")
	h, err := ByName("codex")
	require.NoError(t, err)
	require.Same(t, Codex, h)
	_, err = ByName("aider")
	require.ErrorContains(t, err, `want one of claude-code, codex`)
}

// TestNoPlainFiles: what never begins or never ends in the place of settings,
// such as a pipe in a project of somebody else's, keeps nobody waiting.
func TestNoPlainFiles(t *testing.T) {
	for _, h := range Harnesses() {
		for _, name := range []string{"settings.json", "config.toml", "home/settings.json.childlog-undo", "home/hooks.json.childlog-undo"} {
			r := request(h, t.TempDir())
			r.Env.Dir = t.TempDir()
			path := filepath.Join(r.Env.Dir, h.dir, name)
			if rest, ok := strings.CutPrefix(name, "home/"); ok {
				home, err := h.Home(r.Env)
				require.NoError(t, err)
				path = filepath.Join(home, rest)
			}
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, unix.Mkfifo(path, 0o600))
			_, err := Install(r)
			mine := strings.HasPrefix(name, "home/"+h.user) || h == Codex && name == "config.toml"
			if mine {
				require.ErrorIs(t, err, eventlog.ErrInvalid, "%s %s", h.Name, name)
			} else {
				require.NoError(t, err, "%s %s", h.Name, name)
			}
			_, err = Inspect(h, r.Env, r.Command.Exe)
			require.NoError(t, err)
		}
	}
}

// TestOnFailure: where Claude Code can be told to block if the guard can't start,
// it is, but for a guard that only watches.
func TestOnFailure(t *testing.T) {
	for _, h := range Harnesses() {
		for _, observe := range []bool{false, true} {
			out, err := put(h, nil, Command{Exe: "/bin/childlog", Store: "/s", Observe: observe}, "/bin/childlog")
			require.NoError(t, err)
			d, err := parse(out)
			require.NoError(t, err)
			all, err := d.hooks(true)
			require.NoError(t, err)
			var closed []string
			for _, k := range all {
				if m := member(k.value().Value.(*hujson.Object), onFailure); m != nil {
					require.Equal(t, failureBlocks, literal(&m.Value))
					closed = append(closed, k.event)
				}
			}
			if h == Codex || observe {
				require.Empty(t, closed)
			} else {
				require.Equal(t, []string{"UserPromptSubmit", "PreToolUse", "PermissionRequest"}, closed)
			}
		}
	}
}
