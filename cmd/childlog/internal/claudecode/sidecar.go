package claudecode

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// sidecar is the .meta.json beside an agent's file: what the harness noted when
// it made the agent.
type sidecar struct {
	raw         []byte
	sum         [32]byte
	agentType   string
	description string
	call        string // the id of the call that made it
	parent      string // the agent that called, "" for the session
	shape       string // background or foreground
	depth       int    // -1: not stated
	problem     string
}

const maxSidecar = 1 << 20 // bytes

// readSidecar reads the sidecar of an agent's file. That there is none is no
// problem: older versions wrote none.
func readSidecar(from files.Files, path string, h *head) sidecar {
	s := sidecar{depth: -1}
	if h.agent == "" {
		return s
	}
	path = strings.TrimSuffix(strings.TrimSuffix(path, ".zst"), ".jsonl") + ".meta.json"
	fi, err := from.Lstat(path) // before the open, which would wait on a pipe; a link could lead anywhere
	if errors.Is(err, fs.ErrNotExist) {
		return s
	}
	if err == nil && (!fi.Mode().IsRegular() || fi.Size() > maxSidecar) {
		s.problem = "the .meta.json beside it is no regular file of at most 1 MiB"
		return s
	}
	f, err := from.Open(path)
	if err != nil {
		s.problem = "the .meta.json beside it can't be read: " + err.Error()
		return s
	}
	defer f.Close() // read only
	if s.raw, err = io.ReadAll(io.LimitReader(f, maxSidecar)); err != nil {
		s.problem = "the .meta.json beside it can't be read: " + err.Error()
		return s
	}
	s.sum = sha256.Sum256(s.raw)
	if err := eventlog.CheckJSON(s.raw); err != nil {
		s.problem = "the .meta.json beside it is no JSON: " + err.Error()
		return s
	}
	doc := jsontext.Value(s.raw)
	field := func(name string) string {
		v, _ := importer.Text(doc, name)
		return importer.Clip(v)
	}
	s.agentType, s.description, s.call, s.parent, s.shape = field("agentType"), field("description"), field("toolUseId"), field("parentAgentId"), field("requestShape")
	if n, ok := importer.Integer(doc, "spawnDepth"); ok && n <= maxDepth {
		s.depth = int(n)
	}
	return s
}

// maxDepth bounds a delegation depth that a file states.
const maxDepth = 1 << 20
