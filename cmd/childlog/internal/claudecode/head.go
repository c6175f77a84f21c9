package claudecode

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
)

// head is what a file's name, its folder and its first lines say of it.
type head struct {
	sum     [32]byte // of the first line
	session string   // its own id, or of an agent its session's
	agent   string   // "": a session's file
	compact bool     // an agent that summarized its session; nobody delegated it
	run     string   // the workflow run that an agent belongs to

	named     string    // the first sessionId that a line states
	firstUUID string    // of the first line that has one
	firstTime string    // as that line states it
	forked    string    // the session that the first lines are copies of, as they state
	created   time.Time // the earliest time stated
	before    time.Time // the latest time stated before the first line with a uuid
	cwd       string
	workspace string // cwd as policy takes it, or ""
	style     string
	prompt    [32]byte // of the first message's text; zero: none
	side      sidecar
	problems  []string
}

// Bounds of how far a file is read before it is known what it is.
const (
	headLines = 64
	headBytes = 4 << 20
)

const (
	agentPrefix   = "agent-"
	compactPrefix = "acompact-" // behind agentPrefix
	agentsFolder  = "subagents"
)

// nameOf takes the ids out of a file's name and folders.
func nameOf(from files.Files, path string) head {
	stem := filepath.Base(path)
	stem = strings.TrimSuffix(strings.TrimSuffix(stem, ".zst"), ".jsonl")
	id, isAgent := strings.CutPrefix(stem, agentPrefix)
	if !isAgent || id == "" {
		return head{session: stem}
	}
	h := head{agent: importer.Bounded(id), compact: strings.HasPrefix(id, compactPrefix)}
	if abs, err := from.Abs(path); err == nil {
		path = abs // the folder above may be the one that was named
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		name, parent := filepath.Base(dir), filepath.Dir(dir)
		if parent == dir {
			return h
		}
		if name == agentsFolder {
			h.session = filepath.Base(parent)
			return h
		}
		if strings.HasPrefix(name, "wf_") {
			h.run = name
		}
	}
}

// readHead reads the beginning of a file. Errors: importer.ErrSkip, and then
// find was told; the end of ctx.
func readHead(ctx context.Context, from files.Files, path string, find func(importer.Finding)) (head, error) {
	skip := func(code, detail string) (head, error) {
		find(importer.Finding{Code: code, File: path, Line: 1, Detail: detail})
		return head{}, importer.ErrSkip
	}
	in, err := importer.OpenInput(from, path)
	if err != nil {
		return skip(importer.CodeUnreadableFile, err.Error())
	}
	defer in.Close() // read only
	lines, err := in.Lines(ctx, nil)
	if err != nil {
		return skip(importer.CodeUnreadableFile, err.Error())
	}
	h := nameOf(from, path)
	is := false
	for n := 0; n < headLines; n++ {
		line, err := lines.Next()
		if ctx.Err() != nil {
			return head{}, ctx.Err()
		}
		if err != nil && n == 0 {
			switch {
			case lines.Torn() > 0:
				return skip(importer.CodeTorn, fmt.Sprintf("%d bytes without a newline: no whole line yet", lines.Torn()))
			case errors.Is(err, io.EOF):
				return skip(codeNotTranscript, "no line in it")
			}
			return skip(importer.CodeUnreadableFile, err.Error())
		}
		if err != nil {
			break
		}
		if n == 0 {
			h.sum = line.Sum
		}
		if !line.TooLong && eventlog.CheckJSON(line.Bytes) == nil {
			if e := parseEntry(jsontext.Value(line.Bytes)); e.typ != "" {
				is = h.take(&e) || is
			}
		}
		if h.firstUUID != "" && h.prompt != [32]byte{} && h.cwd != "" || lines.Prefix().Bytes > headBytes {
			break
		}
	}
	if !is {
		return skip(codeNotTranscript, fmt.Sprintf("no line of its first %d is one of a transcript", headLines))
	}
	h.identify()
	h.side = readSidecar(from, path, &h)
	return h, nil
}

// take reads what one line says of its file, and reports whether it is one of
// a transcript: of a session, of a chain, or a note about one.
func (h *head) take(e *entry) bool {
	session, id := str(e.session), str(e.uuid)
	h.named = cmp.Or(h.named, session)
	if t, _, ok := e.time(); ok {
		if h.created.IsZero() || t.Before(h.created) {
			h.created = t
		}
		if id == "" && h.firstUUID == "" && t.After(h.before) {
			h.before = t
		}
	}
	if h.firstUUID == "" && id != "" {
		h.firstUUID, h.firstTime = id, str(e.timestamp)
		h.forked, _ = importer.Text(e.forkedFrom, "sessionId")
	}
	if cwd := str(e.cwd); h.cwd == "" && cwd != "" {
		h.cwd = importer.Clip(cwd)
		if roots, err := policy.RootsOf(cwd); err == nil {
			h.workspace, h.style = roots.List()[0], "posix"
			if !strings.HasPrefix(h.workspace, "/") {
				h.style = "windows"
			}
		}
	}
	if agent := str(e.agent); h.agent != "" && agent != "" && importer.Bounded(agent) != h.agent && len(h.problems) == 0 {
		h.problems = append(h.problems, fmt.Sprintf("the lines are agent %.80q's, the file is named for %.80q, which counts", agent, h.agent))
	}
	if e.typ == "user" && h.prompt == [32]byte{} {
		if m, ok := parseMessage(e.message); ok && m.text != "" {
			h.prompt = sha256.Sum256([]byte(m.text))
		}
	}
	return session != "" || id != "" || e.leafUUID != nil || strings.HasPrefix(e.typ, "file-history-")
}

// identify settles the session's id. A file or a folder that is named by a
// UUID is that session's, whatever the lines in it say: copied ones name
// another. One of another name was renamed, and its lines know better.
func (h *head) identify() {
	if _, err := uuid.Parse(h.session); err != nil {
		h.session = cmp.Or(h.named, h.session)
	}
	h.session, h.named = importer.Bounded(h.session), importer.Bounded(h.named)
	h.forked = importer.Bounded(h.forked)
}

// key is the external id.
func (h *head) key() string {
	if h.agent == "" {
		return h.session
	}
	return agentKey(h.session, h.agent)
}

// agentKey is the external id of an agent: its own is unique in its session
// alone.
func agentKey(session, agent string) string {
	if session == "" {
		return agentPrefix + agent
	}
	return session + "/" + agent
}

// delegated: somebody's call made this conversation.
func (h *head) delegated() bool { return h.agent != "" && !h.compact }
