package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"sync"

	"childlog/cmd/childlog/internal/redact"
	"childlog/cmd/childlog/internal/review"
	"childlog/eventlog"
)

// Options says what a page is about beside its reviews.
type Options struct {
	Store  string         // id of the store; "": not stated
	Filter *redact.Filter // nil: nothing is replaced, and the page says so
	Counts redact.Counts  // of the filter, added to; may be nil
}

//go:embed page.css
var style string

//go:embed page.html
var markup string

// pages is parsed when the first page is made: most commands make none.
var pages = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Funcs(words()).Parse(markup)) })

// document is what the template shows.
type document struct {
	Title   string
	Policy  string // Content-Security-Policy
	Style   template.CSS
	Store   string
	Reviews []*entry
	Filter  string // what the filter did
}

// entry is one review and its place among the others.
type entry struct {
	*review.Review
	Level int // of indentation in the contents, at most mostLevels
}

const mostLevels = 5

// Write writes the reviews as one page, children below the parent that delegated
// to them, where that is one of the reviews. The same reviews give the same bytes: a
// page asks no clock. Memory grows with what the reviews list.
//
// Errors: ErrInvalid without a review; a canceled context; what w returns.
func Write(ctx context.Context, w io.Writer, reviews []review.Review, o Options) error {
	if len(reviews) == 0 {
		return fmt.Errorf("%w: a page: want at least one review, got none", eventlog.ErrInvalid)
	}
	c := cleaner{filter: o.Filter, counts: redact.Counts{}}
	sum := sha256.Sum256([]byte(style))
	d := document{Style: template.CSS(style), Store: c.text(o.Store),
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"}
	for i := range reviews {
		if err := ctx.Err(); err != nil {
			return err
		}
		d.Reviews = append(d.Reviews, &entry{Review: c.review(&reviews[i])})
	}
	d.Reviews = forest(d.Reviews)
	d.Title = "Review of " + title(d.Reviews[0].Review)
	if n := len(d.Reviews); n > 1 {
		d.Title = fmt.Sprintf("Review of %d sessions", n)
	}
	d.Filter = "No filter was applied: secrets that the log holds in labels and names stand here as they are."
	if o.Filter != nil {
		d.Filter = "Before this page was written, " + c.counts.Summary() + "."
	}
	var out bytes.Buffer // a template that fails half way writes nothing
	if err := pages().Execute(&out, d); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	if o.Counts != nil {
		o.Counts.Add(c.counts)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// forest puts the children of each session behind it, and keeps the order
// otherwise. Imported logs may name each other in a circle: those come last.
func forest(list []*entry) []*entry {
	at, below := map[string]bool{}, map[string][]*entry{}
	for _, e := range list {
		at[e.Session.Session] = true
	}
	var todo []*entry
	for _, e := range list {
		if p := deref(e.Session.Parent); at[p] {
			below[p] = append(below[p], e)
		} else {
			todo = append(todo, e)
		}
	}
	out, seen := make([]*entry, 0, len(list)), map[*entry]bool{}
	for _, first := range append(todo, list...) {
		for stack := []*entry{first}; len(stack) > 0; {
			e := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if seen[e] {
				continue
			}
			seen[e] = true
			out = append(out, e)
			children := below[e.Session.Session]
			for i := len(children) - 1; i >= 0; i-- {
				if child := children[i]; !seen[child] {
					child.Level = min(e.Level+1, mostLevels)
					stack = append(stack, child)
				}
			}
		}
	}
	return out
}

// title names a session: its label, or what it is.
func title(r *review.Review) string {
	if r.Session.Label != "" {
		return r.Session.Label
	}
	return r.Session.Kind + " " + short(r.Session.Session)
}
