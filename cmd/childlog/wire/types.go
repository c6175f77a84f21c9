package wire

import "childlog/eventlog"

// Type describes an event type.
type Type struct {
	Type    string   `json:"type"`
	Version int      `json:"version"`
	Closed  bool     `json:"closed"`
	Policy  bool     `json:"policy"`
	Strict  bool     `json:"strict"` // facts that are not listed are refused
	Facts   []Fact   `json:"facts"`
	Writers []Writer `json:"writers"`
}

// Fact describes one fact of a type.
type Fact struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Optional bool   `json:"optional"`
}

// Writer says who writes a type, and as which sources.
type Writer struct {
	By      string   `json:"by"`
	Sources []string `json:"sources"`
}

// TypeOf converts a description.
func TypeOf(t *eventlog.TypeInfo) Type {
	out := Type{Type: t.Type, Version: t.Version, Closed: t.Closed, Policy: t.Policy, Strict: t.Strict, Facts: []Fact{}, Writers: []Writer{}}
	for _, f := range t.Facts {
		out.Facts = append(out.Facts, Fact(f))
	}
	for _, w := range t.Writers {
		out.Writers = append(out.Writers, Writer(w))
	}
	return out
}
