package inspect

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestArgv(t *testing.T) {
	for _, argv := range [][]string{
		{"ls", "-la"}, {"cat", "a; rm x", "$(rm x)", "*"}, {"bash", "-lc", "ls | head"}, {"/bin/sh", "-c", "ls"}, {"zsh", "-lc", "cat a"}, {"grep", "-n", "a\tb", "f"},
	} {
		require.Nil(t, Argv(argv).Refused, "%q", argv)
	}
	for _, argv := range [][]string{
		nil, {""}, {"rm", "x"}, {"bash", "-lc", "rm x"}, {"bash", "-lc", "ls", "x"}, {"bash", "-ic", "ls"}, {"bash", "x.sh"}, {"bash"}, {"./bash", "-c", "ls"}, {"bash", "-c"},
		{"bash", "--rcfile", "x"}, {"bash", "-lc", "bash -lc ls"}, {"sort", "-o", "x"}, {"/bin/ls"}, {"ls -la"}, {"cat", "\x00"}, {"cat", "a\rb"}, {"env", "ls"}, {"uniq", "a", "b"},
		{"fish", "-c", "ls"}, {"pwsh", "-c", "ls"}, {"cmd", "/c", "dir"},
	} {
		require.NotNil(t, Argv(argv).Refused, "%q", argv)
	}
	require.Equal(t, WhySize, Argv(make([]string, MaxWords+1)).Refused.Why)
}

func TestCall(t *testing.T) {
	for _, args := range []map[string]any{
		{"command": "ls"}, {"command": "ls", "description": "look", "timeout": 1000.0}, {"cmd": "ls", "workdir": "sub", "login": true, "yield_time_ms": 10.0},
		{"command": []any{"bash", "-lc", "ls"}, "workdir": "/w", "timeout_ms": 1.0}, {"command": "ls", "dangerouslyDisableSandbox": false, "tty": false}, {"cmd": "ls", "shell": "/bin/bash"},
	} {
		require.Nil(t, Call("exec_command", args).Refused, "%v", args)
	}
	for _, args := range []map[string]any{
		nil, {}, {"command": nil}, {"command": 1.0}, {"command": []any{"ls", 1.0}}, {"command": "ls", "cmd": "ls"}, {"Command": "ls"}, {"command": "ls", "env": map[string]any{}},
		{"command": "ls", "dangerouslyDisableSandbox": true}, {"cmd": "ls", "tty": true}, {"cmd": "ls", "shell": "/tmp/bash"}, {"cmd": "ls", "shell": "fish"}, {"command": "ls", "input": "x"},
		{"command": "ls", "_simulatedSedEdit": map[string]any{}}, {"command": "ls", "workdir": ""}, {"command": "ls", "timeout": "1"}, {"chars": "ls\n", "session_id": 1.0}, {"script": "ls"},
		{"command": map[string]any{"a": "ls"}}, {"command": []any{}},
	} {
		require.NotNil(t, Call("exec_command", args).Refused, "%v", args)
	}
	for _, tool := range []string{"PowerShell", "REPL", "js_repl", "write_stdin", "BashOutput", "KillShell", "Monitor", "exec", "run_tests", "job_kill", "BASH", "Bash ", "read"} {
		require.NotNil(t, Call(tool, map[string]any{"command": "ls"}).Refused, tool)
	}
}

// TestWhereGitRuns: each use of git comes out with its directory and what it may do.
func TestWhereGitRuns(t *testing.T) {
	uses := func(args map[string]any) []Repository {
		r := Call("Bash", args)
		require.Nil(t, r.Refused, "%v", args)
		return r.Repositories
	}
	require.Empty(t, uses(map[string]any{"command": "ls"}))
	require.Equal(t, []Repository{{}}, uses(map[string]any{"command": "git log"}))
	require.Equal(t, []Repository{{Index: true, Subs: true}}, uses(map[string]any{"command": "git status"}))
	require.Equal(t, []Repository{{Subs: true}}, uses(map[string]any{"command": "git --no-optional-locks status"}))
	require.Equal(t, []Repository{{Index: true}}, uses(map[string]any{"command": "git diff --ignore-submodules"}))
	require.Equal(t, []Repository{{Index: true, Subs: true}}, uses(map[string]any{"command": "git --no-optional-locks diff"}), "which takes the lock all the same")
	for _, c := range []string{"git diff -- --ignore-submodules", "git diff --ignore-submodules=all --ignore-submodules=none", "git diff --ignore-submodules --ignore-submodules=untracked"} {
		require.Equal(t, []Repository{{Index: true, Subs: true}}, uses(map[string]any{"command": c}), c)
	}
	require.Equal(t, []Repository{{Dir: "/w"}}, uses(map[string]any{"command": "git log", "workdir": "/w"}))
	require.Equal(t, []Repository{{Dir: "/v"}, {Dir: "/w"}}, uses(map[string]any{"command": "git -C /v log; git show", "workdir": "/w"}))
	require.Equal(t, []Repository{{Dir: "/w/é"}}, uses(map[string]any{"command": `git -C "/w/é" log`}), "not a directory of another name")
	require.Equal(t, []Repository{{Dir: "/v"}}, uses(map[string]any{"command": "cd sub && git -C /v log"}))
	require.Equal(t, WhyRepository, Call("Bash", map[string]any{"command": "git log", "workdir": "sub"}).Refused.Why)
}

func TestLimits(t *testing.T) {
	long := ""
	for range MaxCommands {
		long += "true;"
	}
	require.Nil(t, Command(long).Refused)
	require.Equal(t, WhySize, Command(long+"rm x").Refused.Why)
	require.Equal(t, WhySize, Command("echo "+string(make([]byte, MaxText))).Refused.Why)
}
