package deepseek

import (
	"maps"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// mapper turns the lines behind a header into events, one to one and in
// order. It never fails: a line that can't be understood is kept as it is.
type mapper struct {
	h    *header
	find func(code string, line int64, detail string) // nil: findings were reported before
	kept importer.Kept

	ordinal uint64 // of the next event, as the harness counts: from 0
	last    time.Time
	own     bool // an event of the session's own has been seen
	odd     struct{ seq, time bool }
	types   map[string]bool     // unknown ones that were reported
	calls   map[string]struct{} // without a result
	asks    map[string]struct{} // without a decision
}

// maxOpen bounds the calls and asks that a log may leave open: the store keeps
// a list of them with the session and copies it with every event. The events
// of those beyond stay import/other.
const maxOpen = 1024

// maxTypes bounds the unknown types that are reported by name.
const maxTypes = 100

func newMapper(h *header, find func(code string, line int64, detail string)) *mapper {
	return &mapper{h: h, find: find, types: map[string]bool{}, calls: map[string]struct{}{}, asks: map[string]struct{}{}}
}

// clone is a mapper that goes on from here, in silence.
func (m *mapper) clone() *mapper {
	c := *m
	c.find, c.calls, c.asks, c.types = nil, maps.Clone(m.calls), maps.Clone(m.asks), maps.Clone(m.types)
	return &c
}

// mapped is one line as an event. Content points into the line.
type mapped struct {
	event     eventlog.NewEvent
	doc       jsontext.Value // nil unless the line is an object with a type
	typ       string         // as the log names it
	ordinal   uint64         // of its first event, as the harness counts
	span      uint64         // how many it holds
	inherited bool
	bad       bool // unreadable: what strict refuses
}

func (m *mapper) report(code string, line int64, detail string) {
	if m.find != nil {
		m.find(code, line, detail)
	}
}

// next maps one line, which must follow the one before.
func (m *mapper) next(line importer.Line) mapped {
	out := m.read(line)
	out.ordinal = m.ordinal
	out.inherited = m.inherits(&out, line)
	m.ordinal += out.span
	if out.doc != nil {
		ignorable, _ := importer.Boolean(out.doc, "ignorable")
		out.event = m.typed(&out, line)
		out.event.Ignorable = out.event.Ignorable || ignorable
	}
	out.event.Time = m.time(&out, line)
	if out.doc != nil {
		m.last = out.event.Time
	}
	if !out.inherited && out.span > 0 {
		m.own = true
	}
	return out
}

// read tells what a line is.
func (m *mapper) read(line importer.Line) mapped {
	o := m.kept.Object(line, m.find)
	out := mapped{doc: o.Doc, event: o.Event, bad: o.Bad, span: 1}
	switch {
	case o.Reason == importer.LineBlank:
		out.span = 0 // holds no event
	case o.Doc != nil:
		typ, ok := importer.Text(o.Doc, "type")
		if !ok || typ == "" {
			m.kept.Untyped++
			return mapped{span: 1, event: importer.Keep(importer.LineUntyped, eventlog.MediaJSON, line.Bytes)}
		}
		out.typ, out.span = typ, span(typ, o.Doc)
	}
	return out
}

// packed names the list of a line that holds several events of the harness, which
// has one element an event; "": the line holds one.
func packed(typ string) (list string) {
	switch typ {
	case "text-chunks", "reasoning-chunks":
		return "texts"
	case "tool-call-chunks":
		return "args"
	}
	return ""
}

// span is how many events of the harness a line stands for.
func span(typ string, doc jsontext.Value) uint64 {
	list := packed(typ)
	if list == "" {
		return 1
	}
	n, ok := importer.Count(doc, "data", list)
	if !ok {
		return 1
	}
	return n
}

// inherits reports whether a line lies in the fork seed.
func (m *mapper) inherits(out *mapped, line importer.Line) bool {
	seq, numbered := importer.Integer(out.doc, "seq")
	if numbered && seq != m.ordinal && !m.odd.seq {
		m.odd.seq = true
		m.report(codeSeq, line.Number, "the log counts "+number(seq)+" here, its lines "+number(m.ordinal)+"; further differences are not reported")
	}
	switch m.h.seedState {
	case absent:
		return false
	case broken:
		return true
	}
	seed := m.h.seed
	inside := m.ordinal < seed
	if inside && m.ordinal+out.span > seed {
		m.report(codeSeedBoundary, line.Number, "the seed of "+number(seed)+" events ends inside this line, which holds "+number(m.ordinal)+" to "+number(m.ordinal+out.span-1)+"; the whole line counts as the parent's")
	}
	if numbered && (seq < seed) != inside {
		m.report(codeSeedBoundary, line.Number, "by its seq "+number(seq)+" and by counting ("+number(m.ordinal)+") this line lies on different sides of the seed's end at "+number(seed)+"; it counts as the parent's")
		return true
	}
	return inside
}

// time is the line's own, else the header's, else the store's clock (zero).
func (m *mapper) time(out *mapped, line importer.Line) time.Time {
	raw := importer.At(out.doc, "time")
	if raw == nil {
		return m.h.created
	}
	if t, ok := millis(raw); ok {
		return t
	}
	if !m.odd.time {
		m.odd.time = true
		m.report(importer.CodeTime, line.Number, "time is no time of the years 1970 to 2261; the header's stands for it, here and on further such lines")
	}
	return m.h.created
}

// typed maps an object with a type.
func (m *mapper) typed(out *mapped, line importer.Line) eventlog.NewEvent {
	ev := out.event
	kind, known := kinds()[out.typ]
	if !known && !ownFamily(eventlog.Family(out.typ)) {
		m.unknown(out.typ, line)
	}
	if kind != nil {
		f, ok := kind(m, out, line)
		if ok && f != nil {
			ev.Type, ev.Facts = out.typ, f
			return ev
		}
		if !ok {
			m.kept.Malformed++
			m.report(importer.CodeMalformed, line.Number, out.typ+" without what it needs; kept as import/other")
		}
		return m.other(ev, out)
	}
	if importer.OpenName(out.typ) && packed(out.typ) == "" {
		ev.Type = out.typ
		return ev
	}
	return m.other(ev, out)
}

// other keeps a line whose type has no counterpart.
func (m *mapper) other(ev eventlog.NewEvent, out *mapped) eventlog.NewEvent {
	ev.Type, ev.Ignorable = eventlog.TypeImportOther, true
	ev.Facts = importer.Facts("original", importer.Code(out.typ))
	if packed(out.typ) != "" {
		ev.Facts = importer.Facts("original", out.typ, "events", out.span)
	}
	return ev
}

// unknown reports a type once.
func (m *mapper) unknown(typ string, line importer.Line) {
	m.kept.Unknown++
	if m.types[typ] || len(m.types) >= maxTypes {
		return
	}
	m.types[typ] = true
	if typ == "session" {
		m.report(codeSecondHeader, line.Number, "a header that is not the first line is kept and ignored")
		return
	}
	shown := strings.ToValidUTF8(typ[:min(len(typ), 80)], "")
	if family := eventlog.Family(typ); family == "sandbox" || family == "approval" || family == "policy" {
		m.report(codeUnknownPolicy, line.Number, "type "+shown+" is not understood and may narrow what the session may do")
		return
	}
	m.report(importer.CodeUnknownType, line.Number, "type "+shown+" is not known here; its lines are kept as they are")
}
