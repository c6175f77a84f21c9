// Package term prints for people: escaped text, restrained colour, aligned
// tables, trees. On a terminal it uses colour and rules; into a pipe or a file
// it prints plain aligned lines.
//
// Nothing reaches the output that was not escaped: a [Text] can only be made by
// functions that escape, so whatever a log holds (a label with terminal
// sequences, a right-to-left override, bytes that are no text) is inert.
package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes control characters, direction overrides, invisible and
// unassigned characters and bytes that are not UTF-8 visible, in the notation
// of Go and JSON: \n, \x1b, \u202e, \xff. Everything else is unchanged.
func Escape(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case visible(r):
			b.WriteRune(r)
		default:
			b.WriteString(escaped(r))
		}
		i += n
	}
	return b.String()
}

func escaped(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// visible reports whether a character shows as itself and leaves its
// neighbours alone. unicode.IsPrint knows controls, formats, separators and
// unassigned code points; the table below are letters, marks and symbols that
// show nothing.
func visible(r rune) bool {
	return unicode.IsPrint(r) && !unicode.Is(invisible, r)
}

// invisible are the default ignorable code points that are not formats, and the
// blank of braille.
var invisible = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x034f, 0x034f, 1}, {0x115f, 0x1160, 1}, {0x17b4, 0x17b5, 1}, {0x180b, 0x180f, 1}, {0x2800, 0x2800, 1},
		{0x3164, 0x3164, 1}, {0xfe00, 0xfe0f, 1}, {0xffa0, 0xffa0, 1},
	},
	R32: []unicode.Range32{{0xe0100, 0xe01ef, 1}},
}
