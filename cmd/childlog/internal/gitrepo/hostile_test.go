package gitrepo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/inspect"
)

// gitIn runs git for a test, or skips without one.
func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git on this machine")
	}
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%v: %s", args, out)
}

// trap is a repository that tells, by a file, that git ran what it says.
func trap(t *testing.T, dir string) (ran string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	gitIn(t, dir, "init", "-q")
	ran = filepath.Join(t.TempDir(), "ran")
	gitIn(t, dir, "config", "core.fsmonitor", "touch "+ran+"; false")
	return ran
}

// TestGitTakesAnother: what git does not take for a repository makes it look
// further up, where the configuration is another one than was read.
func TestGitTakesAnother(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, git string){
		"HEAD is no reference": func(t *testing.T, git string) { write(t, git, map[string]string{"HEAD": "x\n"}) },
		"HEAD is empty":        func(t *testing.T, git string) { write(t, git, map[string]string{"HEAD": ""}) },
		"objects is a file": func(t *testing.T, git string) {
			require.NoError(t, os.RemoveAll(filepath.Join(git, "objects")))
			write(t, git, map[string]string{"objects": ""})
		},
		"refs is a file": func(t *testing.T, git string) {
			require.NoError(t, os.RemoveAll(filepath.Join(git, "refs")))
			write(t, git, map[string]string{"refs": ""})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ran := trap(t, dir)
			inner := filepath.Join(dir, "inner")
			require.NoError(t, os.Mkdir(inner, 0o700))
			gitIn(t, inner, "init", "-q")
			require.Nil(t, check(inner, inspect.Repository{Index: true, Subs: true}))
			gitIn(t, inner, "status")
			require.NoFileExists(t, ran)

			spoil(t, filepath.Join(inner, ".git"))
			gitIn(t, inner, "status")
			require.FileExists(t, ran, "git took the outer one")
			require.Contains(t, check(inner, inspect.Repository{}).Text, "not whole")
		})
	}
}

// TestPointersAreFollowedAsGitDoes: link/../x is beside what the link leads to.
func TestPointersAreFollowedAsGitDoes(t *testing.T) {
	dir := t.TempDir()
	repositoryIn(t, filepath.Join(dir, "x"), plainConfig)
	ran := trap(t, filepath.Join(dir, "other", "x"))
	write(t, dir, map[string]string{".git": "gitdir: link/../x/.git\n", "other/deep/": ""})
	require.NoError(t, os.Symlink("other/deep", filepath.Join(dir, "link")))
	gitIn(t, dir, "status")
	require.FileExists(t, ran)
	require.Contains(t, check(dir, inspect.Repository{}).Text, "core.fsmonitor")
}

// TestSubmodulesThatNoFileNames: an entry of the index makes a submodule, without
// .gitmodules, in every form that an index has.
func TestSubmodulesThatNoFileNames(t *testing.T) {
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q")
	long := strings.Repeat("d/", 40) + strings.Repeat("n", 200)
	write(t, dir, map[string]string{"a": "1", "ab": "2", "abc/d": "3", long: "4", "b": "5"})
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "add", "-N", "b") // has more flags
	write(t, dir, map[string]string{"c": "6"})
	gitIn(t, dir, "add", "-N", "c")
	uses := inspect.Repository{Subs: true}
	forms := []string{"2", "4"} // with an entry of more flags 2 is written as 3
	for _, v := range forms {
		gitIn(t, dir, "update-index", "--index-version", v)
		require.Nil(t, check(dir, uses), "version %s", v)
	}
	gitIn(t, dir, "commit", "-q", "-a", "-m", "one")
	require.Nil(t, check(dir, uses), "with the extension of trees")
	gitIn(t, dir, "update-index", "--split-index")
	require.NotNil(t, check(dir, uses), "entries that are elsewhere")
	gitIn(t, dir, "update-index", "--no-split-index")

	ran := trap(t, filepath.Join(dir, "sub"))
	gitIn(t, filepath.Join(dir, "sub"), "-c", "core.fsmonitor=false", "commit", "-q", "--allow-empty", "-m", "x")
	gitIn(t, dir, "add", "sub")
	gitIn(t, dir, "diff")
	require.FileExists(t, ran, "git ran in the submodule")
	for _, v := range forms {
		gitIn(t, dir, "update-index", "--index-version", v)
		require.Contains(t, check(dir, uses).Text, "--ignore-submodules", "version %s", v)
		require.Nil(t, check(dir, inspect.Repository{Index: true}))
	}
	require.NoError(t, os.Truncate(filepath.Join(dir, ".git", "index"), 100))
	require.NotNil(t, check(dir, uses), "a part of an index")

	other := t.TempDir()
	gitIn(t, other, "init", "-q", "--object-format=sha256")
	write(t, other, map[string]string{"a": "1"})
	gitIn(t, other, "add", ".")
	require.Nil(t, check(other, uses))
}

// TestTheHookOfTheIndex: git diff refreshes the index and runs the hook, also
// where it is told to leave optional locks alone.
func TestTheHookOfTheIndex(t *testing.T) {
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q")
	ran := filepath.Join(t.TempDir(), "ran")
	write(t, dir, map[string]string{"a": "1", ".git/hooks/post-index-change": "#!/bin/sh\ntouch " + ran + "\n"})
	gitIn(t, dir, "add", "a")
	require.NoError(t, os.Chmod(filepath.Join(dir, ".git", "hooks", "post-index-change"), 0o700))
	for command, runs := range map[string]bool{"git --no-optional-locks status": false, "git --no-optional-locks diff": true} {
		uses := inspect.Command(command).Repositories
		require.Len(t, uses, 1)
		require.Equal(t, runs, check(dir, uses[0]) != nil, command)
		require.NoError(t, os.Chtimes(filepath.Join(dir, "a"), time.Time{}, time.Unix(1, 0))) // looks changed, and is not
		gitIn(t, dir, strings.Fields(command)[1:]...)
		if runs {
			require.FileExists(t, ran, command)
			require.NoError(t, os.Remove(ran))
		}
		require.NoFileExists(t, ran, command)
	}
}
