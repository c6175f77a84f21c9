package otel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/logwalk"
	"childlog/cmd/childlog/internal/redact"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// Options says what is written beside the facts.
type Options struct {
	Contents bool           // arguments and results of calls; false: none
	Filter   *redact.Filter // of all strings; nil: nothing is replaced
	Counts   redact.Counts  // of the filter, added to; may be nil
}

// Bounds of what is held in memory and written at once.
const (
	spansALine = 512
	mostEvents = 1000    // of one session's span; the others are counted as dropped
	mostOpen   = 4096    // calls that wait for a result; an older one is written without
	mostText   = 1 << 20 // bytes of a content; a longer one is left out and marked
)

// Write writes the sessions one after the other. What can't be read of a log is
// an event childlog.gap, and the rest is written. The same state gives the same
// bytes. Memory does not grow with the logs.
//
// Errors: ErrNotFound, ErrInvalid for the store's own session, a canceled
// context, what w returns.
func Write(ctx context.Context, w io.Writer, s *eventlog.Store, sessions []uuid.UUID, o Options) error {
	for _, id := range sessions {
		if id == eventlog.StoreSession {
			return fmt.Errorf("%w: the store's own session is no agent", eventlog.ErrInvalid)
		}
		row, err := s.Row(id)
		if err != nil {
			return err
		}
		t := tracer{w: w, s: s, o: o, row: &row, calls: map[string]*call{}}
		if err := t.session(ctx); err != nil {
			return err
		}
	}
	return nil
}

// tracer writes one session.
type tracer struct {
	w   io.Writer
	s   *eventlog.Store
	o   Options
	row *eventlog.Row

	calls   map[string]*call // that wait for a result
	order   []*call          // in the order of the log
	events  []spanEvent
	dropped uint32
	gaps    uint64
	lines   []span
}

func (t *tracer) session(ctx context.Context) error {
	err := logwalk.Each(ctx, t.s, t.row.Session, t.o.Contents, t.event, func(g logwalk.Gap) error {
		t.gaps++
		a := t.attributes()
		a.number("childlog.from", g.From)
		a.number("childlog.to", g.To)
		a.text("childlog.reason", g.Err.Error())
		t.note(spanEvent{Time: "0", Name: "childlog.gap", Attributes: a.list})
		return nil
	})
	if err != nil {
		return err
	}
	for len(t.order) > 0 {
		if err := t.finish(t.order[0]); err != nil {
			return err
		}
	}
	agent, err := t.agent(ctx)
	if err != nil {
		return err
	}
	if err := t.add(agent); err != nil {
		return err
	}
	return t.flush()
}

func (t *tracer) add(s span) error {
	if t.lines = append(t.lines, s); len(t.lines) < spansALine {
		return nil
	}
	return t.flush()
}

func (t *tracer) flush() error {
	if len(t.lines) == 0 {
		return nil
	}
	a := t.attributes()
	a.text("service.name", "childlog")
	a.text("childlog.store", t.s.Identity().Store.String())
	line, err := wire.Line(tracesData{ResourceSpans: []resourceSpans{{Resource: resource{a.list},
		ScopeSpans: []scopeSpans{{Scope: scope{"childlog"}, Spans: t.lines}}}}})
	if err != nil {
		return err
	}
	t.lines = t.lines[:0]
	_, err = t.w.Write(line)
	return err
}

// note keeps an event of the session's span.
func (t *tracer) note(e spanEvent) {
	if len(t.events) >= mostEvents {
		t.dropped++
		return
	}
	t.events = append(t.events, e)
}

func (t *tracer) attributes() attributes { return attributes{clean: t.clean} }

func (t *tracer) clean(s string) string {
	if t.o.Filter != nil {
		return t.o.Filter.String(s, t.o.Counts)
	}
	return s
}

// content sets an attribute to the content of an event, if contents are wanted.
func (t *tracer) content(a *attributes, key string, ev *eventlog.Event) {
	switch {
	case !t.o.Contents || !ev.HasContent:
	case ev.ContentErr != nil:
		a.text(key+".missing", ev.ContentErr.Error())
	case len(ev.Content) > mostText || !utf8.Valid(ev.Content):
		a.number(key+".left_out_bytes", ev.ContentLen)
	default:
		text := ev.Content
		if t.o.Filter != nil {
			text = t.o.Filter.Bytes(text, t.o.Counts)
		}
		v := string(text)
		a.list = append(a.list, keyValue{key, anyValue{String: &v}})
	}
}

// traceID is the id of the trace of a tree: that of its root session, whose
// sixteen bytes are never all zero.
func traceID(root uuid.UUID) string { return hex.EncodeToString(root[:]) }

// spanID derives the id of a span from the session and, for a call, from the
// event that began it.
func spanID(session, event uuid.UUID) string {
	h := sha256.New()
	h.Write([]byte("childlog/otel/1\x00"))
	h.Write(session[:])
	h.Write(event[:])
	id := [8]byte(h.Sum(nil)[:8])
	if id == [8]byte{} { // which OTLP takes for no id
		id[7] = 1
	}
	return hex.EncodeToString(id[:])
}
