package eventlog

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// quickJSON reports whether raw is JSON that CheckJSON takes, in one pass and
// without allocating: an import checks every line of gigabytes, and the
// decoder reads a tenth as fast. It decides for itself only what is plain;
// false decides nothing, and then the decoder looks, which also finds the
// words for what is wrong. A key that is written with escapes is not plain,
// since then equal keys may differ in their bytes, nor is a text with more open
// keys than there is room for.
func quickJSON(raw []byte) bool {
	if len(raw) > MaxContent || !utf8.Valid(raw) {
		return false
	}
	var q quick
	return q.check(raw)
}

// quickKeys is how many keys of open objects, all levels together, are compared.
const quickKeys = 192

type quick struct {
	open [MaxNesting]struct {
		object bool
		first  int    // of its keys, in keys
		seen   uint64 // bits of its keys' looks: a clear bit means a new key
	}
	keys [quickKeys][2]uint32 // where each begins and ends
	n    int                  // of keys
}

// check walks over one value and what may surround it.
func (q *quick) check(b []byte) bool {
	depth := 0
	i := skipBlanks(b, 0)
value:
	if i >= len(b) {
		return false
	}
	switch c := b[i]; {
	case c == '{' || c == '[':
		if depth == MaxNesting {
			return false
		}
		level := &q.open[depth]
		level.object, level.first, level.seen = c == '{', q.n, 0
		depth++
		i = skipBlanks(b, i+1)
		switch {
		case i >= len(b):
			return false
		case b[i] == c+2: // an empty one: '}' is '{'+2, ']' is '['+2
			depth--
			i++
		case c == '{':
			goto key
		default:
			goto value
		}
	case c == '"':
		if i, _ = endOfString(b, i); i < 0 {
			return false
		}
	case c == '-' || c >= '0' && c <= '9':
		if i = endOfNumber(b, i); i < 0 {
			return false
		}
	default:
		if i = endOfLiteral(b, i); i < 0 {
			return false
		}
	}
after:
	i = skipBlanks(b, i)
	if depth == 0 {
		return i == len(b)
	}
	if i >= len(b) {
		return false
	}
	switch level := &q.open[depth-1]; {
	case b[i] == ',':
		i = skipBlanks(b, i+1)
		if level.object {
			goto key
		}
		goto value
	case b[i] == '}' && level.object, b[i] == ']' && !level.object:
		q.n = level.first
		depth--
		i++
		goto after
	}
	return false
key:
	if i >= len(b) || b[i] != '"' {
		return false
	}
	end, plain := endOfString(b, i)
	if end < 0 || !plain || !q.key(b, depth-1, i+1, end-1) {
		return false
	}
	if i = skipBlanks(b, end); i >= len(b) || b[i] != ':' {
		return false
	}
	i = skipBlanks(b, i+1)
	goto value
}

// key notes a key of the innermost object; false if the object has it already,
// or if there is no room to tell.
func (q *quick) key(b []byte, level, start, end int) bool {
	if q.n == quickKeys {
		return false
	}
	look := uint(end - start)
	if start < end {
		look += uint(b[start])*7 + uint(b[end-1])*31
	}
	l := &q.open[level]
	bit := uint64(1) << (look & 63)
	if l.seen&bit != 0 {
		for _, k := range q.keys[l.first:q.n] {
			if string(b[k[0]:k[1]]) == string(b[start:end]) {
				return false
			}
		}
	}
	l.seen |= bit
	q.keys[q.n] = [2]uint32{uint32(start), uint32(end)}
	q.n++
	return true
}

func skipBlanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// endOfString returns the end of the string that begins at i, -1 if it is none.
// plain: it holds no escape. Eight bytes at a time are looked at for a quote, a
// backslash and what must be escaped.
func endOfString(b []byte, i int) (end int, plain bool) {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	plain = true
	i++
	for {
		for i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			quote, back := x^(ones*'"'), x^(ones*'\\')
			if found := ((quote-ones)&^quote | (back-ones)&^back | (x-ones*' ')&^x) & tops; found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
			i += 8
		}
		if i >= len(b) {
			return -1, false
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, plain
		case c == '\\':
			plain = false
			if i = endOfEscape(b, i); i < 0 {
				return -1, false
			}
		case c < ' ':
			return -1, false
		default: // one of the last seven bytes
			i++
		}
	}
}

// endOfEscape returns the end of the escape that begins at i, -1 if it is none.
func endOfEscape(b []byte, i int) int {
	if i+1 >= len(b) {
		return -1
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if i+6 > len(b) {
			return -1
		}
		for _, c := range b[i+2 : i+6] {
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return -1
			}
		}
		return i + 6
	}
	return -1
}

// endOfNumber returns the end of the number that begins at i, -1 if it is none.
func endOfNumber(b []byte, i int) int {
	digits := func() bool {
		start := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > start
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i++; !digits() {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return -1
		}
	}
	return i
}

func endOfLiteral(b []byte, i int) int {
	for _, s := range [...]string{"null", "true", "false"} {
		if len(b)-i >= len(s) && string(b[i:i+len(s)]) == s {
			return i + len(s)
		}
	}
	return -1
}
