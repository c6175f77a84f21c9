package policy

import (
	"slices"
	"strconv"
	"strings"
)

// maxRoots is the most roots a value may state: enough for any workspace, and
// a bound on the quadratic work of comparing two sets.
const maxRoots = 256

// Roots is the complete set of writable directories of a [Sandbox]; whatever
// lies below one of them is writable too. It has two forms without directories,
// and they must differ in every encoding:
//
//   - absent, the zero value: the roots were not recorded. It stands for an
//     unknown directory, equal to itself, containing no known path and disjoint
//     from every recorded root;
//   - recorded and empty, from RootsOf(): nothing is writable.
//
// To encode, write [Roots.List] if [Roots.Recorded], else leave the field out;
// to decode, use [RootsOf] if the field is there, else the zero value.
type Roots struct {
	// dirs is cleaned, sorted, and free of duplicates and nesting, which makes
	// equal sets equal slices; nil is absent. Never modified once built, so
	// copies may share it.
	dirs []string
}

// RootsOf returns the recorded set of the given directories, at most 256 and
// each at most 4,096 bytes, counted as given. Each must be absolute, posix
// (/...) or windows (C:\... or C:/...), whatever system this runs on, and is
// cleaned lexically; a root below another is dropped. Wrapped [ErrInvalid] if a
// path is relative, holds "..", control characters or invalid UTF-8, or a
// windows name that windows itself would rewrite.
func RootsOf(paths ...string) (Roots, error) {
	if len(paths) > maxRoots {
		return Roots{}, invalid("roots: got %d, want at most %d", len(paths), maxRoots)
	}
	sorted := make([]string, 0, len(paths))
	for _, p := range paths {
		clean, err := cleanPath(p)
		if err != nil {
			return Roots{}, err
		}
		sorted = append(sorted, clean)
	}
	// A directory sorts before everything below it, but not right before it:
	// /a, /a-b, /a/b. So each is held against all that were kept.
	slices.Sort(sorted)
	r := Roots{dirs: make([]string, 0, len(sorted))}
	for _, dir := range sorted {
		if !r.covers(dir) {
			r.dirs = append(r.dirs, dir)
		}
	}
	return r, nil
}

// Recorded reports whether the set was stated at all; false for the zero value.
func (r Roots) Recorded() bool { return r.dirs != nil }

// List returns a copy of the directories in byte order: nil when absent,
// non-nil and empty when nothing is writable.
func (r Roots) List() []string {
	if r.dirs == nil {
		return nil
	}
	return append(make([]string, 0, len(r.dirs)), r.dirs...)
}

// Contains reports whether path is one of the roots or lies below one, by its
// text alone. A path that RootsOf would refuse is contained nowhere.
func (r Roots) Contains(path string) bool {
	clean, err := cleanPath(path)
	return err == nil && r.covers(clean)
}

// covers is Contains for a cleaned path.
func (r Roots) covers(clean string) bool {
	return slices.ContainsFunc(r.dirs, func(dir string) bool { return contains(dir, clean) })
}

// Meet returns the directories that lie in both sets: the deeper of each nested
// pair. Disjoint sets meet in the recorded empty set, never in a working
// directory that neither names. Absent meets absent in absent, and anything
// recorded in the empty set.
//
// Two large sets can meet in more than 256 roots. Such a value decides
// correctly; [Sandbox.Validate] refuses to have it recorded.
func (r Roots) Meet(o Roots) Roots {
	if !r.Recorded() && !o.Recorded() {
		return r
	}
	both := []string{}
	for _, a := range r.dirs {
		for _, b := range o.dirs {
			switch {
			case contains(a, b):
				both = append(both, b)
			case contains(b, a):
				both = append(both, a)
			}
		}
	}
	// No pair repeats or nests: that would need nesting within r or within o.
	slices.Sort(both)
	return Roots{dirs: both}
}

// Equal reports whether both permit the same paths and are recorded alike.
func (r Roots) Equal(o Roots) bool {
	return r.Recorded() == o.Recorded() && slices.Equal(r.dirs, o.dirs)
}

// text renders the set for people. A path is quoted when it could hide or forge
// a part of the line: bidi and other invisible characters, separators, quotes.
func (r Roots) text() string {
	switch {
	case !r.Recorded():
		return "roots not recorded"
	case len(r.dirs) == 0:
		return "no roots"
	}
	shown := r.List()
	for i, dir := range shown {
		if strings.ContainsFunc(dir, func(c rune) bool {
			return !strconv.IsPrint(c) || strings.ContainsRune(` ,()"`, c)
		}) {
			shown[i] = strconv.Quote(dir)
		}
	}
	return strings.Join(shown, ", ")
}
