package policy

import (
	"slices"
	"strings"
)

// DenyKind says who stated a deny rule, as the session that has it sees it. The
// strings are recorded in logs.
type DenyKind string

// The kinds. An operator rule keeps its kind all the way down; what a request
// added is the parent's for the next generation.
const (
	DenyOperator DenyKind = "operator" // bound to the store, for every descendant
	DenyParent   DenyKind = "parent"   // handed down
	DenyRequest  DenyKind = "request"  // stated for this session itself
)

var denyKinds = []DenyKind{DenyOperator, DenyParent, DenyRequest}

// DenyEntry is one deny rule and where it was first stated.
type DenyEntry struct {
	// Pattern is a tool name, or the beginning of one and a final "*", as
	// written. It is compared with A to Z lowered. "*" alone denies every tool.
	Pattern string
	Kind    DenyKind
	Origin  Origin // the event to cite: the rule set, the receipt, the profile
}

// DenyList is the union of all deny rules over a session. It never shrinks on
// the way down, and it beats every allow. The zero value denies nothing. It is
// an immutable value.
type DenyList struct {
	entries []DenyEntry // in the order they were added; operator rules may stand anywhere
}

// NewDenyList returns the rules that one statement makes. Wrapped [ErrInvalid]
// for an empty pattern, a wildcard other than one final "*", a character that
// no tool name has, or more than 1,024 patterns. A rule that could not match
// anything must not look as if it did.
func NewDenyList(kind DenyKind, origin Origin, patterns ...string) (DenyList, error) {
	entries := make([]DenyEntry, len(patterns))
	for i, p := range patterns {
		entries[i] = DenyEntry{Pattern: p, Kind: kind, Origin: origin}
	}
	return DenyListOf(entries...)
}

// DenyListOf returns the list of the given rules, as [DenyList.Entries] had
// them. Errors as NewDenyList, and for an unknown kind.
func DenyListOf(entries ...DenyEntry) (DenyList, error) {
	if len(entries) > maxNames {
		return DenyList{}, invalid("denied tools: got %d patterns, want at most %d", len(entries), maxNames)
	}
	for _, e := range entries {
		if err := checkLevel("denied tools: kind", e.Kind, denyKinds); err != nil {
			return DenyList{}, err
		}
		if err := checkPattern(e.Pattern); err != nil {
			return DenyList{}, err
		}
	}
	return DenyList{}.Union(DenyList{entries: entries}), nil
}

func checkPattern(p string) error {
	body, wild := strings.CutSuffix(p, "*")
	switch {
	case p == "":
		return invalid("denied tools: got an empty pattern, want a tool name")
	case strings.ContainsAny(body, "*?[]{}!"):
		return invalid("denied tools: got %s, want no wildcard but one final *", quoted(p))
	case wild && body == "":
		return nil
	}
	return checkName("denied tools", body)
}

// Union returns the rules of both, those of d first. A pattern that both state
// stays with the one that had it first, since that is the event to cite, but an
// operator's rule is kept beside anyone else's: it is cited before them.
func (d DenyList) Union(o DenyList) DenyList {
	if len(o.entries) == 0 {
		return d
	}
	return DenyList{entries: union(d.entries, o.entries, DenyEntry.key)}
}

// union returns both lists without what adds nothing: of items with one key the
// first. It looks keys up and does not search: a hostile list may have a
// thousand rules, and a derivation forms many unions.
func union[T any, K comparable](a, b []T, key func(T) K) []T {
	seen := make(map[K]bool, len(a)+len(b))
	all := make([]T, 0, len(a)+len(b))
	for _, list := range [][]T{a, b} {
		for _, item := range list {
			if k := key(item); !seen[k] {
				seen[k] = true
				all = append(all, item)
			}
		}
	}
	return all
}

// denyKey is the same for rules of which the second adds nothing.
type denyKey struct {
	pattern  string
	operator bool
}

func (e DenyEntry) key() denyKey { return denyKey{lowerASCII(e.Pattern), e.Kind == DenyOperator} }

// Inherited returns the list as a child has it: what its parent's request
// stated is now the parent's.
func (d DenyList) Inherited() DenyList {
	i := DenyList{entries: slices.Clone(d.entries)}
	for n := range i.entries {
		if i.entries[n].Kind == DenyRequest {
			i.entries[n].Kind = DenyParent
		}
	}
	return i
}

// Entries returns a copy of the rules in the order they were added, never nil.
func (d DenyList) Entries() []DenyEntry {
	return append(make([]DenyEntry, 0, len(d.entries)), d.entries...)
}

// Len returns the number of rules.
func (d DenyList) Len() int { return len(d.entries) }

// Covers reports whether d has every pattern of o: whether it can stand below
// it. It compares what is written, not what it matches.
func (d DenyList) Covers(o DenyList) bool {
	have := make(map[string]bool, len(d.entries))
	for _, e := range d.entries {
		have[lowerASCII(e.Pattern)] = true
	}
	return !slices.ContainsFunc(o.entries, func(e DenyEntry) bool { return !have[lowerASCII(e.Pattern)] })
}

// patterns returns the patterns lowered, sorted, each once.
func (d DenyList) patterns() []string {
	p := make([]string, len(d.entries))
	for i, e := range d.entries {
		p[i] = lowerASCII(e.Pattern)
	}
	slices.Sort(p)
	return slices.Compact(p)
}
