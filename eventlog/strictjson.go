package eventlog

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// CheckJSON refuses what JSON readers disagree about: bytes that are not
// UTF-8, duplicate keys, more than one value, nesting beyond MaxNesting. A
// lone surrogate written as an escape is accepted: it is plain ASCII in the
// stored bytes and kept exactly. Errors carry the byte offset.
func CheckJSON(raw []byte) error {
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && n <= 1 {
			return invalidf("json: byte offset %d: byte 0x%02x is not valid UTF-8", i, raw[i])
		}
		i += n
	}
	// AllowInvalidUTF8 concerns only the escapes here: raw bytes are checked above.
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(false))
	for {
		if dec.StackDepth() > MaxNesting {
			return &TooLargeError{What: "nesting of json", Limit: MaxNesting, Size: uint64(dec.StackDepth())}
		}
		if _, err := dec.ReadToken(); err != nil {
			return jsonError(raw, dec, err)
		}
		if dec.StackDepth() == 0 {
			break
		}
	}
	end := int(dec.InputOffset())
	if rest := bytes.TrimLeft(raw[end:], " \t\r\n"); len(rest) > 0 {
		return invalidf("json: byte offset %d: more after the value", len(raw)-len(rest))
	}
	return nil
}

func jsonError(raw []byte, dec *jsontext.Decoder, err error) error {
	offset, reason := dec.InputOffset(), err.Error()
	if se := (*jsontext.SyntacticError)(nil); errors.As(err, &se) {
		offset, reason = se.ByteOffset, se.Err.Error()
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		reason = "no value"
	}
	return invalidf("json: byte offset %d: %s", offset, reason)
}
