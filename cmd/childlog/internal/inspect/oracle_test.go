package inspect

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"mvdan.cc/sh/v3/syntax"
)

// variants are the languages that may run what is admitted.
var variants = []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX, syntax.LangZsh}

// reread parses a text with a parser of the whole language and returns the words
// of its commands; false: it holds more than plain commands.
func reread(text string, lang syntax.LangVariant) (commands [][]string, ok bool) {
	f, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, false
	}
	ok = len(f.Last) == 0
	var stmt func(s *syntax.Stmt)
	stmt = func(s *syntax.Stmt) {
		if s.Negated || s.Background || s.Coprocess || s.Disown || len(s.Comments) > 0 {
			ok = false
		}
		for _, r := range s.Redirs {
			target, plain := wordText(r.Word)
			switch {
			case !plain || r.Hdoc != nil:
				ok = false
			case r.Op == syntax.RdrIn:
				ok = ok && !inDev(target)
			case r.Op == syntax.RdrOut || r.Op == syntax.AppOut:
				ok = ok && target == devNull
			case r.Op == syntax.DplOut:
				ok = ok && (target == "1" || target == "2")
			default:
				ok = false
			}
		}
		switch c := s.Cmd.(type) {
		case *syntax.CallExpr:
			if len(c.Assigns) > 0 {
				ok = false
			}
			var words []string
			for _, w := range c.Args {
				text, plain := wordText(w)
				words, ok = append(words, text), ok && plain
			}
			commands = append(commands, words)
		case *syntax.BinaryCmd:
			if c.Op != syntax.AndStmt && c.Op != syntax.OrStmt && c.Op != syntax.Pipe {
				ok = false
			}
			stmt(c.X)
			stmt(c.Y)
		default:
			ok = false
		}
	}
	for _, s := range f.Stmts {
		stmt(s)
	}
	return commands, ok
}

// wordText undoes the quotes of a word; false: it has an expansion.
func wordText(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			unescaped(&b, p.Value, false)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", false
			}
			for _, inner := range p.Parts {
				lit, isLit := inner.(*syntax.Lit)
				if !isLit {
					return "", false
				}
				unescaped(&b, lit.Value, true)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

func unescaped(b *strings.Builder, s string, quoted bool) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (!quoted || strings.IndexByte("$`\"\\", s[i+1]) >= 0) {
			i++
		}
		b.WriteByte(s[i])
	}
}

// holds is what must be true of every text, admitted or not. Of one that is
// admitted, a parser of each whole language sees the same commands and the same
// words, each of a command in the table.
func holds(t testing.TB, text string) bool {
	r := Command(text)
	if r.Refused != nil {
		require.NotEmpty(t, r.Refused.Text)
		return false
	}
	mine, refused := parse(text)
	require.Nil(t, refused)
	for _, lang := range variants {
		theirs, plain := reread(text, lang)
		require.True(t, plain, "%v reads more into %q", lang, text)
		require.Len(t, theirs, len(mine), "%v: %q", lang, text)
		for i := range mine {
			require.NotNil(t, find(theirs[i][0]), "%v: %q", lang, text)
			var words []string
			for _, w := range mine[i].words {
				words = append(words, w.text)
			}
			require.Equal(t, words, theirs[i], "%v: %q", lang, text)
		}
	}
	return true
}

func TestOtherParsersReadTheSame(t *testing.T) {
	for _, text := range admitted(t) {
		require.True(t, holds(t, text), text)
	}
	for _, c := range refused(t) {
		require.False(t, holds(t, c[1]), c[1])
	}
}

// tails are what somebody would hang on a harmless command.
var tails = []string{"; rm x", "\nrm x", "&& rm x", "|| rm x", "| rm x", "& rm x", "&", ";rm x;", "|tee x", ">x", ">>x", "2>x", "&>x", "<(rm x)", ">(rm x)", "$(rm x)", "`rm x`",
	"${x}", "$x", "\"$(rm x)\"", "'", "\"", "\\", "{a,b}", "(rm)", "*(e:rm:)", "#x", "!!", "=rm", "<<E", "<<<x", "|&cat", "\r", "\x00", "\u2028", " -o x", "'' rm", "\n{ rm x; }", " ; (rm x)", "; rm x #"}

// TestNothingIsAdmittedByItsBeginning: whatever stands behind an admitted command is
// judged with it.
func TestNothingIsAdmittedByItsBeginning(t *testing.T) {
	for i, text := range admitted(t) {
		if testing.Short() && i%5 != 0 {
			continue
		}
		for _, tail := range tails {
			for _, whole := range []string{text + tail, text + " " + tail, tail + text, strings.TrimSpace(tail) + " " + text} {
				if !holds(t, whole) {
					continue
				}
				// What is admitted all the same took the tail for words of its own:
				// it runs nothing but what is in the table.
				commands, _ := parse(whole)
				for _, c := range commands {
					require.NotContains(t, []string{"rm", "tee"}, c.words[0].text, "%q", whole)
				}
			}
		}
	}
}

// TestMixturesOfCommands puts pieces of admitted and refused commands together: what
// comes out is what every parser sees, or refused.
func TestMixturesOfCommands(t *testing.T) {
	var pieces []string
	for _, text := range append(admitted(t), tails...) {
		pieces = append(pieces, strings.SplitAfter(text, " ")...)
	}
	for _, c := range refused(t) {
		pieces = append(pieces, strings.SplitAfter(c[1], " ")...)
	}
	rounds := 20000
	if testing.Short() {
		rounds = 1000
	}
	r := rand.New(rand.NewPCG(1, 2))
	n := 0
	for range rounds {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		if holds(t, b.String()) {
			n++
		}
	}
	require.Greater(t, n, rounds/100, "some are admitted")
}

func FuzzCommand(f *testing.F) {
	for _, text := range admitted(f) {
		f.Add(text)
	}
	for _, c := range refused(f) {
		f.Add(c[1])
	}
	f.Fuzz(func(t *testing.T, text string) { holds(t, text) })
}
