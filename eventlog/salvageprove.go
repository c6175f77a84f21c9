package eventlog

import (
	"slices"

	"github.com/google/uuid"
)

// prove takes frames from free pages where the chain commits to them: the frame
// behind a gap names the hash of the one before it, which no other bytes have.
// It needs a reason why the tree has not got them: that it is damaged, or that
// it has them and the bytes are. Going backwards, one proves the next.
func (s *salvager) prove() error {
	if len(s.stale) == 0 || len(s.gaps) == 0 || !s.tombsSound {
		return nil
	}
	type end struct {
		session uuid.UUID
		last    uint64
	}
	needs := map[end]gap{}
	for _, g := range s.gaps {
		needs[end{g.session, g.to}] = g
	}
	inTree := map[uint64]bool{}
	for _, b := range s.broken {
		inTree[b.position] = true
	}
	slices.SortStableFunc(s.stale, func(a, b foundFrame) int { return cmpUint(b.position, a.position) })
	var rest, found []foundFrame
	var raw, scratch []byte
	var err error
	for i := range s.stale {
		f := s.stale[i]
		taken := len(found) > 0 && found[len(found)-1].position == f.position
		if f.position >= s.end || taken || len(s.at(f.position)) > 0 || s.journalSound && !inTree[f.position] {
			if f.position >= s.end {
				rest = append(rest, f)
			}
			continue
		}
		if raw, err = s.readFrame(&f, raw); err != nil {
			return err
		}
		var r *frameReader
		var after Hash
		if r, after, scratch, err = hashFrame(raw, scratch); err != nil {
			continue
		}
		g, ok := needs[end{r.session, r.last()}]
		if !ok || g.prev != after || f.position >= g.before || g.has && f.position <= g.after || r.first < g.from {
			s.report.Unproven++
			continue
		}
		found = append(found, f)
		delete(needs, end{r.session, r.last()})
		if r.first > g.from {
			g.to, g.before, g.prev = r.first-1, f.position, r.prev
			needs[end{g.session, g.to}] = g
		}
	}
	s.stale = rest
	s.frames = append(s.frames, found...)
	slices.SortStableFunc(s.frames, func(a, b foundFrame) int { return cmpUint(a.position, b.position) })
	return nil
}

// hashFrame decodes a whole frame and returns the chain hash after it.
func hashFrame(raw, scratch []byte) (*frameReader, Hash, []byte, error) {
	r, err := newFrameReader(raw)
	if err != nil {
		return nil, Hash{}, scratch, err
	}
	hash := r.prev
	var ev Event
	for {
		header, err := r.next(&ev)
		if err != nil || header == nil {
			return r, hash, scratch, err
		}
		hash, scratch = chainNext(hash, header, scratch)
	}
}

// findTail lists the frames behind the end that go on from what was found. They
// may be of a commit that was lost with its meta page, or of one that never was.
// With two sound meta pages there is nothing to find: what is there was never
// committed.
func (s *salvager) findTail() error {
	if s.report.TailDoubt == "" {
		s.stale = nil
		return nil
	}
	slices.SortStableFunc(s.stale, func(a, b foundFrame) int { return cmpUint(a.position, b.position) })
	heads := map[uuid.UUID]salvagedLog{}
	next := s.end
	var raw, scratch []byte
	var err error
	for i := 0; i < len(s.stale); {
		f := s.stale[i]
		k := i + 1
		for k < len(s.stale) && s.stale[k].position == f.position && s.stale[k].same(f) {
			k++
		}
		alone := k == len(s.stale) || s.stale[k].position != f.position
		i = k
		if f.position != next || !alone {
			if f.position >= next {
				break
			}
			continue
		}
		if raw, err = s.readFrame(&f, raw); err != nil {
			return err
		}
		var r *frameReader
		var after Hash
		if r, after, scratch, err = hashFrame(raw, scratch); err != nil {
			break
		}
		h, ok := heads[r.session]
		if l := s.logs[r.session]; !ok && l != nil {
			h, ok = *l, true
		}
		if !ok {
			h.hash = Genesis(r.session)
		}
		if r.first != h.head+1 || r.prev != h.hash {
			break
		}
		heads[r.session] = salvagedLog{head: r.last(), hash: after}
		s.tail = append(s.tail, f)
		s.report.Tail = append(s.report.Tail, UnprovenTail{Position: f.position, Session: r.session, First: r.first, Last: r.last(), Included: s.opts.IncludeTail})
		next++
	}
	s.stale = nil
	return nil
}
