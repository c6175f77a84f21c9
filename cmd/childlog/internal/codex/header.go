package codex

import (
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
	"childlog/policy"
)

// Codes of findings of this format.
const (
	codeHeader       = "header"                // a field of the header that can't be read
	codeSeedBoundary = "seed-boundary"         // where the ancestor's lines end is not known
	codeUnlinked     = "seed-not-located"      // the ancestor's events are not in the store
	codeForeignField = "foreign-field"         // a policy says more than is understood
	codeUndecided    = "decision-not-recorded" // an escalation, and nobody knows who allowed it
	codeUnterminated = "unterminated"          // a turn without an end
	codeTooManyOpen  = "too-many-open"         // calls without a result
	codeTooMuch      = "too-much-policy"       // policy changes beyond what the report folds
	codeOwnParent    = "own-parent"            // a thread that names itself
)

// maxDepth bounds what a header may count.
const maxDepth = 1 << 20

// header is the first line of a rollout.
type header struct {
	sum      [32]byte // of the line
	id       string
	bare     bool // of 2025: an object without type
	subagent bool
	origin   string // who started the thread: cli, vscode, thread_spawn, review ...
	parent   string // "": none named
	forked   string // the thread that it was forked from
	path     string // of the agent in its tree: /root/name
	nickname string
	role     string
	depth    int // -1: not stated

	seedStart uint64 // ordinal of the first line of its own
	seedState state

	created   time.Time // zero: not stated
	cwd       string
	workspace string // cwd as policy takes it, or ""
	style     string
	problems  []string
}

// state of an optional field.
type state uint8

const (
	absent state = iota
	stated
	broken
)

var errNoHeader = errors.New("the first line is neither a session_meta nor an object with an id and a timestamp")

// parseHeader reads the first line. Only its id is required; a field that
// can't be read is a problem to report and counts as the most careful value.
func parseHeader(raw []byte) (header, error) {
	h := header{sum: sha256.Sum256(raw), depth: -1}
	if eventlog.CheckJSON(raw) != nil {
		return h, errNoHeader
	}
	doc := jsontext.Value(raw)
	meta := doc
	switch typ, _ := importer.Text(doc, "type"); typ {
	case "session_meta":
		meta = importer.At(doc, "payload")
	case "":
		if _, ok := importer.Text(doc, "timestamp"); !ok || importer.At(doc, "record_type") != nil {
			return h, errNoHeader
		}
		h.bare = true
	default:
		return h, errNoHeader
	}
	id, ok := importer.Text(meta, "id")
	if !ok || id == "" {
		return h, errNoHeader
	}
	h.id = importer.Bounded(id)
	h.read(meta, doc)
	return h, nil
}

func (h *header) read(meta, doc jsontext.Value) {
	odd := func(problem string) { h.problems = append(h.problems, problem) }
	name := func(field string) string {
		v := importer.At(meta, field)
		s, ok := importer.Text(v)
		if v != nil && v.Kind() != 'n' && !ok {
			odd(field + " is no text")
		}
		return importer.Bounded(s)
	}
	h.parent, h.forked = name("parent_thread_id"), name("forked_from_id")
	h.path, h.nickname, h.role = name("agent_path"), name("agent_nickname"), name("agent_role")
	if h.role == "" {
		h.role = name("agent_type")
	}
	h.source(importer.At(meta, "source"), odd)
	if h.parent == h.id {
		odd("parent_thread_id is the thread's own")
		h.parent = ""
	}
	if h.forked == h.id {
		h.forked = ""
	}
	if v := importer.At(meta, "subagent_history_start_ordinal"); v != nil && v.Kind() != 'n' {
		var ok bool
		if h.seedStart, ok = importer.Integer(v); ok {
			h.seedState = stated
		} else {
			h.seedState = broken
			odd("subagent_history_start_ordinal is no ordinal: every line counts as the parent's")
		}
	}
	for _, at := range []jsontext.Value{importer.At(meta, "timestamp"), importer.At(doc, "timestamp")} {
		if t, ok := stamp(at); ok {
			h.created = t
			break
		}
	}
	if h.created.IsZero() {
		odd("timestamp is no time")
	}
	if cwd, ok := importer.Text(meta, "cwd"); ok {
		h.cwd = importer.Clip(cwd)
		if roots, err := policy.RootsOf(cwd); err == nil {
			h.workspace, h.style = roots.List()[0], "posix"
			if !strings.HasPrefix(h.workspace, "/") {
				h.style = "windows"
			}
		}
	}
}

// source reads who started the thread: a word, or an object with one key.
func (h *header) source(v jsontext.Value, odd func(string)) {
	switch v.Kind() {
	case '"':
		s, _ := importer.Text(v)
		h.origin = importer.Code(s)
		h.subagent = s == "subagent"
		return
	case '{':
	case 'n', 0:
		return
	default:
		odd("source is no source")
		return
	}
	importer.Members(v, func(key, value jsontext.Value) bool {
		h.origin = importer.Code(importer.Unquote(key))
		return false
	})
	agent := importer.At(v, "subagent")
	if agent == nil {
		return
	}
	h.subagent = true
	if s, ok := importer.Text(agent); ok {
		h.origin = importer.Code(s)
		return
	}
	importer.Members(agent, func(key, value jsontext.Value) bool {
		h.origin = importer.Code(importer.Unquote(key))
		return false
	})
	spawn := importer.At(agent, "thread_spawn")
	fill := func(dst *string, names ...string) {
		for _, name := range names {
			if s, _ := importer.Text(spawn, name); *dst == "" {
				*dst = importer.Bounded(s)
			}
		}
	}
	if parent, ok := importer.Text(spawn, "parent_thread_id"); ok && parent != "" {
		h.parent = importer.Bounded(parent) // the delegation's own word, before the header's
	}
	fill(&h.path, "agent_path")
	fill(&h.nickname, "agent_nickname")
	fill(&h.role, "agent_role", "agent_type")
	if d := importer.At(spawn, "depth"); d != nil && d.Kind() != 'n' {
		if n, ok := importer.Integer(d); ok && n <= maxDepth {
			h.depth = int(n)
		} else {
			odd("depth is no depth")
		}
	}
}

// isChild: somebody delegated this thread.
func (h *header) isChild() bool { return h.subagent || h.parent != "" }

// ancestor is the thread whose lines this one may replay.
func (h *header) ancestor() string {
	if h.forked != "" {
		return h.forked
	}
	return h.parent
}

// label is what a child is called in lists.
func (h *header) label() string {
	switch {
	case h.nickname != "" && h.path != "":
		return importer.Clip(h.nickname + " " + h.path)
	case h.nickname != "":
		return importer.Clip(h.nickname)
	case h.path != "":
		return importer.Clip(h.path)
	case h.subagent:
		return strings.TrimSpace(h.origin + " " + importer.Clip(h.role))
	}
	return ""
}

// idTime is the time in a UUID of version 7 (RFC 9562, section 5.7), in
// milliseconds since 1970.
func idTime(id string) (ms uint64, ok bool) {
	u, err := uuid.Parse(id)
	if err != nil || len(id) != 36 || u.Version() != 7 {
		return 0, false
	}
	for _, b := range u[:6] {
		ms = ms<<8 | uint64(b)
	}
	return ms, true
}

// stamp reads a time of RFC 3339 within the years that eventlog keeps.
func stamp(raw jsontext.Value) (time.Time, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return time.Time{}, false
	}
	var t time.Time
	if t.UnmarshalText(raw[1:len(raw)-1]) != nil || t.Year() < 1970 || t.Year() > 2261 {
		return time.Time{}, false
	}
	return t.UTC(), true
}
