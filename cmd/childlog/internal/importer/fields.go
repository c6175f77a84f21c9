package importer

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Fields of foreign JSON are read one by one along a path, and what is not
// there, or of another kind, is simply not there: one odd field must not hide
// the others.
//
// Everything read here has passed eventlog.CheckJSON, so it is sound, its keys
// are unique and its nesting is bounded; all that is left is to find one's way,
// without allocating. On bytes that have not passed it these functions find
// nothing, or something wrong, and do not panic.

// At returns the value at a path of object keys, nil if there is none.
func At(raw jsontext.Value, path ...string) jsontext.Value {
	for _, name := range path {
		raw = member(raw, name)
	}
	return raw
}

func member(raw jsontext.Value, name string) (found jsontext.Value) {
	Members(raw, func(key, value jsontext.Value) bool {
		if !isKey(key, name) {
			return true
		}
		found = value
		return false
	})
	return found
}

// isKey compares a quoted key. Few keys are written with escapes.
func isKey(key jsontext.Value, name string) bool {
	if bytes.IndexByte(key, '\\') < 0 {
		return string(key[1:len(key)-1]) == name
	}
	return Unquote(key) == name
}

// Members calls fn with the quoted keys and the values of an object until it
// returns false.
func Members(raw jsontext.Value, fn func(key, value jsontext.Value) bool) {
	if raw.Kind() != '{' {
		return
	}
	for i := blanks(raw, bytes.IndexByte(raw, '{')+1); i < len(raw) && raw[i] == '"'; {
		end := skip(raw, i)
		key := raw[i:end]
		colon := blanks(raw, end)
		if colon >= len(raw) || len(key) < 2 {
			return
		}
		start := blanks(raw, colon+1)
		end = skip(raw, start)
		if end <= start || !fn(key, raw[start:end]) {
			return
		}
		if i = blanks(raw, end); i < len(raw) && raw[i] == ',' {
			i = blanks(raw, i+1)
		}
	}
}

// Each calls fn with the elements of a list until it returns false.
func Each(raw jsontext.Value, fn func(jsontext.Value) bool) {
	if raw.Kind() != '[' {
		return
	}
	for i := blanks(raw, bytes.IndexByte(raw, '[')+1); i < len(raw) && raw[i] != ']'; {
		end := skip(raw, i)
		if end <= i || !fn(raw[i:end]) {
			return
		}
		if i = blanks(raw, end); i < len(raw) && raw[i] == ',' {
			i = blanks(raw, i+1)
		}
	}
}

// blanks returns the index of the first byte from i on that is no blank.
func blanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skip returns the end of the value that begins at i.
func skip(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
			i++
			continue
		default: // a number or a literal ends where something else begins
			for i++; i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != ':' && b[i] != ']' && b[i] != '}' && b[i] != '"'; i++ {
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return len(b)
}

// skipString returns the end of the string that begins at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b); {
		quote := bytes.IndexByte(b[i:], '"')
		if quote < 0 {
			return len(b)
		}
		// Only up to the quote: a line may hold many strings and no escape.
		escape := bytes.IndexByte(b[i:i+quote], '\\')
		if escape < 0 {
			return i + quote + 1
		}
		i += escape + 2
	}
	return len(b)
}

// Count is the number of elements of the list at a path.
func Count(raw jsontext.Value, path ...string) (n uint64, ok bool) {
	raw = At(raw, path...)
	if raw.Kind() != '[' {
		return 0, false
	}
	Each(raw, func(jsontext.Value) bool { n++; return true })
	return n, true
}

// Text is the string at a path. A lone surrogate reads as U+FFFD.
func Text(raw jsontext.Value, path ...string) (string, bool) {
	raw = At(raw, path...)
	if raw.Kind() != '"' || len(raw) < 2 {
		return "", false
	}
	return Unquote(raw), true
}

func Unquote(raw jsontext.Value) string {
	raw = bytes.TrimSpace(raw)
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	out, _ := jsontext.AppendUnquote(nil, raw) // the error tells of lone surrogates, which were replaced
	return string(out)
}

// maxInteger is the largest integer that facts hold.
const maxInteger = 1 << 53

// Integer is the whole number at a path, 0 to 2^53.
func Integer(raw jsontext.Value, path ...string) (uint64, bool) {
	n, err := strconv.ParseUint(string(At(raw, path...)), 10, 64)
	return n, err == nil && n <= maxInteger
}

// Boolean is the truth value at a path.
func Boolean(raw jsontext.Value, path ...string) (value, ok bool) {
	switch At(raw, path...).Kind() {
	case 't':
		return true, true
	case 'f':
		return false, true
	}
	return false, false
}
