package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/install"
	"childlog/cmd/childlog/internal/tokens"
)

// patient is a machine of the test's own with a store and a home directory.
func patient(t *testing.T) Options {
	home := t.TempDir()
	o := Options{Place: access.Place{Dir: filepath.Join(home, "store"), Command: "childlog doctor"}, Exe: os.Args[0], Version: "v", GuardSeconds: 5,
		Env:   install.Env{Getenv: func(n string) string { return map[string]string{"HOME": home}[n] }, Dir: filepath.Join(home, "work"), System: filepath.Join(home, "system")},
		Which: func(context.Context, string) (string, string, error) { return "", "", nil }}
	_, err := access.Init(t.Context(), o.Place)
	require.NoError(t, err)
	return o
}

func put(t *testing.T, o Options, h *install.Harness) string {
	store, err := filepath.Abs(o.Place.Dir)
	require.NoError(t, err)
	p, err := install.Install(install.Request{Harness: h, Env: o.Env, Command: install.Command{Exe: o.Exe, Store: store}, Default: "edit-here"})
	require.NoError(t, err)
	require.NoError(t, p.Apply())
	return p.Path
}

// not lists what is not well, one line each.
func not(t *testing.T, o Options) (out []string) {
	for _, f := range Run(t.Context(), o) {
		if f.Status != OK {
			require.NotEmpty(t, f.Detail)
			out = append(out, fmt.Sprintf("%s %s %s", f.Status, f.Check, f.Detail))
		}
	}
	return out
}

// TestTrust: what the person told Codex of each hook counts, by its place in the
// list.
func TestTrust(t *testing.T) {
	o := patient(t)
	require.Empty(t, not(t, o))
	path := put(t, o, install.Codex)
	list := not(t, o)
	require.Len(t, list, 1)
	require.Contains(t, list[0], "problem hooks Codex passes over hooks that you have not trusted: SessionStart, ")
	var b strings.Builder
	for _, e := range []string{"session_start", "session_end", "user_prompt_submit", "pre_tool_use", "permission_request", "post_tool_use", "subagent_start", "subagent_stop", "stop"} {
		fmt.Fprintf(&b, "[hooks.state.%q]\ntrusted_hash = \"sha256:x\"\n", path+":"+e+":0:0")
	}
	config := filepath.Join(filepath.Dir(path), "config.toml")
	require.NoError(t, os.WriteFile(config, []byte(b.String()), 0o600))
	require.Empty(t, not(t, o))
	require.NoError(t, os.WriteFile(config, []byte(strings.Replace(b.String(), "stop:0:0\"]", "stop:0:0\"]\nenabled = false", 1)), 0o600))
	require.Equal(t, []string{"problem hooks switched off in Codex: SubagentStop"}, not(t, o))
	require.NoError(t, os.WriteFile(config, []byte("["), 0o600))
	require.Contains(t, strings.Join(not(t, o), "\n"), "can't tell whether it turns hooks off")
}

// TestBadSettings: a file that the harness drops takes the guard with it.
func TestBadSettings(t *testing.T) {
	o := patient(t)
	path := put(t, o, install.ClaudeCode)
	require.Empty(t, not(t, o))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append([]byte("// mine\n"), b...), 0o600))
	list := not(t, o)
	require.Len(t, list, 1)
	require.Contains(t, list[0], "problem hooks Claude Code may drop the file, and with it the guard: invalid: line 1, column 1: a comment")
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(b), `"timeout"`, `"async": true, "timeout"`, 1)), 0o600))
	require.Equal(t, []string{"problem hooks the hook of SessionStart has async, which install did not write: Claude Code may pass over it, or not wait for it"}, not(t, o))
	require.NoError(t, os.WriteFile(path, b, 0o600))
	require.NoError(t, os.Chmod(path, 0o666))
	require.Equal(t, []string{"problem hooks every user may change it, and take the guard out"}, not(t, o))
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	require.Contains(t, strings.Join(not(t, o), "\n"), "warning hooks invalid: line 1")
}

// TestFailsOpen: what keeps a guard from being started is told, where the harness
// can be told to block then, and where it can't.
func TestFailsOpen(t *testing.T) {
	o := patient(t)
	path := put(t, o, install.ClaudeCode)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	const says = `, "onFailure": "block"`
	require.Equal(t, 3, strings.Count(string(b), says))
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(b), says, "")), 0o600)) // as by a version that did not know of it
	list := not(t, o)
	require.Len(t, list, 3)
	require.Contains(t, list[1], "warning hooks the hook of PreToolUse does not say onFailure: block")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(b), says, `, "onFailure": "continue"`)), 0o600))
	require.Contains(t, not(t, o)[0], "has onFailure, which install did not write")
	put(t, o, install.ClaudeCode)
	require.Empty(t, not(t, o))

	for version, want := range map[string]string{"1.0.128 (Claude Code)": "problem claude-code before version 2.1.69", "2.1.68": "problem", "2.1.69": "warning claude-code before version 2.1.295", "2.1.294 (Claude Code)": "warning", "2.1.295": "", "3.0.0": "", "a new name": ""} {
		o.Which = func(_ context.Context, program string) (string, string, error) {
			if program != "claude" {
				return "", "", nil
			}
			return "/bin/claude", version, nil
		}
		list := strings.Join(not(t, o), "\n")
		require.Equal(t, want == "", list == "", "%s: %s", version, list)
		require.Contains(t, list, want, version)
	}
}

// TestAltered: a guard that something else runs may block nothing, and one that
// was taken out by hand is not taken for one that never was.
func TestAltered(t *testing.T) {
	o := patient(t)
	exe := filepath.Join(t.TempDir(), "childlog") // a command of another name could be anything
	require.NoError(t, os.Symlink(o.Exe, exe))
	o.Exe = exe
	path := put(t, o, install.ClaudeCode)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	const foreign = "problem hooks hooks of Claude Code run a guard in a way that install did not write, so nobody can say whether they block: "
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(b), "--profile edit-here", "--profile edit-here || true")), 0o600))
	list := not(t, o)
	require.Len(t, list, 1)
	require.Contains(t, list[0], foreign+"SessionStart, SessionEnd, ")
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(b), "--profile edit-here", "--profile edit-here || true", 1)), 0o600))
	require.Equal(t, []string{foreign + "SessionStart", "warning hooks no hook for SessionStart"}, not(t, o))
	// Whatever its executable is called, it has the words of a guard.
	renamed := strings.ReplaceAll(string(b), exe, "/opt/keep/cl")
	for _, altered := range []string{renamed, strings.ReplaceAll(renamed, "--profile edit-here", "--profile edit-here; exit 0")} {
		require.NoError(t, os.WriteFile(path, []byte(altered), 0o600))
		list = not(t, o)
		require.Len(t, list, 1)
		require.Contains(t, list[0], foreign+"SessionStart, SessionEnd, ")
		p, err := install.Uninstall(install.ClaudeCode, o.Env, false, o.Exe)
		require.NoError(t, err)
		require.False(t, p.Changes(), "what install did not write is not taken out")
	}
	require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
	require.Equal(t, []string{"problem hooks the guard was installed here, and its hooks are gone: sessions of Claude Code are neither recorded nor decided"}, not(t, o))
	require.NoError(t, os.Remove(path))
	require.Equal(t, []string{"problem hooks the guard was installed here, and its hooks are gone: sessions of Claude Code are neither recorded nor decided"}, not(t, o))
	p, err := install.Uninstall(install.ClaudeCode, o.Env, false, o.Exe)
	require.NoError(t, err)
	require.NoError(t, p.Apply())
	require.NotContains(t, strings.Join(not(t, o), "\n"), "problem")
}

// TestNoStore: what is no store is said to be none, and is not made one.
func TestNoStore(t *testing.T) {
	o := patient(t)
	empty := t.TempDir()
	o.Place.Dir = empty
	require.Contains(t, not(t, o)[0], "problem store no store is in this directory")
	entries, err := os.ReadDir(empty)
	require.NoError(t, err)
	require.Empty(t, entries)
	o.Place.Dir = filepath.Join(empty, "file")
	require.NoError(t, os.WriteFile(o.Place.Dir, nil, 0o600))
	require.Contains(t, not(t, o)[0], "problem store it is no directory")
}

// TestDamage: a store that can't be opened is a problem, with the hint of its error.
func TestDamage(t *testing.T) {
	o := patient(t)
	require.NoError(t, os.WriteFile(filepath.Join(o.Place.Dir, "store.db"), []byte("x"), 0o600))
	var found *Finding
	for _, f := range Run(t.Context(), o) {
		if f.Status == Problem {
			found = &f
		}
	}
	require.NotNil(t, found)
	require.Equal(t, "store", found.Check)
	require.Contains(t, found.Fix, "childlog")
}

// TestTokens: expired ones are told, and a file in doubt is a problem.
func TestTokens(t *testing.T) {
	o := patient(t)
	_, _, err := tokens.New(o.Place.Dir, tokens.Request{Role: tokens.Auditor, Label: "a", Now: time.Now()})
	require.NoError(t, err)
	require.Empty(t, not(t, o))
	_, _, err = tokens.New(o.Place.Dir, tokens.Request{Role: tokens.Auditor, Label: "b", Life: time.Hour, Now: time.Now().Add(-2 * time.Hour)})
	require.NoError(t, err)
	require.Contains(t, not(t, o)[0], "warning tokens expired")
	require.NoError(t, os.WriteFile(filepath.Join(o.Place.Dir, tokens.FileName), []byte("{"), 0o600))
	require.Contains(t, not(t, o)[0], "problem tokens")
}

// TestWhich: a program that hangs, fails or is not there keeps nobody waiting.
func TestWhich(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	path, version, err := Which(t.Context(), "codex")
	require.NoError(t, err)
	require.Empty(t, path+version)
	script := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "codex"), []byte("#!/bin/sh\n"+text), 0o700))
	}
	script("echo codex-cli 0.124.0; echo more")
	path, version, err = Which(t.Context(), "codex")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "codex"), path)
	require.Equal(t, "codex-cli 0.124.0", version)
	script("exit 3")
	_, _, err = Which(t.Context(), "codex")
	require.ErrorContains(t, err, "exit status 3")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	script("exec /bin/sleep 1000")
	_, _, err = Which(ctx, "codex")
	require.ErrorContains(t, err, "no answer")
	o := patient(t)
	o.Which = func(context.Context, string) (string, string, error) { return "/x", "", errors.New("no answer") }
	require.Len(t, not(t, o), 4, "of each: no answer, and no guard installed")
}

// TestWorst: the worst counts.
func TestWorst(t *testing.T) {
	require.Equal(t, OK, Worst(nil))
	require.Equal(t, Warning, Worst([]Finding{{Status: OK}, {Status: Warning}, {Status: OK}}))
	require.Equal(t, Problem, Worst([]Finding{{Status: Problem}, {Status: Warning}}))
}
