package term

import (
	"io"
	"os"
	"strings"

	xterm "golang.org/x/term"
)

// Writer prints for people. The first failure to write sticks.
type Writer struct {
	w     io.Writer
	rich  bool // a terminal: rules, width, progress
	color bool
	width int // columns of the terminal; 0: unlimited
	err   error
}

// Console is what is known of where an output ends. The zero value is a file or
// a pipe.
type Console struct {
	Terminal bool
	Width    int // columns; 0: unknown
}

// ConsoleOf looks at an output of this process.
func ConsoleOf(w io.Writer) Console {
	f, ok := w.(*os.File)
	if !ok || !xterm.IsTerminal(int(f.Fd())) {
		return Console{}
	}
	c := Console{Terminal: true}
	if width, _, err := xterm.GetSize(int(f.Fd())); err == nil && width > 0 {
		c.Width = width
	}
	return c
}

// New makes a writer to an output that ends at c, which may be another
// process's. What c's environment says about colour is for the caller to know.
func New(w io.Writer, c Console, noColor bool) *Writer {
	out := &Writer{w: w}
	if !c.Terminal {
		return out
	}
	out.rich, out.width, out.color = true, 80, !noColor
	if c.Width > 0 {
		out.width = c.Width
	}
	return out
}

// To makes a writer that looks like w and prints to another place.
func (w *Writer) To(other io.Writer) *Writer {
	out := *w
	out.w, out.err = other, nil
	return &out
}

// Rich reports whether the output is a terminal that can show more than lines.
func (w *Writer) Rich() bool { return w.rich }

// Width is the number of columns, or 0 if there is no limit.
func (w *Writer) Width() int { return w.width }

// Err is the first failure to write.
func (w *Writer) Err() error { return w.err }

func (w *Writer) raw(s string) {
	if w.err == nil {
		_, w.err = io.WriteString(w.w, s)
	}
}

// Println prints texts on one line, without anything between.
func (w *Writer) Println(texts ...Text) {
	w.raw(Cat(texts...).render(w.color) + "\n")
}

// Wrap prints a text over as many lines as it needs, each indented.
func (w *Writer) Wrap(indent int, texts ...Text) {
	lines := []Text{Cat(texts...)}
	if w.width > 0 {
		lines = lines[0].wrap(max(20, w.width-indent))
	}
	for _, l := range lines {
		w.Println(Plain(strings.Repeat(" ", indent)), l)
	}
}

// prose is the width at which a long text is wrapped where nothing limits it.
const prose = 80

// Fold is [Writer.Wrap] for a text that is too long for one line anywhere: into
// a pipe it wraps too, at 80 columns.
func (w *Writer) Fold(indent int, texts ...Text) {
	if w.width > 0 {
		w.Wrap(indent, texts...)
		return
	}
	for _, l := range Cat(texts...).wrap(prose - indent) {
		w.Println(Plain(strings.Repeat(" ", indent)), l)
	}
}

// Row is a name and what it stands for; an empty name goes on from the row
// above.
type Row struct {
	Name  string
	Value Text
	Note  Text // to the right of the value, aligned if there is room
}

// noteColumn is the last column at which notes line up; a longer value pushes
// its own note to the right.
const noteColumn = 48

// noteWidth is the widest note for which room is kept beside the values; one
// that names another session in full goes below its value if it must.
const noteWidth = 24

// Rows prints names, values and notes in columns.
func (w *Writer) Rows(rows ...Row) {
	name, note := 0, 0
	for _, r := range rows {
		name = max(name, Plain(r.Name).Width())
		if n := r.Note.Width(); n <= noteWidth {
			note = max(note, n)
		}
	}
	// On a terminal the notes begin where the longest of them still fits: a
	// long value must not push the short rows' notes to lines of their own.
	limit := noteColumn
	if w.width > 0 {
		limit = min(limit, w.width-name-2*gap-note)
	}
	value := 0
	for _, r := range rows {
		if n := r.Value.Width(); len(r.Note) > 0 && n <= limit {
			value = max(value, n)
		}
	}
	for _, r := range rows {
		head := Cat(Dim(r.Name).pad(name, false), Plain("  "))
		line := Cat(head, r.Value)
		if len(r.Note) > 0 {
			line = Cat(head, r.Value.pad(value, false), Plain("  "), r.Note)
		}
		if w.width == 0 || line.Width() <= w.width {
			w.Println(line)
			continue
		}
		// Too wide: the value wraps under itself, the note goes below it.
		room := max(20, w.width-name-2)
		lines := r.Value.wrap(room)
		if len(r.Note) > 0 {
			lines = append(lines, r.Note.wrap(room)...)
		}
		for _, l := range lines {
			w.Println(head, l)
			head = Plain(strings.Repeat(" ", name+2))
		}
	}
}
