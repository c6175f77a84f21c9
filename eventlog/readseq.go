package eventlog

import (
	"fmt"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
)

// source is where frames come from: what is staged, over the store, or a
// reader's transaction.
type source interface {
	frames(e *entry, seq uint64, limit int) ([]framePos, error)
	frame(position uint64) ([]byte, error)                 // a copy, nil if there is none
	peek(position uint64, fn func(raw []byte) error) error // no copy: raw ends with the call
	doubt(row *Row) error                                  // a lost frame may have been this session's newest
}

// seqEvent is an event with its index in its frame, by which its content is found.
type seqEvent struct {
	Event
	index uint32
}

// readSeqs reads the events from..to exactly; a hole is an error.
func readSeqs(e *entry, src source, from, to uint64) ([]seqEvent, error) {
	var out []seqEvent
	for seq := from; seq <= to; {
		list, err := src.frames(e, seq, 64)
		if err != nil {
			return nil, err
		}
		before := seq
		for _, p := range list {
			if p.first > to {
				break
			}
			events, err := readFrame(src, e.row.Session, p)
			if err != nil {
				return nil, err
			}
			for _, ev := range events {
				if ev.Seq >= seq && ev.Seq <= to {
					if ev.Seq != seq {
						return nil, &CorruptError{Session: e.row.Session, Seq: seq, Reason: "missing event"}
					}
					out = append(out, ev)
					seq++
				}
			}
		}
		if seq == before {
			return nil, &CorruptError{Session: e.row.Session, Seq: seq, Reason: "missing event"}
		}
	}
	return out, nil
}

// frameOf reads the events of the frame that holds seq.
func frameOf(e *entry, src source, seq uint64) ([]seqEvent, error) {
	list, err := src.frames(e, seq, 1)
	if err != nil {
		return nil, err
	}
	if len(list) > 0 && list[0].first <= seq {
		events, err := readFrame(src, e.row.Session, list[0])
		if err != nil || seq <= events[len(events)-1].Seq {
			return events, err
		}
	}
	return nil, &CorruptError{Session: e.row.Session, Seq: seq, Reason: "missing event"}
}

// readFrame reads all events of a frame, checking that it is the session's
// frame that the index promised.
func readFrame(src source, session uuid.UUID, p framePos) ([]seqEvent, error) {
	raw, err := src.frame(p.pos)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, damagedFrame(session, p, "frame is missing")
	}
	f, err := promised(raw, session, p)
	if err != nil {
		return nil, err
	}
	var d decoder
	events, err := d.events(nil, &f, p.pos)
	if err != nil {
		return nil, damagedFrame(session, p, err.Error())
	}
	out := make([]seqEvent, len(events))
	for i := range out {
		out[i] = seqEvent{Event: events[i], index: uint32(i)}
	}
	return out, nil
}

func hashAfter(e *entry, src source, seq uint64) (Hash, uint64, error) {
	events, err := readSeqs(e, src, seq, seq)
	if err != nil {
		return Hash{}, 0, err
	}
	return events[0].Hash, events[0].Position, nil
}

// storedSalt reads the salt of an event's content.
func storedSalt(tx *bolt.Tx, ev *Event, index uint32) (Salt, error) {
	value, err := getCopy(tx.Bucket(bucketContents), contentKey(ev.Position, index, 0))
	if err != nil {
		return Salt{}, err
	}
	if value == nil {
		return Salt{}, errContentMissing
	}
	_, salt, err := decodeChunk(nil, value, true, min(chunkSize, int(ev.ContentLen)))
	return salt, err
}

// headFrame reads the envelope of the session's last frame, which a checksum
// covers; its events are not decoded.
func headFrame(e *entry, src source) (frame, error) {
	damaged := func(reason string) (frame, error) {
		return frame{}, &CorruptError{Session: e.row.Session, Seq: e.row.Head, Reason: reason}
	}
	list, err := src.frames(e, e.row.Head, 1)
	if err != nil {
		return frame{}, err
	}
	if len(list) == 0 {
		return damaged("the index has no frame for the head")
	}
	var f frame
	var bad error
	err = src.peek(list[0].pos, func(raw []byte) error {
		f, bad = decodeFrame(raw)
		f.headers = nil
		return nil
	})
	switch {
	case err != nil:
		return frame{}, err
	case bad != nil:
		return damaged(bad.Error())
	case f.session != e.row.Session || f.last() != e.row.Head:
		return damaged("the index and the head frame disagree")
	}
	return f, nil
}

// policyChain reads a session's policy-bearing events by following the links
// from the head: the head frame names the last one, each names the one
// before. It never asks derived state what the policy is, only where a frame
// stands, and a frame that is not where it should be is found by scanning.
func policyChain(e *entry, src source) ([]Event, error) {
	unreadable := func(err error) error {
		return fmt.Errorf("%w: session %s: %w", ErrPolicyUnreadable, e.row.Session, err)
	}
	if len(e.row.Damage) > 0 {
		d := e.row.Damage[0]
		return nil, unreadable(&CorruptError{Session: e.row.Session, Seq: d.From, Reason: d.Reason})
	}
	if err := src.doubt(&e.row); err != nil {
		return nil, unreadable(err)
	}
	f, err := headFrame(e, src)
	if err != nil {
		return nil, unreadable(err)
	}
	var out []Event
	var read []seqEvent // of the frame read last: a delegation's events share one
	for seq := f.lastPolicy; seq != 0; {
		if len(read) == 0 || seq < read[0].Seq {
			if read, err = frameOf(e, src, seq); err != nil {
				return nil, unreadable(err)
			}
		}
		ev := read[seq-read[0].Seq].Event
		if !ev.PolicyBearing || ev.PrevPolicy >= seq {
			return nil, unreadable(&CorruptError{Session: ev.Session, Seq: seq, Type: ev.Type, Reason: "policy link broken"})
		}
		out = append(out, ev)
		seq = ev.PrevPolicy
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	if len(out) == 0 || out[0].Seq != 1 || out[0].Type != TypeSessionCreated {
		return nil, unreadable(&CorruptError{Session: e.row.Session, Seq: 1, Reason: "the policy chain does not reach session/created"})
	}
	return out, nil
}
