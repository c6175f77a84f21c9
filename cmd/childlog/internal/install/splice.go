package install

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"
)

// Editing is cutting and inserting bytes: an edit touches what it is about, and
// cutting what was inserted gives the bytes of before.

// cut is a range of body that goes, and what comes in its place.
type cut struct {
	from, to int
	with     string
}

// apply makes a new file of the cuts, which are in order and apart.
func (d *document) apply(cuts ...cut) []byte {
	out := []byte(d.mark)
	at := 0
	for _, c := range cuts {
		out = append(append(out, d.body[at:c.from]...), c.with...)
		at = c.to
	}
	return append(out, d.body[at:]...)
}

// part is an element of an array or a member of an object: where it begins and
// ends, and where the comma behind it is.
type part struct{ from, to, comma int }

// parts lists what is in an array or object.
func parts(v *hujson.Value) (out []part) {
	switch c := v.Value.(type) {
	case *hujson.Array:
		for i := range c.Elements {
			e := &c.Elements[i]
			out = append(out, part{e.StartOffset, e.EndOffset, e.EndOffset + len(e.AfterExtra)})
		}
	case *hujson.Object:
		for i := range c.Members {
			m := &c.Members[i]
			out = append(out, part{m.Name.StartOffset, m.Value.EndOffset, m.Value.EndOffset + len(m.Value.AfterExtra)})
		}
	}
	return out
}

// remove cuts part i out of an array or object, with the comma and the white
// space that came with it. A comment beside it was somebody's, and stays.
func (d *document) remove(v *hujson.Value, i int) []byte {
	all := parts(v)
	p := all[i]
	open, end := v.StartOffset+1, v.EndOffset-1
	blank := func(from, to int) bool { return len(bytes.Trim(d.body[from:to], " \t\r\n,")) == 0 }
	switch {
	case len(all) == 1:
		if blank(open, p.from) && blank(p.to, end) {
			return d.apply(cut{from: open, to: end})
		}
		cuts := []cut{{from: p.from, to: p.to}}
		if d.body[p.comma] == ',' {
			cuts = append(cuts, cut{from: p.comma, to: p.comma + 1})
		}
		return d.apply(cuts...)
	case i > 0 && blank(all[i-1].to, p.from):
		return d.apply(cut{from: all[i-1].to, to: p.to})
	case i > 0 && d.body[p.comma] != ',':
		comma := all[i-1].comma
		return d.apply(cut{from: comma, to: comma + 1}, cut{from: p.from, to: p.to})
	case i == 0 && blank(p.to, all[1].from):
		return d.apply(cut{from: p.from, to: all[1].from})
	}
	return d.apply(cut{from: p.from, to: p.to}, cut{from: p.comma, to: p.comma + 1})
}

// replace writes another value in the place of one.
func (d *document) replace(v *hujson.Value, with jsontext.Value) []byte {
	return d.apply(cut{v.StartOffset, v.EndOffset, d.inline(with)})
}

// insert adds text at the end of an array or object, or of its own line there.
// text is given the indentation of that line.
func (d *document) insert(v *hujson.Value, text func(indent string) string) []byte {
	all := parts(v)
	in := d.indentAt(v.StartOffset) + d.unit()
	if len(all) > 0 && d.spread(v) {
		in = d.indentAt(all[0].from)
	}
	add := text(in)
	if d.spread(v) {
		add = d.newline() + in + add
	}
	if len(all) > 0 {
		last := all[len(all)-1].to
		return d.apply(cut{last, last, "," + add})
	}
	if d.spread(v) {
		add += d.newline() + d.indentAt(v.StartOffset)
	}
	return d.apply(cut{v.StartOffset + 1, v.EndOffset - 1, add})
}

// named is a member of an object that is inserted at an indentation.
func (d *document) named(name, value string) string {
	quoted, _ := jsontext.AppendQuote(nil, name) // a name of an event: plain ASCII
	if d.spread(&d.root) {
		return string(quoted) + ": " + value
	}
	return string(quoted) + ":" + value
}

// nested puts one thing between brackets, on a line of its own.
func (d *document) nested(open, inner, end, indent string) string {
	if !d.spread(&d.root) {
		return open + inner + end
	}
	return open + d.newline() + indent + d.unit() + inner + d.newline() + indent + end
}

// inline writes a value on one line, with blanks where the file has lines.
func (d *document) inline(v jsontext.Value) string {
	v = v.Clone()
	if spaced := d.spread(&d.root); spaced && v.Format(jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true)) != nil {
		return string(v) // not for values that were made here
	}
	return string(v)
}

// spread reports whether what is in v has lines of its own. An empty one does
// if what is around it does.
func (d *document) spread(v *hujson.Value) bool {
	if all := parts(v); len(all) > 0 {
		return bytes.IndexByte(d.body[v.StartOffset:all[0].from], '\n') >= 0
	}
	root := parts(&d.root)
	return len(root) == 0 || bytes.IndexByte(d.body[d.root.StartOffset:root[0].from], '\n') >= 0
}

// indentAt is the white space that the line of an offset begins with.
func (d *document) indentAt(at int) string {
	line := d.body[bytes.LastIndexByte(d.body[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// unit is one step of the file's indentation.
func (d *document) unit() string {
	if all := parts(&d.root); len(all) > 0 && d.spread(&d.root) {
		if in := strings.TrimPrefix(d.indentAt(all[0].from), d.indentAt(d.root.StartOffset)); in != "" {
			return in
		}
	}
	return "  "
}

func (d *document) newline() string {
	if i := bytes.IndexByte(d.body, '\n'); i > 0 && d.body[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
