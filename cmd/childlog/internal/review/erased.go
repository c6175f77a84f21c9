package review

import (
	"context"
	"errors"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// erased collects the markers of contents that were erased.
type erased struct {
	most    int
	markers []Redaction
	events  uint64
}

func newErased(most int) *erased { return &erased{most: most, markers: []Redaction{}} }

func (e *erased) event(ev *eventlog.Event) {
	if ev.Type != eventlog.TypeContentRedacted {
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

// erasedSeqs are the events that a marker names, none if it can't be read: the
// check of the log says so.
func erasedSeqs(ev *eventlog.Event) []uint64 {
	seqs, err := eventlog.RedactedSeqs(ev)
	if err != nil {
		return nil
	}
	return seqs
}

// redactions are the markers of the log, and what else was removed or must not be.
func (b *builder) redactions(ctx context.Context) (Redactions, error) {
	out := Redactions{Markers: b.erased.markers, Events: b.erased.events, Purged: []Removed{}, Holds: []Hold{}}
	for _, h := range b.row.Holds {
		out.Holds = append(out.Holds, Hold{Hold: h.ID, Seq: h.Seq, Code: h.Code, By: h.By, Subtree: h.Subtree})
	}
	err := b.s.EachPurged(ctx, func(p *eventlog.Purged) error {
		if p.Parent != b.row.Session {
			return nil
		}
		r := Removed{Session: p.Session.String(), Seq: p.Seq, Time: wire.Time(p.At), By: p.By, Code: p.Code, Basis: optional(p.Basis), Events: p.Head}
		if !p.Receipt.IsZero() {
			digest := wire.Hex(p.Receipt)
			r.Receipt = &digest
		}
		out.Purged = append(out.Purged, r)
		return nil
	})
	if errors.Is(err, eventlog.ErrCorrupt) { // of the store's own log: the check tells
		err = nil
	}
	return out, err
}
