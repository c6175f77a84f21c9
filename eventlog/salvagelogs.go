package eventlog

import (
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// salvagedLog is what is known of one session while the frames are read in
// order.
type salvagedLog struct {
	head       uint64
	hash       Hash
	lastPos    uint64
	lastPolicy uint64
	lost       []SeqLoss
	contents   []SeqRange
	count      uint64          // contents lost
	absent     []redactedEvent // contents not found, before it is settled which of them were erased
	odd        bool            // the frames that are left do not fit together
}

// gap is a range of seqs of a session that is lost, and the frames around it.
type gap struct {
	session  uuid.UUID
	from, to uint64
	after    uint64 // position of the frame before the gap, if has
	has      bool
	before   uint64 // position of the frame behind it
	prev     Hash   // what that frame says of the chain before it
}

// readLogs reads every frame that was found, in order of positions, and notes
// what each session lacks. visit, if not nil, gets each event with its frame.
func (s *salvager) readLogs(stage string, visit func(l *salvagedLog, f *foundFrame, ev *Event) error) error {
	s.logs, s.gaps = map[uuid.UUID]*salvagedLog{}, nil
	var raw, scratch []byte
	broken := 0
	ev := new(Event)
	for i := range s.frames {
		f := &s.frames[i]
		if i%1024 == 0 {
			if err := s.ctx.Err(); err != nil {
				return err
			}
		}
		s.progress(stage, 1)
		for ; broken < len(s.broken) && s.broken[broken].position < f.position; broken++ {
			s.nameLost(&s.broken[broken])
		}
		var err error
		if raw, err = s.readFrame(f, raw); err != nil {
			return err
		}
		r, err := newFrameReader(raw)
		if err != nil {
			return corruptf(f.position, "the file changed while it was read: %v", err)
		}
		l := s.logs[r.session]
		if l == nil {
			l = new(salvagedLog)
			s.logs[r.session] = l
		}
		s.noteGap(l, r, f)
		s.frameFirst = r.first
		hash := r.prev
		firstPolicy := true
		for {
			header, err := r.next(ev)
			if err != nil { // a sound checksum over what is no frame
				l.odd = true
				s.report.Problems = append(s.report.Problems, fmt.Sprintf("position %d: %v", f.position, err))
				break
			}
			if header == nil {
				break
			}
			hash, scratch = chainNext(hash, header, scratch)
			ev.Position = f.position
			if ev.PolicyBearing {
				if firstPolicy {
					settlePolicy(l, ev.PrevPolicy)
				}
				firstPolicy, l.lastPolicy = false, ev.Seq
			}
			if visit != nil {
				if err := visit(l, f, ev); err != nil {
					return err
				}
			}
		}
		if firstPolicy {
			settlePolicy(l, r.lastPolicy)
		}
		l.head, l.hash, l.lastPos = r.last(), hash, f.position
	}
	for ; broken < len(s.broken); broken++ {
		s.nameLost(&s.broken[broken])
	}
	return nil
}

// noteGap compares a frame with what its session's log came to.
func (s *salvager) noteGap(l *salvagedLog, r *frameReader, f *foundFrame) {
	before := l.hash
	if l.head == 0 {
		before = Genesis(r.session)
	}
	switch {
	case r.first > l.head+1:
		l.lost = append(l.lost, SeqLoss{From: l.head + 1, To: r.first - 1, Policy: "unknown"})
		s.gaps = append(s.gaps, gap{session: r.session, from: l.head + 1, to: r.first - 1, after: l.lastPos, has: l.head > 0, before: f.position, prev: r.prev})
	case r.first <= l.head || r.prev != before:
		l.odd = true
	}
}

// settlePolicy says whether the gap in front of a frame held policy events: the
// frame names the last one before it.
func settlePolicy(l *salvagedLog, named uint64) {
	n := len(l.lost)
	if n == 0 || l.lost[n-1].Policy != "unknown" {
		return
	}
	if g := &l.lost[n-1]; named < g.From {
		g.Policy = "no"
	} else if named <= g.To {
		g.Policy = "yes"
	}
}

// nameLost takes a damaged frame's word for whose it was, as reading a damaged
// store does: if the session that it names is one that expects this seq.
func (s *salvager) nameLost(b *brokenFrame) {
	if l := s.logs[b.frame.session]; b.named && l != nil && l.head+1 == b.frame.first {
		s.named[b.position] = lostName{b.frame.session, b.frame.first, "frame"}
	}
}

// lostName says whose a lost frame was.
type lostName struct {
	session uuid.UUID
	first   uint64 // the first seq that the session lost there
	known   string
}

// readFrame reads a frame's bytes again into buf.
func (s *salvager) readFrame(f *foundFrame, buf []byte) ([]byte, error) {
	buf = slices.Grow(buf[:0], int(f.size))[:f.size]
	if n, err := s.r.ReadAt(buf, f.offset()); n < len(buf) {
		return nil, corruptf(f.position, "a frame can't be read any more: %v", err)
	}
	if len(buf) < 4 || crcOf(buf) != f.crc {
		return nil, corruptf(f.position, "the file changed while it was read")
	}
	return buf, nil
}
