package policy

import (
	"slices"
	"strconv"
	"strings"
)

// maxScopeParsed is the most entries a scope is read from. A declaration has
// at most [MaxScopeEntries]; a recorded scope that met one at each of nine
// levels at most 144. Above it stands no policy but an attempt to be slow.
const maxScopeParsed = 256

// Scope is the set of places below a workspace that a session may write to.
// It is part of authority, beside the sandbox and never instead of it. It has
// two forms without entries, and they must differ in every encoding:
//
//   - none, the zero value, and what ParseScope gives for an empty list:
//     nothing may be written. A field somebody forgot to fill in permits
//     nothing;
//   - not stated, from [Unscoped]: no scope limits the session; what it may
//     write is decided elsewhere. It is the neutral element of [Scope.Meet].
//
// To encode, write [Scope.Entries] if [Scope.Stated], else leave the field
// out; to decode, use [ParseScope] if the field is there, else Unscoped.
//
// An entry admits itself and what lies below it at a "/", compared byte by
// byte, except [Protected] places: "src" does not admit "src/.git/config".
// Those need an entry that names them, such as "src/.git". The exception holds
// for containment too, so whoever holds only "src" cannot hand on "src/.git".
//
// A Scope is an immutable value, safe for concurrent use. It knows names, not
// files: before a file is opened, ask the scopefs package too.
type Scope struct {
	// entries are normalized, in path order, without one that another covers,
	// which makes equal scopes equal slices. Never modified once built.
	entries []string
	all     bool // not stated; entries is nil then
}

// Unscoped returns the scope of a session for which none was stated.
func Unscoped() Scope { return Scope{all: true} }

// ParseScope returns the scope of the given entries, each as [NormalizeEntry]
// has it; duplicates and entries below others are dropped. No entries, nil or
// empty, is the scope that admits nothing. Wrapped [ErrInvalid] for a malformed
// entry or more than 256. A declaration is also held to [CheckEntries].
func ParseScope(entries []string) (Scope, error) {
	if len(entries) > maxScopeParsed {
		return Scope{}, invalid("write scope: got %d paths, want at most %d", len(entries), maxScopeParsed)
	}
	sorted := make([]string, 0, len(entries))
	for _, e := range entries {
		n, err := NormalizeEntry(e)
		if err != nil {
			return Scope{}, err
		}
		sorted = append(sorted, n)
	}
	slices.SortFunc(sorted, comparePaths)
	var s Scope
	for _, e := range sorted {
		if !s.covers(e) {
			s.entries = append(s.entries, e)
		}
	}
	return s, nil
}

// Stated reports whether there is a scope at all; false for [Unscoped].
func (s Scope) Stated() bool { return !s.all }

// IsEmpty reports whether the scope is stated and admits nothing.
func (s Scope) IsEmpty() bool { return !s.all && len(s.entries) == 0 }

// Entries returns a copy of the entries in path order, parents first: nil when
// no scope is stated, non-nil and empty when nothing may be written.
func (s Scope) Entries() []string {
	if s.all {
		return nil
	}
	return append(make([]string, 0, len(s.entries)), s.entries...)
}

// Admits reports whether path may be written: a path relative to the workspace,
// as [Target] returns it. A path that Target would refuse is admitted nowhere,
// not even when no scope is stated; empty and "." segments are read over, as
// the file system does. It does not allocate for a tidy path.
func (s Scope) Admits(path string) bool {
	clean, want := cleanTarget(path)
	return want == "" && (s.all || s.covers(clean))
}

// Want says, for people, what path would have to be to be admitted; "" if it
// is. It is Admits with a reason.
func (s Scope) Want(path string) string {
	clean, want := cleanTarget(path)
	switch {
	case want != "" || s.all || s.covers(clean):
		return want
	case s.IsEmpty():
		return s.within()
	case Protected(clean):
		return s.within() + ", where .git, .codex, .claude and .childlog need an entry of their own"
	}
	return s.within()
}

// within says what a path has to be to lie in the scope. Of an empty one
// "a path within no path" would be no answer.
func (s Scope) within() string {
	if s.IsEmpty() {
		return "no path: the write scope is empty"
	}
	return "a path within " + s.String()
}

// covers is Admits of a stated scope for a clean path.
func (s Scope) covers(clean string) bool {
	for _, e := range s.entries {
		if covers(e, clean) {
			return true
		}
	}
	return false
}

// Meet returns what both admit, by containment: the deeper of each nested pair.
// A grandchild's scope is the meet of its declared one and its parent's, so
// disjoint scopes meet in the one that admits nothing, never in either side.
// Two scopes can meet in as many entries as they have together.
func (s Scope) Meet(o Scope) Scope {
	switch {
	case s.all:
		return o
	case o.all:
		return s
	}
	var both []string
	for _, a := range s.entries {
		for _, b := range o.entries {
			switch {
			case covers(a, b):
				both = append(both, b)
			case covers(b, a):
				both = append(both, a)
			}
		}
	}
	// No pair repeats or nests: that would need nesting within s or within o.
	slices.SortFunc(both, comparePaths)
	return Scope{entries: both}
}

// Within reports whether s admits nothing that o does not, by containment.
// The empty scope is within every other, and an unstated one only within
// another unstated one.
func (s Scope) Within(o Scope) bool { return len(s.beyond(o)) == 0 }

// beyond returns the entries of s that o does not contain, in path order; for
// an unstated s within a stated o the workspace itself.
func (s Scope) beyond(o Scope) []string {
	switch {
	case o.all:
		return nil
	case s.all:
		return []string{"."}
	}
	var extra []string
	for _, e := range s.entries {
		if !o.covers(e) {
			extra = append(extra, e)
		}
	}
	return extra
}

// Equal reports whether both are stated alike and admit the same.
func (s Scope) Equal(o Scope) bool {
	return s.all == o.all && slices.Equal(s.entries, o.entries)
}

// Overlaps reports whether an entry of one equals or contains an entry of the
// other when both are folded (see [DenyPaths]): whether two writers could meet
// in one file, also on a system that ignores case. An unstated scope overlaps
// every scope that admits anything.
func (s Scope) Overlaps(o Scope) bool {
	if s.IsEmpty() || o.IsEmpty() {
		return false
	}
	if s.all || o.all {
		return true
	}
	others := make([]string, len(o.entries))
	for i, b := range o.entries {
		others[i] = fold(b)
	}
	for _, a := range s.entries {
		fa := fold(a)
		if slices.ContainsFunc(others, func(fb string) bool { return isBelow(fa, fb) || isBelow(fb, fa) }) {
			return true
		}
	}
	return false
}

// String renders the scope on one line for people: "any path", "no path" or the
// entries. Entries that could disturb the line are quoted.
func (s Scope) String() string {
	switch {
	case s.all:
		return "any path"
	case len(s.entries) == 0:
		return "no path"
	}
	shown := s.Entries()
	for i, e := range shown {
		if strings.ContainsFunc(e, func(c rune) bool {
			return !strconv.IsPrint(c) || strings.ContainsRune(` ,()"`, c)
		}) {
			shown[i] = strconv.Quote(e)
		}
	}
	return strings.Join(shown, ", ")
}
