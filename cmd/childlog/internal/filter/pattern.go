package filter

import (
	"bytes"
	"regexp"
	"unicode/utf8"
)

// Pattern is a text to look for in contents: literal and in any case, or a
// regular expression as it stands. It may be used by any number of goroutines.
type Pattern struct {
	re      *regexp.Regexp
	literal []byte // lower case; ASCII. Nil: re
	first   [2]byte
}

// NewPattern compiles a text. A literal one is matched without regard to case.
// Errors are a *UsageError.
func NewPattern(text string, isRegexp bool) (*Pattern, error) {
	if isRegexp {
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, usagef("the text is no regular expression: %v", err)
		}
		return &Pattern{re: re}, nil
	}
	if text == "" {
		return nil, usagef("the text is empty")
	}
	if !utf8.ValidString(text) {
		return nil, usagef("the text is not UTF-8")
	}
	lower := []byte(text)
	for i, c := range lower {
		if c >= utf8.RuneSelf {
			return &Pattern{re: regexp.MustCompile("(?i)" + regexp.QuoteMeta(text))}, nil
		}
		lower[i] = lowerByte(c)
	}
	return &Pattern{literal: lower, first: [2]byte{lower[0], upperByte(lower[0])}}, nil
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func upperByte(c byte) byte {
	if c >= 'a' && c <= 'z' {
		c -= 'a' - 'A'
	}
	return c
}

// Index is where the first match in b begins and ends, or -1.
func (p *Pattern) Index(b []byte) (from, to int) {
	if p.re != nil {
		if at := p.re.FindIndex(b); at != nil {
			return at[0], at[1]
		}
		return -1, -1
	}
	// Each case of the first byte is looked for from where it was found last, so
	// that a text all of the other case is not searched again and again.
	lower, upper := -1, -1
	for at := 0; ; at++ {
		lower, upper = next(b, p.first[0], lower, at), next(b, p.first[1], upper, at)
		if at = min(lower, upper); at+len(p.literal) > len(b) {
			return -1, -1
		}
		if p.equal(b[at:]) {
			return at, at + len(p.literal)
		}
	}
}

// next is where c stands at or behind at, len(b) if nowhere; was is the answer
// for an earlier at.
func next(b []byte, c byte, was, at int) int {
	if was >= at {
		return was
	}
	if i := bytes.IndexByte(b[at:], c); i >= 0 {
		return at + i
	}
	return len(b)
}

func (p *Pattern) equal(b []byte) bool {
	for i, c := range p.literal {
		if lowerByte(b[i]) != c {
			return false
		}
	}
	return true
}

// Find is where the text stands in a content, and the text around it. A JSON
// content is looked through as it was given and, if it holds escapes, as the
// texts that they stand for; in is then that form. in is nil if there is no match.
func (p *Pattern) Find(content []byte, isJSON bool) (in []byte, from, to int) {
	if from, to = p.Index(content); from >= 0 {
		return content, from, to
	}
	if !isJSON || bytes.IndexByte(content, '\\') < 0 {
		return nil, -1, -1
	}
	plain := unescape(content)
	if from, to = p.Index(plain); from >= 0 {
		return plain, from, to
	}
	return nil, -1, -1
}

// In reports whether the text stands in a content.
func (p *Pattern) In(content []byte, isJSON bool) bool {
	in, _, _ := p.Find(content, isJSON)
	return in != nil
}
