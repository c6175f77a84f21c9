package lines

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// Version is the version of a line. Numbers are never reused.
const Version = 1

// line is one event. Its schema is line.json of package schema.
type line struct {
	Childlog      int            `json:"childlog"`
	Session       uuid.UUID      `json:"session"`
	Seq           uint64         `json:"seq"`
	ID            uuid.UUID      `json:"id"`
	Type          string         `json:"type"`
	Version       uint8          `json:"version"`
	Time          string         `json:"time"`
	Source        string         `json:"source"`
	Ignorable     bool           `json:"ignorable"`
	PolicyBearing bool           `json:"policy_bearing"`
	PrevPolicy    *uint64        `json:"prev_policy"`
	Inherited     *wire.Origin   `json:"inherited"`
	Facts         jsontext.Value `json:"facts"`
	Media         string         `json:"media"`
	ContentLen    uint64         `json:"content_len"`
	Commitment    *string        `json:"commitment"`
	Salt          *string        `json:"salt"`     // null without a content that can be compared
	Header        *string        `json:"header"`   // null: facts were rewritten
	Hash          string         `json:"hash"`     // of the chain after the event
	Position      uint64         `json:"position"` // of the frame in its store
	Imported      bool           `json:"imported"` // evidence there, too
	Filtered      bool           `json:"filtered"` // a filter rewrote something in this line
	Missing       bool           `json:"missing"`  // the content was not in the store any more

	Content       jsontext.Value `json:"content,omitzero"`
	ContentText   *string        `json:"content_text,omitzero"`
	ContentBase64 *string        `json:"content_base64,omitzero"`
}

// lineOf puts an event into words. content is nil if there is none to give.
func lineOf(f *eventlog.RawFrame, i int, content []byte, salt *eventlog.Salt) (line, error) {
	ev := &f.Events[i]
	l := line{Childlog: Version, Session: ev.Session, Seq: ev.Seq, ID: ev.ID, Type: ev.Type, Version: ev.Version, Time: wire.Time(ev.Time), Source: ev.Source.String(),
		Ignorable: ev.Ignorable, PolicyBearing: ev.PolicyBearing, Media: ev.Media.String(), ContentLen: ev.ContentLen, Hash: wire.Hex(ev.Hash),
		Position: f.Position, Imported: f.Imported, Missing: ev.HasContent && content == nil}
	header := base64.StdEncoding.EncodeToString(f.Headers[i])
	l.Header = &header
	if ev.PolicyBearing {
		l.PrevPolicy = &ev.PrevPolicy
	}
	if ev.Inherited != nil {
		l.Inherited = &wire.Origin{Session: ev.Inherited.Session.String(), Seq: ev.Inherited.Seq}
	}
	var err error
	if l.Facts, err = ev.Facts.JSON(); err != nil {
		return l, err
	}
	if ev.HasContent {
		h := wire.Hex(ev.Commitment)
		l.Commitment = &h
	}
	if salt != nil {
		h := hex.EncodeToString(salt[:])
		l.Salt = &h
	}
	l.give(ev.Media, content)
	return l, nil
}

// give sets the content in the form that its media has. JSON that has a line break
// in it, or blanks around it, would not come back as it was.
func (l *line) give(media eventlog.Media, content []byte) {
	l.Content, l.ContentText, l.ContentBase64 = nil, nil, nil
	switch {
	case content == nil:
	case media == eventlog.MediaJSON && !bytes.ContainsAny(content, "\r\n") && len(bytes.TrimSpace(content)) == len(content):
		l.Content = content
	case media == eventlog.MediaOctets:
		s := base64.StdEncoding.EncodeToString(content)
		l.ContentBase64 = &s
	default:
		s := string(content)
		l.ContentText = &s
	}
}

// append encodes the line. A content that is JSON is put behind the rest as it
// is, since an encoder would write it its own way.
func (l *line) append(b []byte) ([]byte, error) {
	content := l.Content
	l.Content = nil
	own, err := json.Marshal(l, json.Deterministic(true))
	if l.Content = content; err != nil {
		return b, err
	}
	b = append(b, own...)
	if content != nil {
		b = append(b[:len(b)-1], `,"content":`...)
		b = append(append(b, content...), '}')
	}
	return append(b, '\n'), nil
}

// parse reads a line and holds its words against its header. prev is the chain
// hash before it. The event is returned as a frame of its own.
func parse(text []byte, prevOf func(uuid.UUID) eventlog.Hash) (*eventlog.RawFrame, *line, error) {
	l := new(line)
	if err := json.Unmarshal(text, l, json.RejectUnknownMembers(true)); err != nil {
		return nil, nil, fmt.Errorf("%w: it is no line of a log: %v", eventlog.ErrInvalid, err)
	}
	if l.Childlog < 1 {
		return nil, nil, fmt.Errorf("%w: it is no line of a log: want childlog %d, got %d", eventlog.ErrInvalid, Version, l.Childlog)
	}
	if l.Childlog != Version {
		return nil, nil, fmt.Errorf("%w: childlog: want %d, got %d", eventlog.ErrNewerFormat, Version, l.Childlog)
	}
	if l.Header == nil {
		return nil, nil, fmt.Errorf("%w: session %s: seq %d: a filter rewrote its facts, so the log can't be proven and is not taken in", eventlog.ErrInvalid, l.Session, l.Seq)
	}
	header, err := base64.StdEncoding.Strict().DecodeString(*l.Header)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: header: %v", eventlog.ErrInvalid, err)
	}
	prev := prevOf(l.Session)
	ev, err := eventlog.ParseRawEvent(l.Session, header, prev)
	if err != nil {
		return nil, nil, err
	}
	ev.Position = l.Position
	f := &eventlog.RawFrame{Position: l.Position, Raw: header, Session: l.Session, First: ev.Seq, Prev: prev, Imported: l.Imported,
		Events: []eventlog.Event{ev}, Headers: [][]byte{header}, Chunks: make([][][]byte, 1)}
	if err := l.agrees(f); err != nil {
		return nil, nil, err
	}
	if f.Chunks[0], err = l.chunks(&ev); err != nil {
		return nil, nil, err
	}
	return f, l, nil
}

// agrees compares the words with the header: whoever reads the words must read
// what is hashed.
func (l *line) agrees(f *eventlog.RawFrame) error {
	want, err := lineOf(f, 0, nil, nil)
	if err != nil {
		return err
	}
	differs := func(field string, got, want any) error {
		return &eventlog.CorruptError{Session: l.Session, Seq: l.Seq, Field: field, Reason: fmt.Sprintf("the line says %.60v, its header %.60v", got, want)}
	}
	for _, c := range []struct {
		field     string
		got, want any
	}{
		{"seq", l.Seq, want.Seq}, {"id", l.ID, want.ID}, {"type", l.Type, want.Type}, {"version", l.Version, want.Version}, {"time", l.Time, want.Time},
		{"source", l.Source, want.Source}, {"ignorable", l.Ignorable, want.Ignorable}, {"policy_bearing", l.PolicyBearing, want.PolicyBearing},
		{"prev_policy", value(l.PrevPolicy), value(want.PrevPolicy)}, {"inherited", value(l.Inherited), value(want.Inherited)}, {"media", l.Media, want.Media},
		{"content_len", l.ContentLen, want.ContentLen}, {"commitment", value(l.Commitment), value(want.Commitment)}, {"hash", l.Hash, want.Hash},
	} {
		if c.got != c.want {
			return differs(c.field, c.got, c.want)
		}
	}
	got, err := canonical(l.Facts)
	if err != nil {
		return err
	}
	if facts, err := canonical(want.Facts); err != nil || !bytes.Equal(got, facts) {
		return differs("facts", string(got), string(facts))
	}
	return nil
}

// value is what a pointer leads to, nil if nowhere.
func value[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func canonical(v jsontext.Value) (jsontext.Value, error) {
	v = bytes.Clone(v)
	if err := v.Canonicalize(); err != nil {
		return nil, fmt.Errorf("%w: facts: %v", eventlog.ErrInvalid, err)
	}
	return v, nil
}

// chunks is the content as it is stored, nil if the line has none that could be
// compared with the commitment.
func (l *line) chunks(ev *eventlog.Event) ([][]byte, error) {
	bad := func(what string) error {
		return &eventlog.CorruptError{Session: l.Session, Seq: l.Seq, Field: "content", Reason: what}
	}
	var content []byte
	given := 0
	if l.Content != nil {
		content, given = l.Content, given+1
	}
	if l.ContentText != nil {
		content, given = []byte(*l.ContentText), given+1
	}
	if l.ContentBase64 != nil {
		var err error
		if content, err = base64.StdEncoding.Strict().DecodeString(*l.ContentBase64); err != nil {
			return nil, bad(err.Error())
		}
		given++
	}
	switch {
	case given > 1:
		return nil, bad("it is given twice")
	case !ev.HasContent && (given > 0 || l.Salt != nil):
		return nil, bad("the header knows of none")
	case !ev.HasContent, l.Missing && given == 0 && l.Salt == nil:
		return nil, nil
	case l.Filtered && l.Salt == nil:
		return nil, nil
	case given == 0 || l.Salt == nil || l.Missing:
		return nil, bad("it is missing, or its salt, and the line does not say why")
	}
	var salt eventlog.Salt
	raw, err := hex.DecodeString(*l.Salt)
	if err != nil || len(raw) != len(salt) {
		return nil, bad("salt: want 16 bytes in hex")
	}
	copy(salt[:], raw)
	if len(content) > eventlog.MaxContent {
		return nil, &eventlog.TooLargeError{What: "content in bytes", Limit: eventlog.MaxContent, Size: uint64(len(content))}
	}
	return eventlog.EncodeChunks(content, salt), nil
}
