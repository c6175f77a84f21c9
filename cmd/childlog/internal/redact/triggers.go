package redact

// finder finds all of a set of literals in one pass: the automaton of Aho and
// Corasick (Efficient string matching, 1975), ASCII letters folded. It is
// immutable once built.
type finder struct {
	class  [256]uint8 // bytes that no literal has are class 0
	width  int
	next   []uint16  // state*width + class
	found  [][]int32 // by state: which literals end here
	length []int     // of each literal
}

// newFinder builds the automaton of the literals, which are lower case and not
// empty.
func newFinder(literals []string) *finder {
	f := &finder{width: 1}
	for _, l := range literals {
		for i := 0; i < len(l); i++ {
			if f.class[l[i]] == 0 {
				f.class[l[i]] = uint8(f.width)
				f.width++
			}
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		f.class[c-'a'+'A'] = f.class[c]
	}
	grow := func() int {
		f.next = append(f.next, make([]uint16, f.width)...)
		f.found = append(f.found, nil)
		return len(f.found) - 1
	}
	grow()
	for id, l := range literals {
		state := 0
		for i := 0; i < len(l); i++ {
			at := state*f.width + int(f.class[l[i]])
			if f.next[at] == 0 {
				f.next[at] = uint16(grow())
			}
			state = int(f.next[at])
		}
		f.found[state] = append(f.found[state], int32(id))
		f.length = append(f.length, len(l))
	}
	f.link()
	return f
}

// link adds, breadth first, the transitions that leave a literal for the
// longest other one that its end begins.
func (f *finder) link() {
	fail := make([]int, len(f.found))
	var queue []int
	for c := range f.width {
		if s := int(f.next[c]); s != 0 {
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		f.found[state] = append(f.found[state], f.found[fail[state]]...)
		for c := range f.width {
			at, back := state*f.width+c, f.next[fail[state]*f.width+c]
			if s := int(f.next[at]); s != 0 {
				fail[s] = int(back)
				queue = append(queue, s)
			} else {
				f.next[at] = back
			}
		}
	}
}

// each calls hit with every occurrence, in the order of their ends.
func (f *finder) each(t []byte, hit func(literal, start int)) {
	state := 0
	for i, b := range t {
		state = int(f.next[state*f.width+int(f.class[b])])
		for _, id := range f.found[state] {
			hit(int(id), i+1-f.length[id])
		}
	}
}
