package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/inspect"
	"childlog/cmd/childlog/internal/storetest"
	"childlog/policy"
	"childlog/replay"
)

// inRepository gives a session a repository to work in, or skips without git.
func inRepository(t *testing.T, x *session) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git on this machine")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	out, err := exec.Command("git", "init", "-q", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	x.cwd = dir
	return dir
}

func bash(command string) map[string]any {
	return map[string]any{"command": command, "description": "look around"}
}

// TestAnExplorerLooksAround: an agent whose shell is inspect runs what the
// classifier admits and nothing else, and the log says on whose word.
func TestAnExplorerLooksAround(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileEditHere)
	inRepository(t, x)
	x.send("SubagentStart", "agent_id", "e", "agent_type", "Explore")
	for i, c := range []struct {
		command string
		verb    Verb
		says    string
	}{
		{"ls -la && git log --oneline | head -5", Pass, ""},
		{"grep -rn 'func main' src/", Pass, ""},
		{"git status --short", Pass, ""},
		{"git log > x", Deny, "a redirection other than to /dev/null"},
		{"rm -rf src", Deny, "`rm` is not in the table"},
		{"sort -o a.txt a.txt", Deny, "`sort -o` writes a file"},
		{"ls && rm x", Deny, "`rm` is not in the table"},
		{"git push", Deny, "`git push` is not among the subcommands"},
	} {
		id := "c" + string(rune('0'+i))
		o := x.call("e", id, "Bash", bash(c.command))
		require.Equal(t, c.verb, o.Verb, "%s: %s", c.command, o.Reason)
		require.Contains(t, o.Reason, c.says)
		if c.verb == Deny {
			require.Contains(t, o.Reason, inspect.Name)
		}
		var rec replay.Recorded
		require.NoError(t, replay.Decisions(t.Context(), x.s, x.row("e").Session, replay.DecisionFilter{Call: id}, func(r replay.Recorded) error {
			rec = r
			return nil
		}))
		require.Equal(t, inspect.Name, rec.Classified.By)
		require.Equal(t, c.verb == Pass, rec.Classified.Need == policy.GrantInspect)
		require.Equal(t, c.verb == Deny, rec.Classified.Why != "")
		require.Contains(t, rec.Classified.Text, c.says)
		require.NotContains(t, rec.Classified.Why, "rm")
	}
	require.Equal(t, Pass, x.call("", "r", "Bash", bash("rm x")).Verb, "the session itself has a full shell")
	require.Equal(t, Deny, x.call("e", "p", "PowerShell", bash("ls")).Verb, "another language")
	require.Equal(t, Deny, x.call("e", "q", "BashOutput", map[string]any{"bash_id": "1"}).Verb)
}

// TestAnExplorerOfCodex: what Codex runs where it does not say needs a repository
// that is named.
func TestAnExplorerOfCodex(t *testing.T) {
	x := begin(t, storetest.New(t), Codex, ProfileEditHere)
	dir := inRepository(t, x)
	x.send("SubagentStart", "agent_id", "e", "agent_type", "explorer")
	for i, c := range []struct {
		command any
		verb    Verb
		says    string
	}{
		{"ls | wc -l", Pass, ""},
		{[]any{"bash", "-lc", "rg -n foo src"}, Pass, ""},
		{[]any{"bash", "-lc", "rg --pre sh foo src"}, Deny, "`rg --pre` runs a program"},
		{[]any{"cat", "a; rm x"}, Pass, ""},
		{"git log", Deny, "say `git -C DIR`"},
		{"git -C " + dir + " log -3", Pass, ""},
		{[]any{"git", "-C", dir, "log", "--output=x"}, Deny, "`git log --output` writes a file"},
		{"touch x", Deny, "`touch` is not in the table"},
	} {
		o := x.call("e", "c"+string(rune('0'+i)), "Bash", map[string]any{"command": c.command})
		require.Equal(t, c.verb, o.Verb, "%v: %s", c.command, o.Reason)
		require.Contains(t, o.Reason, c.says)
	}
}

// TestARepositoryThatRunsPrograms: an explorer does not run git where its
// configuration, or a directory on the way, could say what runs.
func TestARepositoryThatRunsPrograms(t *testing.T) {
	x := begin(t, storetest.New(t), ClaudeCode, ProfileTrusted)
	dir := inRepository(t, x)
	x.send("SubagentStart", "agent_id", "e", "agent_type", "Explore")
	require.Equal(t, Pass, x.call("e", "c1", "Bash", bash("git status")).Verb)
	out, err := exec.Command("git", "-C", dir, "config", "core.fsmonitor", "touch ran").CombinedOutput()
	require.NoError(t, err, "%s", out)
	o := x.call("e", "c2", "Bash", bash("git status"))
	require.Equal(t, Deny, o.Verb)
	require.Contains(t, o.Reason, "core.fsmonitor")
	again := x.call("e", "c1", "Bash", bash("git status"))
	require.Equal(t, Deny, again.Verb, "a retry is never wider than what holds now")

	// The root of an agent that edits: what looks like a bare repository is one.
	sub := filepath.Join(dir, "docs")
	require.NoError(t, os.MkdirAll(sub, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(sub, "HEAD"), []byte("ref: refs/heads/main\n"), 0o600))
	require.NoError(t, exec.Command("git", "-C", dir, "config", "--unset", "core.fsmonitor").Run())
	require.Equal(t, Pass, x.call("e", "c3", "Bash", bash("git status")).Verb)
	x.cwd = sub
	o = x.call("e", "c4", "Bash", bash("git status"))
	require.Equal(t, Deny, o.Verb)
	require.Contains(t, o.Reason, "looks like a repository")
	require.Equal(t, Pass, x.call("e", "c5", "Bash", bash("ls")).Verb)
}

// TestAReadOnlySessionLooksAround: the narrowest of the shipped profiles is of use
// where looking at a file takes a command, as it does in Codex.
func TestAReadOnlySessionLooksAround(t *testing.T) {
	for _, h := range []Harness{ClaudeCode, Codex} {
		x := begin(t, storetest.New(t), h, ProfileReadOnly)
		require.Equal(t, Pass, x.call("", "c1", "Bash", bash("rg -n main . | head -20")).Verb)
		for id, command := range map[string]string{"c2": "touch x", "c3": "cat a > b", "c4": "curl localhost", "c5": "$(cat a)"} {
			o := x.call("", id, "Bash", bash(command))
			require.Equal(t, Deny, o.Verb, command)
			require.Contains(t, o.Reason, inspect.Name)
		}
	}
}
