package codex

import (
	"fmt"
	"strings"
	"time"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// mapper turns the lines behind a header into events, in order. It never
// fails: a line that can't be understood is kept as it is.
type mapper struct {
	h    *header
	find func(code string, line int64, detail string)
	kept importer.Kept
	zone zone

	force force
	model string
	turns map[string]uint64 // numbers of turns, by their ids
	turn  uint64            // the newest
	open  turnMark          // the one that has no end yet
	total usage             // the newest total, and how many there were
	used  uint64
	calls map[string]struct{} // without a result

	unterminated int64
	reported     map[string]bool           // of once
	others       map[string]eventlog.Facts // of import/other, by original
	oddTime      bool
	scratch      []part // of the newest line
}

type turnMark struct {
	n    uint64
	line int64
}

// Bounds of what a mapper remembers.
const (
	// The store keeps a list of open calls with the session and copies it with
	// every event. Those beyond stay import/other.
	maxOpen   = 1024
	maxTurns  = 65536
	maxOthers = 1024 // also of what is reported by name
)

func newMapper(h *header, find func(code string, line int64, detail string)) *mapper {
	return &mapper{h: h, find: find, turns: map[string]uint64{}, calls: map[string]struct{}{}, reported: map[string]bool{}, others: map[string]eventlog.Facts{}}
}

// part is one event of a line.
type part struct {
	part  byte
	event eventlog.NewEvent
}

// mapped is what became of a line, until the next one is mapped. The first part is the line's own event, whose
// content points into it.
type mapped struct {
	parts     []part
	rec       record // its doc is nil unless the line has a type
	inherited bool
	bad       bool // unreadable: what strict refuses
}

// once reports something about this file a single time.
func (m *mapper) once(code string, line importer.Line, detail string) {
	if key := code + detail; !m.reported[key] && len(m.reported) < maxOthers {
		m.reported[key] = true
		m.find(code, line.Number, detail)
	}
}

func (m *mapper) malformed(line importer.Line, detail string) {
	m.kept.Malformed++
	m.find(importer.CodeMalformed, line.Number, detail)
}

// next maps one line, which must follow the one before.
func (m *mapper) next(line importer.Line) mapped {
	o := m.kept.Object(line, m.find)
	out := mapped{bad: o.Bad}
	ev := o.Event
	if o.Doc != nil {
		rec, ok := open(o.Doc)
		if !ok {
			m.kept.Untyped++
			ev = importer.Keep(importer.LineUntyped, eventlog.MediaJSON, line.Bytes)
		} else {
			out.rec = rec
		}
	}
	out.inherited = m.zone.inherits(&out.rec, line)
	var more []part
	if out.rec.doc != nil {
		ev, more = m.typed(&out, ev, line)
	}
	ev.Time = m.time(&out.rec, line)
	for i := range more {
		more[i].event.Time = ev.Time
	}
	if out.inherited {
		more = nil
	}
	m.scratch = append(append(m.scratch[:0], part{importer.PartLine, ev}), more...)
	out.parts = m.scratch
	return out
}

// time is the line's own, else the header's, else the store's clock (zero).
func (m *mapper) time(rec *record, line importer.Line) time.Time {
	if rec.stamp == nil {
		return m.h.created
	}
	if t, ok := stamp(rec.stamp); ok {
		return t
	}
	if !m.oddTime {
		m.oddTime = true
		m.find(importer.CodeTime, line.Number, "timestamp is no time of the years 1970 to 2261; the header's stands for it, here and on further such lines")
	}
	return m.h.created
}

// typed maps an object with a type, and returns the events beside the line's.
func (m *mapper) typed(out *mapped, ev eventlog.NewEvent, line importer.Line) (eventlog.NewEvent, []part) {
	rec := &out.rec
	if rec.unknown() {
		m.unknown(rec, line)
	}
	var facts eventlog.Facts
	var more []part
	typ, ok := "", true
	switch rec.typ {
	case "turn_context":
		if !out.inherited {
			more = m.turnContext(rec, line)
		}
	case "compacted":
		typ = eventlog.TypeHistoryCompacted // its facts need the seq
	case "response_item":
		typ, facts, more, ok = m.item(out, line)
	case "event_msg":
		typ, facts, ok = m.message(out, line)
	}
	if !ok {
		m.malformed(line, rec.original()+" without what it needs; kept as import/other")
		typ = ""
	}
	if typ == "" {
		ev.Type, ev.Ignorable, ev.Facts = eventlog.TypeImportOther, true, m.other(rec)
		return ev, more
	}
	ev.Type, ev.Facts = typ, facts
	return ev, more
}

// other are the facts of a line whose type has no counterpart.
func (m *mapper) other(rec *record) eventlog.Facts {
	name := rec.original()
	if f, ok := m.others[name]; ok {
		return f
	}
	f := importer.Facts("original", importer.Code(name))
	if len(m.others) < maxOthers {
		m.others[name] = f
	}
	return f
}

// unknown counts a line and reports its type once.
func (m *mapper) unknown(rec *record, line importer.Line) {
	m.kept.Unknown++
	name := rec.original()
	m.once(importer.CodeUnknownType, line, "type "+strings.ToValidUTF8(name[:min(len(name), 80)], "")+" is not known here; its lines are kept as they are")
}

// ended reports what the log's end leaves open.
func (m *mapper) ended(last int64) {
	if m.open.n > 0 {
		m.unterminated++
	}
	switch {
	case m.unterminated == 1 && m.open.n > 0:
		m.find(codeUnterminated, m.open.line, fmt.Sprintf("turn %d has no end: it was cut off, or still runs", m.open.n))
	case m.unterminated > 0:
		m.find(codeUnterminated, last, fmt.Sprintf("%d turns have no end", m.unterminated))
	}
	m.zone.ended(last, m.find)
}
