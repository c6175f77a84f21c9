package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/term"
	"childlog/cmd/childlog/wire"
)

// verdict is an answer that was printed and is no failure: only its exit code is
// left to give.
type verdict int

func (v verdict) Error() string { return fmt.Sprintf("exit code %d", int(v)) }

func asUsage(err error) error { return failure.Usage(err) }

func usagef(format string, args ...any) error { return failure.Usagef(format, args...) }

func withHint(err error, hint string) error { return failure.WithHint(err, hint) }

// ownSession says of an error that it was the store's own session that was
// asked for something that only an agent's has.
func ownSession(err error) error {
	if err == nil {
		return nil
	}
	return withHint(err, "the store's own session holds the operator rules; `childlog rules show` prints them")
}

// report prints an error and returns the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return failure.ExitOK
	}
	if v := verdict(0); errors.As(err, &v) {
		return int(v)
	}
	f := failure.Of(err)
	message := strings.TrimSpace(err.Error())
	if message == context.Canceled.Error() {
		message = "interrupted" // Go's words name its own machinery
	}
	a.msg.Println(term.Bad("childlog: error: "), term.Plain(message))
	a.msg.Println(term.Dim("hint: "), term.Plain(f.Hint))
	if a.json {
		if b, err := wire.Line(wire.Failure{Error: wire.FailureBody{Code: f.Code, Message: message, Hint: f.Hint}}); err == nil {
			_, _ = a.stderr.Write(b) // there is nowhere left to complain
		}
	}
	return f.Exit
}
