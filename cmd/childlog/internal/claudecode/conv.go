package claudecode

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// conv is one conversation of a file: the session that it becomes, what the
// store has of it, and what the reports need.
type conv struct {
	f     *file
	place *importer.Place
	agent string // its id, "" for a session or a sidechain without one
	chain bool   // a sidechain of a session's file
	notes *notes
	look  *importer.Lookout

	// How it was delegated, as far as it can be told; see run.place.
	by       *conv // in whose log the call is, nil if that was not read
	call     call
	callMark string
	shape    string        // background or foreground, "" if that is not known
	born     importer.Fact // the permission mode in which it was made
	row      *eventlog.Row // of a file that has not changed: what the store has

	effective importer.Effective

	lines     int64 // whole ones of its own
	known     int64 // of those, what the store has
	last      int64 // the line of the file where it ends
	events    int64 // that the store lacks
	added     int64 // by this run
	inherited int64
	beyond    int    // events that the store has beyond the file's end
	head      uint64 // of the session in the store, 0 if there is none
	source    uint64 // lines of the file, by the store's last import/source
}

// eventID is the id of an event of a line. A conversation counts its own
// lines; the events of one line are parts of it.
func (c *conv) eventID(n int64, i int, sum [32]byte) uuid.UUID {
	part := importer.PartLine
	if i > 0 {
		part = importer.PartMore + i - 1
	}
	return importer.EventID(c.place.Session, n, byte(part), sum)
}

// needsSource: something was added, or an earlier run ended between its lines
// and its last word.
func (c *conv) needsSource() bool {
	return c.lines > c.known || c.source < uint64(c.last) || c.newSidecar()
}

// newSidecar: the store does not have the sidecar, or has another.
func (c *conv) newSidecar() bool {
	side := c.side()
	return len(side.raw) > 0 && c.look.Sidecar() != eventlog.Hash(side.sum)
}

// compare finds a line's events in the store. seqs are theirs, or those that
// they will get.
func (c *conv) compare(ctx context.Context, line importer.Line, out *mapped, seqs []uint64) ([]uint64, error) {
	c.lines, c.last = c.lines+1, line.Number
	seqs = seqs[:0]
	if c.lines == 1 {
		seq, there, err := c.look.Seq(ctx, importer.EventID(c.place.Session, 1, importer.PartCreated, c.place.Sum))
		if err != nil {
			return nil, changedAt(seq, err)
		}
		c.notes.created(seq)
		if !there {
			c.events++
		}
	}
	for i := range out.events {
		seq, there, err := c.look.Seq(ctx, c.eventID(c.lines, i, line.Sum))
		if err == nil && i > 0 && there != (c.known == c.lines) { // a line is written whole
			err = importer.ErrChanged
		}
		if err != nil {
			return nil, changedAt(seq, err)
		}
		if there {
			c.known = c.lines
		} else {
			c.events++
		}
		seqs = append(seqs, seq)
	}
	return seqs, nil
}

// changedError is importer.ErrChanged with its place.
type changedError struct{ seq uint64 }

func (e changedError) Error() string {
	return fmt.Sprintf("this line is not the one that was imported as seq %d; the file was rewritten, and nothing of it is added", e.seq)
}

func changedAt(seq uint64, err error) error {
	if errors.Is(err, importer.ErrChanged) {
		return changedError{seq}
	}
	return err
}

// rest looks at what the store has beyond the file.
func (c *conv) rest(ctx context.Context) (err error) {
	if c.beyond, c.head, c.source, err = c.look.Rest(ctx); err != nil {
		return err
	}
	if c.needsSource() {
		c.events++
	}
	if c.newSidecar() {
		c.events++
	}
	return nil
}

// side is the sidecar of the conversation, an empty one if it has none.
func (c *conv) side() *sidecar {
	if c.chain {
		return &noSidecar
	}
	return &c.f.h.side
}

var noSidecar = sidecar{depth: -1}

// delegated: somebody's call made this conversation.
func (c *conv) delegated() bool { return c.chain || c.f.h.delegated() }

// agentType is what kind of agent it is: by its sidecar, else by its call.
func (c *conv) agentType() string {
	if c.row != nil && c.row.Provider != System {
		return c.row.Provider
	}
	if t := c.side().agentType; t != "" {
		return t
	}
	return c.call.agentType
}

// title is what it is called in lists.
func (c *conv) title() string {
	if c.row != nil {
		return c.row.Label
	}
	if c.f.h.compact && !c.chain {
		return "compaction"
	}
	if c.delegated() {
		for _, t := range []string{c.side().description, c.call.description} {
			if t != "" {
				return t
			}
		}
	}
	return c.notes.title()
}
