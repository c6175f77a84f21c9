package policy

import (
	"slices"
	"strconv"
	"strings"
)

// maxToolName is the longest tool name, in bytes; maxNames the most names one
// list may state. Both keep a list well inside the 64 KiB that the facts of an
// event hold.
const (
	maxToolName = 128
	maxNames    = 1024
)

// ToolState tells the forms of [Tools] apart. The strings are what a reader is
// shown; an encoding uses a missing field, a null and a list.
type ToolState string

// The three forms.
const (
	StateAbsent ToolState = "absent" // not stated: inherit
	StateNull   ToolState = "null"   // stated as null: inherit
	StateList   ToolState = "list"   // only these; an empty list is none at all
)

// Tools is the tool scope of a profile. Absent and null both inherit what the
// parent has, and stay apart because a receipt repeats what was asked; a list
// permits its names and nothing else. A list that was read as absent would turn
// "nothing" into "everything", so the three must differ in every encoding:
//
//   - to encode, look at [Tools.State]: leave the field out, write null, or
//     write [Tools.List], an empty one included;
//   - to decode, use [ToolsAbsent], [ToolsNull] or [ToolsList].
//
// The zero value is absent. It restricts no name and grants nothing by itself;
// what a tool may do is decided by the grant. A Tools is an immutable value.
type Tools struct {
	null  bool
	names []string // nil unless a list; never modified once built
}

// ToolsAbsent returns the scope of a profile that states none.
func ToolsAbsent() Tools { return Tools{} }

// ToolsNull returns the scope of a profile that states null.
func ToolsNull() Tools { return Tools{null: true} }

// ToolsList returns the scope of exactly the given names, in this order, each
// kept once; without names it permits nothing. Wrapped [ErrInvalid] for a name
// that [CheckToolName] refuses or more than 1,024 names.
func ToolsList(names ...string) (Tools, error) {
	if len(names) > maxNames {
		return Tools{}, invalid("tools: got %d names, want at most %d", len(names), maxNames)
	}
	t := Tools{names: make([]string, 0, len(names))}
	seen := make(map[string]bool, len(names))
	for _, n := range names {
		if err := CheckToolName(n); err != nil {
			return Tools{}, err
		}
		if !seen[n] {
			seen[n] = true
			t.names = append(t.names, n)
		}
	}
	return t, nil
}

// State returns the form of t.
func (t Tools) State() ToolState {
	switch {
	case t.names != nil:
		return StateList
	case t.null:
		return StateNull
	}
	return StateAbsent
}

// Inherits reports whether t leaves the names to the parent: absent or null.
func (t Tools) Inherits() bool { return t.names == nil }

// List returns a copy of the names in the order stated: nil unless t is a list,
// non-nil and empty when it permits nothing.
func (t Tools) List() []string {
	if t.names == nil {
		return nil
	}
	return append(make([]string, 0, len(t.names)), t.names...)
}

// Allows reports whether the scope admits the name: exactly as written, letter
// case included, since an allow must not admit what only looks like its tool.
// A name that [CheckToolName] refuses is never allowed.
func (t Tools) Allows(name string) bool {
	if t.names == nil {
		return CheckToolName(name) == nil
	}
	return slices.Contains(t.names, name)
}

// Derive returns the scope of a child that states child under a parent with t:
//
//	parent   child     result
//	list     list      the child's names that the parent has, in the child's order
//	list     inherits  the parent's list
//	inherits any       the child's, as stated
func (t Tools) Derive(child Tools) Tools {
	switch {
	case t.Inherits():
		return child
	case child.Inherits():
		return t
	}
	both := Tools{names: make([]string, 0, len(child.names))}
	parents := t.admits()
	for _, n := range child.names {
		if parents(n) {
			both.names = append(both.names, n)
		}
	}
	return both
}

// IsNothing reports whether t is a list without names.
func (t Tools) IsNothing() bool { return t.names != nil && len(t.names) == 0 }

// Within reports whether t admits no name that o does not.
func (t Tools) Within(o Tools) bool {
	if o.Inherits() {
		return true
	}
	others := o.admits()
	return !t.Inherits() && !slices.ContainsFunc(t.names, func(n string) bool { return !others(n) })
}

// admits returns Allows of a list for many tool names: two long lists are not
// compared name by name.
func (t Tools) admits() func(name string) bool {
	const short = 16
	if len(t.names) <= short {
		return func(name string) bool { return slices.Contains(t.names, name) }
	}
	set := make(map[string]bool, len(t.names))
	for _, n := range t.names {
		set[n] = true
	}
	return func(name string) bool { return set[name] }
}

// Equal reports whether both were stated alike: the same form, and the same
// names in the same order.
func (t Tools) Equal(o Tools) bool { return t.State() == o.State() && slices.Equal(t.names, o.names) }

// String renders t on one line: "absent", "null", "none" or the names.
func (t Tools) String() string {
	switch {
	case t.Inherits():
		return string(t.State())
	case len(t.names) == 0:
		return "none"
	}
	return strings.Join(t.names, ", ")
}

// CheckToolName returns nil for a tool name, 1 to 128 of the characters A to Z,
// a to z, 0 to 9, "_", ".", ":", "/" and "-", else a wrapped [ErrInvalid] that
// names the first bad character. Letters of other alphabets, invisible
// characters and spaces are among the bad ones, however much the name looks
// like another.
func CheckToolName(name string) error { return checkName("tool name", name) }

func checkName(what, name string) error {
	if n := len(name); n == 0 || n > maxToolName {
		return invalid("%s: got %d bytes, want 1 to %d", what, n, maxToolName)
	}
	for i, r := range name {
		if !isNameRune(r) {
			return invalid("%s: got %s, want letters, digits and _.:/- only, not %s at byte %d", what, quoted(name), strconv.QuoteRuneToASCII(r), i)
		}
	}
	return nil
}

func isNameRune(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return true
	}
	return r == '_' || r == '.' || r == ':' || r == '/' || r == '-'
}
