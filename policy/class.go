package policy

import (
	"crypto/sha256"
	"slices"
	"strings"
)

// Class says what the calls of a tool do, as far as policy can know from its
// name. The strings are recorded in logs.
type Class string

// The classes. They are kinds and not levels: none is within another.
const (
	ClassRead     Class = "read"     // looks, or touches the conversation alone
	ClassEdit     Class = "edit"     // changes the files that its arguments name
	ClassShell    Class = "shell"    // runs commands, or feeds and controls running ones
	ClassNetwork  Class = "network"  // reaches a network, directly or by a server
	ClassDelegate Class = "delegate" // starts children, or talks to them
	ClassOpaque   Class = "opaque"   // nobody knows
)

var classes = []Class{ClassOpaque, ClassRead, ClassEdit, ClassShell, ClassNetwork, ClassDelegate}

// ParseClass returns the class named s, compared exactly, else a wrapped
// [ErrInvalid].
func ParseClass(s string) (Class, error) { return parseLevel("tool class", s, classes) }

// Tool is a tool name and what is known about it.
type Tool struct {
	Given     string // as in the call
	Canonical string // Given with A to Z lowered: what deny rules compare
	Class     Class

	// Known reports whether the table or the palette has the name exactly as
	// given. A call of a tool that is not known is held to all that opaque
	// calls are held to, whatever else its class says.
	Known bool
}

// PaletteEntry is one tool that a child's manifest declares.
type PaletteEntry struct {
	Name  string
	Class Class
}

// Palette is the table of built-in names ([ClassTableVersion]) and what a
// manifest adds to it. The zero value is the table alone. It is an immutable
// value.
type Palette struct {
	entries []PaletteEntry   // sorted by name, without duplicates
	folded  map[string]Class // by name with A to Z lowered; never modified once built
}

// NewPalette returns the table with the given tools added. Wrapped [ErrInvalid]
// for a name that [CheckToolName] refuses, an unknown class, more than 1,024
// entries, or a name that already has another class, be it in the table or in
// the list, letter case apart: a manifest comes from whoever is to be confined
// by it, and "bash is a reading tool" must not be for it to say.
func NewPalette(entries ...PaletteEntry) (Palette, error) {
	if len(entries) > maxNames {
		return Palette{}, invalid("palette: got %d tools, want at most %d", len(entries), maxNames)
	}
	p := Palette{entries: slices.Clone(entries)}
	slices.SortFunc(p.entries, func(a, b PaletteEntry) int { return strings.Compare(a.Name, b.Name) })
	p.entries = slices.Compact(p.entries)
	p.folded = make(map[string]Class, len(p.entries))
	for _, e := range p.entries {
		if err := CheckToolName(e.Name); err != nil {
			return Palette{}, err
		}
		if err := checkLevel("palette: class of "+e.Name, e.Class, classes); err != nil {
			return Palette{}, err
		}
		name := lowerASCII(e.Name)
		_, foldedTable := classTables()
		have, ok := foldedTable[name]
		if !ok {
			have, ok = p.folded[name]
		}
		if ok && have != e.Class {
			return Palette{}, invalid("palette: class of %s: got %s, want %s", e.Name, e.Class, have)
		}
		p.folded[name] = e.Class
	}
	return p, nil
}

// Entries returns a copy of what the manifest added, in byte order of the
// names, never nil.
func (p Palette) Entries() []PaletteEntry {
	return append(make([]PaletteEntry, 0, len(p.entries)), p.entries...)
}

// Digest identifies what the manifest added: SHA-256 over a line
// "name class\n" for each entry in byte order. Names hold no spaces.
func (p Palette) Digest() [32]byte {
	var b strings.Builder
	for _, e := range p.entries {
		b.WriteString(e.Name + " " + string(e.Class) + "\n")
	}
	return sha256.Sum256([]byte(b.String()))
}

// Classify returns what is known about a tool name. Wrapped [ErrInvalid] for
// one that [CheckToolName] refuses: such a call is malformed, not opaque.
//
// A name that differs from a known one in letter case alone, such as BASH, is
// some other tool, and may well be the same. So it is not Known, and has the
// class of its look-alike on top; of a look-alike that only reads it has
// nothing, since that would be a favour.
func (p Palette) Classify(name string) (Tool, error) {
	if err := CheckToolName(name); err != nil {
		return Tool{}, err
	}
	t := Tool{Given: name, Canonical: lowerASCII(name), Class: ClassOpaque}
	classTable, foldedTable := classTables()
	if c, ok := classTable[name]; ok {
		t.Class, t.Known = c, true
		return t, nil
	}
	if i, ok := slices.BinarySearchFunc(p.entries, name, func(e PaletteEntry, n string) int { return strings.Compare(e.Name, n) }); ok {
		t.Class, t.Known = p.entries[i].Class, p.entries[i].Class != ClassOpaque
		return t, nil
	}
	c, ok := foldedTable[t.Canonical]
	if !ok {
		c, ok = p.folded[t.Canonical]
	}
	if ok && c != ClassRead {
		t.Class = c
	}
	return t, nil
}
