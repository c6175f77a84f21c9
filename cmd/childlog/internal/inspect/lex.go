package inspect

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// command is a simple command: words, and redirections that were found harmless.
type command struct {
	words []word
}

// word is one word with its quotes undone.
type word struct {
	text string

	// quoted: some part of it is quoted. A shell takes it for no keyword, no
	// option of its own and no assignment then.
	quoted bool

	// expands: a shell may put other words in its place, which begin as text does
	// unless open is set too.
	expands bool
	open    bool
}

// lexer reads the language that bash, zsh and sh have in common, and refuses
// whatever is not of it. It knows of no state: the first thing that it does not
// understand ends it.
type lexer struct {
	text string
	at   int

	commands []command
	now      command
	w        word
	inWord   bool
	words    int

	// redirect is the operator whose target comes next, "" if none does.
	redirect string

	// redirected: the command has a redirection. One that is nothing else makes
	// zsh start a pager.
	redirected bool

	// joined: an operator stands before, and a command has to follow.
	joined bool
}

// parse splits a text into its commands. What joins them does not matter: each
// of them has to be harmless, whether it runs or not.
func parse(text string) ([]command, *Refusal) {
	if len(text) > MaxText {
		return nil, tooMuch()
	}
	if !isText(text) {
		return nil, &Refusal{Why: WhySyntax, Text: "the command has characters that are not printed"}
	}
	l := &lexer{text: text}
	for l.at < len(text) {
		if err := l.step(text[l.at]); err != nil {
			return nil, err
		}
	}
	if err := l.endCommand(""); err != nil {
		return nil, err
	}
	if l.joined || len(l.commands) == 0 {
		return nil, &Refusal{Why: WhySyntax, Text: "a command is missing"}
	}
	return l.commands, nil
}

// isText refuses what terminals and people do not show: control characters, CR
// among them, which some shells take for a space and others not, characters of
// no width or of another direction, and bytes that are no text.
func isText(s string) bool {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\n' || r == '\t':
		case r == utf8.RuneError && n <= 1, r < utf8.RuneSelf && (r < ' ' || r == 0x7f), r >= utf8.RuneSelf && !unicode.IsPrint(r):
			return false
		}
		i += n
	}
	return true
}

// step takes what begins with c.
func (l *lexer) step(c byte) *Refusal {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("_-./,+@%:", c) >= 0:
		l.add(c)
	case c == ' ' || c == '\t':
		l.at++
		return l.endWord()
	case c == '\n' || c == ';':
		l.at++
		return l.endCommand(string(c))
	case c == '|':
		return l.operator("|")
	case c == '&':
		return l.operator("&")
	case c == '<' || c == '>':
		return l.redirection()
	case c == '\'':
		return l.single()
	case c == '"':
		return l.double()
	case c == '\\':
		return l.escape()
	case c == '=' && (l.inWord || l.alone()): // at the beginning zsh puts the path of a command there
		l.add(c)
	case c == '*' || c == '?' || c == '[' || c == ']':
		l.w.open = l.w.open || l.w.text == ""
		l.w.expands = true
		l.add(c)
	case c == '^' && l.w.text != "": // in zsh with extended globs, a pattern
		l.w.expands = true
		l.add(c)
	case c == '~':
		return l.tilde()
	case c == '!' && len(l.now.words) > 0 && l.alone(): // the not of find and test
		l.add(c)
	case c == '!' && len(l.now.words) > 0 && l.isWord("!="), c == '{' && l.isWord("{}"): // which expand nowhere
		l.add(c)
		l.add(l.text[l.at])
	case c >= utf8.RuneSelf:
		return &Refusal{Why: WhySyntax, Text: "characters outside of ASCII have to be quoted"}
	default:
		return &Refusal{Why: WhyExpansion, Text: "an unquoted " + quoted(string(c)) + ": only plain words and quotes without expansion are understood"}
	}
	return nil
}

// alone reports whether the character at hand is a word of its own.
func (l *lexer) alone() bool { return l.isWord(l.text[l.at : l.at+1]) }

// isWord reports whether w is the next word, without a quote in it.
func (l *lexer) isWord(w string) bool {
	rest, ok := strings.CutPrefix(l.text[l.at:], w)
	return ok && !l.inWord && (rest == "" || strings.IndexByte(" \t\n", rest[0]) >= 0)
}

func (l *lexer) add(c byte) {
	l.w.text += string(c)
	l.inWord = true
	l.at++
}

// tilde takes ~: alone or before a slash it is the home directory. Inside of a
// word it is text, except to zsh with extended globs.
func (l *lexer) tilde() *Refusal {
	if !l.inWord {
		if rest := l.text[l.at+1:]; rest != "" && strings.IndexByte("/ \t\n;|&", rest[0]) < 0 {
			return &Refusal{Why: WhyExpansion, Text: "only ~ and ~/ are understood as a beginning"}
		}
	}
	l.w.expands = true
	l.add('~')
	return nil
}

// single takes a text in single quotes, in which nothing has a meaning.
func (l *lexer) single() *Refusal {
	n := strings.IndexByte(l.text[l.at+1:], '\'')
	if n < 0 {
		return unclosed()
	}
	l.w.text += l.text[l.at+1 : l.at+1+n]
	l.w.quoted, l.inWord = true, true
	l.at += n + 2
	return nil
}

func unclosed() *Refusal { return &Refusal{Why: WhySyntax, Text: "a quote is not closed"} }

// double takes a text in double quotes that holds no expansion.
func (l *lexer) double() *Refusal {
	l.w.quoted, l.inWord = true, true
	for l.at++; l.at < len(l.text); l.at++ {
		switch c := l.text[l.at]; c {
		case '"':
			l.at++
			return nil
		case '$', '`', '!': // the last is history in a shell with a terminal
			return &Refusal{Why: WhyExpansion, Text: "an expansion in double quotes: " + quoted(string(c)) + " has to be in single quotes"}
		case '\\':
			l.at++
			if l.at == len(l.text) {
				return unclosed()
			}
			switch c := l.text[l.at]; {
			case l.text[l.at-2] >= utf8.RuneSelf: // in GBK and others the backslash may be a part of that
				return &Refusal{Why: WhySyntax, Text: "a backslash in double quotes behind a character outside of ASCII: use single quotes"}
			case c == '$' || c == '`' || c == '"' || c == '\\':
				l.w.text += string(c)
			case c == '\n' || c == '!' || c >= utf8.RuneSelf:
				return &Refusal{Why: WhySyntax, Text: "a backslash in double quotes before something that shells do not agree on"}
			default:
				l.w.text += `\` + string(c)
			}
		default:
			l.w.text += l.text[l.at : l.at+1] // a byte of a character, maybe
		}
	}
	return unclosed()
}

// escape takes a backslash outside of quotes and the character that it quotes.
func (l *lexer) escape() *Refusal {
	if l.at+1 == len(l.text) || l.text[l.at+1] < ' ' || l.text[l.at+1] >= utf8.RuneSelf {
		return &Refusal{Why: WhySyntax, Text: "a backslash before the end of a line or a character outside of ASCII"}
	}
	l.w.text += string(l.text[l.at+1])
	l.w.quoted, l.inWord = true, true
	l.at += 2
	return nil
}

// operator takes &&, || and |. A single & leaves a process behind.
func (l *lexer) operator(one string) *Refusal {
	rest := l.text[l.at:]
	op := one
	if strings.HasPrefix(rest, one+one) {
		op += one
	}
	if next := rest[len(op):]; op == "&" || next != "" && strings.IndexByte("&|>;", next[0]) >= 0 {
		return &Refusal{Why: WhySyntax, Text: "commands may be joined by &&, ||, | and ; alone"}
	}
	l.at += len(op)
	return l.endCommand(op)
}

// redirection takes an operator with the number before it; see target.
func (l *lexer) redirection() *Refusal {
	if l.redirect != "" {
		return badRedirect()
	}
	from := ""
	if l.inWord && !l.w.quoted && isNumber(l.w.text) { // joined to it, a number is a descriptor
		from, l.w, l.inWord = l.w.text, word{}, false
	} else if err := l.endWord(); err != nil {
		return err
	}
	rest := l.text[l.at:]
	for _, op := range []string{">&", ">>", ">", "<"} {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		next := rest[len(op):]
		if next != "" && strings.IndexByte("<>&|(", next[0]) >= 0 {
			return badRedirect()
		}
		if op == "<" && from != "" && from != "0" || op != "<" && from != "" && from != "1" && from != "2" {
			return badRedirect()
		}
		l.redirect = op
		l.at += len(op)
		return nil
	}
	return badRedirect()
}

func badRedirect() *Refusal {
	return &Refusal{Why: WhyRedirect, Text: "a redirection other than to /dev/null, from a file, or of stdout and stderr to each other"}
}

// target checks the word behind a redirection.
func (l *lexer) target() *Refusal {
	op, w := l.redirect, l.w
	l.redirect, l.w, l.inWord, l.redirected = "", word{}, false, true
	switch {
	case w.expands, w.text == "":
	case op == ">&" && !w.quoted && (w.text == "1" || w.text == "2"):
		return nil
	case (op == ">" || op == ">>") && w.text == devNull:
		return nil
	case op == "<" && !w.quoted && strings.IndexByte("-0123456789", w.text[0]) >= 0: // to zsh <1-9> is a pattern
	case op == "<" && !inDev(w.text): // bash makes connections of /dev/tcp
		return nil
	}
	return badRedirect()
}

const devNull = "/dev/null"

func (l *lexer) endWord() *Refusal {
	switch {
	case !l.inWord:
		return nil
	case l.redirect != "":
		return l.target()
	case l.words == MaxWords:
		return tooMuch()
	case len(l.now.words) == 0 && strings.Contains(l.w.text, "="):
		return &Refusal{Why: WhySyntax, Text: "an assignment"}
	case l.w.text == "[" && len(l.now.words) == 0, l.w.text == "]": // alone they are no pattern
		l.w.expands, l.w.open = false, false
	}
	l.now.words = append(l.now.words, l.w)
	l.w, l.inWord = word{}, false
	l.words++
	return nil
}

// endCommand ends a command at an operator, or at the end of the text.
func (l *lexer) endCommand(op string) *Refusal {
	if err := l.endWord(); err != nil {
		return err
	}
	switch {
	case l.redirect != "":
		return badRedirect()
	case len(l.now.words) > 0:
		if len(l.commands) == MaxCommands {
			return tooMuch()
		}
		l.commands = append(l.commands, l.now)
	case l.redirected:
		return badRedirect()
	case op == "\n" || op == "": // an empty line, or nothing more
		return nil
	default:
		return &Refusal{Why: WhySyntax, Text: "a command is missing before " + quoted(op)}
	}
	l.now, l.redirected = command{}, false
	l.joined = op == "|" || op == "||" || op == "&&"
	return nil
}

// isNumber reports whether s is digits alone.
func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
