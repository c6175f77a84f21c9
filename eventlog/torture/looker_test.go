package torture_test

import (
	"fmt"
	"testing"
	"time"
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
	late := time.AfterFunc(2*time.Minute, func() { _ = l.h.cmd.Process.Kill() }) // nobody is to wait for ever
	answer, err = l.h.line()
	if late.Stop(); err != nil {
		l.h.kill()
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
