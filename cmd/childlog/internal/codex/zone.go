package codex

import (
	"fmt"

	"childlog/cmd/childlog/internal/importer"
)

// zone tells the lines that a thread replays of its ancestor from its own. Once
// a line of its own was found, everything behind it is its own too.
type zone struct {
	h        *header
	ancestor func(turn string) bool // whether the ancestor's log has a turn; nil: not known
	open     bool
	lines    int64 // inherited
}

// newZone begins behind the header.
func newZone(h *header, ancestor func(string) bool) zone {
	return zone{h: h, ancestor: ancestor, open: h.seedState == broken || h.seedState == stated && h.seedStart > 1 || h.seedState == absent && h.forked != ""}
}

// inherits reports whether a line behind the header is the ancestor's.
func (z *zone) inherits(rec *record, line importer.Line) bool {
	if !z.open && z.h.seedState == absent && line.Number == 2 && rec.typ == "session_meta" {
		z.open = true // a child's copy of its parent's header: its lines follow
	}
	if !z.open {
		return false
	}
	if z.own(rec) {
		z.open = false
		return false
	}
	z.lines++
	return true
}

// own reports whether this is the first line of the thread's own.
func (z *zone) own(rec *record) bool {
	switch z.h.seedState {
	case broken:
		return false
	case stated:
		n, ok := importer.Integer(rec.ordinal)
		return ok && n >= z.h.seedStart
	}
	if rec.typ == "session_meta" {
		return false
	}
	turn := rec.turnID()
	if turn == "" || z.ancestor != nil && z.ancestor(turn) {
		return false
	}
	began, ok := idTime(turn)
	born, ok2 := idTime(z.h.id)
	switch {
	case ok && ok2:
		return began >= born
	case z.ancestor != nil:
		return true // the ancestor's log is there, and has no such turn
	}
	return false
}

// ended reports a log in which the ancestor's lines have no end.
func (z *zone) ended(last int64, find func(code string, line int64, detail string)) {
	if z.open && z.lines > 0 {
		find(codeSeedBoundary, last, fmt.Sprintf("no line is surely the thread's own: all %d behind the header count as its ancestor's", z.lines))
	}
}
