package policy

import (
	"strconv"
	"strings"
)

// patchLine is one line without its end. A soft line begins behind a character
// that only some languages take for the end of a line: it may be the start of a
// directive, and it does not count as a line of a hunk.
type patchLine struct {
	text string
	soft bool
}

// nextLine cuts the first line off text. Besides \n and \r\n it cuts at what
// Python's splitlines takes for an end, since appliers are written in it: \v,
// \f, a lone \r, the separators 1c to 1e, NEL, and U+2028 and U+2029. The line
// it returns is soft if the one before ended so; the rest carries that in its
// first byte, which is kept.
func nextLine(text string) (line patchLine, rest string) {
	start := 0
	if n := softBreak(text, 0); n > 0 {
		line.soft, start = true, n
	}
	for i := start; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\n':
			line.text = strings.TrimSuffix(text[start:i], "\r")
			return line, text[i+1:]
		case c > '\r' && c < 0x1c || c > 0x1e && c < 0x80:
		case softBreak(text, i) > 0:
			line.text = text[start:i]
			return line, text[i:]
		}
	}
	line.text = strings.TrimSuffix(text[start:], "\r")
	return line, ""
}

// softBreak returns the length of the soft line end at i, or 0.
func softBreak(text string, i int) int {
	if i >= len(text) {
		return 0
	}
	switch c := text[i]; {
	case c == '\r':
		if i+1 == len(text) || text[i+1] == '\n' {
			return 0 // part of \r\n
		}
		return 1
	case c == '\v', c == '\f', 0x1c <= c && c <= 0x1e:
		return 1
	case c == 0xc2 && strings.HasPrefix(text[i:], "\u0085"):
		return 2
	case c == 0xe2 && (strings.HasPrefix(text[i:], "\u2028") || strings.HasPrefix(text[i:], "\u2029")):
		return 3
	}
	return 0
}

// isRange reports whether a line opens a hunk of a unified diff. The @@ of an
// envelope has no numbers.
func isRange(line string) bool { _, _, ok := parseRange(line); return ok }

// parseRange reads "@@ -l,s +l,s @@". A missing size is one line. A size that is
// no number makes a hunk of no lines: what follows is read as headers, which
// finds more.
func parseRange(line string) (old, new int, ok bool) {
	rest, ok := strings.CutPrefix(line, "@@ -")
	if !ok || rest == "" || rest[0] < '0' || rest[0] > '9' {
		return 0, 0, false
	}
	oldRange, rest, ok := strings.Cut(rest, " +")
	if !ok {
		return 0, 0, false
	}
	newRange, _, _ := strings.Cut(rest, " ")
	if old, ok = rangeSize(oldRange); ok {
		new, ok = rangeSize(newRange)
	}
	if !ok {
		return 0, 0, true
	}
	return old, new, true
}

func rangeSize(r string) (n int, ok bool) {
	_, size, ok := strings.Cut(r, ",")
	if !ok {
		return 1, true
	}
	u, err := strconv.ParseUint(size, 10, 31)
	return int(u), err == nil
}

// pair adds the two names of a header; "" is a side that is not there.
func (s *patchScan) pair(old, new string) {
	olds, news := s.headerNames(old), s.headerNames(new)
	stripped := false
	for _, side := range [][2]string{{"a/", "b/"}, {"b/", "a/"}} {
		if (old == "" || new == "") && side[0] == "b/" {
			break // a lone side is taken as git writes it
		}
		if hasPrefixOrNull(olds, side[0]) && hasPrefixOrNull(news, side[1]) {
			stripped = true
		}
	}
	for _, name := range append(olds, news...) {
		s.named = true
		if name == devNull {
			continue
		}
		if stripped {
			name = name[2:]
		}
		s.add(name)
	}
}

const devNull = "/dev/null"

func hasPrefixOrNull(names []string, prefix string) bool {
	for _, n := range names {
		if n != devNull && !strings.HasPrefix(n, prefix) {
			return false
		}
	}
	return true
}

// headerNames returns what the name in a --- or +++ line can be: it ends at a
// tab, and for patch(1) without a tab at the first space.
func (s *patchScan) headerNames(rest string) []string {
	if rest == "" {
		return nil
	}
	name, _, hasTab := strings.Cut(rest, "\t")
	if strings.HasPrefix(rest, `"`) {
		name, hasTab = rest, true
	}
	name, ok := cName(name)
	if !ok || name == "" {
		s.c.doubt = true
		return nil
	}
	names := []string{name}
	if short, _, ok := strings.Cut(name, " "); ok && !hasTab && short != "" {
		names = append(names, short)
	}
	return names
}

// gitNames adds the names of "diff --git", which alone name a file that only
// changes its mode, or is created or deleted empty.
func (s *patchScan) gitNames(rest string) {
	s.named = true
	// Without quotes a space is not told from a separator; git itself reads
	// the line only where both names are equal but for the prefix.
	if mid := len(rest) / 2; len(rest)%2 == 1 && rest[mid] == ' ' && rest[0] != '"' {
		old, new := rest[:mid], rest[mid+1:]
		if old == new || len(old) > 2 && old[1] == '/' && new[1] == '/' && old[2:] == new[2:] {
			s.pair2(old, new)
			return
		}
	}
	old, new, ok := splitGitNames(rest)
	if !ok {
		s.c.doubt = true
		return
	}
	s.pair2(old, new)
}

// pair2 adds two names that are known exactly.
func (s *patchScan) pair2(old, new string) {
	a := strings.HasPrefix(old, "a/") && strings.HasPrefix(new, "b/")
	b := strings.HasPrefix(old, "b/") && strings.HasPrefix(new, "a/")
	if a || b {
		old, new = old[2:], new[2:]
	}
	s.add(old)
	s.add(new)
}

// splitGitNames splits two names of which one may be quoted.
func splitGitNames(rest string) (old, new string, ok bool) {
	if strings.HasPrefix(rest, `"`) {
		end := quoteEnd(rest)
		if end < 0 || end+1 >= len(rest) || rest[end] != ' ' {
			return "", "", false
		}
		old, new = rest[:end], rest[end+1:]
	} else if i := strings.Index(rest, ` "`); i > 0 {
		old, new = rest[:i], rest[i+1:]
	} else if i := strings.Index(rest, " b/"); i > 0 && !strings.Contains(rest[i+1:], " b/") {
		old, new = rest[:i], rest[i+1:]
	} else if old, new, ok = strings.Cut(rest, " "); !ok || strings.Contains(new, " ") {
		return "", "", false
	}
	if old, ok = cName(old); !ok {
		return "", "", false
	}
	new, ok = cName(new)
	return old, new, ok && old != "" && new != ""
}

// quoteEnd returns the index behind the closing quote of a text that begins
// with one, or -1.
func quoteEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// cName undoes the quoting of git and patch(1), which write unusual bytes as C
// does. A name that is not quoted is returned as it is; one that is quoted and
// not well-formed is not a name.
func cName(s string) (name string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		return s, true
	}
	end := quoteEnd(s)
	if end < 0 {
		return "", false
	}
	if rest := s[end:]; rest != "" && rest[0] != '\t' && rest[0] != ' ' {
		return "", false
	}
	var b strings.Builder
	for body := s[1 : end-1]; body != ""; {
		if body[0] != '\\' {
			b.WriteByte(body[0])
			body = body[1:]
			continue
		}
		if len(body) >= 4 {
			if n, err := strconv.ParseUint(body[1:4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				body = body[4:]
				continue
			}
		}
		i := strings.IndexByte(`abtnvfr"\`, body[1])
		if i < 0 {
			return "", false
		}
		b.WriteByte("\a\b\t\n\v\f\r\"\\"[i])
		body = body[2:]
	}
	return b.String(), true
}
