package gitrepo

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/inspect"
)

// write makes files with their directories; a name that ends in / is a directory.
func write(t *testing.T, dir string, named map[string]string) {
	t.Helper()
	for name, text := range named {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if name[len(name)-1] == '/' {
			require.NoError(t, os.MkdirAll(path, 0o700))
			continue
		}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

const headOf = "ref: refs/heads/main\n"

const plainConfig = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"

// repositoryIn makes what git takes for a repository.
func repositoryIn(t *testing.T, dir, config string) {
	t.Helper()
	write(t, dir, map[string]string{".git/HEAD": headOf, ".git/objects/": "", ".git/refs/": "", ".git/config": config})
}

func check(dir string, use inspect.Repository) *inspect.Refusal {
	use.Dir = dir
	return Check(files.Local{}, use)
}

func TestConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		says   string // "": admitted
	}{
		"as git init leaves it": {plainConfig, ""},
		"a clone": {plainConfig + "[remote \"origin\"]\n\turl = https://example.invalid/x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n" +
			"[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n", ""},
		"comments and CRLF":    {"# mine\r\n[core]\r\n\tbare = false\r\n; end\r\n", ""},
		"fsmonitor":            {"[core]\n\tfsmonitor = touch x\n", "core.fsmonitor"},
		"fsmonitor, its own":   {"[core]\n\tfsmonitor = true\n", "core.fsmonitor"},
		"fsmonitor, bare key":  {"[core]\n\tfsmonitor\n", "core.fsmonitor"},
		"fsmonitor, off":       {"[core]\n\tfsmonitor = false\n", ""},
		"other letters":        {"[CORE]\n\tFSMonitor = x\n", "core.fsmonitor"},
		"behind the section":   {"[core] fsmonitor = x\n", "not understood"},
		"in the next line":     {"[core]\n\tbare = \\\n false\n\tfsmonitor = x\n", "next one"},
		"a pager":              {"[core]\n\tpager = x\n", "core.pager"},
		"pager of a command":   {"[pager]\n\tlog = x\n", "pager.log"},
		"an external diff":     {"[diff]\n\texternal = x\n", "diff.external"},
		"textconv":             {"[diff \"x\"]\n\ttextconv = x\n", "diff.*.textconv"},
		"a filter":             {"[filter \"x\"]\n\tclean = x\n", "filter.*.clean"},
		"gpg":                  {"[gpg]\n\tprogram = x\n", "gpg.program"},
		"signatures":           {"[log]\n\tshowSignature = true\n", "log.showsignature"},
		"a format":             {"[format]\n\tpretty = %G?\n", "format.pretty"},
		"an alias of a format": {"[pretty]\n\tx = %G?\n", "pretty.x"},
		"an include":           {"[include]\n\tpath = ../x\n", "include.path"},
		"a conditional one":    {"[includeIf \"gitdir:/\"]\n\tpath = x\n", "includeif.*.path"},
		"a promisor":           {"[remote \"origin\"]\n\tpromisor = true\n", "remote.*.promisor"},
		"a partial clone":      {"[extensions]\n\tpartialClone = origin\n", "extensions.partialclone"},
		"ssh":                  {"[core]\n\tsshCommand = x\n", "core.sshcommand"},
		"an old subsection":    {"[diff.x]\n\ttextconv = x\n", "not understood"},
		"lfs extension":        {"[lfs \"extension.x\"]\n\tclean = x\n", "lfs.*.clean"},
		"submodule command":    {"[submodule \"x\"]\n\tupdate = !x\n", "submodule.*.update"},
		"sorted by signature":  {"[tag]\n\tsort = -signature:key\n", "tag.sort"},
		"in pieces":            {"[branch]\n\tsort = \"sig\"nature\n", "branch.sort"},
		"sorted by date":       {"[branch]\n\tsort = -committerdate\n", ""},
		"summary":              {"[status]\n\tsubmoduleSummary = true\n", "status.submodulesummary"},
		"another hash":         {"[extensions]\n\tobjectFormat = sha3\n", "extensions.objectformat"},
		"no section":           {"fsmonitor = x\n", "a key"},
		"a NUL":                {"[core]\n\x00", "can't be read"},
	} {
		dir := t.TempDir()
		repositoryIn(t, dir, c.config)
		why := check(dir, inspect.Repository{})
		if c.says == "" {
			require.Nil(t, why, name)
			continue
		}
		require.NotNil(t, why, name)
		require.Contains(t, why.Text, c.says, name)
		require.Equal(t, "repository:git", why.Code())
	}
}

func TestWhatGitFinds(t *testing.T) {
	dir := t.TempDir()
	repositoryIn(t, dir, plainConfig)
	write(t, dir, map[string]string{"sub/deep/": "", "bare/HEAD": "x", "bare/in/": "", "half/.git/HEAD": "x", "linked/.git": "gitdir: ../.git/worktrees/l\n",
		".git/worktrees/l/HEAD": headOf, ".git/worktrees/l/commondir": "../..\n", "lost/.git": "gitdir: nowhere\n", "odd/.git": "x"})
	for _, name := range []string{"", "sub/deep", "linked"} {
		require.Nil(t, check(filepath.Join(dir, name), inspect.Repository{Index: true, Subs: true}), name)
	}
	for name, says := range map[string]string{"bare": "looks like", "bare/in": "looks like", ".git": "looks like", "half": "not whole", "lost": "points to", "odd": "points to", "nowhere": "followed"} {
		why := check(filepath.Join(dir, name), inspect.Repository{})
		require.NotNil(t, why, name)
		require.Contains(t, why.Text, says, name)
	}
	require.NotNil(t, Check(files.Local{}, inspect.Repository{}), "a directory that nobody knows")
	require.NotNil(t, check("sub", inspect.Repository{}))

	// What belongs to a work tree counts once git would read it.
	write(t, dir, map[string]string{".git/worktrees/l/config.worktree": "[core]\n\tfsmonitor = x\n"})
	require.Nil(t, check(filepath.Join(dir, "linked"), inspect.Repository{}))
	write(t, dir, map[string]string{".git/config": plainConfig + "[extensions]\n\tworktreeConfig = true\n"})
	require.NotNil(t, check(filepath.Join(dir, "linked"), inspect.Repository{}))
}

func TestHooksAndSubmodules(t *testing.T) {
	index, subs := inspect.Repository{Index: true}, inspect.Repository{Subs: true}
	dir := t.TempDir()
	repositoryIn(t, dir, plainConfig+"[core]\n\thooksPath = .husky\n")
	require.Nil(t, check(dir, subs))
	require.Contains(t, check(dir, index).Text, "--no-optional-locks")
	repositoryIn(t, dir, plainConfig)
	require.Nil(t, check(dir, index))
	write(t, dir, map[string]string{".git/hooks/post-index-change": "x", ".gitmodules": "x"})
	require.Contains(t, check(dir, index).Text, "--no-optional-locks")
	require.Contains(t, check(dir, subs).Text, "--ignore-submodules")
	require.Nil(t, check(dir, inspect.Repository{}))
}

// TestGitRunsWhatIsRefused: what the check refuses is no invention. A repository
// with such a setting runs a program, and one that is admitted does not.
func TestGitRunsWhatIsRefused(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git on this machine")
	}
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%v: %s", args, out)
	}
	git("init", "-q")
	write(t, dir, map[string]string{"a": "1\n", ".gitattributes": "a diff=x\n"})
	git("add", ".")
	git("commit", "-q", "-m", "one")
	write(t, dir, map[string]string{"a": "2\n"})
	ran := filepath.Join(t.TempDir(), "ran")
	for key, command := range map[string]string{"core.fsmonitor": "status", "diff.external": "diff", "diff.x.textconv": "diff"} {
		git(command)
		require.NoFileExists(t, ran)
		require.Nil(t, check(dir, inspect.Repository{Index: true, Subs: true}))
		git("config", key, "touch "+ran+"; true")
		require.NotNil(t, check(dir, inspect.Repository{}), key)
		git(command)
		require.FileExists(t, ran, key)
		require.NoError(t, os.Remove(ran))
		git("config", "--unset", key)
	}
}
