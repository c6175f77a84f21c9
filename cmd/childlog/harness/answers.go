package harness

import "childlog/cmd/childlog/wire"

// Bounds of one answer. Larger limits are lowered to these.
const (
	MaxListed = 1000 // sessions of a list
	MaxPage   = 1000 // events of a page, which also ends at about 4 MiB of contents
	MaxFound  = 1000 // events of a search
)

// Items is an answer of several: what the command prints a line each. Next
// is the After of the following page, "" at the end and where there are no pages.
type Items[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitzero"`
}

// LogPage is a page of a log. Holes are ranges of seqs that can't be read; they
// and the events together have every seq from the page's first to its last that
// the request asks for. Next is the From of the following page, 0 at the end.
type LogPage struct {
	Session string        `json:"session"`
	Head    uint64        `json:"head"`
	Events  []wire.Event  `json:"events"`
	Holes   []wire.Damage `json:"holes"`
	Next    uint64        `json:"next"`
}

// Found is the answer of a search. More: there is more than was asked for.
// Unread lists what could not be looked through, so that nothing found is no
// proof that nothing is there.
type Found struct {
	Items  []wire.Hit `json:"items"`
	More   bool       `json:"more"`
	Unread []Unread   `json:"unread"`
}

// Unread is a part of a log that could not be searched.
type Unread struct {
	Session string `json:"session"`
	wire.Damage
}

// Head is where a log or the store ends now: a follow after this cursor yields
// what comes from here on.
type Head struct {
	Cursor string `json:"cursor"`
}
