package eventlog

import (
	"fmt"
	"path/filepath"

	"github.com/google/uuid"
)

// nameByIndex asks the index of the damaged store whose the lost frames were.
// The index is derived and never a source of events or of policy, but each of
// its rows has a checksum, and a row says which frames its session has: the
// same that a reader of the store relies on when it does not fold the journal.
// It is used only whole, if it is this store's, and if it ends in the frame that
// the journal has there. An index that is ahead of the journal is a witness that
// the journal lost its end.
func (s *salvager) nameByIndex(lost []LostPositions) error {
	if s.report.IdentityFrom == identityNew || s.report.Base == BaseNone {
		return nil
	}
	if inspectIndex(filepath.Join(s.report.Source, indexFile)) != nil {
		return nil
	}
	ix, err := openIndex(s.report.Source, true)
	if err != nil {
		return s.ctx.Err()
	}
	defer ix.close()
	c, ok, err := ix.cover()
	if err != nil || !ok || c.Store != s.report.Store || c.Incarnation != s.report.SourceIncarnation || c.Fold != foldVersion || ix.sound() != nil {
		return s.ctx.Err()
	}
	if c.Next > s.end {
		s.doubt(fmt.Sprintf("the index covers the journal up to position %d, it ends at %d", c.Next, s.end))
		return nil
	}
	if c.Next == 0 || len(lost) == 0 {
		return nil
	}
	if at := s.at(c.Next - 1); len(at) > 0 {
		raw, err := s.readFrame(&at[0], nil)
		if err != nil {
			return err
		}
		if leaf, _, err := frameLeaf(raw, nil); err != nil || leaf != c.Last {
			return nil
		}
	}
	var hurt []*Row
	gaps := map[uuid.UUID]bool{}
	for i := range s.gaps {
		gaps[s.gaps[i].session] = true
	}
	err = ix.eachRow(uuid.Nil, func(row *Row) (bool, error) {
		if l := s.logs[row.Session]; l != nil && !l.odd && (gaps[row.Session] || row.Head > l.head) {
			hurt = append(hurt, row)
		}
		return true, s.ctx.Err()
	})
	for i := 0; i < len(hurt) && err == nil; i++ {
		err = s.nameByRow(ix, hurt[i])
	}
	return s.ctx.Err() // an index that fails halfway has named what it could read
}

// nameByRow names the lost frames of one session.
func (s *salvager) nameByRow(ix *index, row *Row) error {
	for seq := uint64(1); seq <= row.Head; {
		list, err := ix.frames(row.Session, row.Frames, seq, framesPage)
		if err != nil {
			return err
		}
		before := seq
		for _, p := range list {
			if first, ok := s.lacks(row.Session, p); ok {
				if _, named := s.named[p.pos]; !named {
					s.named[p.pos] = lostName{row.Session, first, "index"}
				}
			}
			seq = p.first + 1
		}
		if seq <= before || len(list) < framesPage {
			break
		}
	}
	return s.ctx.Err()
}

// lacks reports whether a session lost a frame that begins with this seq at
// this position, and from which seq on it lost events there.
func (s *salvager) lacks(session uuid.UUID, p framePos) (from uint64, ok bool) {
	if _, gone := s.tomb(p.pos); gone || p.pos >= s.end || len(s.at(p.pos)) > 0 {
		return 0, false
	}
	l := s.logs[session]
	if p.first > l.head {
		return l.head + 1, p.pos > l.lastPos
	}
	for i := range s.gaps {
		g := &s.gaps[i]
		if g.session == session && g.from <= p.first && p.first <= g.to {
			return g.from, p.pos < g.before && (!g.has || p.pos > g.after)
		}
	}
	return 0, false
}
