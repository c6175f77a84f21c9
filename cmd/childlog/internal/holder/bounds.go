package holder

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"childlog/cmd/childlog/wire"
)

// bounded hangs up on connections beyond its room, with a word of why. They are
// not left waiting: whoever keeps so many is not about to leave.
type bounded struct {
	net.Listener
	room chan struct{}
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.room <- struct{}{}:
			return &counted{UnixConn: conn.(*net.UnixConn), leave: sync.OnceFunc(func() { <-b.room })}, nil
		default:
			turnAway(conn)
		}
	}
}

// counted is a connection that leaves the room when it is closed.
type counted struct {
	*net.UnixConn
	leave func()
}

func (c *counted) Close() error {
	c.leave()
	return c.UnixConn.Close()
}

const full = "the process that holds the store has no room for another connection"

// turnAway answers before anything was read. The answer fits into the socket's
// buffer, so this waits for nobody.
func turnAway(conn net.Conn) {
	body := body("locked", full)
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // a failure shows in the next line
	_, _ = io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: "+
		strconv.Itoa(len(body))+"\r\n\r\n"+string(body)) // who does not listen learns it from the end of the connection
	conn.Close()
}

func body(code, message string) []byte {
	b, err := wire.Line(wire.Failure{Error: wire.FailureBody{Code: code, Message: message, Hint: "repeat it in a moment"}})
	if err != nil {
		return nil // of three strings: can't be
	}
	return b
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body(code, message)) // who is gone needs no answer
}

// quoted shortens what a stranger sent.
func quoted(s string) string { return strconv.Quote(s[:min(len(s), 64)]) }
