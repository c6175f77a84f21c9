package filter

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape replaces the escapes of JSON strings by what they stand for, anywhere:
// outside of strings valid JSON has none. What is no escape stays as it is.
func unescape(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		if b[i] != '\\' || i+1 == len(b) {
			out = append(out, b[i])
			i++
			continue
		}
		switch c := b[i+1]; c {
		case 'u':
			r, n := unicodeEscape(b[i:])
			if n == 0 {
				out = append(out, b[i])
				i++
				continue
			}
			out = utf8.AppendRune(out, r)
			i += n
			continue
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		default: // a quote, a slash, a backslash
			out = append(out, c)
		}
		i += 2
	}
	return out
}

// unicodeEscape reads one escape of four hexadecimal digits, or two that are a
// surrogate pair; n is how many bytes it took, 0 if it is none.
func unicodeEscape(b []byte) (r rune, n int) {
	r, ok := hex4(b)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(r) {
		if second, ok := hex4(b[6:]); ok {
			if pair := utf16.DecodeRune(r, second); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	}
	return r, 6
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 32)
	return rune(n), err == nil
}
