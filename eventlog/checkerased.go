package eventlog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
)

// erasures is what a check knows of what was erased, and of what says so. The
// marker of a content comes behind it in the journal, so both are compared at
// the end. Memory: about 100 bytes for each content that was erased.
type erasures struct {
	missing map[Ref]missingContent // contents that are not there
	stated  map[Ref]statedContent  // contents that a content/redacted says were erased
	purged  map[uuid.UUID]Purged   // by session/purged
	tombs   uint64                 // positions with a tombstone
	last    uint64                 // position of the last one
}

type missingContent struct {
	position   uint64
	commitment Hash
	length     uint64
	err        error
}

type statedContent struct {
	marker, position uint64
	foreign          bool // an imported log's word: where the content is there it was not meant, and is no lie
	redactedEvent
}

// note takes what an event says of erasures.
func (e *erasures) note(ev *Event, add func(Finding)) {
	bad := func(err error) {
		if err != nil {
			add(Finding{Kind: FindErased, Session: ev.Session, Seq: ev.Seq, Position: ev.Position, Detail: reasonOf(err)})
		}
	}
	switch {
	case ev.Inherited != nil:
	case ev.Type == TypeContentRedacted:
		m, err := parseMarker(ev)
		bad(err)
		for _, r := range m.events {
			if e.stated == nil {
				e.stated = map[Ref]statedContent{}
			}
			e.stated[Ref{ev.Session, r.seq}] = statedContent{ev.Seq, ev.Position, ev.Source == SourceImport || ev.Imported, r}
		}
	case ev.Type == TypeSessionPurged && ev.Session == StoreSession:
		p, err := ParsePurged(ev)
		bad(err)
		if e.purged == nil {
			e.purged = map[uuid.UUID]Purged{}
		}
		e.purged[p.Session] = p
	}
}

// miss notes a content that is not there.
func (e *erasures) miss(ev *Event) {
	if e.missing == nil {
		e.missing = map[Ref]missingContent{}
	}
	e.missing[Ref{ev.Session, ev.Seq}] = missingContent{ev.Position, ev.Commitment, ev.ContentLen, ev.ContentErr}
}

// erased compares what is gone with what was said to be erased.
func (c *checker) erased() error {
	e := &c.erasures
	for _, at := range sortedRefs(e.missing) {
		m := e.missing[at]
		said, ok := e.stated[at]
		if ok && said.commitment == m.commitment && said.length == m.length {
			c.report.Redacted++
			delete(e.stated, at)
			continue
		}
		if !ok && errors.Is(m.err, ErrWithheld) {
			c.report.Withheld++
			continue
		}
		f := Finding{Kind: FindContent, Session: at.Session, Seq: at.Seq, Position: m.position, Detail: reasonOf(m.err)}
		if ok {
			f.Detail = fmt.Sprintf("missing; content/redacted at seq %d speaks of %d bytes with commitment %x, the event of %d with %x", said.marker, said.length, said.commitment[:8], m.length, m.commitment[:8])
			delete(e.stated, at)
		}
		c.add(f)
	}
	for _, at := range sortedRefs(e.stated) {
		if said := e.stated[at]; c.concerns(at.Session) && !said.foreign {
			c.add(Finding{Kind: FindErased, Session: at.Session, Seq: at.Seq, Position: said.position, Detail: fmt.Sprintf("content/redacted at seq %d says that its content was erased; it is still there, or there never was one", said.marker)})
		}
	}
	if c.o.Session != uuid.Nil {
		return nil // the rest is about the store
	}
	var frames uint64
	for _, p := range e.purged {
		frames += p.Frames
	}
	c.report.Purged, c.report.Tombstones = uint64(len(e.purged)), e.tombs
	pending := false
	err := c.s.journal.view(func(tx *bolt.Tx) error {
		if meta := tx.Bucket(bucketMeta); meta != nil {
			pending = meta.Get(keyPurging) != nil
		}
		return nil
	})
	switch {
	case err != nil:
	case pending:
		c.add(Finding{Kind: FindErased, Detail: "a purge was interrupted: what it recorded is not gone yet; the next command that writes finishes it"})
	case e.tombs > frames:
		c.add(Finding{Kind: FindErased, Position: e.last, Detail: fmt.Sprintf("%d positions have a tombstone, session/purged accounts for %d of them", e.tombs, frames)})
	case e.tombs < frames:
		c.add(Finding{Kind: FindErased, Detail: fmt.Sprintf("session/purged tells of %d frames, %d positions have a tombstone", frames, e.tombs)})
	}
	return err
}

func sortedRefs[V any](set map[Ref]V) []Ref {
	return slices.SortedFunc(maps.Keys(set), func(a, b Ref) int {
		return cmp.Or(slices.Compare(a.Session[:], b.Session[:]), cmp.Compare(a.Seq, b.Seq))
	})
}
