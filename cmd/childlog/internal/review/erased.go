package review

import (
	"childlog/cmd/childlog/internal/wire"
	"childlog/eventlog"
)

// erased collects the markers of contents that were erased.
type erased struct {
	most    int
	markers []Redaction
	events  uint64
}

func newErased(most int) *erased { return &erased{most: most, markers: []Redaction{}} }

// The types that tell of erasing, in the log that they are about.
const (
	typeRedacted = "content/redacted" // contents were erased
	typeHeld     = "session/held"     // nothing may be, or may be again
)

func (e *erased) event(ev *eventlog.Event) {
	if ev.Type != typeRedacted {
		return
	}
	r := Redaction{Seq: ev.Seq, Time: wire.Time(ev.Time), Type: ev.Type, Seqs: []uint64{}, By: ev.Facts.Str("by"), Code: ev.Facts.Str("code"), Basis: optional(ev.Facts.Str("basis"))}
	for _, seq := range erasedSeqs(ev) {
		if r.Count++; len(r.Seqs) < e.most {
			r.Seqs = append(r.Seqs, seq)
		}
	}
	e.events += r.Count
	e.markers = append(e.markers, r)
}

// erasedSeqs are the events that a marker names: its fact "events" lists them,
// each with its seq, its commitment and its length.
func erasedSeqs(ev *eventlog.Event) (seqs []uint64) {
	m, err := ev.Facts.Map()
	if err != nil {
		return nil
	}
	list, _ := m["events"].([]any)
	for _, v := range list {
		entry, _ := v.(map[string]any)
		if n, ok := entry["seq"].(int64); ok && n > 0 {
			seqs = append(seqs, uint64(n))
		}
	}
	return seqs
}

func (e *erased) done() Redactions { return Redactions{Markers: e.markers, Events: e.events} }
