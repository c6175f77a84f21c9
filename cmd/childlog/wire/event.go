package wire

import (
	"encoding/base64"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/eventlog"
)

// Event is one event of a log. At most one of the contents is there, by media.
// The bytes of a json content are printed exactly as they were given (see
// [Event.Line] and [Body]).
type Event struct {
	Seq           uint64         `json:"seq"`
	ID            string         `json:"id"`
	Type          string         `json:"type"`
	Version       uint8          `json:"version"`
	Time          string         `json:"time"`
	Source        string         `json:"source"`
	Ignorable     bool           `json:"ignorable"`
	PolicyBearing bool           `json:"policy_bearing"`
	Inherited     *Origin        `json:"inherited"`
	Facts         jsontext.Value `json:"facts"`
	Media         string         `json:"media"`
	ContentLen    uint64         `json:"content_len"`
	Commitment    *string        `json:"commitment"`
	Hash          string         `json:"hash"`
	FactsError    string         `json:"facts_error,omitzero"`
	ContentError  string         `json:"content_error,omitzero"`
	Redacted      *Redaction     `json:"redacted,omitzero"`
	ContentText   *string        `json:"content_text,omitzero"`
	ContentBase64 *string        `json:"content_base64,omitzero"`
	Content       Exact          `json:"content,omitzero"`
}

// EventOf converts an event, with its content if it was read. Facts that do
// not decode are null, and FactsError says why.
func EventOf(ev *eventlog.Event) Event {
	e := Event{Seq: ev.Seq, ID: ev.ID.String(), Type: ev.Type, Version: ev.Version, Time: Time(ev.Time), Source: ev.Source.String(),
		Ignorable: ev.Ignorable, PolicyBearing: ev.PolicyBearing, Media: ev.Media.String(), ContentLen: ev.ContentLen, Hash: Hex(ev.Hash)}
	if ev.Inherited != nil {
		e.Inherited = &Origin{ev.Inherited.Session.String(), ev.Inherited.Seq}
	}
	var err error
	if e.Facts, err = ev.Facts.JSON(); err != nil {
		e.Facts, e.FactsError = jsontext.Value("null"), err.Error()
	}
	if ev.HasContent {
		h := Hex(ev.Commitment)
		e.Commitment = &h
	}
	e.Redacted = RedactionOf(ev.Redacted)
	switch {
	case ev.ContentErr != nil:
		e.ContentError = ev.ContentErr.Error()
	case ev.Content == nil:
	case ev.Media == eventlog.MediaJSON:
		e.Content = ev.Content
	case ev.Media == eventlog.MediaText:
		s := string(ev.Content)
		e.ContentText = &s
	default:
		s := base64.StdEncoding.EncodeToString(ev.Content)
		e.ContentBase64 = &s
	}
	return e
}

// Line renders the event as one line of JSON, as [Line] does. A json content is spliced in
// byte for byte; only line breaks between its tokens become blanks, and there
// are none elsewhere in JSON.
func (e *Event) Line() ([]byte, error) {
	plain := *e
	plain.Content = nil
	b, err := Line(&plain)
	if err != nil || e.Content == nil {
		return b, err
	}
	b = append(b[:len(b)-len("}\n")], `,"content":`...)
	at := len(b)
	b = append(b, e.Content...)
	for i := at; i < len(b); i++ {
		if b[i] == '\n' || b[i] == '\r' {
			b[i] = ' '
		}
	}
	return append(b, "}\n"...), nil
}

// Hole is a range of seqs that can't be read.
type Hole struct {
	Hole Damage `json:"hole"`
}

// Followed is an event as a follower gets it. Cursor is where to go on.
type Followed struct {
	Cursor  string `json:"cursor"`
	Session string `json:"session"`
	Event   Event  `json:"event"`
}

// Line renders it as one line of JSON, with a json content as [Event.Line] has it.
func (f *Followed) Line() ([]byte, error) {
	event, err := f.Event.Line()
	if err != nil {
		return nil, err
	}
	head, err := Line(struct {
		Cursor  string `json:"cursor"`
		Session string `json:"session"`
	}{f.Cursor, f.Session})
	if err != nil {
		return nil, err
	}
	head = append(head[:len(head)-len("}\n")], `,"event":`...)
	head = append(head, event[:len(event)-1]...)
	return append(head, "}\n"...), nil
}
