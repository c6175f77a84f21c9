package eventlog

import (
	"container/heap"
	"maps"
	"slices"

	"github.com/google/uuid"
)

// lostRanges lists the positions below the end that have neither a frame nor a
// tombstone.
func (s *salvager) lostRanges() []LostPositions {
	var out []LostPositions
	next, f, t := uint64(0), 0, 0
	for next < s.end {
		for f < len(s.frames) && s.frames[f].position < next {
			f++
		}
		for t < len(s.tombs) && s.tombs[t].position < next {
			t++
		}
		at := s.end
		if f < len(s.frames) {
			at = min(at, s.frames[f].position)
		}
		if t < len(s.tombs) {
			at = min(at, s.tombs[t].position)
		}
		if at > next {
			out = append(out, LostPositions{From: next, To: at - 1})
		}
		next = at + 1
	}
	return out
}

// maxNamed bounds for how many lost positions it is worked out whose they were.
const maxNamed = 1 << 20

// nameByChain works out whose lost frames were. A frame is of one session, and
// each gap in a log takes one frame or more from between the frames around it.
// Where there are as many gaps as lost positions, every one of the positions is
// a gap's, so no other session lost anything there: all of those go on. Where
// there are more positions than gaps, any session may have lost its end, and
// the positions stay nobody's.
func (s *salvager) nameByChain(lost []LostPositions) {
	var total uint64
	for _, l := range lost {
		if total += l.To - l.From + 1; total > maxNamed {
			return
		}
	}
	var free []uint64
	satisfied := map[uuid.UUID][]uint64{}
	for _, l := range lost {
		for p := l.From; p <= l.To; p++ {
			if n, ok := s.named[p]; ok {
				satisfied[n.session] = append(satisfied[n.session], p)
			} else {
				free = append(free, p)
			}
		}
	}
	var open []span
	for i := range s.gaps {
		g := &s.gaps[i]
		if slices.ContainsFunc(satisfied[g.session], func(p uint64) bool { return p < g.before && (!g.has || p > g.after) }) {
			continue // a frame that is named already may be all of it
		}
		if t, _ := slices.BinarySearchFunc(s.tombs, g.after, func(t foundTomb, p uint64) int { return cmpUint(t.position, p) }); t < len(s.tombs) && s.tombs[t].position < g.before {
			continue // what is missing may have been purged
		}
		from := 0
		if g.has {
			from, _ = slices.BinarySearch(free, g.after+1)
		}
		to, _ := slices.BinarySearch(free, g.before)
		if from < to {
			open = append(open, span{from, to - 1, g})
		}
	}
	slices.SortFunc(open, func(a, b span) int { return a.from - b.from })
	for i := 0; i < len(open); {
		k, end := i+1, open[i].to
		for k < len(open) && open[k].from <= end {
			end = max(end, open[k].to)
			k++
		}
		if k-i == end-open[i].from+1 {
			s.match(open[i:k], free)
		}
		i = k
	}
}

// span is a gap that can take the lost positions from..to, as indices.
type span struct {
	from, to int
	gap      *gap
}

// match gives each of the positions to one of as many gaps. Which of them gets
// which makes no difference, as long as it lies inside.
func (s *salvager) match(spans []span, free []uint64) {
	names := map[uint64]lostName{}
	var h spanHeap
	for at, i := spans[0].from, 0; len(names) < len(spans); at++ {
		for ; i < len(spans) && spans[i].from <= at; i++ {
			heap.Push(&h, spans[i])
		}
		if h.Len() == 0 {
			return
		}
		sp := heap.Pop(&h).(span)
		if sp.to < at {
			return
		}
		names[free[at]] = lostName{sp.gap.session, sp.gap.from, "chain"}
	}
	maps.Copy(s.named, names)
}

// spanHeap gives the span that ends first.
type spanHeap []span

func (h spanHeap) Len() int           { return len(h) }
func (h spanHeap) Less(i, j int) bool { return h[i].to < h[j].to }
func (h spanHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *spanHeap) Push(x any)        { *h = append(*h, x.(span)) }
func (h *spanHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// stateLoss fills in the statement what was lost, by position and by session.
func (s *salvager) stateLoss(lost []LostPositions) {
	rep := s.report
	ends := map[uuid.UUID]uint64{} // sessions that lost their end
	var nobody uint64
	anybody := false
	for _, l := range lost {
		for p := l.From; ; {
			// One range as long as the same is known of it.
			n, named := s.named[p]
			to := p
			for to < l.To {
				m, ok := s.named[to+1]
				if ok != named || m != n {
					break
				}
				if to++; !ok && len(s.named) == 0 {
					to = l.To
				}
			}
			part := LostPositions{From: p, To: to}
			if named {
				session := n.session
				part.Session, part.Seq, part.Known = &session, n.first, n.known
				if log := s.logs[session]; log != nil && log.head < n.first {
					ends[session] = n.first
				}
			} else {
				nobody, anybody = to, true
			}
			rep.Lost = append(rep.Lost, part)
			if to == l.To {
				break
			}
			p = to + 1
		}
	}
	for _, id := range sortedIDs(s.logs) {
		l := s.logs[id]
		if from, ok := ends[id]; ok {
			l.lost = append(l.lost, SeqLoss{From: from, Policy: "unknown"})
		}
		if len(l.lost) > 0 || l.count > 0 || l.odd {
			loss := SessionLoss{Session: id, Head: l.head, Lost: l.lost, Contents: l.contents, Count: l.count, Inconsistent: l.odd}
			if loss.Lost == nil {
				loss.Lost = []SeqLoss{}
			}
			if loss.Contents == nil {
				loss.Contents = []SeqRange{}
			}
			rep.Damaged = append(rep.Damaged, loss)
		}
		if len(l.lost) == 0 && !l.odd && (rep.TailDoubt != "" || anybody && l.lastPos < nobody) {
			rep.InDoubt++
		}
	}
	rep.Sessions = uint64(len(s.logs))
	own := s.logs[StoreSession]
	rep.RulesInDoubt = rep.TailDoubt != "" || own == nil && anybody || own != nil && (len(own.lost) > 0 || own.odd || anybody && own.lastPos < nobody)
}
