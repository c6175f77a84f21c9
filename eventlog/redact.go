package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// RedactRequest is an order to erase contents of a session.
type RedactRequest struct {
	Order
	Session uuid.UUID
	Seqs    []uint64
	DryRun  bool // only say what would be erased

	// Exact erases what is named and nothing that holds the same text: for a
	// caller that decides of each event by itself what is to stay. Where the
	// record of a decision stays, guesses at the arguments of its call can be
	// tried against it.
	Exact bool
}

// Redacted is what a redaction did, or would do. Sessions begins with the named
// one; the others hold copies in their seeds: forks of it, and who adopted it.
type Redacted struct {
	Sessions []RedactedLog
	Also     []SameText // not erased: may hold the same text, for a person to look at
	DryRun   bool
}

// RedactedLog is what was erased of one session.
type RedactedLog struct {
	Session uuid.UUID
	Markers []uint64        // seqs of the content/redacted that say so; empty if nothing was left to erase
	Erased  []ErasedContent // in the order of their seqs
	Passed  []PassedContent // what was asked for and not erased
}

// ErasedContent is one content that is gone, and its salt with it.
type ErasedContent struct {
	Seq    uint64
	Type   string
	Length uint64 // bytes
	Why    string // one of the Why constants
}

// PassedContent is an event of which nothing was erased.
type PassedContent struct {
	Seq uint64
	Why string
}

// Why a content was erased, or was not.
const (
	WhyNamed = "named"
	WhySame  = "holds the same text" // a decision or a question on the same call; the receipt beside the label it repeats
	WhyCopy  = "seed copy"

	WhyRedacted = "redacted before"
	WhyEmpty    = "has no content"
	WhyMissing  = "missing without a record: damage, not erased here"
)

// Count sums what was erased: contents and their bytes.
func (r *Redacted) Count() (contents int, bytes uint64) {
	for i := range r.Sessions {
		for _, e := range r.Sessions[i].Erased {
			contents++
			bytes += e.Length
		}
	}
	return contents, bytes
}

// Redact erases contents with their salts and records that in each log it
// touches, in one commit. Headers and facts stay, and with them every hash and
// every policy: facts are never erased, which is why free text is no fact.
//
// A text may stand in several events, and an order to erase it means all of
// them. Erased with the named ones are: in each session that was forked from
// here or adopted this one, whoever's child it is, the seed copies of them, and
// the copies of those; the decision on a call and the question about
// it, whose contents repeat the arguments and hold the salt of the commitments
// to them in their facts (with a salt left behind a short argument could be
// tried out against those); the receipt beside the session/created whose label
// it repeats, and the other way round. What else may hold the text, such as the
// result of the call or the receipt of the child that it made, is listed in Also
// and left to a person.
//
// What can't be reached, and a caller should say so: backups and exports made
// before, the files that evidence was imported from, and copies in the hands of
// others. In store.db and index.db the bytes
// lie in free pages until Compact. A retry of an append whose content is gone
// still finds its original.
//
// Redacting twice is redacting once. Sessions that an importer wrote and closed
// ones can be redacted. A log of another store can't: it takes no event of this
// one, and a content that is gone without a marker is damage. It is redacted
// where it came from, and purged here. A legal hold on any session that would lose something refuses all of
// it.
//
// Errors: ErrNotFound (a seq), ErrPurged, ErrHeld (a *HeldError), ErrEvidence (a
// log of another store), ErrInvalid,
// ErrTooLarge (more than 10,000 frames to write), ErrCorrupt (a damaged log) and
// those of a commit.
func (s *Store) Redact(ctx context.Context, r RedactRequest) (Redacted, error) {
	if err := r.check(); err != nil {
		return Redacted{}, err
	}
	if len(r.Seqs) == 0 {
		return Redacted{}, invalidf("redact: no seq is named")
	}
	if err := s.passage.enter(ctx, erasers); err != nil {
		return Redacted{}, err
	}
	defer s.passage.leave(erasers)
	named := map[uint64]string{}
	for _, seq := range r.Seqs {
		named[seq] = WhyNamed
	}
	var also []SameText
	if !r.Exact {
		var err error
		if also, err = s.sameTexts(ctx, r.Session, named); err != nil {
			return Redacted{}, err
		}
	}
	var out Redacted
	_, err := s.erase(ctx, func(v *View) ([]Batch, error) {
		p, c := redaction{v: v, r: &r}, newCopies(v, r.Session, named)
		if !r.Exact {
			if err := c.find(); err != nil {
				return nil, err
			}
		}
		for _, session := range c.order {
			if err := p.one(session, c.seqs[session]); err != nil {
				return nil, err
			}
		}
		out = Redacted{Sessions: p.logs, Also: append(slices.Clip(also), c.also...), DryRun: r.DryRun}
		if r.DryRun {
			return nil, nil
		}
		return p.batches, nil
	})
	if err != nil {
		return Redacted{}, err // what was laid out was not done
	}
	return out, nil
}

// redaction lays out a redaction inside the commit.
type redaction struct {
	v       *View
	r       *RedactRequest
	logs    []RedactedLog
	batches []Batch
}

// one lays out what goes of one session.
func (p *redaction) one(session uuid.UUID, seqs map[uint64]string) error {
	e, err := p.v.st.lookup(session)
	if err != nil {
		return err
	}
	if e == nil {
		return p.v.st.absent(session)
	}
	row := &e.row
	if row.Imported { // as the commit would, so that a dry run says so too
		return notForeign(row, EntryErase)
	}
	if session != StoreSession {
		if held, err := p.v.heldBy(session); err != nil || held != nil {
			return errorOr(err, held)
		}
	}
	before := map[uint64]bool{}
	if err := eachMarker(e, p.v.st, func(m *marker) bool {
		for _, r := range m.events {
			before[r.seq] = before[r.seq] || seqs[r.seq] != ""
		}
		return true
	}); err != nil {
		return err
	}
	log := RedactedLog{Session: session}
	var refs []contentRef
	var entries []redactedEvent
	var frame []seqEvent // the one read last
	for _, seq := range sortedSeqs(seqs) {
		if seq == 0 || seq > row.Head {
			return fmt.Errorf("%w: session %s has no seq %d, its head is %d", ErrNotFound, session, seq, row.Head)
		}
		if len(frame) == 0 || seq > frame[len(frame)-1].Seq {
			if frame, err = frameOf(e, p.v.st, seq); err != nil {
				return err
			}
		}
		ev := &frame[seq-frame[0].Seq]
		switch _, err := p.v.st.salt(&ev.Event, ev.index); {
		case !ev.HasContent:
			log.Passed = append(log.Passed, PassedContent{seq, WhyEmpty})
		case before[seq]:
			log.Passed = append(log.Passed, PassedContent{seq, WhyRedacted})
		case errors.Is(err, errContentMissing):
			log.Passed = append(log.Passed, PassedContent{seq, WhyMissing})
		default:
			refs = append(refs, contentRef{ev.Position, ev.index, chunkCount(ev.ContentLen)})
			entries = append(entries, redactedEvent{seq, ev.Commitment, ev.ContentLen})
			log.Erased = append(log.Erased, ErasedContent{Seq: seq, Type: ev.Type, Length: ev.ContentLen, Why: seqs[seq]})
		}
	}
	if len(entries) > 0 {
		b := Batch{Session: session, Expect: At(row.Head), erase: refs}
		order, prev := p.r.Order, row.Redacted
		for part := range slices.Chunk(entries, maxRedacted) {
			ev, err := order.event(TypeContentRedacted, markerFacts(prev, part))
			if err != nil {
				return err
			}
			b.Events = append(b.Events, ev)
			prev = row.Head + uint64(len(b.Events))
			log.Markers = append(log.Markers, prev)
			order.Reason = "" // said once a log
		}
		p.batches = append(p.batches, b)
	}
	p.logs = append(p.logs, log)
	return nil
}

// errorOr is err, or the hold that was found.
func errorOr(err error, held *HeldError) error {
	if err == nil && held != nil {
		err = held
	}
	return err
}

func sortedSeqs(set map[uint64]string) []uint64 {
	out := make([]uint64, 0, len(set))
	for seq := range set {
		out = append(out, seq)
	}
	slices.Sort(out)
	return out
}
