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

// typeRedacted marks contents of the log that it stands in as erased.
const typeRedacted = "content/redacted"

func (e *erased) event(ev *eventlog.Event) {
	if ev.Type != typeRedacted {
		return
	}
	r := Redaction{Seq: ev.Seq, Time: wire.Time(ev.Time), Type: ev.Type, Seqs: []uint64{}, By: ev.Facts.Str("by"), Code: ev.Facts.Str("code")}
	for _, seq := range erasedSeqs(ev) {
		if r.Count++; len(r.Seqs) < e.most {
			r.Seqs = append(r.Seqs, seq)
		}
	}
	e.events += r.Count
	e.markers = append(e.markers, r)
}

// erasedSeqs are the events that a marker names.
func erasedSeqs(ev *eventlog.Event) (seqs []uint64) {
	m, err := ev.Facts.Map()
	if err != nil {
		return nil
	}
	if n, ok := m["seq"].(int64); ok && n > 0 {
		return []uint64{uint64(n)}
	}
	list, _ := m["seqs"].([]any)
	for _, v := range list {
		if n, ok := v.(int64); ok && n > 0 {
			seqs = append(seqs, uint64(n))
		}
	}
	return seqs
}

func (e *erased) done() Redactions { return Redactions{Markers: e.markers, Events: e.events} }
