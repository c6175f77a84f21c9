package policy

import (
	"strings"
	"unicode"
)

// Three dialects of patches name files:
//
//	*** Begin Patch                 diff --git a/src/x b/src/y      Index: src/x
//	*** Update File: src/x          rename from src/x               --- src/x
//	*** Move to: src/y              rename to src/y                 +++ src/x
//	@@                              --- a/src/x                     @@ -1 +1 @@
//	-old                            +++ b/src/y                     -old
//	+new                            @@ -1,2 +1,2 @@                 +new
//	*** End Patch
//
// the envelope of Codex, the git diff, and what else patch(1) reads. A tool
// applies one of them, and a guard does not know which program is behind it. So
// the scan collects whatever any of them could take for the name of a file: a
// line too many refuses a call, a line too few lets one through. The cost is
// known: a hunk that changes the text of a patch may be refused.
//
// "a/" and "b/" are the prefixes of git only where both sides have them, or one
// is /dev/null; other names are taken as written, so a tool must not strip
// what git would not have put there.

// looksLikePatch reports whether a text could be a patch in any dialect. It
// only saves scanning prose; the text under patch and diff is scanned anyway.
func looksLikePatch(text string) bool {
	for _, mark := range []string{"***", "---", "+++", "diff --git "} {
		if strings.Contains(text, mark) {
			return true
		}
	}
	return false
}

// isEnvelope reports whether an argument is a text that has an envelope.
func isEnvelope(value any) bool {
	text, ok := value.(string)
	return ok && strings.Contains(text, "*** Begin Patch")
}

// patch collects the names in one text. A patch without any is doubt.
func (c *callPaths) patch(text string) {
	s := patchScan{c: c}
	for rest := text; rest != ""; {
		var line patchLine
		line, rest = nextLine(rest)
		if isBeginPatch(line.text) {
			s.envelope = true
		}
		if isRange(line.text) || strings.HasPrefix(line.text, "diff --git ") {
			s.unified = true
		}
	}
	// In an envelope "--- x" and "+++ x" are changed lines that began with two
	// signs, unless it is a polyglot that patch(1) would read as well.
	s.unified = s.unified || !s.envelope
	line, rest := nextLine(text)
	for {
		next, after := nextLine(rest)
		s.line(line, next.text)
		if rest == "" {
			break
		}
		line, rest = next, after
	}
	if !s.named {
		c.doubt = true
	}
}

type patchScan struct {
	c                 *callPaths
	envelope, unified bool
	named             bool // a name was found, /dev/null included
	old, new          int  // lines left in the hunk, by its range
	paired            bool // the +++ of the --- before, already read
}

func (s *patchScan) add(name string) {
	s.named = true
	s.c.add(name)
}

// line reads one line; next is the text of the one behind it.
func (s *patchScan) line(line patchLine, next string) {
	if s.directive(line) || !s.unified {
		return
	}
	t := line.text
	inHunk := s.content(line)
	paired := s.paired
	s.paired = false
	switch {
	case strings.HasPrefix(t, "--- "):
		// Within a hunk it is a deleted comment, unless a +++ follows, for
		// appliers that do not count.
		if newName, ok := strings.CutPrefix(next, "+++ "); ok {
			s.pair(t[4:], newName)
			s.paired = true
		} else if !inHunk {
			s.pair(t[4:], "")
		}
	case strings.HasPrefix(t, "+++ "):
		if !paired && (!inHunk || strings.HasPrefix(next, "@@ -")) {
			s.pair("", t[4:])
		}
	case inHunk:
	case strings.HasPrefix(t, "diff --git "):
		s.gitNames(t[len("diff --git "):])
	case strings.HasPrefix(t, "Index:"):
		for _, name := range s.headerNames(strings.TrimLeft(t[len("Index:"):], " \t")) {
			s.add(name)
		}
	default:
		for _, verb := range []string{"rename from ", "rename to ", "rename old ", "rename new ", "copy from ", "copy to "} {
			if name, ok := strings.CutPrefix(t, verb); ok {
				if name, ok = cName(name); ok {
					s.add(name)
				} else {
					s.c.doubt = true
				}
			}
		}
	}
}

// content reports whether a line is inside the hunk that was opened, and opens
// and closes hunks.
func (s *patchScan) content(line patchLine) bool {
	if old, new, ok := parseRange(line.text); ok {
		s.old, s.new = old, new
		return false
	}
	if s.old == 0 && s.new == 0 {
		return false
	}
	if line.soft {
		return true // a part of the line before for whoever counts
	}
	switch {
	case line.text == "" || line.text[0] == ' ':
		s.old--
		s.new--
	case line.text[0] == '-':
		s.old--
	case line.text[0] == '+':
		s.new--
	case line.text[0] != '\\':
		s.old = -1
	}
	if s.old < 0 || s.new < 0 {
		s.old, s.new = 0, 0 // the range lied, or the patch was cut
		return false
	}
	return true
}

// patchVerbs are the directives of an envelope, in lower case.
var (
	patchVerbs = []string{"update file:", "add file:", "delete file:", "move to:", "create file:", "remove file:", "rename to:"}
	patchMarks = []string{"begin patch", "end patch", "end of file", "environment id:"}
)

// directive reads a line of the envelope. Appliers trim lines, so an indented
// directive counts in a text that has an envelope at all.
func (s *patchScan) directive(line patchLine) bool {
	t := line.text
	if s.envelope {
		t = strings.TrimLeftFunc(t, unicode.IsSpace)
	}
	t, ok := strings.CutPrefix(t, "***")
	if !ok {
		return false
	}
	spaced := strings.HasPrefix(t, " ")
	t = strings.TrimLeft(t, " \t")
	for _, verb := range patchVerbs {
		if len(t) >= len(verb) && equalFoldASCII(t[:len(verb)], verb) {
			// One space is part of the directive; the rest would be trimmed by
			// one applier and not by another, and is refused as a target.
			s.add(strings.TrimPrefix(t[len(verb):], " "))
			return true
		}
	}
	for _, mark := range patchMarks {
		if len(t) >= len(mark) && equalFoldASCII(t[:len(mark)], mark) {
			return true
		}
	}
	// At the start of a line anything else is a directive of some other
	// version, or the header of a context diff, which names a file as well.
	if spaced && !line.soft && strings.HasPrefix(line.text, "***") {
		s.c.doubt = true
	}
	return false
}

func isBeginPatch(line string) bool {
	t, ok := strings.CutPrefix(strings.TrimLeftFunc(line, unicode.IsSpace), "***")
	t = strings.TrimLeft(t, " \t")
	const begin = "begin patch"
	return ok && len(t) >= len(begin) && equalFoldASCII(t[:len(begin)], begin)
}
