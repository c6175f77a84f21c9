package term

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
)

// Column describes a column of a table.
type Column struct {
	Title string
	Right bool // numbers
	Drop  int  // a narrow terminal loses the columns of the highest number first; 0: never
	Min   int  // cells below which the column is not shortened; 0: never shortened
}

const (
	gap   = 2 // cells between columns
	least = 4 // cells of a column on a terminal that is too narrow for anything
)

// Table prints rows under a header. Columns that do not fit a terminal are
// dropped, which a last line says, then shortened; into a pipe everything is
// printed in full.
func (w *Writer) Table(columns []Column, rows [][]Text) {
	keep, widths, dropped := w.fit(columns, rows)
	if len(dropped) > 0 {
		defer w.Println(Dim("columns dropped: ", strings.Join(dropped, ", "), "; widen the terminal or use --json").Cut(w.width))
	}
	titles := make([]Text, len(keep))
	for i, c := range keep {
		titles[i] = Dim(columns[c].Title).Cut(widths[i])
	}
	if !w.rich {
		w.plainRow(columns, keep, widths, titles)
		for _, row := range rows {
			w.plainRow(columns, keep, widths, pick(row, keep))
		}
		return
	}
	cells := make([][]string, len(rows))
	for i, row := range rows {
		for j, c := range keep {
			cells[i] = append(cells[i], cell(row, c).Cut(widths[j]).render(w.color))
		}
	}
	heads := make([]string, len(keep))
	for i := range titles {
		heads[i] = titles[i].render(w.color)
	}
	rule := lipgloss.NewStyle()
	if w.color {
		rule = styles[dim]
	}
	t := table.New().Headers(heads...).Rows(cells...).Wrap(false).
		Border(lipgloss.NormalBorder()).BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderColumn(false).
		BorderStyle(rule).
		StyleFunc(func(_, col int) lipgloss.Style {
			st := lipgloss.NewStyle()
			if col < len(keep)-1 {
				st = st.PaddingRight(gap)
			}
			if columns[keep[col]].Right {
				st = st.AlignHorizontal(lipgloss.Right)
			}
			return st
		})
	for line := range strings.SplitSeq(t.Render(), "\n") {
		w.raw(strings.TrimRight(line, " ") + "\n")
	}
}

func pick(row []Text, keep []int) []Text {
	out := make([]Text, len(keep))
	for i, c := range keep {
		out[i] = cell(row, c)
	}
	return out
}

func cell(row []Text, c int) Text {
	if c < len(row) {
		return row[c]
	}
	return nil
}

func (w *Writer) plainRow(columns []Column, keep, widths []int, row []Text) {
	var line Text
	for i, t := range row {
		t = t.pad(widths[i], columns[keep[i]].Right)
		if i > 0 {
			line = append(line, span{strings.Repeat(" ", gap), plain})
		}
		line = append(line, t...)
	}
	w.raw(strings.TrimRight(line.render(w.color), " ") + "\n")
}

// fit chooses the columns and their widths. A column without any value is left
// out. What is too wide for the terminal loses columns until shortening the
// others is enough; dropped are their titles.
func (w *Writer) fit(columns []Column, rows [][]Text) (keep, widths []int, dropped []string) {
	for c := range columns {
		used, width := len(rows) == 0, Plain(columns[c].Title).Width()
		for _, row := range rows {
			n := cell(row, c).Width()
			used = used || n > 0
			width = max(width, n)
		}
		if used {
			keep, widths = append(keep, c), append(widths, width)
		}
	}
	for w.width > 0 {
		over, slack, drop := gap*(len(keep)-1)-w.width, 0, -1
		for i, c := range keep {
			over += widths[i]
			if columns[c].Min > 0 {
				slack += max(0, widths[i]-columns[c].Min)
			}
			if columns[c].Drop > 0 && (drop < 0 || columns[c].Drop > columns[keep[drop]].Drop) {
				drop = i
			}
		}
		if over <= slack || drop < 0 {
			shorten(columns, keep, widths, over)
			break
		}
		dropped = append(dropped, columns[keep[drop]].Title)
		keep = slices.Delete(keep, drop, drop+1)
		widths = slices.Delete(widths, drop, drop+1)
	}
	return keep, widths, dropped
}

// shorten takes over cells away, one at a time from what is then the widest
// above its minimum; at the very last from any column.
func shorten(columns []Column, keep, widths []int, over int) {
	for ; over > 0; over-- {
		i := widest(widths, func(i int) int { return columns[keep[i]].Min })
		if i < 0 {
			i = widest(widths, func(int) int { return least })
		}
		if i < 0 {
			return
		}
		widths[i]--
	}
}

// widest is the widest column above its minimum, or -1. A minimum of 0 is none
// to go down to.
func widest(widths []int, minimum func(int) int) int {
	best := -1
	for i, n := range widths {
		if m := minimum(i); m > 0 && n > m && (best < 0 || n > widths[best]) {
			best = i
		}
	}
	return best
}

// Branches returns the line prefixes of a tree that is given as the depth of
// each node in preorder: connected lines on a terminal, indentation in a pipe.
func (w *Writer) Branches(depths []int) []Text {
	out := make([]Text, len(depths))
	for i, d := range depths {
		if !w.rich {
			out[i] = Plain(strings.Repeat("  ", d))
			continue
		}
		prefix := ""
		for level := 1; level <= d; level++ {
			more := goesOn(depths[i+1:], level)
			switch {
			case level < d && more:
				prefix += "│  "
			case level < d:
				prefix += "   "
			case more:
				prefix += "├─ "
			default:
				prefix += "└─ "
			}
		}
		out[i] = Text{{prefix, dim}}
	}
	return out
}

// goesOn reports whether another node of the level follows under the same parent.
func goesOn(rest []int, level int) bool {
	for _, d := range rest {
		if d <= level {
			return d == level
		}
	}
	return false
}
