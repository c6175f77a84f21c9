package command

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"childlog/cmd/childlog/internal/guard"
)

// failClosed runs a command line of this process so that a guard ends in one of
// the two ways that harnesses understand, answered or blocked, whatever happens:
// a command line that is wrong, a panic, a holder that went away in the middle, a
// deadline that something below did not keep. To the harnesses every other end,
// by another code or by a signal, is a yes.
//
// Other commands are run as they are.
func failClosed(args []string, stderr io.Writer, run func() int) (code int) {
	if !runsGuard(args) {
		return run()
	}
	signal.Ignore(syscall.SIGPIPE) // or an answer that nobody reads would end the process by a signal
	// So would a terminal that goes away, and the second of two interrupts. It is
	// never taken back: the process ends with the guard, in one of the two ways.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	blocked := guard.ExitBlocked
	if observes(args) {
		blocked = guard.ExitAnswered
	}
	block := func(why string) int {
		fmt.Fprintln(stderr, "childlog guard: blocked: "+why)
		return blocked
	}
	// What keeps the guard's own deadline is mostly its context. This is for
	// what does not listen to one, such as a disk that hangs.
	limit := guardDeadline(args) + guardGrace
	watchdog := time.AfterFunc(limit, func() { os.Exit(block(fmt.Sprintf("no answer within %s", limit))) })
	defer watchdog.Stop()
	defer func() {
		if p := recover(); p != nil {
			code = block(fmt.Sprintf("the guard itself failed: %v", p))
		}
	}()
	switch code = run(); code {
	case guard.ExitAnswered, blocked:
		return code
	case guard.ExitBlocked: // of a command line that is wrong, which was said
		return blocked
	}
	return block(fmt.Sprintf("the guard failed (exit code %d)", code))
}

// guardGrace is what a guard gets to say itself that it is late.
const guardGrace = 500 * time.Millisecond

// takeAll reads what is left of a guard's input, for at most limit. A guard that
// ends before, since its command line is wrong or its input too long, breaks the
// pipe of a harness that still writes, and Codex goes on with the call then
// (codex-rs/hooks/src/engine/command_runner.rs). Nothing is read of a terminal.
func takeAll(in *os.File, limit time.Duration) {
	if st, err := in.Stat(); err != nil || st.Mode()&os.ModeCharDevice != 0 {
		return
	}
	done := make(chan struct{})
	go func() { // it ends with the input, or with the process
		defer close(done)
		_, _ = io.Copy(io.Discard, in)
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// runsGuard reports whether a command line means to run a guard, also one that
// is wrong: then the harness must be told no. A flag that nobody knows may have
// a value, so behind one the word counts wherever it stands.
func runsGuard(args []string) bool {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--" || arg == "":
		case arg == "--store" || arg == "--wait" || arg == "--key-file":
			i++ // its value
		case strings.HasPrefix(arg, "--store=") || strings.HasPrefix(arg, "--wait=") || strings.HasPrefix(arg, "--key-file="), arg == "--json", arg == "--no-color":
		case strings.HasPrefix(arg, "-"):
			return slices.Contains(args, "guard")
		default:
			return arg == "guard"
		}
	}
	return false
}

// observes and guardDeadline read what the frame of a guard has to know of its
// flags before they are parsed, or if they can't be.
func observes(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return a == "--observe" || a == "--observe=true" })
}

func guardDeadline(args []string) time.Duration {
	for i, arg := range args {
		value, ok := strings.CutPrefix(arg, "--timeout=")
		if arg == "--timeout" && i+1 < len(args) {
			value, ok = args[i+1], true
		}
		if d, err := time.ParseDuration(value); ok && err == nil && d > 0 {
			return d
		}
	}
	return guardTimeout
}

// unread reports whether what is written goes to the null device, as it does
// where a hook was started with its stdout closed or sent away: a denial would
// be read as silence, and silence is leave.
func unread(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	null, nullErr := os.Stat(os.DevNull)
	return err != nil || nullErr == nil && os.SameFile(st, null)
}
