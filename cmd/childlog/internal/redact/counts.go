package redact

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Counts says how often each detector replaced something, by its name. The nil
// map counts nothing and can be passed.
type Counts map[string]uint64

func (c Counts) add(name string) {
	if c != nil {
		c[name]++
	}
}

// Add adds the counts of another filtering.
func (c Counts) Add(more Counts) {
	for name, n := range more {
		c[name] += n
	}
}

// Total is the number of replacements.
func (c Counts) Total() (n uint64) {
	for _, k := range c {
		n += k
	}
	return n
}

// Names lists the detectors that replaced something, sorted.
func (c Counts) Names() []string { return slices.Sorted(maps.Keys(c)) }

// Summary says what was done, on one line for people. It claims nothing about
// what is left.
func (c Counts) Summary() string {
	if c.Total() == 0 {
		return "the detectors found nothing that they know; what they do not know stays"
	}
	parts := make([]string, 0, len(c))
	for _, name := range c.Names() {
		parts = append(parts, fmt.Sprintf("%s %d", name, c[name]))
	}
	return fmt.Sprintf("the detectors found and replaced %d (%s); what they do not know stays", c.Total(), strings.Join(parts, ", "))
}
