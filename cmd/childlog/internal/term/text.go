package term

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Text is escaped text with styles. The zero value is empty.
type Text []span

type span struct {
	s     string // escaped
	style style
}

type style uint8

const (
	plain style = iota
	bold
	dim
	good
	warn
	bad
	accent
)

// The sixteen colours of the terminal's own theme: they suit light and dark
// backgrounds, and need no detection.
var styles = [...]lipgloss.Style{
	plain:  lipgloss.NewStyle(),
	bold:   lipgloss.NewStyle().Bold(true),
	dim:    lipgloss.NewStyle().Faint(true),
	good:   lipgloss.NewStyle().Foreground(lipgloss.Green),
	warn:   lipgloss.NewStyle().Foreground(lipgloss.Yellow),
	bad:    lipgloss.NewStyle().Foreground(lipgloss.Red),
	accent: lipgloss.NewStyle().Foreground(lipgloss.Cyan),
}

func text(st style, parts []string) Text {
	return Text{{Escape(strings.Join(parts, "")), st}}
}

// Plain, Bold, Dim, Good, Warn, Bad and Accent escape the concatenation of
// their parts.
func Plain(parts ...string) Text  { return text(plain, parts) }
func Bold(parts ...string) Text   { return text(bold, parts) }
func Dim(parts ...string) Text    { return text(dim, parts) }
func Good(parts ...string) Text   { return text(good, parts) }
func Warn(parts ...string) Text   { return text(warn, parts) }
func Bad(parts ...string) Text    { return text(bad, parts) }
func Accent(parts ...string) Text { return text(accent, parts) }

// Cat joins texts without anything between.
func Cat(texts ...Text) Text {
	var out Text
	for _, t := range texts {
		out = append(out, t...)
	}
	return out
}

// cells is the width of escaped text on a terminal.
func cells(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return ansi.StringWidth(s)
		}
	}
	return len(s) // nothing in it is a control character
}

// Width is the number of terminal cells.
func (t Text) Width() int {
	n := 0
	for _, s := range t {
		n += cells(s.s)
	}
	return n
}

// Cut shortens t to at most width cells, the last of which is then an ellipsis.
func (t Text) Cut(width int) Text {
	if t.Width() <= width {
		return t
	}
	var out Text
	room := max(0, width-1)
	for _, s := range t {
		w := cells(s.s)
		if w > room {
			return append(out, span{ansi.Truncate(s.s, room, "") + "…", s.style})
		}
		out, room = append(out, s), room-w
	}
	return out
}

// wrap breaks t at blanks into lines of at most width cells. A word that is
// longer has a line of its own.
func (t Text) wrap(width int) []Text {
	var lines []Text
	var line Text
	used := 0
	for _, s := range t {
		for i, word := range strings.Split(s.s, " ") {
			n := cells(word)
			switch {
			case i == 0: // goes on with the word before
				if used > 0 && used+n > width && n < width/2 {
					lines, line, used = append(lines, line), nil, 0
				}
			case used+1+n > width:
				lines, line, used = append(lines, line), nil, 0
			default:
				word, n = " "+word, n+1
			}
			line, used = append(line, span{word, s.style}), used+n
		}
	}
	return append(lines, line)
}

// pad fills t with blanks up to width, in front if right.
func (t Text) pad(width int, right bool) Text {
	fill := Text{{strings.Repeat(" ", max(0, width-t.Width())), plain}}
	if right {
		return Cat(fill, t)
	}
	return Cat(t, fill)
}

func (t Text) render(color bool) string {
	var b strings.Builder
	for _, s := range t {
		if !color || s.style == plain || s.s == "" {
			b.WriteString(s.s)
			continue
		}
		b.WriteString(styles[s.style].Render(s.s))
	}
	return b.String()
}
