package eventlog

import (
	"time"

	"github.com/google/uuid"
)

// Source says which entry point wrote an event. It is set by the entry point
// and never by a caller: it is what makes a delegation event believable.
type Source uint8

// Sources. The numbers are part of the format and are never reused.
const (
	SourceDelegation Source = 1 // materialize only
	SourceOperator   Source = 2 // operator calls
	SourceImport     Source = 3 // importers; evidence
	SourceStore      Source = 4 // the store closing what a crash left open
	SourceUser       Source = 5 // a person's message, reported by the harness
	SourceRuntime    Source = 6 // the harness
)

var sourceNames = [...]string{SourceDelegation: "delegation", SourceOperator: "operator", SourceImport: "import",
	SourceStore: "store", SourceUser: "user", SourceRuntime: "runtime"}

// String is the stable name used in JSON, or "unknown".
func (s Source) String() string {
	if s == 0 || int(s) >= len(sourceNames) {
		return "unknown"
	}
	return sourceNames[s]
}

// Media says what a content's bytes are. Contents are kept exactly as given.
type Media uint8

// Media kinds. The numbers are part of the format and are never reused.
const (
	MediaNone   Media = 0 // no content; never on disk
	MediaJSON   Media = 1 // valid UTF-8 JSON without duplicate keys
	MediaText   Media = 2 // valid UTF-8
	MediaOctets Media = 3 // anything
)

var mediaNames = [...]string{MediaNone: "none", MediaJSON: "json", MediaText: "text", MediaOctets: "octets"}

// String is the stable name used in JSON, or "unknown".
func (m Media) String() string {
	if int(m) >= len(mediaNames) {
		return "unknown"
	}
	return mediaNames[m]
}

// Ref names an event: its session and seq.
type Ref struct {
	Session uuid.UUID
	Seq     uint64
}

// Event is one stored event. Content is loaded only where a read asks for it;
// HasContent tells an empty content from none.
type Event struct {
	Session       uuid.UUID
	Seq           uint64 // from 1, contiguous
	ID            uuid.UUID
	Type          string
	Version       uint8 // of the type's schema
	Time          time.Time
	Source        Source
	Ignorable     bool
	PolicyBearing bool
	PrevPolicy    uint64 // seq of the policy-bearing event before, 0 for the first
	Inherited     *Ref   // where a seed copy came from
	HasContent    bool
	Media         Media
	ContentLen    uint64 // bytes
	Commitment    Hash
	Facts         Facts
	Imported      bool       // its frame came from another store: evidence, whatever the event says
	Position      uint64     // of the frame
	Hash          Hash       // chain hash after this event; set by verified reads
	Content       []byte     // nil unless asked for
	ContentErr    error      // why an asked-for content is not there: damage
	Redacted      *Redaction // instead: it was erased on record; set only where the content was asked for

	missing bool // no byte of the asked-for content is there
	prev    Hash // chain hash before this event, as its frame states it
}

// NewEvent is an event to append. The store sets seq, source, schema version
// and, where they are zero, id and time.
type NewEvent struct {
	ID        uuid.UUID // for idempotent retries; a retry repeats it
	Type      string
	Facts     Facts // nil is the empty map
	Media     Media // MediaNone: no content
	Content   []byte
	Ignorable bool
	Time      time.Time // importers only; never used for order
	Inherited *Ref      // seed copies only
	Source    Source    // set by entry points that write several; 0: the entry's own
}
