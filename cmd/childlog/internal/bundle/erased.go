package bundle

import (
	"github.com/google/uuid"

	"childlog/eventlog"
)

// What was erased stands in the logs: content/redacted in the session's own, for
// each event with the commitment that it had, and session/purged in the store's.
const (
	typeRedacted = "content/redacted"
	typePurged   = "session/purged"
)

// commitmentOf names a content: two events never share a seq of one log.
type commitmentOf struct {
	seq        uint64
	commitment eventlog.Hash
}

// erasedBy lists the contents that a marker says were erased.
func erasedBy(ev *eventlog.Event) (out []commitmentOf) {
	if ev.Type != typeRedacted || ev.Source != eventlog.SourceOperator {
		return nil
	}
	m, err := ev.Facts.Map()
	if err != nil {
		return nil
	}
	list, _ := m["events"].([]any)
	for _, e := range list {
		fields, _ := e.(map[string]any)
		seq, _ := fields["seq"].(int64)
		if h := hashOf(fields["commitment"]); !h.IsZero() && seq > 0 {
			out = append(out, commitmentOf{uint64(seq), h})
		}
	}
	return out
}

// purgedBy is the session that the store's own log says was purged, or uuid.Nil.
func purgedBy(ev *eventlog.Event) uuid.UUID {
	if ev.Type != typePurged || ev.Session != eventlog.StoreSession || ev.Source != eventlog.SourceOperator {
		return uuid.Nil
	}
	return ev.Facts.UUID("session")
}

// hashOf reads a fact that is a hash, zero if it is none.
func hashOf(v any) (h eventlog.Hash) {
	if b, ok := v.([]byte); ok && len(b) == len(h) {
		copy(h[:], b)
	}
	return h
}

// receiptOf reads the digest of the receipt that a delegation/started names.
func receiptOf(ev *eventlog.Event) eventlog.Hash {
	m, err := ev.Facts.Map()
	if err != nil {
		return eventlog.Hash{}
	}
	return hashOf(m["receipt"])
}
