package wire

import (
	"bytes"
	"crypto/rand"
	"fmt"

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
	var kept []Exact
	mark := rand.Text() // no value that is known beforehand can hold it
	token := func(i int) string { return fmt.Sprintf("%s.%d", mark, i) }
	encode := func(enc *jsontext.Encoder, x Exact) error {
		if x == nil {
			return enc.WriteToken(jsontext.Null)
		}
		if err := eventlog.CheckJSON(x); err != nil {
			return err
		}
		kept = append(kept, x)
		return enc.WriteToken(jsontext.String(token(len(kept) - 1)))
	}
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), json.WithMarshalers(json.MarshalToFunc(encode)))
	if err != nil || len(kept) == 0 {
		return b, err
	}
	size := len(b)
	for _, x := range kept {
		size += len(x)
	}
	out := make([]byte, 0, size)
	for i, x := range kept {
		before, rest, found := bytes.Cut(b, []byte(`"`+token(i)+`"`))
		if !found { // the encoder writes what it is given, in order
			return nil, fmt.Errorf("rendering JSON: value %d of %d is missing", i+1, len(kept))
		}
		out, b = append(append(out, before...), x...), rest
	}
	return append(out, b...), nil
}
