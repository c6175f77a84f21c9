package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"childlog/cmd/childlog/internal/guard"
	"childlog/cmd/childlog/internal/term"
)

// guarded is the second act: the hooks of a harness that knows nothing of
// childlog, each a process of its own, while yet another one holds the store.
func (d *demo) guarded(ctx context.Context) (err error) {
	d.title("A harness without a line of code", "Another process holds the store and serves it. Claude Code runs a hook at each event of a session; every hook is a short-lived process that finds the holder by itself. To an allowed call it says nothing, and the harness goes on as ever; a denied one gets its reason.")
	end, err := d.serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	event := func(rest string) string {
		return fmt.Sprintf(`{"session_id":"s-1","cwd":%q,"hook_event_name":%s}`, d.work, rest)
	}
	answered := false
	for _, hook := range []struct {
		file, rest string
		denied     bool
	}{
		{"begin.json", `"SessionStart","source":"startup"`, false},
		{"write-notes.json", `"PreToolUse","tool_use_id":"t1","tool_name":"Write","tool_input":{"file_path":"notes.md","content":""}`, false},
		{"write-hosts.json", `"PreToolUse","tool_use_id":"t2","tool_name":"Write","tool_input":{"file_path":"/etc/hosts","content":""}`, true},
		{"agent-explore-bash.json", `"PreToolUse","tool_use_id":"t3","agent_id":"a1","agent_type":"Explore","tool_name":"Bash","tool_input":{"command":"rm -r build"}`, true},
	} {
		if answered {
			d.out.Println()
		}
		d.command("childlog", "guard", "claude-code", "<", hook.file)
		cmd, err := d.process(ctx, "guard", "claude-code")
		if err != nil {
			return err
		}
		var said strings.Builder
		cmd.Stdin, cmd.Stderr = strings.NewReader(event(hook.rest)), &said
		out, err := cmd.Output()
		if denied := (*exec.ExitError)(nil); errors.As(err, &denied) && denied.ExitCode() == guard.ExitBlocked {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("demo: a hook: %w: %s", err, said.String())
		}
		if answered = cmd.ProcessState.ExitCode() != guard.ExitAnswered; answered {
			d.out.Fold(3, term.Cat(term.Bad("exit 2  "), term.Plain(strings.TrimSpace(said.String()))))
		}
		if answered != hook.denied || len(out) > 0 {
			return fmt.Errorf("demo: a hook: want denied %t, got %q and %q", hook.denied, said.String(), out)
		}
	}
	return nil
}

// serve starts a process that holds the store, and returns once it answers. end
// ends it.
func (d *demo) serve(ctx context.Context) (end func() error, err error) {
	cmd, err := d.process(ctx, "serve", "--json")
	if err != nil {
		return nil, err
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("demo: the holder: %w", err), cmd.Wait())
	}
	d.out.Println(term.Dim("   $ "), term.Plain("childlog serve &"), term.Dim(fmt.Sprintf("   # process %d", cmd.Process.Pid)))
	return func() error {
		return errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait())
	}, nil
}

// process is this program as another process, on the demo's store.
func (d *demo) process(ctx context.Context, args ...string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, exe, append([]string{"--store", d.dir}, args...)...)
	cmd.Args[0] = os.Args[0]
	cmd.Dir = d.elsewhere
	cmd.Env = append(os.Environ(), "CHILDLOG_DEFAULT_SANDBOX=danger-full-access", "TZ=Pacific/Kiritimati")
	cmd.Stderr = d.stderr
	return cmd, nil
}
