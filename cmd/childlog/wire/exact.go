package wire

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"childlog/eventlog"
)

// Exact is JSON whose bytes count: the content of an event, which its header
// commits to, or the arguments of a call, which a decision commits to. A plain
// encoder drops the blanks in it; [Body] does not. nil is no JSON at all.
type Exact []byte

// IsZero reports whether there is none.
func (x Exact) IsZero() bool { return x == nil }

// MarshalJSON gives the bytes, which an encoder other than Body tidies.
func (x Exact) MarshalJSON() ([]byte, error) {
	if x == nil {
		return []byte("null"), nil
	}
	return x, nil
}

// UnmarshalJSON keeps the bytes as they stand in the input.
func (x *Exact) UnmarshalJSON(b []byte) error {
	*x = bytes.Clone(b)
	return nil
}

// Body renders one value as JSON as [Line] does, without the line's end and
// with the bytes of each [Exact] as they are, line breaks included. An Exact
// that is no JSON is refused (ErrInvalid) with its offset: it could end the
// object that it stands in.
func Body(v any) ([]byte, error) {
	e := bodies.Get().(*bodyEncoder)
	defer bodies.Put(e)
	return e.encode(v)
}

// bodies keeps encoders, since each finds out anew about every type that it
// meets for the first time.
var bodies = sync.Pool{New: func() any {
	e := &bodyEncoder{}
	e.options = json.JoinOptions(json.Deterministic(true), jsontext.AllowInvalidUTF8(true), json.WithMarshalers(json.MarshalToFunc(e.keep)))
	return e
}}

// bodyEncoder puts a mark into the place of each Exact, and then the bytes into
// those of the marks.
type bodyEncoder struct {
	options json.Options
	mark    string
	kept    []Exact
}

// token is the mark of one. No value that is known beforehand can hold it.
func (e *bodyEncoder) token(i int) string { return e.mark + "." + strconv.Itoa(i) }

func (e *bodyEncoder) keep(enc *jsontext.Encoder, x Exact) error {
	if x == nil {
		return enc.WriteToken(jsontext.Null)
	}
	if err := eventlog.CheckJSON(x); err != nil {
		return err
	}
	if len(e.kept) == 0 {
		e.mark = rand.Text()
	}
	e.kept = append(e.kept, x)
	return enc.WriteToken(jsontext.String(e.token(len(e.kept) - 1)))
}

func (e *bodyEncoder) encode(v any) ([]byte, error) {
	defer func() { clear(e.kept); e.kept = e.kept[:0] }()
	b, err := json.Marshal(v, e.options)
	if err != nil || len(e.kept) == 0 {
		return b, err
	}
	size := len(b)
	for _, x := range e.kept {
		size += len(x)
	}
	out := make([]byte, 0, size)
	for i, x := range e.kept {
		before, rest, found := bytes.Cut(b, []byte(`"`+e.token(i)+`"`))
		if !found { // the encoder writes what it is given, in order
			return nil, fmt.Errorf("rendering JSON: value %d of %d is missing", i+1, len(e.kept))
		}
		out, b = append(append(out, before...), x...), rest
	}
	return append(out, b...), nil
}
