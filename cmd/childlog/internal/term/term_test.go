package term

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// TestCase63_TextFromALogIsInert: what would steer a terminal is shown as what
// it is; markup is no matter of a terminal's.
func TestCase63_TextFromALogIsInert(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"plain, 文書, é, 🙂":         "plain, 文書, é, 🙂",
		"\x1b[31mred\x1b[0m":      `\x1b[31mred\x1b[0m`,
		"\x1b]0;title\x07":        `\x1b]0;title\x07`,
		"a\r\n\tb\x00\x7f":        `a\r\n\tb\x00\x7f`,
		"c1 \u009b31m":            `c1 \u009b31m`,
		"rtl \u202egnp.exe":       `rtl \u202egnp.exe`,
		"isolate \u2066x\u2069":   `isolate \u2066x\u2069`,
		"zero\u200bwidth\ufeff":   `zero\u200bwidth\ufeff`,
		"separators \u2028\u2029": `separators \u2028\u2029`,
		"no-break\u00a0space":     `no-break\u00a0space`,
		"bad \xff\xfe byte":       `bad \xff\xfe byte`,
		"real \ufffd":             "real \ufffd",
		"tag \U000e0041":          `tag \U000e0041`,
		"filler \u3164|\u2800":    `filler \u3164|\u2800`,
		"private \ue000":          `private \ue000`,
		"</script>&<b>":           "</script>&<b>",
		`back\slash`:              `back\slash`,
	} {
		require.Equal(t, want, Escape(in), "%q", in)
	}
}

// Whatever goes in, what comes out steers nothing.
func FuzzEscape(f *testing.F) {
	f.Add("\x1b[31m\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		out := Escape(s)
		require.True(t, utf8.ValidString(out))
		for _, r := range out {
			require.True(t, r == utf8.RuneError || unicode.IsPrint(r), "%U", r)
			require.False(t, unicode.Is(unicode.Cf, r), "%U", r)
		}
		require.Equal(t, out, Escape(out))
	})
}

func TestCut(t *testing.T) {
	text := Cat(Plain("read-only"), Dim(", claimed"))
	require.Equal(t, "read-only, claimed", text.Cut(18).render(false))
	require.Equal(t, "read-only, claim…", text.Cut(17).render(false))
	require.Equal(t, "read-onl…", text.Cut(9).render(false), "what is left out is shown to be left out")
	require.Equal(t, "…", text.Cut(1).render(false))
	require.Equal(t, "文…", Plain("文書館").Cut(4).render(false), "a wide character is not halved")
	require.LessOrEqual(t, Plain("文書館").Cut(4).Width(), 4)
}

func TestWrap(t *testing.T) {
	render := func(lines []Text) (out []string) {
		for _, l := range lines {
			out = append(out, l.render(false))
		}
		return out
	}
	require.Equal(t, []string{"one two", "three"}, render(Plain("one two three").wrap(9)))
	require.Equal(t, []string{"one two three"}, render(Cat(Plain("one two"), Dim(" three")).wrap(13)))
	require.Equal(t, []string{"id", "cbbb017b-0118-4ed5-ad28-a552815c16bc", "end"}, render(Plain("id cbbb017b-0118-4ed5-ad28-a552815c16bc end").wrap(20)), "ids stay whole")
}

// Into a pipe a folded text ends at 80 columns, a wrapped one nowhere.
func TestFold(t *testing.T) {
	var b bytes.Buffer
	w := Writer{w: &b}
	long := strings.Repeat("word ", 19) + "word"
	w.Fold(2, Plain(long))
	require.Equal(t, "  "+strings.Repeat("word ", 14)+"word\n  word word word word word\n", b.String())
	b.Reset()
	w.Wrap(2, Plain(long))
	require.Equal(t, "  "+long+"\n", b.String())
	b.Reset()
	w.rich, w.width = true, 22
	w.Fold(2, Plain("one two three four five"))
	require.Equal(t, "  one two three four\n  five\n", b.String())
}

func TestStyles(t *testing.T) {
	require.Equal(t, "\x1b[31mno\x1b[m", Bad("no").render(true))
	require.Equal(t, "no", Bad("no").render(false))
	require.Equal(t, `\x1b[31m`, Bad("\x1b[31m").render(false))
}

var columns = []Column{{Title: "LABEL", Min: 6}, {Title: "N", Right: true, Drop: 2}, {Title: "EMPTY"}, {Title: "STATUS", Drop: 1}}

var rows = [][]Text{{Plain("a long label"), Plain("7"), nil, Good("idle")}, {Plain("b"), Plain("1,000"), nil, Warn("interrupted")}}

func TestTable(t *testing.T) {
	for _, c := range []struct {
		name  string
		w     Writer
		lines []string
	}{
		{"pipe", Writer{}, []string{
			"LABEL             N  STATUS",
			"a long label      7  idle",
			"b             1,000  interrupted",
		}},
		{"terminal", Writer{rich: true, width: 80}, []string{
			"LABEL             N  STATUS",
			"────────────────────────────────",
			"a long label      7  idle",
			"b             1,000  interrupted",
		}},
		{"shortened", Writer{rich: true, width: 28}, []string{
			"LABEL         N  STATUS",
			"────────────────────────────",
			"a long …      7  idle",
			"b         1,000  interrupted",
		}},
		{"a column less", Writer{rich: true, width: 20}, []string{
			"LABEL    STATUS",
			"────────────────────",
			"a long…  idle",
			"b        interrupted",
			"columns dropped: N;…",
		}},
		{"hardly a terminal", Writer{rich: true, width: 8}, []string{
			"LABEL",
			"────────",
			"a long …",
			"b",
			"columns…",
		}},
	} {
		var b bytes.Buffer
		w := c.w
		w.w = &b
		w.Table(columns, rows)
		require.Equal(t, strings.Join(c.lines, "\n")+"\n", b.String(), c.name)
		require.NoError(t, w.Err())
	}
}

func TestTableColour(t *testing.T) {
	var b bytes.Buffer
	w := Writer{w: &b, rich: true, width: 80, color: true}
	w.Table(columns, rows)
	require.Contains(t, b.String(), "\x1b[32midle\x1b[m")
	plain := Writer{w: &b}
	b.Reset()
	plain.Table(columns, rows)
	require.NotContains(t, b.String(), "\x1b")
}

func TestBranches(t *testing.T) {
	depths := []int{0, 1, 2, 2, 1, 0, 1}
	draw := func(w Writer) (out []string) {
		for _, p := range w.Branches(depths) {
			out = append(out, p.render(false)+"x")
		}
		return out
	}
	require.Equal(t, []string{"x", "├─ x", "│  ├─ x", "│  └─ x", "└─ x", "x", "└─ x"}, draw(Writer{rich: true}))
	require.Equal(t, []string{"x", "  x", "    x", "    x", "  x", "x", "  x"}, draw(Writer{}))
}

func TestRows(t *testing.T) {
	var b bytes.Buffer
	w := Writer{w: &b, rich: true, width: 34}
	w.Rows(Row{Name: "sandbox", Value: Plain("read-only"), Note: Dim("pin, seq 4")}, Row{Value: Plain("x")},
		Row{Name: "approvals", Value: Plain("never ask, always reject"), Note: Dim("pin")})
	require.Equal(t, "sandbox    read-only  pin, seq 4\n           x\napprovals  never ask, always\n           reject\n           pin\n", b.String())
	b.Reset()
	w.width = 40
	w.Rows(Row{Name: "root", Value: Plain("/a/quite/long/dir"), Note: Dim("seq 3")}, Row{Name: "net", Value: Plain("off"), Note: Dim("deny_it, seq 2")})
	require.Equal(t, "root  /a/quite/long/dir  seq 3\nnet   off                deny_it, seq 2\n", b.String())
	b.Reset()
	w.width = 36
	w.Rows(Row{Name: "root", Value: Plain("/a/quite/long/dir"), Note: Dim("seq 3")}, Row{Name: "net", Value: Plain("off"), Note: Dim("deny_it, seq 2")})
	require.Equal(t, "root  /a/quite/long/dir  seq 3\nnet   off  deny_it, seq 2\n", b.String(), "a long value pushes no other note to a line of its own")
	b.Reset()
	w.width = 0
	w.Rows(Row{Name: "sandbox", Value: Plain("read-only"), Note: Dim("pin, seq 4")})
	require.Equal(t, "sandbox  read-only  pin, seq 4\n", b.String())
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteErrorSticks(t *testing.T) {
	w := New(broken{}, Console{}, false)
	require.False(t, w.Rich(), "only a terminal is one")
	w.Println(Plain("x"))
	require.ErrorIs(t, w.Err(), io.ErrClosedPipe)
}
