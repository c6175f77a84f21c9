package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The limits of declared scopes, from the merge contract. They bound what one
// delegation can state; a scope that met several others may hold more entries.
const (
	// MaxScopeEntries is the most entries one declaration may have, counted
	// before duplicates are dropped: who sends seventeen copies of one path
	// has a bug, and the count must not depend on how it normalizes.
	MaxScopeEntries = 16

	// MaxEntryChars and MaxEntryBytes bound one entry, in Unicode code points
	// and in UTF-8 bytes. They hold for the entry as written, without outer
	// spaces, and for its stored form: NFC can make a text longer.
	MaxEntryChars = 240
	MaxEntryBytes = 1024
)

// CheckEntries is the gate of a merge contract that needs a scope: 1 to
// [MaxScopeEntries] entries, counted as given, each acceptable to
// [NormalizeEntry]. Wrapped [ErrInvalid] otherwise.
func CheckEntries(entries []string) error {
	if n := len(entries); n == 0 || n > MaxScopeEntries {
		return invalid("write scope: got %d paths, want 1 to %d, counted before duplicates are dropped", n, MaxScopeEntries)
	}
	for _, e := range entries {
		if _, err := NormalizeEntry(e); err != nil {
			return err
		}
	}
	return nil
}

// NormalizeEntry returns the one stored form of a declared entry: a relative
// path with forward slashes, without empty and "." segments, in NFC. It is
// idempotent. Wrapped [ErrInvalid] for an entry that is empty or too long, is
// not UTF-8, begins with "/", "~" or a drive letter, holds a control or bidi
// character or a wildcard, names nothing, or has a ".." segment, even one that
// would cancel out: behind a link a/../b is not b.
//
// An entry declares a place, so it is tidied. The target of a call names a real
// file and is never put through this function; see [Target].
func NormalizeEntry(s string) (string, error) {
	given := s
	for {
		next, want := normalizeOnce(s)
		if want != "" {
			return "", invalid("write scope: got %s, want %s", quoted(given), want)
		}
		if next == s {
			return s, nil
		}
		// Dropping "./" from "./~" or "./ /a", or composing a Kelvin sign into
		// the K of a drive, lays bare what would have been refused at once. So
		// the result is only a result if it is accepted again unchanged. Each
		// further pass removes at least one byte of at most MaxEntryBytes.
		s = next
	}
}

// normalizeOnce is one pass of NormalizeEntry. A non-empty want refuses.
func normalizeOnce(s string) (entry, want string) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return "", "a path"
	case len(s) > MaxEntryBytes:
		return "", "at most 1024 bytes"
	case !utf8.ValidString(s):
		return "", "valid UTF-8"
	case utf8.RuneCountInString(s) > MaxEntryChars:
		return "", "at most 240 characters"
	}
	s = strings.ReplaceAll(s, `\`, "/")
	switch {
	case s[0] == '/':
		return "", "a path relative to the workspace"
	case s[0] == '~':
		return "", "no leading ~"
	case hasDriveLetter(s):
		return "", "no drive letter"
	case strings.ContainsFunc(s, isControlOrBidi):
		return "", "no control or bidi characters"
	case strings.ContainsAny(s, "*?["):
		return "", "a path without wildcards"
	}
	segments := strings.Split(s, "/")
	for _, segment := range segments {
		if segment == ".." {
			return "", "no .. segment"
		}
	}
	if s = join("", segments, "/"); s == "" {
		return "", "a path below the workspace"
	}
	return norm.NFC.String(s), ""
}

// hasDriveLetter reports whether s begins like C:, whatever follows.
func hasDriveLetter(s string) bool {
	return len(s) >= 2 && s[1] == ':' && ('a' <= s[0] && s[0] <= 'z' || 'A' <= s[0] && s[0] <= 'Z')
}

// isControlOrBidi reports whether r could break or reorder a line on which a
// path is shown: Unicode category Cc, and property Bidi_Control.
func isControlOrBidi(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}
