package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/forward"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// holderWait bounds how long a process that serves the store may take to answer.
const holderWait = 5 * time.Second

// holder asks whether a process serves the store, and for the store's figures if
// one does. It reports whether one does, well or not: the store is its own then.
func (r *report) holder(ctx context.Context) bool {
	dir := access.Abs(r.o.Place)
	socket := filepath.Join(dir, forward.Socket)
	if _, err := os.Lstat(socket); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	version, err := r.ask(ctx, "--version")
	switch {
	case errors.Is(err, forward.ErrNoHolder):
		r.add("holder", OK, socket, "", "left by a process that was killed; nobody has to remove it")
		return false
	case err != nil:
		r.add("holder", Problem, socket, "end the process that holds the store, and start it again", "%v", err)
		return true
	}
	if theirs := strings.ReplaceAll(strings.TrimSpace(version), "\n", ", "); theirs != r.o.Version {
		r.add("holder", Warning, socket, "start it again with this version", "a process serves the store and is %s", theirs)
	} else {
		r.add("holder", OK, socket, "", "a process of this version serves the store")
	}
	var st wire.Stats
	answer, err := r.ask(ctx, "stats", "--json")
	if err == nil {
		err = json.Unmarshal([]byte(answer), &st)
	}
	if err != nil {
		r.add("store", Problem, dir, "childlog stats", "the process that serves it could not say its figures: %v", err)
		return true
	}
	r.figures(&st)
	return true
}

// ask has the process that serves the store run a command.
func (r *report) ask(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, holderWait)
	defer cancel()
	call, err := forward.Dial(ctx, r.o.Place.Dir)
	if err != nil {
		return "", err
	}
	var out, msg bytes.Buffer
	code, err := call.Run(ctx, forward.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &msg, Getenv: func(string) string { return "" },
		Files: files.Local{}, Store: access.Abs(r.o.Place), Version: r.o.Version}, args)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d: %s", code, strings.TrimSpace(msg.String()))
	}
	return out.String(), err
}

// held says who has the store to itself.
func (r *report) held(le *eventlog.LockedError) {
	who := "another process"
	if le.PID != 0 {
		who = fmt.Sprintf("process %d (%s) since %s", le.PID, le.Command, le.Since.UTC().Format(time.RFC3339))
	}
	r.add("holder", Warning, access.Abs(r.o.Place), "end it, and let `childlog serve` hold the store, through which any number of processes work",
		"%s holds the store and serves nobody: a guard that waits for it too long blocks", who)
}
