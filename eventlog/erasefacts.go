package eventlog

import (
	"bytes"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Types of the families content and session that say what was erased, and what
// must not be. They are written by the calls of this package alone.
const (
	TypeContentRedacted = "content/redacted"
	TypeSessionHeld     = "session/held"
	TypeSessionPurged   = "session/purged" // in the store's own session
)

// erases reports whether only EntryErase may write the type.
func erases(typ string) bool {
	return typ == TypeContentRedacted || typ == TypeSessionHeld || typ == TypeSessionPurged
}

// Order is why something is erased, held or given free, and for whom. It is
// recorded with what it did. The reason is content, the rest stays for ever.
type Order struct {
	Code   string // why, a code; required
	Basis  string // what it rests on, a code such as a paragraph or a policy; may be empty
	By     string // who ordered it, an opaque reference; "" is operator
	Reason string // free text; may be empty
}

func (o *Order) check() error {
	if o.By == "" {
		o.By = "operator"
	}
	for _, f := range []struct{ name, value string }{{"reason code", o.Code}, {"basis", o.Basis}, {"by", o.By}} {
		if !isCode(f.value) && (f.value != "" || f.name == "reason code") {
			return invalidf("%s: want 1 to 256 letters, digits or _.:/@+#=- (free text is the reason), got %.40q", f.name, f.value)
		}
	}
	return nil
}

// facts adds the order to m.
func (o *Order) facts(m map[string]any) map[string]any {
	m["code"], m["by"] = o.Code, o.By
	if o.Basis != "" {
		m["basis"] = o.Basis
	}
	return m
}

// event is an event of the order, with its reason as content.
func (o *Order) event(typ string, m map[string]any) (NewEvent, error) {
	facts, err := MakeFacts(o.facts(m))
	ev := NewEvent{Type: typ, Facts: facts}
	if o.Reason != "" {
		ev.Media, ev.Content = MediaText, []byte(o.Reason)
	}
	return ev, err
}

// Redaction says of an event why its content is not there: it was erased on
// record. Commitment and length are those of the erased content, as the event
// itself still states them; without the salt, which went with the content,
// nobody can test a guess against the commitment.
type Redaction struct {
	Seq             uint64 // of the content/redacted in the same session
	Time            time.Time
	Code, Basis, By string
	Commitment      Hash
	Length          uint64
}

// redactedEvent is one entry of content/redacted.
type redactedEvent struct {
	seq        uint64
	commitment Hash
	length     uint64
}

// maxRedacted bounds the events of one content/redacted, so that its facts stay
// small; a larger redaction writes several.
const maxRedacted = 512

// marker is content/redacted.
type marker struct {
	Redaction
	prev   uint64 // seq of the marker before, 0 for the first
	events []redactedEvent
}

func markerFacts(prev uint64, events []redactedEvent) map[string]any {
	list := make([]any, len(events))
	for i, e := range events {
		list[i] = map[string]any{"seq": e.seq, "commitment": e.commitment, "length": e.length}
	}
	m := map[string]any{"events": list}
	if prev > 0 {
		m["prev"] = prev
	}
	return m
}

// parseMarker reads content/redacted. Errors: ErrCorrupt with the field.
func parseMarker(ev *Event) (marker, error) {
	r, err := readFacts(ev)
	if err != nil {
		return marker{}, err
	}
	m := marker{Redaction: Redaction{Seq: ev.Seq, Time: ev.Time, Code: r.code("code"), Basis: r.str("basis"), By: r.code("by")}, prev: r.uint("prev")}
	r.maps("events", func(e *factsMap) {
		m.events = append(m.events, redactedEvent{seq: e.uint("seq"), commitment: e.hash("commitment"), length: e.uint("length")})
	})
	if r.err == nil && m.prev >= ev.Seq {
		r.fail("prev", fmt.Sprintf("want less than %d, got %d", ev.Seq, m.prev))
	}
	return m, r.err
}

// RedactedSeqs lists the events whose contents a content/redacted says were
// erased. Errors: ErrCorrupt with the field.
func RedactedSeqs(ev *Event) ([]uint64, error) {
	m, err := parseMarker(ev)
	out := make([]uint64, len(m.events))
	for i, e := range m.events {
		out[i] = e.seq
	}
	return out, err
}

// applyRedacted folds a marker: what the row took from an erased content goes.
func (r *Row) applyRedacted(ev *Event) {
	m, err := parseMarker(ev)
	if err != nil {
		r.damage(ev.Seq, ev.Seq, err.Error())
		return
	}
	r.Redacted = ev.Seq
	r.Redactions += uint64(len(m.events))
	for _, e := range m.events {
		if e.seq == r.LabelSeq {
			r.Label = ""
		}
		if e.seq == 1 {
			r.Cwd, r.ExternalID = "", ""
		}
	}
}

// purgedName leads from a session that was purged to the seq of its
// session/purged in the store's own session, see purgedSeq.
func purgedName(session uuid.UUID) name {
	n := name{space: namePurged}
	copy(n.hash[:], session[:])
	return n
}

// authorizeErase: what tells of an erasure or a hold stands in the log that it
// is about, and nothing else does. Only this package erases: Transact takes no
// EntryErase, since an event that says so and erased nothing would be a lie, and
// the other way round a loss.
func authorizeErase(id uuid.UUID, events []pending, before *entry) error {
	for i := range events {
		p := &events[i]
		created := before == nil && i == 0 && p.typ == TypeSessionCreated && bytes.Equal(p.facts, StoreCreated().Facts)
		switch own := id == StoreSession; {
		case p.typ == TypeContentRedacted && before != nil:
		case p.typ == TypeSessionHeld && before != nil && !own:
		case own && (p.typ == TypeSessionPurged || created):
		default:
			return unauthorizedf("session %s: got %s, want what tells of an erasure there", id, p.typ)
		}
	}
	return nil
}
