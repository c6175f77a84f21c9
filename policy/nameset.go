package policy

import "slices"

// NameSet is an optional allow-list: of the providers a session may run on, or
// of the capabilities it holds. It has two forms without names, and they must
// differ in every encoding:
//
//   - absent, the zero value: no list was stated, so it limits nothing;
//   - recorded and empty, from NameSetOf(): it admits nothing.
//
// To encode, write [NameSet.List] if [NameSet.Recorded], else leave the field
// out. It is an immutable value.
type NameSet struct {
	names []string // sorted, without duplicates; nil is absent
}

// NameSetOf returns the recorded set of the given names, which are those of
// [CheckToolName]. Wrapped [ErrInvalid] for any other name or more than 1,024.
func NameSetOf(names ...string) (NameSet, error) {
	if len(names) > maxNames {
		return NameSet{}, invalid("names: got %d, want at most %d", len(names), maxNames)
	}
	for _, n := range names {
		if err := checkName("name", n); err != nil {
			return NameSet{}, err
		}
	}
	sorted := append(make([]string, 0, len(names)), names...)
	slices.Sort(sorted)
	return NameSet{names: slices.Compact(sorted)}, nil
}

// Recorded reports whether a list was stated.
func (s NameSet) Recorded() bool { return s.names != nil }

// List returns a copy of the names in byte order: nil when absent, non-nil and
// empty when nothing is admitted.
func (s NameSet) List() []string {
	if s.names == nil {
		return nil
	}
	return append(make([]string, 0, len(s.names)), s.names...)
}

// Admits reports whether the set admits the name, compared exactly.
func (s NameSet) Admits(name string) bool {
	_, found := slices.BinarySearch(s.names, name)
	return found || !s.Recorded()
}

// Meet returns what both admit; the absent set is neutral.
func (s NameSet) Meet(o NameSet) NameSet {
	switch {
	case !s.Recorded():
		return o
	case !o.Recorded():
		return s
	}
	both := NameSet{names: []string{}}
	for _, n := range s.names {
		if o.Admits(n) {
			both.names = append(both.names, n)
		}
	}
	return both
}

// Within reports whether s admits no name that o does not.
func (s NameSet) Within(o NameSet) bool {
	if !o.Recorded() {
		return true
	}
	return s.Recorded() && !slices.ContainsFunc(s.names, func(n string) bool { return !o.Admits(n) })
}

// Equal reports whether both are recorded alike and admit the same.
func (s NameSet) Equal(o NameSet) bool {
	return s.Recorded() == o.Recorded() && slices.Equal(s.names, o.names)
}
