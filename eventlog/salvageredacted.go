package eventlog

import (
	"bytes"
	"slices"

	"github.com/google/uuid"

	"childlog/eventlog/pagecheck"
)

// A redaction stays one through a salvage: a content that its log says was
// erased is no loss, and is not brought back from a page where it still lies.

// noteMarker takes a content/redacted.
func (s *salvager) noteMarker(ev *Event) {
	m, err := parseMarker(ev)
	if err != nil || ev.Inherited != nil {
		return // the copy is as damaged, for a check to report
	}
	if s.redacted == nil {
		s.redacted = map[Ref]redactedEvent{}
	}
	for _, r := range m.events {
		s.redacted[Ref{ev.Session, r.seq}] = r
	}
}

// settleRedacted tells, once all logs were read, the contents that were lost
// from those that were erased.
func (s *salvager) settleRedacted() error {
	absent := map[Ref]bool{}
	for id, l := range s.logs {
		for _, c := range l.absent {
			at := Ref{id, c.seq}
			absent[at] = true
			if said, ok := s.redacted[at]; ok && said == c {
				s.report.Redacted++
				continue
			}
			l.contents = addSeq(l.contents, c.seq)
			l.count++
		}
	}
	if !slices.ContainsFunc(sortedRefs(s.redacted), func(at Ref) bool { return !absent[at] }) {
		return nil
	}
	logs, gaps := s.logs, s.gaps
	err := s.readLogs(stageLogs, func(_ *salvagedLog, f *foundFrame, ev *Event) error {
		said, ok := s.redacted[Ref{ev.Session, ev.Seq}]
		if !ok || absent[Ref{ev.Session, ev.Seq}] || !ev.HasContent || said.commitment != ev.Commitment {
			return nil
		}
		index := uint32(ev.Seq - s.frameFirst)
		at, _ := slices.BinarySearchFunc(s.chunks, foundChunk{position: f.position, index: index}, cmpChunk)
		for ; at < len(s.chunks) && s.chunks[at].position == f.position && s.chunks[at].index == index; at++ {
			s.chunks[at].whole = false
		}
		s.report.Contents--
		s.report.Redacted++
		return nil
	})
	s.logs, s.gaps = logs, gaps
	return err
}

// buryCondemned finishes a purge that was interrupted: what it recorded and did
// not come to is taken over as tombstones.
func (s *salvager) buryCondemned() error {
	ids := map[uuid.UUID]bool{}
	_, err := pagecheck.WalkLeaves(s.ctx, s.r, s.size, bucketMeta, func(l pagecheck.Leaf) error {
		for _, e := range l.Entries {
			for raw := e.Value; bytes.Equal(e.Key, keyPurging) && len(raw) >= 16; raw = raw[16:] {
				ids[uuid.UUID(raw[:16])] = true
			}
		}
		return nil
	})
	if isStop(err) || len(ids) == 0 {
		return s.ctx.Err()
	}
	kept := s.frames[:0]
	var raw []byte
	for i := range s.frames {
		f := s.frames[i]
		if raw, err = s.readFrame(&f, raw); err != nil {
			return err
		}
		if g, ok := guessFrame(raw); ok && ids[g.session] {
			if leaf, _, err := frameLeaf(raw, nil); err == nil {
				s.tombs = append(s.tombs, foundTomb{position: f.position, value: leaf[:]})
				continue
			}
		}
		kept = append(kept, f)
	}
	s.frames = kept
	slices.SortFunc(s.tombs, func(a, b foundTomb) int { return cmpUint(a.position, b.position) })
	return nil
}

// absentContent is a content that was not found.
func absentContent(ev *Event) redactedEvent {
	return redactedEvent{ev.Seq, ev.Commitment, ev.ContentLen}
}
