// Package strict reads JSON that comes from outside. What JSON readers disagree
// about is refused, with the byte offset and the path (a JSON pointer) of the
// place: duplicate, unknown and differently cased keys, wrong types, numbers
// that lose digits, bytes that are not UTF-8, more than one value, deep nesting.
// An absent key, a null and an empty list stay apart.
//
// A [Value] is a part of a document and refers to its bytes, which must not
// change meanwhile. The functions are safe for concurrent use.
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/eventlog"
)

// Error says what is wrong with a document, and where. It unwraps to
// [eventlog.ErrInvalid] and, where a value was read and found to state nothing
// sensible, to what was said of it.
type Error struct {
	Offset int64  // bytes from the beginning of the document
	Path   string // JSON pointer, "" for the document itself; as long as its keys
	Reason string // lower-case, for people
	Err    error  // the cause, or nil
}

// Error renders place and reason on one line. A long path is cut.
func (e *Error) Error() string {
	path := ""
	if e.Path != "" {
		path = shown(e.Path) + ": "
	}
	return fmt.Sprintf("%v: byte offset %d: %s%s", eventlog.ErrInvalid, e.Offset, path, e.Reason)
}

// Unwrap returns [eventlog.ErrInvalid], and Err unless it is nil.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{eventlog.ErrInvalid}
	}
	return []error{eventlog.ErrInvalid, e.Err}
}

// maxShown is the most bytes of a path that a message repeats: keys come from
// whoever wrote the document.
const maxShown = 200

// shown renders a path on one line. Usual paths stand as they are.
func shown(path string) string {
	cut := ""
	if len(path) > maxShown {
		path, cut = path[:maxShown], fmt.Sprintf("... (%d bytes)", len(path))
	}
	if quoted := fmt.Sprintf("%+q", path); quoted != `"`+path+`"` {
		path = quoted
	}
	return path + cut
}

// Value is one value of a document, with its place.
type Value struct {
	raw  jsontext.Value
	at   int64
	path string
}

// Document returns the text as a value of which nothing is known yet but that
// it is UTF-8. Reading it finds out the rest as it goes; see [Value.Members].
func Document(text []byte) (Value, error) {
	if utf8.Valid(text) {
		return Value{raw: text}, nil
	}
	i := 0
	for {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n <= 1 {
			return Value{}, &Error{Offset: int64(i), Reason: fmt.Sprintf("byte 0x%02x is not valid UTF-8", text[i])}
		}
		i += n
	}
}

// Parse returns the one value that the text holds, checked as a whole. Beyond
// limit bytes and beyond [eventlog.MaxNesting] levels it is refused with an
// [*eventlog.TooLargeError]. Lone surrogates, which stand for no character and
// which every reader replaces by something else, are refused too.
func Parse(text []byte, limit int) (Value, error) {
	if len(text) > limit {
		return Value{}, &eventlog.TooLargeError{What: "json in bytes", Limit: uint64(limit), Size: uint64(len(text))}
	}
	v, err := Document(text)
	if err != nil {
		return Value{}, err
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(false), jsontext.AllowDuplicateNames(false))
	for {
		if _, err := dec.ReadToken(); err != nil {
			return Value{}, v.syntax(dec, err)
		}
		switch depth := dec.StackDepth(); {
		case depth > eventlog.MaxNesting:
			return Value{}, &eventlog.TooLargeError{What: "nesting of json", Limit: eventlog.MaxNesting, Size: uint64(depth)}
		case depth == 0:
			return v, v.end(dec)
		}
	}
}

// Bad is an error about the value.
func (v Value) Bad(format string, args ...any) error {
	return &Error{Offset: v.at, Path: v.path, Reason: fmt.Sprintf(format, args...)}
}

// Wrong says where an error of the packages below happened: a refusal of what
// the value states. A limit that was exceeded stays what it is.
func (v Value) Wrong(err error) error {
	if err == nil || errors.Is(err, eventlog.ErrTooLarge) {
		return err
	}
	return &Error{Offset: v.at, Path: v.path, Reason: strings.TrimPrefix(err.Error(), eventlog.ErrInvalid.Error()+": "), Err: err}
}

// Raw returns a copy of the value's bytes, exactly as they stand.
func (v Value) Raw() jsontext.Value { return bytes.Clone(v.raw) }

// Kind returns what the value begins like.
func (v Value) Kind() jsontext.Kind { return v.raw.Kind() }

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.Kind() == 'n' }

// Want refuses a value of another kind.
func (v Value) Want(kind jsontext.Kind) error {
	got := v.Kind()
	if got == kind || kind == 't' && got == 'f' {
		return nil
	}
	want := KindName(kind)
	if kind == 't' {
		want = "true or false"
	}
	return v.Bad("want %s, got %s", want, KindName(got))
}

// syntax places a decoder's error.
func (v Value) syntax(dec *jsontext.Decoder, err error) error {
	if depth := nesting(v.raw); depth > maxDecoded { // the decoder gave up
		return &eventlog.TooLargeError{What: "nesting of json", Limit: eventlog.MaxNesting, Size: uint64(depth - 1)}
	}
	e := &Error{Offset: v.at + dec.InputOffset(), Path: v.path, Reason: err.Error()}
	if se := (*jsontext.SyntacticError)(nil); errors.As(err, &se) {
		e.Offset, e.Path, e.Reason = v.at+se.ByteOffset, v.path+string(se.JSONPointer), se.Err.Error()
		switch {
		case errors.Is(se.Err, jsontext.ErrDuplicateName):
			e.Reason = "duplicate key"
		case errors.Is(se.Err, io.ErrUnexpectedEOF):
			e.Reason = "the text ends inside the value"
		}
	} else if errors.Is(err, io.EOF) {
		e.Reason = "no value"
	}
	return e
}

// maxDecoded is how deep the decoder follows a value.
const maxDecoded = 10000

// surrogate finds the escape of half a character, alone or in a pair.
var surrogate = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\u[dD][89a-fA-F]`) })

// MaybeSurrogates reports whether the text may hold a lone surrogate.
func (v Value) MaybeSurrogates() bool {
	return bytes.Contains(v.raw, []byte(`\u`)) && surrogate().Match(v.raw)
}

// nesting is how deep the brackets of a text lie in each other, whether or not
// they ever close.
func nesting(text []byte) (deepest int) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// end refuses anything behind the value that was read.
func (v Value) end(dec *jsontext.Decoder) error {
	end := int(dec.InputOffset())
	if rest := bytes.TrimLeft(v.raw[end:], " \t\r\n"); len(rest) > 0 {
		return &Error{Offset: v.at + int64(len(v.raw)-len(rest)), Path: v.path, Reason: "more after the value"}
	}
	return nil
}

// KindName names a kind for people.
func KindName(k jsontext.Kind) string {
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
