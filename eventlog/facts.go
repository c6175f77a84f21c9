package eventlog

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/vmihailenco/msgpack/v5"
)

// Facts are an event's hashed, never redactable statements: a canonical
// msgpack map (see canonical.go). The zero value is the empty map. A Facts is
// never modified; it may be shared between goroutines.
type Facts []byte

var emptyFacts = Facts{0x80}

// maxInteger keeps facts readable by every JSON reader: 2^53.
const maxInteger = 1 << 53

// maxFactString bounds a string fact. Longer text is content.
const maxFactString = 4096

// MakeFacts encodes a map of nil, bool, int, int64, uint64, string, []byte,
// Hash, uuid.UUID, []any, []string and map[string]any. Integers beyond 2^53,
// other types and nesting beyond MaxNesting are refused with their path.
func MakeFacts(m map[string]any) (Facts, error) {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	if err := encodeFact(enc, "", m, 0); err != nil {
		return nil, err
	}
	return buf.Bytes(), checkLimit("facts in bytes", buf.Len(), MaxFacts)
}

// mustFacts is for maps that this package builds of the types above.
func mustFacts(m map[string]any) Facts {
	f, err := MakeFacts(m)
	if err != nil {
		return nil // refused at append: an empty map lacks every required fact
	}
	return f
}

func encodeFact(enc *msgpack.Encoder, path string, v any, depth int) error {
	switch v.(type) {
	case []string, []any, map[string]any:
		if depth >= MaxNesting {
			return &TooLargeError{What: "nesting of facts", Limit: MaxNesting, Size: uint64(depth) + 1}
		}
	}
	switch v := v.(type) {
	case nil:
		return enc.EncodeNil()
	case bool:
		return enc.EncodeBool(v)
	case int:
		return encodeFact(enc, path, int64(v), depth)
	case int64:
		if v > maxInteger || v < -maxInteger {
			return invalidf("facts%s: integer %d is beyond 2^53", path, v)
		}
		return enc.EncodeInt(v)
	case uint64:
		if v > maxInteger {
			return invalidf("facts%s: integer %d is beyond 2^53", path, v)
		}
		return enc.EncodeUint(v)
	case string:
		if !utf8.ValidString(v) {
			return invalidf("facts%s: string is not valid UTF-8", path)
		}
		if err := checkLimit("facts"+path+" in bytes (longer text is content)", len(v), maxFactString); err != nil {
			return err
		}
		return enc.EncodeString(v)
	case []byte:
		return enc.EncodeBytes(v)
	case Hash:
		return enc.EncodeBytes(v[:])
	case uuid.UUID:
		return enc.EncodeBytes(v[:])
	case []string:
		if err := enc.EncodeArrayLen(len(v)); err != nil {
			return err
		}
		for i, e := range v {
			if err := encodeFact(enc, fmt.Sprintf("%s/%d", path, i), e, depth+1); err != nil {
				return err
			}
		}
		return nil
	case []any:
		if err := enc.EncodeArrayLen(len(v)); err != nil {
			return err
		}
		for i, e := range v {
			if err := encodeFact(enc, fmt.Sprintf("%s/%d", path, i), e, depth+1); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		if err := enc.EncodeMapLen(len(v)); err != nil {
			return err
		}
		for _, k := range keys {
			if err := encodeFact(enc, path, k, depth+1); err != nil {
				return err
			}
			if err := encodeFact(enc, path+"/"+k, v[k], depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return invalidf("facts%s: type %T can't be a fact", path, v)
}

// FactsFromJSON reads a JSON object. Duplicate keys, invalid UTF-8, fractions
// and integers beyond 2^53 are refused with their place.
func FactsFromJSON(raw []byte) (Facts, error) {
	if err := CheckJSON(raw); err != nil {
		return nil, fmt.Errorf("facts: %w", err)
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(false))
	v, err := jsonValue(dec, "")
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, invalidf("facts: want an object, got %s", jsontext.Value(raw).Kind())
	}
	return MakeFacts(m)
}

func jsonValue(dec *jsontext.Decoder, path string) (any, error) {
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, invalidf("facts%s: %v", path, err)
	}
	switch tok.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return tok.Bool(), nil
	case '"':
		return tok.String(), nil
	case '0':
		text := tok.String()
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != text { // such as -0
			return nil, invalidf("facts%s: number %s: want an integer of at most 2^53", path, text)
		}
		return n, nil
	case '[':
		list := []any{}
		for dec.PeekKind() != ']' {
			v, err := jsonValue(dec, fmt.Sprintf("%s/%d", path, len(list)))
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.ReadToken()
		return list, err
	case '{':
		m := map[string]any{}
		for dec.PeekKind() != '}' {
			key, err := dec.ReadToken()
			if err != nil {
				return nil, invalidf("facts%s: %v", path, err)
			}
			k := key.String()
			if m[k], err = jsonValue(dec, path+"/"+k); err != nil {
				return nil, err
			}
		}
		_, err := dec.ReadToken()
		return m, err
	}
	return nil, invalidf("facts%s: unexpected %s", path, tok.Kind())
}

// Check validates the canonical form. Stored facts are checked when their
// frame is decoded, a caller's when they are appended.
func (f Facts) Check() error {
	if len(f) == 0 {
		return nil
	}
	r := factReader{b: f}
	return r.whole(func() error { return r.skip(0) })
}

// whole checks that the bytes are one map and nothing else, which read reads.
func (r *factReader) whole(read func() error) error {
	if c := r.b[0]; c&0xf0 != 0x80 && c != 0xde && c != 0xdf {
		return r.fail("want a map, got code 0x%02x", c)
	}
	if err := read(); err != nil {
		return err
	}
	if r.off != len(r.b) {
		return r.fail("%d bytes after the map", len(r.b)-r.off)
	}
	return nil
}

// find locates the value of a top-level key. It allocates nothing.
func (f Facts) find(key string) (item, factReader, bool) {
	r := factReader{b: f}
	if len(f) == 0 {
		return item{}, r, false
	}
	m, err := r.next()
	if err != nil || m.kind != kindMap {
		return item{}, r, false
	}
	for range m.n {
		k, err := r.next()
		if err != nil {
			return item{}, r, false
		}
		if string(k.raw) == key {
			at := r
			v, err := r.next()
			return v, at, err == nil
		}
		if err := r.skip(1); err != nil {
			return item{}, r, false
		}
	}
	return item{}, r, false
}

// Str is the string at a top-level key, or "" if there is none.
func (f Facts) Str(key string) string {
	if v, _, ok := f.find(key); ok && v.kind == kindString {
		return string(v.raw)
	}
	return ""
}

// Uint is the non-negative integer at a top-level key, or 0.
func (f Facts) Uint(key string) uint64 {
	if v, _, ok := f.find(key); ok && v.kind == kindInt && !v.neg {
		return v.n
	}
	return 0
}

// Bool is the boolean at a top-level key, or false.
func (f Facts) Bool(key string) bool {
	v, _, ok := f.find(key)
	return ok && v.kind == kindBool && v.n == 1
}

// UUID is the 16-byte id at a top-level key, or uuid.Nil.
func (f Facts) UUID(key string) (id uuid.UUID) {
	if v, _, ok := f.find(key); ok && v.kind == kindBytes && len(v.raw) == 16 {
		copy(id[:], v.raw)
	}
	return id
}

// hash is the 32-byte hash at a top-level key, or the zero hash.
func (f Facts) hash(key string) (h Hash) {
	if v, _, ok := f.find(key); ok && v.kind == kindBytes && len(v.raw) == len(h) {
		copy(h[:], v.raw)
	}
	return h
}

// Map decodes the facts: nil, bool, int64, string, []byte, []any and
// map[string]any. The result is the caller's.
func (f Facts) Map() (map[string]any, error) {
	if len(f) == 0 {
		return map[string]any{}, nil
	}
	r := factReader{b: f}
	var v any
	err := r.whole(func() (err error) { v, err = r.value(0); return err })
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil
}

// value decodes one value and refuses what skip refuses.
func (r *factReader) value(depth int) (any, error) {
	it, err := r.next()
	if err != nil {
		return nil, err
	}
	if err := it.checkDepth(depth); err != nil {
		return nil, err
	}
	switch it.kind {
	case kindBool:
		return it.n == 1, nil
	case kindInt:
		if it.neg {
			return -int64(it.n), nil
		}
		return int64(it.n), nil
	case kindString:
		return string(it.raw), nil
	case kindBytes:
		return slices.Clone(it.raw), nil
	case kindList:
		list := make([]any, 0, r.room(it.n))
		for range it.n {
			v, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case kindMap:
		m := make(map[string]any, r.room(it.n))
		var prev []byte
		for i := range it.n {
			k, err := r.key(i, prev)
			if err != nil {
				return nil, err
			}
			prev = k
			if m[factName(k)], err = r.value(depth + 1); err != nil {
				return nil, err
			}
		}
		return m, nil
	}
	return nil, nil
}

// room bounds what is reserved for n elements by the bytes that are left, of
// which each takes one at least.
func (r *factReader) room(n uint64) int { return int(min(n, uint64(len(r.b)-r.off))) }

// JSON renders the facts as one JSON object with sorted keys; 16 bytes read
// as a UUID, other bytes as lower-case hex.
func (f Facts) JSON() (jsontext.Value, error) {
	m, err := f.Map()
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	enc := jsontext.NewEncoder(&buf)
	if err := writeJSON(enc, m); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(buf.Bytes()), nil
}

func writeJSON(enc *jsontext.Encoder, v any) error {
	switch v := v.(type) {
	case bool:
		return enc.WriteToken(jsontext.Bool(v))
	case int64:
		return enc.WriteToken(jsontext.Int(v))
	case string:
		return enc.WriteToken(jsontext.String(v))
	case []byte:
		if len(v) == 16 {
			return enc.WriteToken(jsontext.String(uuid.UUID(v).String()))
		}
		return enc.WriteToken(jsontext.String(hex.EncodeToString(v)))
	case []any:
		if err := enc.WriteToken(jsontext.BeginArray); err != nil {
			return err
		}
		for _, e := range v {
			if err := writeJSON(enc, e); err != nil {
				return err
			}
		}
		return enc.WriteToken(jsontext.EndArray)
	case map[string]any:
		if err := enc.WriteToken(jsontext.BeginObject); err != nil {
			return err
		}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			if err := enc.WriteToken(jsontext.String(k)); err != nil {
				return err
			}
			if err := writeJSON(enc, v[k]); err != nil {
				return err
			}
		}
		return enc.WriteToken(jsontext.EndObject)
	}
	return enc.WriteToken(jsontext.Null)
}
