package eventlog

import "slices"

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

// notePurge takes a session/purged. Frames of such a session that are still
// there are those of an interrupted purge, which the new store goes on with.
func (s *salvager) notePurge(ev *Event) {
	if p, err := ParsePurged(ev); err == nil && ev.Inherited == nil && ev.Session == StoreSession {
		s.purged = append(s.purged, p.Session)
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

// unfinished are the purged sessions of which frames were found.
func (s *salvager) unfinished() (ids []byte) {
	for _, id := range s.purged {
		if s.logs[id] != nil {
			ids = append(ids, id[:]...)
		}
	}
	return ids
}

// absentContent is a content that was not found.
func absentContent(ev *Event) redactedEvent {
	return redactedEvent{ev.Seq, ev.Commitment, ev.ContentLen}
}
