package strict

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Field is a key that an object may have and how its value is read.
type Field struct {
	Key  string
	Read func(Value) error
}

// Object reads an object of which every key is one of the fields. A key that is
// missing is not read, so it leaves what the caller prepared.
func (v Value) Object(fields ...Field) error {
	return v.Members(func(key string, value Value) error {
		if i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == key }); i >= 0 {
			return fields[i].Read(value)
		}
		keys := make([]string, len(fields))
		for i, f := range fields {
			keys[i] = f.Key
		}
		return value.Unknown(key, keys)
	})
}

// Unknown refuses a member whose key is none of keys.
func (v Value) Unknown(key string, keys []string) error {
	if i := slices.IndexFunc(keys, func(k string) bool { return strings.EqualFold(k, key) }); i >= 0 {
		return v.Bad("unknown key; keys are lower case: %s", keys[i])
	}
	return v.Bad("unknown key; want %s", strings.Join(keys, ", "))
}

// Members reads an object of any keys in the order of the text, in one pass
// that finds syntax errors and duplicate keys at any level as it comes to them.
// Strings with lone surrogates are left for take to judge, and so are the keys
// below a value that may hold one: the decoder takes all lone surrogates for one
// character, and keys that differ in them for equal. An error of take ends the
// reading.
func (v Value) Members(take func(key string, value Value) error) error {
	odd := v.MaybeSurrogates()
	dec := jsontext.NewDecoder(bytes.NewBuffer(v.raw), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(odd))
	if kind := dec.PeekKind(); kind != '{' {
		if _, err := dec.ReadToken(); err != nil {
			return v.syntax(dec, err)
		}
		return v.Bad("want an object, got %s", KindName(kind))
	}
	if _, err := dec.ReadToken(); err != nil {
		return v.syntax(dec, err)
	}
	var seen map[string]bool
	if odd {
		seen = map[string]bool{}
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return v.syntax(dec, err)
		}
		key := name.String()
		if seen[key] {
			return &Error{Offset: v.at + dec.InputOffset() - int64(len(key)+2), Path: v.path + "/" + key, Reason: "duplicate key"}
		}
		if odd {
			seen[key] = true
		}
		value, err := v.next(dec, key)
		if err != nil {
			return err
		}
		if err := take(key, value); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil { // the closing brace
		return v.syntax(dec, err)
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return &Error{Offset: v.at + dec.InputOffset(), Path: v.path, Reason: "more after the object"}
	}
	return nil
}

// next reads the value that follows in dec.
func (v Value) next(dec *jsontext.Decoder, key string) (Value, error) {
	raw, err := dec.ReadValue()
	if err != nil {
		return Value{}, v.syntax(dec, err)
	}
	path := string(jsontext.Pointer(v.path).AppendToken(key))
	// The decoder's own buffer is overwritten by what comes next.
	end := dec.InputOffset()
	at := end - int64(len(raw))
	return Value{raw: v.raw[at:end], at: v.at + at, path: path}, nil
}

// List reads an array of at most the given number of values.
func (v Value) List(most int, take func(Value) error) error {
	if err := v.Want('['); err != nil {
		return err
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(v.raw), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(false))
	if _, err := dec.ReadToken(); err != nil {
		return v.syntax(dec, err)
	}
	for i := 0; dec.PeekKind() != ']'; i++ {
		if i == most {
			return v.Bad("want at most %d elements, got more", most)
		}
		value, err := v.next(dec, strconv.Itoa(i))
		if err != nil {
			return err
		}
		if err := take(value); err != nil {
			return err
		}
	}
	return nil
}

// Text reads a string. A lone surrogate has no UTF-8 form, so it is refused.
func (v Value) Text() (string, error) {
	if err := v.Want('"'); err != nil {
		return "", err
	}
	b, err := jsontext.AppendUnquote(nil, v.raw)
	if err != nil { // of what was read already, nothing else can be wrong
		return "", v.Bad("a lone surrogate is no text")
	}
	return string(b), nil
}

// Bool reads true or false.
func (v Value) Bool() (bool, error) { return v.Kind() == 't', v.Want('t') }

// Int reads an integer from low to high, which lie within 2^53 of 0: written as
// one, without fraction, exponent or leading zero, so that no reader sees
// another number.
func (v Value) Int(low, high int64) (int64, error) {
	if err := v.Want('0'); err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(v.raw), 10, 64)
	if err != nil || fmt.Sprint(n) != string(v.raw) || n < low || n > high {
		return 0, v.Bad("want an integer from %d to %d, got %.40s", low, high, v.raw)
	}
	return n, nil
}

// OneOf reads a string that is one of the words, compared exactly.
func (v Value) OneOf(words ...string) (string, error) {
	s, err := v.Text()
	if err == nil && !slices.Contains(words, s) {
		err = v.Bad("want %s, got %.60q", strings.Join(words, " or "), s)
	}
	return s, err
}
