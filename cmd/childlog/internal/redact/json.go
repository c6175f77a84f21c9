package redact

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"childlog/eventlog"
)

// maxWrapped is how many levels of JSON in strings of JSON are read as JSON.
const maxWrapped = 8

// JSON filters a text that is one JSON value. The result is one too: names stay
// unique, and bytes that belong to nothing that was found stay as they are.
// Errors: ErrInvalid for a text that is no JSON; it is then left to [Filter.Text].
func (f *Filter) JSON(t []byte, c Counts) ([]byte, error) { return f.json(t, c, 0) }

func (f *Filter) json(t []byte, c Counts, level int) ([]byte, error) {
	if !jsontext.Value(t).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return nil, fmt.Errorf("%w: no JSON value of %d bytes", eventlog.ErrInvalid, len(t))
	}
	w := walker{f: f, c: c, t: t, level: level}
	w.run()
	if w.done == 0 {
		return t, nil
	}
	return append(w.out, t[w.done:]...), nil
}

// walker goes through the bytes of a valid JSON value.
type walker struct {
	f     *Filter
	c     Counts
	t     []byte
	level int // of JSON in strings

	out   []byte
	done  int // bytes of t that out accounts for
	stack []frame
}

// frame is an object or array that is open.
type frame struct {
	array   bool
	inherit secrecy         // of the name that the whole stands behind
	next    secrecy         // of the value that is due
	label   string          // the name that says so
	named   secrecy         // of the value of a member "name": it is that of "value"
	name    string          // which was
	login   bool            // the argument before says that this one is user:password
	keys    map[string]bool // written so far; true: replaced
}

// run visits strings and numbers; everything else is passed over.
func (w *walker) run() {
	for i := 0; i < len(w.t); {
		switch c := w.t[i]; c {
		case '{', '[':
			w.stack = append(w.stack, frame{array: c == '[', inherit: w.due()})
			if n := len(w.stack); n > 1 {
				w.stack[n-1].label = w.stack[n-2].label
			}
			i++
		case '}', ']':
			w.stack = w.stack[:len(w.stack)-1]
			i++
		case '"':
			end := stringEnd(w.t, i)
			if w.isName(end) {
				w.key(i, end)
			} else {
				w.value(i, end)
			}
			i = end
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			end := numberByte.run(w.t, i, len(w.t))
			w.number(i, end)
			i = end
		default:
			i++
		}
	}
}

var numberByte = newAlphabet("09", "+-.eE")

// stringEnd returns the end of the string that begins at i.
func stringEnd(t []byte, i int) int {
	for i++; t[i] != '"'; i++ {
		if t[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// isName reports whether the string that ends here is a member's name.
func (w *walker) isName(end int) bool {
	for end < len(w.t) && blanks[w.t[end]] {
		end++
	}
	return end < len(w.t) && w.t[end] == ':'
}

// due takes what the value that begins here was promised to be.
func (w *walker) due() secrecy {
	if len(w.stack) == 0 {
		return open
	}
	top := &w.stack[len(w.stack)-1]
	s := top.next
	switch {
	case top.array && s == open:
		s = top.inherit
	case !top.array && s == open && top.inherit != open:
		s = likely // somewhere below a name of a secret
	}
	top.next = open
	return s
}

func (w *walker) key(i, end int) {
	name := unquote(w.t[i:end])
	top := &w.stack[len(w.stack)-1]
	top.next, top.label = open, name
	if !strings.ContainsAny(name, "[:=\n") { // else it is a text
		top.next = secrecyOf(name)
	}
	if top.next == open && (strings.EqualFold(name, "value") || top.inherit == secret && valueNames.has(strings.ToLower(name))) {
		top.next = max(top.named, top.inherit)
		if top.name != "" {
			top.label = top.name
		}
	}
	clean := w.f.String(name, w.c)
	unique := clean
	for n := 2; ; n++ { // a name that was given twice stays so
		if replaced, taken := top.keys[unique]; !taken || !replaced && clean == name {
			break
		}
		unique = fmt.Sprintf("%s#%d", clean, n)
	}
	if top.keys == nil {
		top.keys = map[string]bool{}
	}
	if top.keys[unique] = unique != name; unique != name {
		w.put(i, end, unique)
	}
}

// valueNames hold the secret itself below the name of a secret.
var valueNames = wordSet{words: "value data content raw plain plaintext secret string text"}

func (w *walker) value(i, end int) {
	s := w.due()
	text := unquote(w.t[i:end])
	if n := len(w.stack); n > 0 {
		top := &w.stack[n-1]
		if top.array && strings.HasPrefix(text, "-") && strings.IndexByte(text, '=') < 0 {
			if top.next = secrecyOf(strings.TrimLeft(text, "-")); top.next != open {
				top.label = strings.TrimLeft(text, "-")
			}
		}
		if top.array && top.login && isLogin([]byte(text)) {
			w.c.add("login-option")
			w.put(i, end, placeholder("login-option"))
			return
		}
		top.login = text == "-u" || text == "--user"
		if !top.array && (strings.EqualFold(top.label, "name") || strings.EqualFold(top.label, "key")) {
			top.named, top.name = secrecyOf(text), text
		}
	}
	b := []byte(text)
	if s != open && placeholderEnd(b, 0, w.f.names) == len(b) {
		return
	}
	if s == secret && !isHarmless(b) || s == likely && looksSecret(b) {
		name := assignedName(w.stack[len(w.stack)-1].label)
		if found := w.only(b); found != "" {
			name = found
		}
		w.c.add(name)
		w.put(i, end, placeholder(name))
		return
	}
	if clean := w.text(b); !bytes.Equal(clean, b) {
		w.put(i, end, string(clean))
	}
}

// only names the detector that claims the whole of a text by its shape.
func (w *walker) only(t []byte) string {
	found := Counts{}
	if out := w.f.text(t, found, deepest64); bytes.HasPrefix(out, []byte(mark)) && bytes.IndexByte(out, ']') == len(out)-1 && len(found) == 1 {
		return found.Names()[0]
	}
	return ""
}

// text filters the text of a string: as JSON if it is JSON.
func (w *walker) text(t []byte) []byte {
	if w.level < maxWrapped && looksJSON(t) {
		if out, err := w.f.json(t, w.c, w.level+1); err == nil {
			return out
		}
	}
	return w.f.Text(t, w.c)
}

// looksJSON reports whether reading a text as JSON is worth the try.
func looksJSON(t []byte) bool {
	t = bytes.TrimLeft(t, " \t\r\n")
	return len(t) >= 2 && (t[0] == '{' || t[0] == '[' || t[0] == '"')
}

// number replaces a number behind a name of a secret, or that a rule knows.
func (w *walker) number(i, end int) {
	s := w.due()
	if s == secret && !strings.EqualFold(w.stack[len(w.stack)-1].label, "pass") { // which counts tests
		name := assignedName(w.stack[len(w.stack)-1].label)
		w.c.add(name)
		w.put(i, end, placeholder(name))
		return
	}
	t := w.t[i:end]
	var spans []span
	for i := range w.f.rules {
		spans = w.f.rules[i].find(w.f, t, spans)
	}
	if len(spans) > 0 {
		w.put(i, end, string(replace(t, merge(spans), w.c)))
	}
}

// put writes a string in place of the bytes from i to end.
func (w *walker) put(i, end int, s string) {
	w.out = append(w.out, w.t[w.done:i]...)
	w.out, _ = jsontext.AppendQuote(w.out, strings.ToValidUTF8(s, "\ufffd"))
	w.done = end
}

// unquote returns what a string stands for, with replacement characters for
// what stands for nothing.
func unquote(raw []byte) string {
	b, _ := jsontext.AppendUnquote(nil, raw)
	return string(b)
}
