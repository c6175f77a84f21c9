package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"childlog/eventlog"
)

// maxLine bounds one line of a batch: any content that a batch may hold fits,
// in base64 or with escapes.
const maxLine = eventlog.MaxBatchContent * 2

// readBatch reads JSON lines strictly: what JSON readers disagree about is
// refused with line and byte offset. Blank lines are passed over. Events beyond
// a limit are counted and not kept, so that memory stays bounded and the error
// can name the size.
func readBatch(in io.Reader) ([]eventlog.NewEvent, error) {
	r := bufio.NewReaderSize(in, 64<<10)
	var events []eventlog.NewEvent
	count, content := 0, 0
	for number := 1; ; number++ {
		line, err := readLine(r)
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			ev, bad := parseLine(line)
			if bad != nil {
				return nil, fmt.Errorf("line %d: %w", number, bad)
			}
			count++
			content += len(ev.Content)
			if count > eventlog.MaxBatchEvents || content > eventlog.MaxBatchContent {
				events = nil
			} else {
				events = append(events, ev)
			}
		}
		if err == io.EOF {
			break
		}
	}
	switch {
	case count > eventlog.MaxBatchEvents:
		return nil, &eventlog.TooLargeError{What: "events of a batch", Limit: eventlog.MaxBatchEvents, Size: uint64(count)}
	case content > eventlog.MaxBatchContent:
		return nil, &eventlog.TooLargeError{What: "content of a batch in bytes", Limit: eventlog.MaxBatchContent, Size: uint64(content)}
	case count == 0:
		return nil, fmt.Errorf("%w: the input holds no event", eventlog.ErrInvalid)
	}
	return events, nil
}

// readLine reads a line of any length up to maxLine, without its end. The last
// one comes with io.EOF.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, &eventlog.TooLargeError{What: "line in bytes", Limit: maxLine, Size: uint64(len(line))}
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		return bytes.TrimSuffix(line, []byte("\n")), err
	}
}

func badInput(offset int64, format string, args ...any) error {
	return fmt.Errorf("%w: byte offset %d: %s", eventlog.ErrInvalid, offset, fmt.Sprintf(format, args...))
}

// parseLine reads one event.
func parseLine(line []byte) (ev eventlog.NewEvent, err error) {
	for i := 0; i < len(line); {
		r, n := utf8.DecodeRune(line[i:])
		if r == utf8.RuneError && n == 1 {
			return ev, badInput(int64(i), "byte 0x%02x is not valid UTF-8", line[i])
		}
		i += n
	}
	// AllowInvalidUTF8 concerns lone surrogates written as escapes only: they are
	// kept in a content and refused where they would be decoded.
	dec := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(false))
	if kind := dec.PeekKind(); kind != '{' {
		if _, err := dec.ReadToken(); err != nil {
			return ev, syntax(dec, err)
		}
		return ev, badInput(0, "want an object, got %s", kindName(kind))
	}
	if _, err := dec.ReadToken(); err != nil {
		return ev, syntax(dec, err)
	}
	contentKey := ""
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return ev, syntax(dec, err)
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return ev, syntax(dec, err)
		}
		at := dec.InputOffset() - int64(len(value))
		if strings.HasPrefix(key, "content") {
			if contentKey != "" {
				return ev, badInput(at, "/%s: the event has a /%s already; want at most one content", key, contentKey)
			}
			contentKey = key
		}
		if err := setField(&ev, key, value); err != nil {
			if errors.Is(err, eventlog.ErrTooLarge) {
				return ev, err
			}
			return ev, badInput(at, "%s", strings.TrimPrefix(err.Error(), eventlog.ErrInvalid.Error()+": "))
		}
	}
	if _, err := dec.ReadToken(); err != nil { // the closing brace
		return ev, syntax(dec, err)
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return ev, badInput(dec.InputOffset(), "more after the object")
	}
	if ev.Type == "" {
		return ev, badInput(0, "/type: required")
	}
	return ev, nil
}

// syntax places a decoder's error.
func syntax(dec *jsontext.Decoder, err error) error {
	offset, reason := dec.InputOffset(), err.Error()
	if se := (*jsontext.SyntacticError)(nil); errors.As(err, &se) {
		offset, reason = se.ByteOffset, se.Err.Error()
		if errors.Is(se.Err, jsontext.ErrDuplicateName) {
			reason = "duplicate key"
		}
		if se.JSONPointer != "" {
			reason = string(se.JSONPointer) + ": " + reason
		}
	} else if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		reason = "the line ends inside the object"
	}
	return badInput(offset, "%s", reason)
}

// lineKeys are the keys of a line.
var lineKeys = []string{"type", "facts", "content", "content_text", "content_base64", "id", "ignorable"}

// setField takes one member of the object.
func setField(ev *eventlog.NewEvent, key string, value jsontext.Value) (err error) {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: /%s: %s", eventlog.ErrInvalid, key, fmt.Sprintf(format, args...))
	}
	var text string
	switch key {
	case "type", "id", "content_text", "content_base64":
		if value.Kind() != '"' {
			return fail("want a string, got %s", kindName(value.Kind()))
		}
		if text, err = unquote(value); err != nil {
			return fail("%v", err)
		}
	case "ignorable":
		if k := value.Kind(); k != 't' && k != 'f' {
			return fail("want true or false, got %s", kindName(k))
		}
	case "facts":
		if value.Kind() != '{' {
			return fail("want an object, got %s", kindName(value.Kind()))
		}
	}
	switch key {
	case "type":
		ev.Type = text
		return eventlog.CheckType(text)
	case "id":
		if ev.ID, err = uuid.Parse(text); err != nil || len(text) != 36 || ev.ID == uuid.Nil {
			return fail("got %.60q, want a UUID", text)
		}
	case "facts":
		ev.Facts, err = eventlog.FactsFromJSON(value)
		return err
	case "ignorable":
		ev.Ignorable = value.Kind() == 't'
	case "content":
		ev.Media, ev.Content = eventlog.MediaJSON, bytes.Clone(value)
	case "content_text":
		ev.Media, ev.Content = eventlog.MediaText, []byte(text)
	case "content_base64":
		ev.Media = eventlog.MediaOctets
		if ev.Content, err = base64.StdEncoding.Strict().DecodeString(text); err != nil {
			return fail("%v", err)
		}
	default:
		if i := slices.IndexFunc(lineKeys, func(k string) bool { return strings.EqualFold(k, key) }); i >= 0 {
			return fail("unknown key; keys are lower case: %s", lineKeys[i])
		}
		return fail("unknown key; want %s", strings.Join(lineKeys, ", "))
	}
	return nil
}

// unquote decodes a string. A lone surrogate has no UTF-8 form, so it can
// stand in a JSON content and nowhere else.
func unquote(value jsontext.Value) (string, error) {
	b, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return "", fmt.Errorf("%w; a lone surrogate can be kept in content only", err)
	}
	return string(b), nil
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return "something else"
}
