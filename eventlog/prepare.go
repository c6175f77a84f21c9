package eventlog

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// prepare validates events and does all work that needs no lock: ids, salts,
// commitments, compression. It runs in the caller's goroutine; the committer
// only assigns seqs and hashes.
func (s *Store) prepare(via Entry, events []NewEvent) ([]pending, error) {
	if len(events) == 0 {
		return nil, invalidf("a batch needs at least one event")
	}
	if err := s.checkBatch(events); err != nil {
		return nil, err
	}
	out := make([]pending, len(events))
	salts := make([]byte, len(Salt{})*len(events))
	if _, err := rand.Read(salts); err != nil {
		return nil, err
	}
	now := s.opts.Clock().UnixNano()
	for i := range events {
		p := &out[i]
		copy(p.salt[:], salts[i*len(Salt{}):])
		if err := s.prepareEvent(via, &events[i], p, now); err != nil {
			return nil, inBatch(events, i, err)
		}
	}
	return out, nil
}

// checkBatch looks at sizes and ids before any work is done for a content.
func (s *Store) checkBatch(events []NewEvent) error {
	total := 0
	var seen map[uuid.UUID]bool
	for i := range events {
		if err := checkLimit("content in bytes", len(events[i].Content), s.limits.Content); err != nil {
			return inBatch(events, i, err)
		}
		total += len(events[i].Content)
		id := events[i].ID
		if id == uuid.Nil || len(events) == 1 {
			continue
		}
		if seen[id] {
			return inBatch(events, i, invalidf("id %s is given twice", id))
		}
		if seen == nil {
			seen = make(map[uuid.UUID]bool, len(events))
		}
		seen[id] = true
	}
	return checkLimit("content of a batch in bytes", total, s.limits.BatchContent)
}

func inBatch(events []NewEvent, i int, err error) error {
	if len(events) == 1 {
		return err
	}
	return fmt.Errorf("event %d: %w", i+1, err)
}

func (s *Store) prepareEvent(via Entry, ev *NewEvent, p *pending, now int64) error {
	if err := CheckType(ev.Type); err != nil {
		return err
	}
	p.typ, p.source, p.ignorable, p.facts, p.time = ev.Type, ev.Source, ev.Ignorable, bytes.Clone(ev.Facts), now
	if ev.Inherited != nil { // copied like the facts: a caller that stops waiting has its memory back
		ref := *ev.Inherited
		p.inherited = &ref
	}
	if p.source == 0 {
		p.source = via.defaultSource(ev.Type)
	}
	if !via.allows(ev.Type, p.source) {
		if via == entryHarness && IsClosed(ev.Type) {
			return fmt.Errorf("%w: type %s is written by its own call only", ErrUnauthorized, ev.Type)
		}
		return fmt.Errorf("%w: this call does not write %s with source %s", ErrUnauthorized, ev.Type, p.source)
	}
	if _, ok := coreTypes()[ev.Type]; IsClosed(ev.Type) && !ok {
		return fmt.Errorf("%w: %s is of a closed family and not one of its types", ErrUnknownType, ev.Type)
	}
	if ev.Inherited != nil && via != EntryImport && via != EntryDelegation {
		return fmt.Errorf("%w: only seed copies and imports are inherited", ErrUnauthorized)
	}
	if !ev.Time.IsZero() {
		if via != EntryImport && via != EntryDelegation {
			return fmt.Errorf("%w: the store sets the time", ErrUnauthorized)
		}
		if y := ev.Time.UTC().Year(); y < 1970 || y > 2261 {
			return invalidf("time: want a year of 1970 to 2261, got %d", y)
		}
		p.time = ev.Time.UnixNano()
	}
	if p.id = ev.ID; p.id == uuid.Nil {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		p.id = id
	}
	if err := checkLimit("facts in bytes", len(ev.Facts), s.limits.Facts); err != nil {
		return err
	}
	if err := checkFacts(ev.Type, ev.Facts); err != nil {
		return err
	}
	if via != EntryImport && ev.Facts.Str("claimed") != "" {
		return fmt.Errorf("%w: facts/claimed is for importers", ErrUnauthorized)
	}
	p.version = coreTypes()[ev.Type].version
	p.policy = isPolicyBearing(ev.Type) && ev.Inherited == nil
	switch p.media = ev.Media; p.media {
	case MediaNone:
		if len(ev.Content) > 0 {
			return invalidf("content without a media kind")
		}
		return nil
	case MediaJSON:
		if err := CheckJSON(ev.Content); err != nil {
			return fmt.Errorf("content: %w", err)
		}
	case MediaText:
		if !utf8.Valid(ev.Content) {
			return invalidf("content: media text: not valid UTF-8; use octets")
		}
	case MediaOctets:
	default:
		return invalidf("media: want json, text or octets, got %d", ev.Media)
	}
	p.content = ev.Content
	p.commitment = commit(p.salt, p.content)
	p.chunks = encodeContent(p.content, p.salt)
	return nil
}

// event renders a pending event as it will be read back.
func (p *pending) event(session uuid.UUID, seq, prevPolicy, position uint64) *Event {
	ev := new(Event)
	p.fill(ev, session, seq, prevPolicy, position)
	return ev
}

// fill is event into one that is there.
func (p *pending) fill(ev *Event, session uuid.UUID, seq, prevPolicy, position uint64) {
	if p.foreign != nil {
		*ev = p.foreign.event
		ev.Position, ev.Content = position, p.content
		return
	}
	*ev = Event{Session: session, Seq: seq, ID: p.id, Type: p.typ, Version: p.version, Time: time.Unix(0, p.time).UTC(), Source: p.source,
		Ignorable: p.ignorable, PolicyBearing: p.policy, PrevPolicy: prevPolicy, Inherited: p.inherited, HasContent: p.media != MediaNone,
		Media: p.media, ContentLen: uint64(len(p.content)), Commitment: p.commitment, Facts: p.facts, Position: position, Content: p.content}
}
