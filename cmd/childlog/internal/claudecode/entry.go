package claudecode

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/importer"
)

// entry is a line that is an object, its fields found in one pass and not yet
// read. A field that is not there is nil.
type entry struct {
	typ string // "": none

	uuid, parentUUID, session, agent, timestamp, cwd    jsontext.Value
	sidechain, meta, compactSummary                     jsontext.Value
	message, toolUseResult, denialKind, permissionMode  jsontext.Value
	forkedFrom, origin, promptID, subtype               jsontext.Value
	data, attachment, content, operation                jsontext.Value
	summary, leafUUID, customTitle, aiTitle, parentTool jsontext.Value
}

// field names the place of a field, nil for one that is not read.
func (e *entry) field(key []byte) *jsontext.Value {
	switch string(key) {
	case "uuid":
		return &e.uuid
	case "parentUuid":
		return &e.parentUUID
	case "sessionId":
		return &e.session
	case "agentId":
		return &e.agent
	case "timestamp":
		return &e.timestamp
	case "cwd":
		return &e.cwd
	case "isSidechain":
		return &e.sidechain
	case "isMeta":
		return &e.meta
	case "isCompactSummary":
		return &e.compactSummary
	case "message":
		return &e.message
	case "toolUseResult":
		return &e.toolUseResult
	case "toolDenialKind":
		return &e.denialKind
	case "permissionMode":
		return &e.permissionMode
	case "forkedFrom":
		return &e.forkedFrom
	case "origin":
		return &e.origin
	case "promptId":
		return &e.promptID
	case "subtype":
		return &e.subtype
	case "data":
		return &e.data
	case "attachment":
		return &e.attachment
	case "content":
		return &e.content
	case "operation":
		return &e.operation
	case "summary":
		return &e.summary
	case "leafUuid":
		return &e.leafUUID
	case "customTitle":
		return &e.customTitle
	case "aiTitle":
		return &e.aiTitle
	case "parentToolUseID":
		return &e.parentTool
	}
	return nil
}

// parseEntry finds the fields of a line that has passed eventlog.CheckJSON.
func parseEntry(doc jsontext.Value) entry {
	var e entry
	importer.Members(doc, func(key, value jsontext.Value) bool {
		name := unescaped(key)
		if string(name) == "type" {
			e.typ = str(value)
		} else if f := e.field(name); f != nil {
			*f = value
		}
		return true
	})
	return e
}

// unescaped is a key without its quotes. Few keys are written with escapes.
func unescaped(key jsontext.Value) []byte {
	if bytes.IndexByte(key, '\\') < 0 {
		return key[1 : len(key)-1]
	}
	return []byte(importer.Unquote(key))
}

// str is a string value, "" for anything else.
func str(v jsontext.Value) string {
	s, _ := importer.Text(v)
	return s
}

func isTrue(v jsontext.Value) bool {
	b, _ := importer.Boolean(v)
	return b
}

// time reads an RFC 3339 timestamp of the years that eventlog keeps.
func (e *entry) time() (t time.Time, stated, ok bool) {
	if e.timestamp == nil || e.timestamp.Kind() == 'n' {
		return time.Time{}, false, false
	}
	t, err := time.Parse(time.RFC3339Nano, str(e.timestamp))
	if err != nil {
		return time.Time{}, true, false
	}
	t = t.UTC()
	return t, true, t.Year() >= 1970 && t.Year() <= 2261
}

// key stands for an id of any length in the sets that a file's lines are
// looked up in: 128 bits of SHA-256, which nobody makes collide.
type key [16]byte

func keyOf(id string) (k key) {
	sum := sha256.Sum256([]byte(id))
	copy(k[:], sum[:])
	return k
}

// block is one element of a message's content that calls a tool or answers.
type block struct {
	id    string // "": none
	tool  string // of a call
	input jsontext.Value
	fails bool // of a result
	event int  // of a call: its place among the line's events, -1 if it is none
	// of a call: it asks to run outside of the sandbox
	unsandboxed bool
}

// message is what is read of a line's message.
type message struct {
	id, model string
	usage     jsontext.Value
	content   jsontext.Value
	calls     []block
	results   []block
	others    int    // elements that are neither
	text      string // of a content that is a string, or of the first text element
	more      int    // calls and results beyond maxParts
}

// parseMessage reads a message. ok is false if there is nothing that could be
// one: no object, no content, or a list that holds no object.
func parseMessage(v jsontext.Value) (m message, ok bool) {
	importer.Members(v, func(key, value jsontext.Value) bool {
		switch string(unescaped(key)) {
		case "id":
			m.id = str(value)
		case "model":
			m.model = str(value)
		case "usage":
			m.usage = value
		case "content":
			m.content = value
		}
		return true
	})
	switch m.content.Kind() {
	case '"':
		m.others, m.text = 1, str(m.content)
		return m, true
	case '[':
	default:
		return m, false
	}
	elements, objects := 0, 0
	importer.Each(m.content, func(el jsontext.Value) bool {
		elements++
		if el.Kind() == '{' {
			objects++
			m.element(el)
		}
		return true
	})
	return m, objects > 0 || elements == 0
}

// isCall reports whether a content element is a call, as the API and its server
// tools name them.
func isCall(kind string) bool {
	switch kind {
	case "tool_use", "server_tool_use", "mcp_tool_use":
		return true
	}
	return false
}

const (
	resultSuffix = "tool_result" // tool_result, web_search_tool_result, mcp_tool_result ...
	textType     = "text"
)

func (m *message) element(el jsontext.Value) {
	typ, _ := importer.Text(el, "type")
	switch {
	case len(m.calls)+len(m.results) >= maxParts && (isCall(typ) || strings.HasSuffix(typ, resultSuffix)):
		m.more++
	case isCall(typ):
		b := block{input: importer.At(el, "input"), event: -1}
		b.id, _ = importer.Text(el, "id")
		b.tool, _ = importer.Text(el, "name")
		m.calls = append(m.calls, b)
	case strings.HasSuffix(typ, resultSuffix):
		b := block{fails: isTrue(importer.At(el, "is_error"))}
		b.id, _ = importer.Text(el, "tool_use_id")
		m.results = append(m.results, b)
	default:
		m.others++
		if typ == textType && m.text == "" {
			m.text, _ = importer.Text(el, "text")
		}
	}
}
