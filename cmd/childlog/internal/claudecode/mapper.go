package claudecode

import (
	"fmt"
	"strings"
	"time"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// mapper turns the lines of one conversation into events, in order. What it
// makes of a line depends on that line and those before it alone, never on
// other files or the store: so a later run finds the same events again. It
// never fails: a line that can't be understood is kept as it is.
type mapper struct {
	file *shared
	find func(code string, line int64, detail string) // nil: findings were reported before

	last    time.Time         // of the last line that states one
	calls   map[string]string // tools, by the id of a call without a result
	unnamed map[string]string // the id given to a line's only call without one, by the line's uuid
	used    map[key]counts    // by the id of the message
	mode    string            // permission mode that the lines last stated
	turn    uint64            // the last one
	open    bool              // it has not ended
	prompt  string            // the promptId of the last turn

	events []eventlog.NewEvent // of the line at hand, its own first, without ids
	line   int64               // in the file, for findings
}

// shared is what the conversations of one file have in common.
type shared struct {
	kept  importer.Kept
	seen  map[key]struct{} // uuids of lines that counted
	types map[string]bool  // unknown ones that were reported
	odd   map[string]bool  // kinds of finding that are reported once a file
}

// Bounds of what is remembered of one file. What lies beyond is kept all the
// same; it is only not recognized any more.
const (
	maxParts = 64      // calls and results of one line that become events of their own
	maxOpen  = 1024    // calls without a result: the store keeps a list of them with the session
	maxSeen  = 1 << 20 // uuids
	maxUsed  = 1 << 18 // responses whose usage is compared
	maxTypes = 100     // unknown types that are reported by name
)

func newShared() *shared {
	return &shared{seen: map[key]struct{}{}, types: map[string]bool{}, odd: map[string]bool{}}
}

func newMapper(file *shared, find func(code string, line int64, detail string)) *mapper {
	return &mapper{file: file, find: find, calls: map[string]string{}, unnamed: map[string]string{}, used: map[key]counts{}}
}

func (m *mapper) report(code, detail string) {
	if m.find != nil {
		m.find(code, m.line, detail)
	}
}

// once reports a kind of finding once a file.
func (m *mapper) once(code, detail string) {
	if !m.file.odd[code] {
		m.file.odd[code] = true
		m.report(code, detail)
	}
}

// mapped is a line as events. The first is the line's own and has the line as
// its content; the others state what else the line says, without a content.
// Everything in it is valid until the next line is mapped.
type mapped struct {
	events    []eventlog.NewEvent
	e         *entry // nil: no object with a type
	m         message
	bad       bool // unreadable: what strict refuses
	duplicate bool // its uuid was seen; it counts for nothing
	malformed bool
}

// next maps one line, which was told apart already; see router.
func (m *mapper) next(line importer.Line, o *importer.Object, e *entry) mapped {
	m.line, m.events = line.Number, append(m.events[:0], o.Event)
	out := mapped{bad: o.Bad, e: e}
	if e != nil {
		m.stamp(e)
		own := m.typed(&out, o.Event)
		m.events[0] = own
	}
	for i := range m.events {
		m.events[i].Time = m.last
	}
	out.events = m.events
	return out
}

// stamp takes the line's time. Lines without one, as there are many, get that
// of the line before: their place in the file is all that is known of them.
func (m *mapper) stamp(e *entry) {
	t, stated, ok := e.time()
	switch {
	case ok:
		m.last = t
	case stated:
		m.once(importer.CodeTime, "timestamp is no time of the years 1970 to 2261; the line before stands for it, here and on further such lines")
	}
}

// add puts an event behind the line's own.
func (m *mapper) add(typ string, facts eventlog.Facts) {
	m.events = append(m.events, eventlog.NewEvent{Type: typ, Facts: facts})
}

// typed maps an object that has a type.
func (m *mapper) typed(out *mapped, own eventlog.NewEvent) eventlog.NewEvent {
	e := out.e
	if m.repeated(e) {
		out.duplicate = true
		m.file.kept.Duplicate++
		return m.other(own, e, "line", lineDuplicate)
	}
	switch e.typ {
	case "user", "assistant":
		var ok bool
		if out.m, ok = parseMessage(e.message); !ok {
			out.malformed = true
			m.file.kept.Malformed++
			m.report(importer.CodeMalformed, e.typ+" without a message; kept as import/other")
			return m.other(own, e)
		}
		m.remember(e)
		if e.typ == "user" {
			return m.user(out, own)
		}
		return m.assistant(out, own)
	case "permission-mode":
		return m.modeLine(out, own)
	case "system":
		return m.system(e, own)
	}
	m.remember(e)
	if !isKnown(e.typ) {
		m.unknown(e.typ)
	}
	return m.other(own, e)
}

// lineDuplicate: the line repeats one that was counted, as a fact.
const lineDuplicate = "duplicate"

// repeated reports whether a line's uuid has counted before.
func (m *mapper) repeated(e *entry) bool {
	id := str(e.uuid)
	if id == "" {
		return false
	}
	_, there := m.file.seen[keyOf(id)]
	return there
}

// remember keeps a uuid. A malformed line does not take its own, so that a
// sound line of the same uuid still counts.
func (m *mapper) remember(e *entry) {
	id := str(e.uuid)
	if id == "" {
		return
	}
	if len(m.file.seen) >= maxSeen {
		m.once(codeTooManyLines, fmt.Sprintf("more than %d lines with a uuid: repetitions of those from here on are not recognized", maxSeen))
		return
	}
	m.file.seen[keyOf(id)] = struct{}{}
}

// isKnown reports whether Claude Code is known to write the type beside those that
// are mapped. They state nothing that a store of delegations has a type for.
func isKnown(typ string) bool {
	switch typ {
	case "attachment", "progress", "summary", "mode", "ai-title", "custom-title", "agent-name", "last-prompt", "queue-operation",
		"file-history-snapshot", "file-history-delta", "bridge-session", "cost-state", "pr-link", "frame-link", "atis-latch", "worktree-state",
		"tag", "relocated", "agent-color", "agent-setting", "content-replacement", "attribution-snapshot", "continued-in", "fork-context-ref",
		"ended-by-model", "history-suppression", "artifact-autoreact-ledger", "artifact-comment-monitor":
		return true
	}
	return false
}

// other keeps a line whose type has no counterpart, with what names it.
func (m *mapper) other(own eventlog.NewEvent, e *entry, pairs ...any) eventlog.NewEvent {
	pairs = append(pairs, "original", importer.Code(e.typ))
	for _, sub := range []string{str(e.subtype), subtype(e)} {
		if eventlog.IsCode(sub) {
			pairs = append(pairs, "subtype", sub)
			break
		}
	}
	if call := str(e.parentTool); e.typ == "progress" && eventlog.IsCode(call) {
		pairs = append(pairs, "call", call)
	}
	own.Type, own.Ignorable, own.Facts = eventlog.TypeImportOther, true, named(e, pairs...)
	return own
}

// subtype is the kind that progress and attachment lines keep one level down.
func subtype(e *entry) string {
	v := e.data
	if e.typ == "attachment" {
		v = e.attachment
	}
	s, _ := importer.Text(v, "type")
	return s
}

// named adds the line's uuid, by which other lines and files refer to it.
func named(e *entry, pairs ...any) eventlog.Facts {
	if id := str(e.uuid); eventlog.IsCode(id) {
		pairs = append(pairs, "uuid", id)
	}
	return importer.Facts(pairs...)
}

// unknown reports a type once.
func (m *mapper) unknown(typ string) {
	m.file.kept.Unknown++
	if m.file.types[typ] || len(m.file.types) >= maxTypes {
		return
	}
	m.file.types[typ] = true
	shown := strings.ToValidUTF8(typ[:min(len(typ), 80)], "")
	m.report(importer.CodeUnknownType, "type "+shown+" is not known here; its lines are kept as they are")
}

// system lines end turns; everything else about them is their content.
func (m *mapper) system(e *entry, own eventlog.NewEvent) eventlog.NewEvent {
	m.remember(e)
	if sub := str(e.subtype); sub == "turn_duration" || sub == "stop_hook_summary" {
		m.endTurn("completed")
	}
	return m.other(own, e)
}
