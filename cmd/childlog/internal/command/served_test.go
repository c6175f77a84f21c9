package command

import (
	"errors"
	"net"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"childlog/cmd/childlog/internal/forward"
)

// cmdServed waits for the socket of a childlog in the background.
func cmdServed(ts *testscript.TestScript, _ bool, _ []string) {
	path, done, err := forward.Short(ts.Getenv("CHILDLOG_STORE"), forward.Socket)
	ts.Check(err)
	defer done()
	for range 3000 {
		conn, err := net.Dial("unix", path)
		if err == nil {
			ts.Check(conn.Close())
			return
		}
		if errors.Is(err, net.ErrClosed) {
			ts.Fatalf("%s: %v", filepath.Base(path), err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("nobody serves the store")
}
