package install

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"childlog/eventlog"
)

// maxSettings bounds a settings file, bytes: what is larger is none.
const maxSettings = 1 << 20

const byteOrderMark = "\xef\xbb\xbf"

// document is a settings file taken apart. The offsets in its values are those
// of body, which is what is edited; nothing is ever printed from the tree.
type document struct {
	mark string // the byte order mark, or ""
	body []byte
	root hujson.Value
}

// parse reads a settings file with whatever comments it may hold. Errors:
// ErrInvalid with the line.
func parse(src []byte) (*document, error) {
	d := &document{body: src}
	if bytes.HasPrefix(src, []byte(byteOrderMark)) {
		d.mark, d.body = byteOrderMark, src[len(byteOrderMark):]
	}
	if len(src) > maxSettings {
		return nil, fmt.Errorf("%w: got %d bytes, want at most %d", eventlog.ErrInvalid, len(src), maxSettings)
	}
	var err error
	if d.root, err = hujson.Parse(d.body); err != nil {
		return nil, fmt.Errorf("%w: no JSON: %s", eventlog.ErrInvalid, strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if d.root.Value.Kind() != '{' {
		return nil, d.wrong(d.root.StartOffset, "want an object")
	}
	return d, nil
}

// strict holds a file to what the harness itself reads: a file that it would
// drop as a whole is not one to put a guard into. Errors: ErrInvalid.
func strict(h *Harness, src []byte) error {
	body, marked := bytes.CutPrefix(src, []byte(byteOrderMark))
	if marked && !h.bom {
		return fmt.Errorf("%w: line 1: a byte order mark, with which %s drops the whole file; remove it", eventlog.ErrInvalid, h.Title)
	}
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	if _, err := dec.ReadValue(); err != nil {
		at := dec.InputOffset()
		if se := (*jsontext.SyntacticError)(nil); errors.As(err, &se) {
			at = se.ByteOffset
		}
		line, column := place(body, int(at))
		if _, lax := hujson.Parse(body); lax == nil && utf8.Valid(body) && !errors.Is(err, jsontext.ErrDuplicateName) {
			return fmt.Errorf("%w: line %d, column %d: a comment or a comma too many, with which %s drops the whole file; remove it", eventlog.ErrInvalid, line, column, h.Title)
		}
		return fmt.Errorf("%w: line %d, column %d: %s", eventlog.ErrInvalid, line, column, strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	if rest := bytes.TrimLeft(body[dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		line, column := place(body, len(body)-len(rest))
		return fmt.Errorf("%w: line %d, column %d: something follows the end of the JSON", eventlog.ErrInvalid, line, column)
	}
	return nil
}

// place is the line and the column, in bytes, of an offset.
func place(body []byte, at int) (line, column int) {
	before := body[:min(max(at, 0), len(body))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

func (d *document) line(at int) int { line, _ := place(d.body, at); return line }

func (d *document) wrong(at int, format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", eventlog.ErrInvalid, d.line(at), fmt.Sprintf(format, args...))
}

// text is a value as it is written.
func (d *document) text(v *hujson.Value) []byte { return d.body[v.StartOffset:v.EndOffset] }

// same reports whether a value says what want says, however it is written.
func (d *document) same(v *hujson.Value, want jsontext.Value) bool {
	a, b := jsontext.Value(bytes.Clone(d.text(v))), want.Clone()
	return a.Canonicalize() == nil && b.Canonicalize() == nil && bytes.Equal(a, b)
}

// member finds a name in an object, the last one as a parser would.
func member(obj *hujson.Object, name string) *hujson.ObjectMember {
	for i := len(obj.Members) - 1; i >= 0; i-- {
		if nameOf(&obj.Members[i]) == name {
			return &obj.Members[i]
		}
	}
	return nil
}

func nameOf(m *hujson.ObjectMember) string { return literal(&m.Name) }

// literal is the text of a string, or "" for another value.
func literal(v *hujson.Value) string {
	if l, ok := v.Value.(hujson.Literal); ok && l.Kind() == '"' {
		return l.String()
	}
	return ""
}

// hook is one handler of a settings file.
type hook struct {
	event   string
	matcher string
	list    *hujson.Value // the event's groups
	group   int           // in list
	inGroup *hujson.Value // the group's handlers
	handler int           // in inGroup
	command string        // "" for a handler of another type
	line    int
}

func (k *hook) groupValue() *hujson.Value { return &k.list.Value.(*hujson.Array).Elements[k.group] }

func (k *hook) value() *hujson.Value { return &k.inGroup.Value.(*hujson.Array).Elements[k.handler] }

// alone reports whether the group holds nothing else.
func (k *hook) alone() bool { return len(k.inGroup.Value.(*hujson.Array).Elements) == 1 }

// matchesAll reports whether the group's hooks run for everything.
func (k *hook) matchesAll() bool { return k.matcher == "" || k.matcher == "*" }

// hooks lists the handlers in their order. What has another shape than hooks
// have is an error if understand is set, and passed over otherwise.
func (d *document) hooks(understand bool) ([]hook, error) {
	var out []hook
	for i := range d.root.Value.(*hujson.Object).Members {
		m := &d.root.Value.(*hujson.Object).Members[i]
		if nameOf(m) != "hooks" {
			continue
		}
		events, ok := m.Value.Value.(*hujson.Object)
		if !ok {
			if understand {
				return nil, d.wrong(m.Value.StartOffset, "hooks: want an object of events")
			}
			continue
		}
		for j := range events.Members {
			list, err := d.eventHooks(&events.Members[j], understand)
			if err != nil {
				return nil, err
			}
			out = append(out, list...)
		}
	}
	return out, nil
}

func (d *document) eventHooks(m *hujson.ObjectMember, understand bool) (out []hook, err error) {
	name := nameOf(m)
	fail := func(v *hujson.Value, format string, args ...any) {
		if understand && err == nil {
			err = d.wrong(v.StartOffset, "hooks."+name+": "+format, args...)
		}
	}
	groups, ok := m.Value.Value.(*hujson.Array)
	if !ok {
		fail(&m.Value, "want a list of groups")
		return nil, err
	}
	for g := range groups.Elements {
		group, ok := groups.Elements[g].Value.(*hujson.Object)
		if !ok {
			fail(&groups.Elements[g], `want {"matcher": ..., "hooks": [...]}`)
			continue
		}
		matcher := ""
		if mm := member(group, "matcher"); mm != nil {
			if matcher = literal(&mm.Value); mm.Value.Value.Kind() != '"' {
				fail(&mm.Value, "matcher: want a string")
			}
		}
		hm := member(group, "hooks")
		if hm == nil {
			fail(&groups.Elements[g], `want {"matcher": ..., "hooks": [...]}`)
			continue
		}
		handlers, ok := hm.Value.Value.(*hujson.Array)
		if !ok {
			fail(&hm.Value, "want a list of hooks")
			continue
		}
		for i := range handlers.Elements {
			v := &handlers.Elements[i]
			k := hook{event: name, matcher: matcher, list: &m.Value, group: g, inGroup: &hm.Value, handler: i, line: d.line(v.StartOffset)}
			obj, ok := v.Value.(*hujson.Object)
			if !ok {
				fail(v, `want {"type": "command", "command": ...}`)
				continue
			}
			kind := member(obj, "type")
			if kind == nil || literal(&kind.Value) == "" {
				fail(v, `want a "type"`)
				continue
			}
			if literal(&kind.Value) == "command" {
				c := member(obj, "command")
				if c == nil || c.Value.Value.Kind() != '"' {
					fail(v, `want a "command"`)
					continue
				}
				k.command = literal(&c.Value)
				if args := member(obj, "args"); args != nil { // a form without a shell, which install does not write
					k.command += " " + string(d.text(&args.Value))
				}
			}
			out = append(out, k)
		}
	}
	return out, err
}

// rootAllowed refuses names that make the harness drop the file.
func (d *document) rootAllowed(h *Harness) error {
	if h.rootNames == nil {
		return nil
	}
	for _, m := range d.root.Value.(*hujson.Object).Members {
		if !slices.Contains(h.rootNames, nameOf(&m)) {
			return d.wrong(m.Name.StartOffset, "got %q, want only %s: with another name %s drops the whole file", nameOf(&m), strings.Join(h.rootNames, " and "), h.Title)
		}
	}
	return nil
}
