package forward

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
)

// Call is a connection to a holder that is about to run a command.
type Call struct {
	link *link
}

// answerTime is how long a holder has to take a connection. One that does not is
// stopped or stuck; the lock would be waited for as long.
const answerTime = 10 * time.Second

// RefusedError is a holder's answer to who wanted a command to be run.
type RefusedError struct {
	Status        int // of HTTP
	Code          string
	Message, Hint string
}

func (e *RefusedError) Error() string { return e.Message }

// Dial finds the holder of the store at dir and asks it to take a command.
// Nothing has happened yet if it fails. Errors: ErrNoHolder; *RefusedError; the
// end of ctx.
func Dial(ctx context.Context, dir string) (*Call, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	conn, err := Connect(ctx, dir)
	if err != nil {
		return nil, err
	}
	l, err := upgrade(ctx, conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &Call{l}, nil
}

// upgrade leaves HTTP for frames.
func upgrade(ctx context.Context, conn *net.UnixConn) (*link, error) {
	l := newLink(conn, nil)
	answer, err := Upgrade(ctx, conn, l.in, Path, Protocol)
	switch {
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, ctx.Err()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return nil, fmt.Errorf("%w: %w", ErrNoHolder, err)
	case err != nil:
		return nil, &RefusedError{Code: "locked", Message: "the process that holds the store does not answer: " + err.Error(), Hint: "end it, and start it again"}
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusSwitchingProtocols {
		return nil, refused(answer)
	}
	return l, nil
}

// Upgrade asks the holder at the other end of conn, which in reads, for another
// protocol than HTTP, and returns the answer: conn speaks it if the status is
// 101. The request is written by hand, because a transport of net/http would
// keep the connection and read what comes with it.
func Upgrade(ctx context.Context, conn net.Conn, in *bufio.Reader, path, protocol string) (*http.Response, error) {
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: childlog\r\nConnection: Upgrade\r\nUpgrade: %s\r\nContent-Length: 0\r\n\r\n", path, protocol)
	if err != nil {
		stop()
		return nil, err
	}
	answer, err := http.ReadResponse(in, nil)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		return answer, err // whose body the deadline bounds
	}
	return answer, conn.SetDeadline(time.Time{})
}

// refused reads the answer of a holder that takes no command.
func refused(answer *http.Response) error {
	e := &RefusedError{Status: answer.StatusCode}
	var body struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Hint    string `json:"hint"`
		} `json:"error"`
	}
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxData))
	if err == nil {
		err = json.Unmarshal(b, &body)
	}
	e.Code, e.Message, e.Hint = body.Error.Code, body.Error.Message, body.Error.Hint
	if err != nil || e.Message == "" {
		e.Code, e.Message = "locked", "the process that holds the store answered: "+answer.Status
	}
	if answer.StatusCode == http.StatusUpgradeRequired || answer.Header.Get("Upgrade") != "" {
		e.Hint = "the process that holds the store is another version of childlog; start it again with this one"
	}
	return e
}
