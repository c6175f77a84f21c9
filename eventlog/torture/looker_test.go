package torture_test

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// looker asks other processes about images: one at a time, another when it died.
type looker struct {
	t    testing.TB
	env  []string
	role string
	h    *helper
}

func (l *looker) ask(question string) (answer string, err error) {
	if l.h == nil {
		l.h = startHelper(l.t, l.role, l.env...)
	}
	if _, err := fmt.Fprintln(l.h.stdin, question); err != nil {
		return "", fmt.Errorf("%w: %w", errPanic, err)
	}
	h := l.h
	late := time.AfterFunc(time.Minute, func() { _ = h.cmd.Process.Signal(unix.SIGQUIT) }) // which says where it hangs
	answer, err = l.h.line()
	if late.Stop(); err != nil {
		_ = l.h.cmd.Wait() // for what it still says
		err = fmt.Errorf("%w: %s: %w: %s", errPanic, question, err, l.h.stderr.String())
		l.h = nil
	}
	return answer, err
}

func (l *looker) end() {
	if l.h != nil {
		_ = l.h.stdin.Close()
		_ = l.h.cmd.Wait()
	}
}
