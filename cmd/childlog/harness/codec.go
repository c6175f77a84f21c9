package harness

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/strict"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// MaxRequest bounds the JSON of a request, bytes: any batch that a store takes
// fits, in base64 or with escapes.
const MaxRequest = 2*eventlog.MaxBatchContent + 1<<20

// Encode renders a request or an answer as JSON: the same bytes for the same
// value, with contents and arguments byte for byte.
func Encode(v any) ([]byte, error) { return wire.Body(v) }

// Decode reads the JSON of a request strictly: duplicate, unknown and
// differently cased keys and wrong types are refused with the path of the place
// (ErrInvalid), as the command does with the same documents. A null stands for a
// key that is missing, except inside of documents, which say themselves what it
// is.
func Decode[Q any](body []byte) (Q, error) {
	var q Q
	if len(body) > MaxRequest {
		return q, &eventlog.TooLargeError{What: "request in bytes", Limit: MaxRequest, Size: uint64(len(body))}
	}
	v, err := strict.Document(body)
	if err != nil {
		return q, err
	}
	// A content may hold half characters, which no other value may. The decoder
	// takes them all for one, so what is equal is left to those who read the
	// events one by one, and here to Members.
	_, batch := any(q).(AppendRequest)
	odd := batch && v.MaybeSurrogates()
	if odd {
		err = v.Members(func(string, strict.Value) error { return nil })
	}
	if err == nil && v.Kind() == '{' {
		err = json.Unmarshal(body, &q, json.RejectUnknownMembers(true), jsontext.AllowInvalidUTF8(odd), jsontext.AllowDuplicateNames(odd))
		if err == nil {
			return q, nil
		}
		err = placed(err)
	}
	if !odd { // what is no JSON is told as everywhere
		v, bad := strict.Parse(body, MaxRequest)
		if bad == nil {
			bad = v.Want('{')
		}
		if bad != nil {
			err = bad
		}
	}
	return *new(Q), err
}

// placed puts a decoder's error into the form that all input errors have.
func placed(err error) error {
	se := (*json.SemanticError)(nil)
	if large := (*eventlog.TooLargeError)(nil); errors.As(err, &large) {
		return large
	} else if !errors.As(err, &se) {
		return err
	}
	out := &strict.Error{Offset: se.ByteOffset, Path: string(se.JSONPointer), Err: se.Err}
	inner := (*strict.Error)(nil)
	switch {
	case errors.As(se.Err, &inner):
		out.Offset, out.Path, out.Reason, out.Err = out.Offset+inner.Offset, out.Path+inner.Path, inner.Reason, inner.Err
	case errors.Is(se.Err, json.ErrUnknownName):
		out.Reason, out.Err = "unknown key", nil
	case errors.Is(se.Err, eventlog.ErrInvalid):
		out.Reason = strings.TrimPrefix(se.Err.Error(), eventlog.ErrInvalid.Error()+": ")
	default:
		out.Reason, out.Err = "want "+kindOf(se), nil
	}
	return out
}

// kindOf names what a decoder wanted.
func kindOf(se *json.SemanticError) string {
	if se.GoType == nil {
		return "another value"
	}
	switch k := se.GoType.Kind().String(); {
	case k == "bool":
		return "true or false, got " + strict.KindName(se.JSONKind)
	case k == "string":
		return "a string, got " + strict.KindName(se.JSONKind)
	case k == "slice":
		return "an array, got " + strict.KindName(se.JSONKind)
	case strings.HasPrefix(k, "int"), strings.HasPrefix(k, "uint"):
		return "a whole number in range, got " + strict.KindName(se.JSONKind)
	}
	return "an object, got " + strict.KindName(se.JSONKind)
}
