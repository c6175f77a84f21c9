package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// taskVariable in the environment makes the program do one task of a run in a
// process of its own, so that memory and syscalls are those of the task, and
// so that it can be killed.
const taskVariable = "CHILDLOG_BENCH_TASK"

var tasks = map[string]func(args []string) error{
	"memory": memoryTask,
	"crash":  crashTask,
	"cost":   costTask,
}

func runTask(name string, args []string) error {
	task, ok := tasks[name]
	if !ok {
		return fmt.Errorf("no task %q", name)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // whoever started this is gone, and nobody wants the answer
	}()
	return task(args)
}

// taskCommand is this program doing a task; wrap comes before it, such as
// strace with its flags.
func taskCommand(wrap []string, name string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	argv := append(append(append([]string{}, wrap...), self), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), taskVariable+"="+name)
	cmd.Stderr = os.Stderr
	_, err = cmd.StdinPipe() // open as long as this process and the task live
	return cmd, err
}

// answerOf runs the task and decodes the JSON that it prints.
func answerOf(answer any, wrap []string, name string, args ...string) error {
	cmd, err := taskCommand(wrap, name, args...)
	if err != nil {
		return err
	}
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("task %s: %w", name, err)
	}
	return json.NewDecoder(bytes.NewReader(out)).Decode(answer)
}

// reply prints a task's answer.
func reply(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }
