package redact

import (
	"bytes"
	"math"
	"strings"
)

// value is where a value stands in a text.
type value struct {
	from, end int
	quoted    bool
}

// longestProse is the most bytes of a value that is judged by how it looks; a
// longer one without a blank is nothing that somebody wrote.
const longestProse = 4096

// closeQuote skips the quotes behind a name, with the backslashes that a text
// that quotes another has before them.
func closeQuote(t []byte, i int) int {
	for n := 0; n < 8 && i < len(t) && (t[i] == '\\' || t[i] == '"' || t[i] == '\'' || t[i] == '`' || t[i] == ']'); n++ {
		i++
	}
	return i
}

// readValue reads the value at i: what stands between quotes, or a run up to
// what ends one. A line takes all up to its end where nothing quotes it.
func readValue(t []byte, i int, line bool) value {
	i = skipBlanks(t, i)
	quote := i
	for i < len(t) && t[i] == '\\' && i-quote < 8 {
		i++
	}
	if i < len(t) && (t[i] == '"' || t[i] == '\'' || t[i] == '`') {
		return value{i + 1, closing(t, i+1, t[quote:i+1]), true}
	}
	i = quote
	lineOfItsOwn := line || startsLine(t, i)
	end := i
	if bytes.HasPrefix(t[i:], []byte("${")) {
		end = i + 2 + max(0, bytes.IndexByte(t[i+2:min(len(t), i+longestName)], '}'))
		if t[min(end, len(t)-1)] == '}' {
			end++
		}
	}
	for ; end < len(t); end++ {
		switch c := t[end]; {
		case c == '\n' || c == '\r' || c == '"' || c == '\'' || c == '`' || c == '\\':
		case line:
			continue
		case c == ' ' || c == '\t':
		case !lineOfItsOwn && bytes.IndexByte([]byte(",;&|)}]<>"), c) >= 0:
		default:
			continue
		}
		break
	}
	return value{i, end, false}
}

// startsLine reports whether the line that holds i has nothing before the name
// but "export": an environment file, where a value goes up to the next blank.
func startsLine(t []byte, i int) bool {
	from := max(0, i-2*longestName)
	head := t[from:i]
	if nl := bytes.LastIndexByte(head, '\n'); nl >= 0 {
		head = head[nl+1:]
	} else if from > 0 {
		return false
	}
	name, ok := bytes.CutSuffix(bytes.TrimPrefix(bytes.TrimSpace(head), []byte("export ")), []byte("="))
	return ok && len(name) > 0 && dashed.run(name, 0, len(name)) == len(name)
}

// closing finds the quote that ends a value which quote opened: the same one
// behind as many backslashes. A value that no quote ends goes up to the end of
// its line.
func closing(t []byte, i int, quote []byte) int {
	slashes, end := len(quote)-1, i
	for ; end < len(t) && t[end] != '\n'; end++ {
		if t[end] != quote[slashes] {
			continue
		}
		n := 0
		for end-n > i && t[end-n-1] == '\\' {
			n++
		}
		if n == slashes {
			return end - n
		}
	}
	return end
}

// harmless are values that stand for no secret.
var harmless = wordSet{words: "null include omit same-origin nil none true false undefined yes no string str number integer int boolean bool object array text bytes any unknown required optional redacted hidden empty changeme"}

// isHarmless reports whether a value is a stand-in: a placeholder, a variable,
// nothing.
func isHarmless(v []byte) bool {
	v = bytes.TrimSpace(v)
	switch {
	case len(v) == 0, len(v) < 24 && harmless.has(strings.ToLower(string(v))):
		return true
	case len(bytes.Trim(v, "*.xX-_")) == 0:
		return true
	case v[0] == '$' && constant.run(v, 1, len(v)) == len(v), bytes.HasPrefix(v, []byte("${")) && v[len(v)-1] == '}' && bytes.IndexByte(v, '}') == len(v)-1:
		return true
	}
	return v[0] == '<' && v[len(v)-1] == '>' && !has(digits, v) || bytes.HasPrefix(v, []byte("{{")) && bytes.HasSuffix(v, []byte("}}"))
}

var constant = newAlphabet("09AZ", "_")

// objects are what code takes values from.
var objects = wordSet{words: "process os req request config cfg self this settings params args opts options env environ secrets vars var local data ctx props state input form body"}

// isCode reports whether a value that nothing quotes is a call or a member of
// something rather than a secret: os.Getenv("X"), process.env.X. A variable of
// an environment file holds no code.
func isCode(name, v []byte) bool {
	if constant.run(name, 0, len(name)) == len(name) || has(digits, v) {
		return false
	}
	end := dotted.run(v, 0, len(v))
	first, _, member := bytes.Cut(v[:end], []byte("."))
	return end > 0 && end < len(v) && (v[end] == '(' || v[end] == '[') || member && end == len(v) && objects.has(string(first))
}

// looksSecret reports whether a value looks drawn rather than written: no
// blanks, and either letters and digits or much entropy.
func looksSecret(v []byte) bool {
	if len(v) < 8 || has(blanks, v) || bytes.HasPrefix(v, []byte("http")) || v[0] == '/' {
		return false
	}
	return len(v) > longestProse || has(digits, v) && has(letters, v) || len(v) >= 16 && entropy(v) >= 3.5
}

var blanks = newAlphabet("", " \t\r\n")

// entropy is Shannon's, of the bytes, in bits a byte.
func entropy(v []byte) (bits float64) {
	var count [256]int
	for _, c := range v {
		count[c]++
	}
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(v))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
