package policy

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// DenyPaths is a set of places that must not be touched, whatever a scope
// admits. It denies an entry and all below it, compared folded: NFKC and case
// folding of Unicode, without invisible format characters. An allow compares
// exactly and a deny folded, so that on a file system which ignores case or
// normalizes names both err towards refusing.
//
// It denies what is named. A call that removes or renames the parent of an
// entry has another target, which is for the scope to refuse.
//
// The zero value denies nothing. It is an immutable value, safe for concurrent
// use.
type DenyPaths struct {
	entries []string // normalized, in path order, without duplicates
	folded  []string // of the entry at the same index
}

// ParseDenyPaths returns the set of the given entries, each as
// [NormalizeEntry] has it. Wrapped [ErrInvalid] for a malformed entry: a deny
// rule that means nothing must not look as if it protected something.
func ParseDenyPaths(entries []string) (DenyPaths, error) {
	var d DenyPaths
	for _, e := range entries {
		n, err := NormalizeEntry(e)
		if err != nil {
			return DenyPaths{}, err
		}
		d.entries = append(d.entries, n)
	}
	return d.index(), nil
}

// index sorts the entries, which the caller owns, and folds them.
func (d DenyPaths) index() DenyPaths {
	slices.SortFunc(d.entries, comparePaths)
	d.entries = slices.Compact(d.entries)
	d.folded = make([]string, len(d.entries))
	for i, e := range d.entries {
		d.folded[i] = fold(e)
	}
	return d
}

// Union returns what either denies. Denials add up from root to child.
func (d DenyPaths) Union(o DenyPaths) DenyPaths {
	return DenyPaths{entries: slices.Concat(d.entries, o.entries)}.index()
}

// Entries returns a copy of the entries in path order, never nil.
func (d DenyPaths) Entries() []string {
	return append(make([]string, 0, len(d.entries)), d.entries...)
}

// Covers reports whether a target, as [Target] returns it, is denied, and by
// which entry: the first in path order. A target that Target would refuse is
// denied by the first entry of any non-empty set. It does not allocate for a
// tidy ASCII path.
func (d DenyPaths) Covers(target string) (entry string, denied bool) {
	if len(d.entries) == 0 {
		return "", false
	}
	clean, want := cleanTarget(target)
	if want != "" {
		return d.entries[0], true
	}
	ascii := isASCII(clean)
	if !ascii {
		clean = fold(clean)
	}
	for i, e := range d.folded {
		if ascii && isBelowFolded(e, clean) || !ascii && isBelow(e, clean) {
			return d.entries[i], true
		}
	}
	return "", false
}

// fold maps spellings that some file system takes for one name to one string.
// A "/" is never the result of composition, so folding a path folds each of its
// segments; a compatibility character can add one (U+2100 becomes a/c), which
// only makes more paths compare as nested.
func fold(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	if strings.ContainsFunc(s, isIgnorable) {
		segments := strings.Split(s, "/")
		for i, segment := range segments {
			// A name of nothing else stays, or it would fold to its parent.
			if kept := strings.Map(dropIgnorable, segment); kept != "" {
				segments[i] = kept
			}
		}
		s = strings.Join(segments, "/")
	}
	// Twice, because folding can undo a composition and composing can yield
	// what folds again; the second round is stable. A Caser is not safe to
	// share, so each call has its own.
	for range 2 {
		s = norm.NFKC.String(cases.Fold().String(s))
	}
	return s
}

// isIgnorable reports whether r is a format character or a variation selector.
// HFS+ opens .g\u200cit as .git.
func isIgnorable(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r)
}

func dropIgnorable(r rune) rune {
	if isIgnorable(r) {
		return -1
	}
	return r
}

// isBelowFolded is isBelow(dir, fold(path)) for an ASCII path, without folding
// it to a new string.
func isBelowFolded(dir, path string) bool {
	return len(path) >= len(dir) && equalFoldASCII(path[:len(dir)], dir) &&
		(len(path) == len(dir) || path[len(dir)] == '/')
}

// equalFoldASCII reports whether s, with A to Z lowered, is lower.
func equalFoldASCII(s, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
