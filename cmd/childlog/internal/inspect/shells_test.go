package inspect

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// workplace makes a repository with files to look at, and with file names that
// would be options if a pattern became one.
func workplace(t *testing.T) (dir string, env []string) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "work")
	for name, text := range map[string]string{
		"a.txt": "foo\nbar\nfoo\n# x\n", "b.txt": "foo\nbaz\n", "a b.txt": "spaces\n", "b c.txt": "more\n", "-odd-name": "odd\n", "README.md": "read me\n",
		"a.json": `{"a":1}`, "sums.txt": "", "src/x.go": "package x\nfunc main() {}\n", "src/y.go": "package x\n", "test/x.go": "package y\n", "feature/x": "x\n",
		"-o": "", "--output=written": "", "--compress-program=sh": "", "-delete": "", "-exec": "", "--pre=sh": "", "src/-o": "",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(top, "home"), "TMPDIR=" + top, "LC_ALL=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + devNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org"}
	require.NoError(t, os.MkdirAll(filepath.Join(top, "home"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(top, "home", ".profile"), []byte("# mine\n"), 0o600))
	if _, err := exec.LookPath("git"); err == nil {
		for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "--", "a.txt", "b.txt", "src/x.go"}, {"commit", "-q", "-m", "one"}, {"tag", "v1"}, {"branch", "feature/y"},
			{"commit", "-q", "--allow-empty", "-m", "two"}, {"remote", "add", "origin", "https://example.invalid/x"}} {
			cmd := exec.Command("git", args...)
			cmd.Dir, cmd.Env = dir, env
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%v: %s", args, out)
		}
	}
	return dir, env
}

// snapshot describes every file below a directory; of the index of git, which git
// refreshes when it looks, nothing but that it is there.
func snapshot(t *testing.T, top string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, top)
		switch {
		case strings.HasSuffix(name, "/.git/index"):
			all[name] = "index"
		case strings.HasSuffix(name, "/.git"): // its time is that of the index
			all[name] = info.Mode().String()
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all[name] = fmt.Sprintf("%v %v %x", info.Mode(), info.ModTime(), sha256.Sum256(b))
		default:
			all[name] = fmt.Sprintf("%v %v", info.Mode(), info.ModTime())
		}
		return nil
	}))
	return all
}

// TestShellsWriteNothing runs what is admitted, and mixtures of it that are, in
// every shell that is there, and looks for what was written.
func TestShellsWriteNothing(t *testing.T) {
	texts := admitted(t)
	var pieces []string
	for _, text := range texts {
		pieces = append(pieces, strings.SplitAfter(text, " ")...)
	}
	pieces = append(pieces, "-o ", "-delete ", "--output=x ", "out ", "'w x' ", "> x ", "\\; ", "* ", "./* ", "? ")
	rounds := 1500
	shells := [][]string{{"bash"}, {"sh"}, {"bash", "-O", "extglob", "-O", "nullglob"}, {"zsh", "-f"},
		{"zsh", "-f", "-o", "extendedglob", "-o", "magicequalsubst", "-o", "nullglob", "-o", "rcquotes"}}
	if testing.Short() {
		rounds, shells = 0, shells[:2]
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range rounds {
		var b strings.Builder
		for range 2 + r.IntN(3) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		if text := b.String(); Command(text).Refused == nil {
			texts = append(texts, text)
		}
	}
	ran := 0
	for _, shell := range shells {
		if _, err := exec.LookPath(shell[0]); err != nil {
			continue
		}
		ran++
		dir, env := workplace(t)
		before := snapshot(t, filepath.Dir(dir))
		// Each text has a process of the shell's own, as in a harness, made by a fork.
		var script strings.Builder
		for _, text := range texts {
			script.WriteString("(\n" + text + "\n)\n")
		}
		file := filepath.Join(t.TempDir(), "script")
		require.NoError(t, os.WriteFile(file, []byte(script.String()+"echo the end is reached\n"), 0o600))
		cmd := exec.CommandContext(t.Context(), shell[0], append(shell[1:], file)...)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%v: %s", shell, out[max(0, len(out)-2000):])
		require.Contains(t, string(out[max(0, len(out)-100):]), "the end is reached", "%v", shell)
		require.Equal(t, before, snapshot(t, filepath.Dir(dir)), "%v", shell)
	}
	require.Positive(t, ran, "no shell on this machine")
}
