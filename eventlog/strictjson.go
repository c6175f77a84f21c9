package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// CheckJSON refuses what JSON readers disagree about: bytes that are not
// UTF-8, duplicate keys, more than one value, nesting beyond MaxNesting. A
// lone surrogate written as an escape is accepted: it is plain ASCII in the
// stored bytes and kept exactly. Errors carry the byte offset.
func CheckJSON(raw []byte) error {
	if quickJSON(raw) {
		return nil
	}
	return checkJSON(raw)
}

// checkJSON is CheckJSON by way of the decoder.
func checkJSON(raw []byte) error {
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && n <= 1 {
			return invalidf("json: byte offset %d: byte 0x%02x is not valid UTF-8", i, raw[i])
		}
		i += n
	}
	// AllowInvalidUTF8 concerns only the escapes here: raw bytes are checked
	// above. The decoder takes all lone surrogates for the same character, so
	// where there may be some, keys are compared here.
	var keys *keySets
	if surrogate().Match(raw) {
		keys = new(keySets)
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(keys != nil))
	for {
		if dec.StackDepth() > MaxNesting {
			return &TooLargeError{What: "nesting of json", Limit: MaxNesting, Size: uint64(dec.StackDepth())}
		}
		var err error
		if keys == nil {
			_, err = dec.ReadToken()
		} else {
			err = keys.read(dec)
		}
		if err != nil {
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

// surrogate finds the escape of half a character, alone or in a pair.
var surrogate = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\u[dD][89a-fA-F]`) })

// keySets holds the keys of the objects that are open, innermost last.
type keySets []map[string]bool

// read reads one token and refuses a key that its object has already.
func (k *keySets) read(dec *jsontext.Decoder) error {
	depth := dec.StackDepth()
	kind, n := dec.StackIndex(depth)
	if kind != '{' || n%2 != 0 || dec.PeekKind() != '"' {
		_, err := dec.ReadToken()
		for len(*k) <= dec.StackDepth() {
			*k = append(*k, nil)
		}
		if dec.StackDepth() > depth {
			(*k)[dec.StackDepth()] = map[string]bool{}
		}
		return err
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	key := unquoteKey(raw)
	set := (*k)[depth]
	if set[key] {
		return &jsontext.SyntacticError{ByteOffset: dec.InputOffset() - int64(len(raw)), Err: fmt.Errorf("%w %s", jsontext.ErrDuplicateName, raw)}
	}
	set[key] = true
	return nil
}

// unquoteKey decodes a string that the decoder has accepted. A surrogate that
// is not one of a pair becomes three bytes that no valid text has, so that
// different ones differ.
func unquoteKey(raw []byte) string {
	var out []byte
	body := raw[1 : len(raw)-1]
	unit := func(i int) rune { // of the escape that begins at i: \u and four hex digits
		n, _ := strconv.ParseUint(string(body[i+2:i+6]), 16, 16)
		return rune(n)
	}
	for i := 0; i < len(body); {
		switch {
		case body[i] != '\\':
			out = append(out, body[i])
			i++
		case body[i+1] != 'u':
			out = append(out, unescape(body[i+1]))
			i += 2
		default:
			r := unit(i)
			i += 6
			if utf16.IsSurrogate(r) && i+6 <= len(body) && body[i] == '\\' && body[i+1] == 'u' {
				if pair := utf16.DecodeRune(r, unit(i)); pair != utf8.RuneError {
					r = pair
					i += 6
				}
			}
			if utf16.IsSurrogate(r) {
				out = append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
			} else {
				out = utf8.AppendRune(out, r)
			}
		}
	}
	return string(out)
}

// unescape is the byte of a short escape.
func unescape(c byte) byte {
	if i := bytes.IndexByte([]byte("bfnrt"), c); i >= 0 {
		return "\b\f\n\r\t"[i]
	}
	return c // a quote, a backslash, a slash
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
