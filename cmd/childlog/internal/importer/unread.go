package importer

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/eventlog"
)

// Reasons for which a line has no type of its own, as the fact "line".
const (
	LineHeader     = "header"
	LineBlank      = "blank"
	LineNonObject  = "non-object"
	LineUntyped    = "untyped"
	LineUnreadable = "unreadable"
	LineTooLong    = "too-long"
)

// Keep is the event of a line without a type: its bytes and the reason.
func Keep(reason string, media eventlog.Media, content []byte) eventlog.NewEvent {
	return eventlog.NewEvent{Type: eventlog.TypeImportOther, Facts: Facts("original", reason, "line", reason), Media: media, Content: content, Ignorable: true}
}

// Object is what a line turned out to be: an object to read fields of, or else
// an event that keeps the line, with the reason counted.
type Object struct {
	Doc    jsontext.Value // nil: no object
	Event  eventlog.NewEvent
	Reason string // LineBlank, LineNonObject, LineUnreadable or LineTooLong
	Bad    bool   // unreadable: what strict refuses
}

// Object tells what a line is, counts it if it is none, and reports through
// find, which may be nil.
func (k *Kept) Object(line Line, find func(code string, line int64, detail string)) Object {
	report := func(code, detail string) {
		if find != nil {
			find(code, line.Number, detail)
		}
	}
	if line.TooLong {
		k.TooLong++
		report(CodeTooLong, fmt.Sprintf("kept as its digest: the line has %d bytes, a content holds at most %d bytes", line.Len, eventlog.MaxContent))
		return Object{Bad: true, Reason: LineTooLong, Event: eventlog.NewEvent{Type: eventlog.TypeImportOther, Ignorable: true,
			Facts: Facts("original", LineTooLong, "line", LineTooLong, "bytes", line.Len, "sha256", eventlog.Hash(line.Sum))}}
	}
	if len(bytes.TrimSpace(line.Bytes)) == 0 {
		k.Blank++
		return Object{Reason: LineBlank, Event: Keep(LineBlank, eventlog.MediaOctets, line.Bytes)}
	}
	if err := eventlog.CheckJSON(line.Bytes); err != nil {
		k.Unreadable++
		report(CodeUnreadable, fmt.Sprintf("line at byte offset %d: %v", line.Offset, err))
		return Object{Bad: true, Reason: LineUnreadable, Event: Keep(LineUnreadable, eventlog.MediaOctets, line.Bytes)}
	}
	doc := jsontext.Value(bytes.TrimSpace(line.Bytes))
	if doc.Kind() != '{' {
		k.NonObject++
		return Object{Reason: LineNonObject, Event: Keep(LineNonObject, eventlog.MediaJSON, line.Bytes)}
	}
	return Object{Doc: doc, Event: eventlog.NewEvent{Media: eventlog.MediaJSON, Content: line.Bytes}}
}

// Add sums the counts of two files.
func (k *Kept) Add(o *Kept) {
	k.Blank += o.Blank
	k.NonObject += o.NonObject
	k.Untyped += o.Untyped
	k.Unreadable += o.Unreadable
	k.TooLong += o.TooLong
	k.Malformed += o.Malformed
	k.Unknown += o.Unknown
	k.Duplicate += o.Duplicate
}

// OpenName reports whether a foreign type may keep its name. Types to which
// eventlog gives a meaning of its own are mapped or not kept by name, and the
// import family is the importers'.
func OpenName(typ string) bool {
	return eventlog.CheckType(typ) == nil && !eventlog.IsClosed(typ) && !eventlog.IsCore(typ) && eventlog.Family(typ) != eventlog.Family(eventlog.TypeImportOther)
}
