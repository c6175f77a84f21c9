package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
)

// maxLost bounds the list of frames that no session could be found for; a
// store with more is for salvage.
const maxLost = 1024

// loadState opens the index, if it fits the journal, and folds what it does
// not cover. Without a usable index everything is folded: slower, the same
// answers.
func (s *Store) loadState(ctx context.Context, next uint64) error {
	ix, c, why := s.usableIndex(next)
	if re := (*RollbackError)(nil); errors.As(why, &re) {
		ix.close()
		return s.withoutIndex(ctx, next, re)
	}
	if s.opts.fresh && why == nil {
		why = os.ErrNotExist
	}
	if why == nil {
		noticed := len(s.notices)
		s.startState(ix, c)
		if why = s.catchUp(ctx, next); !errors.Is(why, errIndex) {
			return why
		}
		s.notices = s.notices[:noticed]
	}
	if !errors.Is(why, os.ErrNotExist) {
		s.notice(FindIndex, 0, "index not used: "+why.Error())
	}
	ix.close()
	ix = nil
	if !s.opts.ReadOnly {
		if err := removeIndex(s.dir); err != nil {
			return err
		}
		var err error
		if ix, err = openIndex(s.dir, false); err != nil {
			return err
		}
	}
	s.startState(ix, cover{})
	return s.catchUp(ctx, next)
}

func (s *Store) startState(ix *index, c cover) {
	s.st = &state{over: newChanges(), index: ix, next: c.Next, covered: c.Next, totals: c.Totals, lost: c.Lost,
		tree: restoredEdge(c.Next, c.Edge), nodes: map[treeNode]Hash{}}
}

// withoutIndex goes on without an index that knows more of the journal than
// there is. It stays where it is: it is evidence. Only who accepts the loss may
// write then.
func (s *Store) withoutIndex(ctx context.Context, next uint64, re *RollbackError) error {
	if !s.opts.ReadOnly && !s.opts.accept {
		return re
	}
	s.startState(nil, cover{})
	if err := s.catchUp(ctx, next); err != nil {
		return err
	}
	s.st.covered, s.st.bytes = next, 0 // there is none to catch up
	s.rolledBack(re)
	return nil
}

func removeIndex(dir string) error {
	err := os.Remove(filepath.Join(dir, indexFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// usableIndex returns the index if it is this store's, of this fold, not
// ahead of the journal, and ends in the frame that the journal has there.
func (s *Store) usableIndex(next uint64) (*index, cover, error) {
	if err := inspectIndex(filepath.Join(s.dir, indexFile)); err != nil {
		return nil, cover{}, err
	}
	ix, err := openIndex(s.dir, s.opts.ReadOnly)
	if err != nil {
		return nil, cover{}, err
	}
	c, ok, err := ix.cover()
	switch {
	case err != nil:
		return ix, c, err
	case !ok:
		return ix, c, ix.sound() // new: nothing was flushed into it yet
	case c.Store != s.identity.Store || c.Incarnation != s.identity.Incarnation:
		return ix, c, fmt.Errorf("it belongs to store %s incarnation %d", c.Store, c.Incarnation)
	case c.Next > next && s.journal.oneMeta: // which hides the last commit, and is said elsewhere
		return ix, c, fmt.Errorf("it is ahead: it covers %d frames, the journal has %d", c.Next, next)
	case c.Next > next:
		return ix, c, s.indexAhead(&c, next)
	case c.Fold != foldVersion:
		return ix, c, fmt.Errorf("its fold is version %d, want %d", c.Fold, foldVersion)
	}
	last, err := s.lastLeaf(c.Next)
	if err == nil && last != c.Last {
		err = fmt.Errorf("the frame at position %d is another one", c.Next-1)
	}
	if err != nil {
		return ix, c, err
	}
	if size, err := ix.size(); err != nil || size > verifyAtOpen {
		return ix, c, err
	}
	return ix, c, ix.sound()
}

// catchUpPage is how many frames are folded before they are published.
const catchUpPage = 2048

// catchUp folds the frames from the index's coverage to next.
func (s *Store) catchUp(ctx context.Context, next uint64) error {
	group, tree, totals, bytes := newChanges(), s.st.grow(), s.st.totals, uint64(0)
	o := scanOptions{from: s.st.next, to: next, workers: runtime.GOMAXPROCS(0)}
	if next-o.from <= catchUpPage {
		o.workers = 1
	}
	return s.scan(ctx, o, func(p *scanned) error {
		bytes += p.size
		tree.note(p.leaf, p.leafErr)
		var err error
		switch {
		case p.purged:
		case !p.stored || p.err != nil:
			err = s.lose(group, p.position, p.guess, p.guessed, p.mark)
		default:
			err = s.foldEvents(group, &p.frame, p.position, p.events, &totals)
		}
		end := p.position + 1
		if err != nil || end < next && end-s.st.next < catchUpPage {
			return err
		}
		s.st.apply(group, tree, end, bytes, totals)
		group, tree, bytes = newChanges(), s.st.grow(), 0
		if frames, size := s.st.lag(); !s.opts.ReadOnly && (frames >= maxLagFrames || size >= maxLagBytes) {
			if err := s.st.flush(s); errors.Is(err, errIndex) {
				return err
			} // else it can't be written now: the overlay grows instead
		}
		return nil
	})
}

// foldPosition folds what stands at a position, sound or not. It fails only
// where the index does, which says nothing about the journal.
func (s *Store) foldPosition(tx *bolt.Tx, group *changes, position uint64, raw []byte, totals *Totals) error {
	if raw == nil {
		return s.lostFrame(group, position, nil, tx)
	}
	err := s.foldFrame(tx, group, position, raw, totals)
	if err != nil && !errors.Is(err, errIndex) {
		err = s.lostFrame(group, position, raw, tx)
	}
	return err
}

// foldFrame folds one stored frame into the group.
func (s *Store) foldFrame(tx *bolt.Tx, group *changes, position uint64, raw []byte, totals *Totals) error {
	f, err := decodeFrame(raw)
	if err != nil {
		return err
	}
	var d decoder
	events, err := d.events(nil, &f, position)
	if err != nil {
		return err
	}
	for i := range events {
		if ev := &events[i]; foldsContent(ev.Type) && ev.Inherited == nil {
			loadContent(tx, ev, uint32(i))
		}
	}
	return s.foldEvents(group, &f, position, events, totals)
}

// foldEvents folds a decoded frame into the group: the recovery of what
// stage.layOut does for a new one, through the same row and relations. It
// keeps nothing of the events. It fails only where the index does, and then
// has changed nothing.
func (s *Store) foldEvents(group *changes, f *frame, position uint64, events []Event, totals *Totals) error {
	e := group.rows[f.session]
	if e == nil {
		was, err := s.st.find(f.session, f.first > 1) // a new session needs no proof that it is new
		if err != nil {
			return err
		}
		e = &entry{row: Row{Session: f.session}}
		if was != nil {
			*e = *was // the group's own, until it is published
		}
		group.rows[f.session] = e
	}
	if f.first <= e.row.Head {
		if slices.ContainsFunc(e.row.Damage, func(d Damage) bool { return d.From <= f.first && f.last() <= d.To }) {
			return nil // it was missed, and stands too late: its session is damaged already
		}
		// A frame of the past is no part of the log, and the one that belongs
		// here is lost, nobody knows whose.
		e.row.damage(f.first, f.last(), "seqs stored twice")
		return s.lose(group, position, frame{}, false, false)
	}
	if f.session == StoreSession {
		gone, err := purgedBy(events, func(id uuid.UUID) (*entry, error) {
			if was := group.rows[id]; was != nil {
				return was, nil
			}
			return s.st.find(id, false)
		})
		if err != nil {
			return err
		}
		for _, counted := range gone {
			totals.less(counted)
		}
		group.drop(gone)
	}
	e.row.applyFrame(f, position)
	e.pending = append(e.pending, framePos{pos: position, first: f.first})
	for i := range events {
		ev := &events[i]
		e.row.apply(ev, ev.Hash)
		relations(ev, func(n name, id uuid.UUID) { group.names[n] = id }, func(k linkKey, l link) { group.links[k] = l })
	}
	if f.first == 1 {
		totals.Sessions++
	}
	totals.Frames++
	totals.Events += f.count
	return nil
}

// lostFrame notes a frame that is missing or can't be read.
func (s *Store) lostFrame(group *changes, position uint64, raw []byte, tx *bolt.Tx) error {
	if raw == nil {
		purged, err := getCopy(tx.Bucket(bucketTombstones), positionKey(position))
		if err == nil && purged != nil {
			return nil
		}
	}
	f, ok := guessFrame(raw)
	return s.lose(group, position, f, ok, isMark(raw))
}

// lose notes a frame that is missing or can't be read. If its bytes still
// name a session that expects it, only that session is damaged. Else any
// session whose last frame lies before could be the one that lost its newest
// events, so the policy of all of those is in doubt and refused.
func (s *Store) lose(group *changes, position uint64, f frame, guessed, mark bool) error {
	s.notice(FindMissing, position, fmt.Sprintf("position %d: frame is missing or damaged", position))
	if guessed {
		e := group.rows[f.session]
		if e == nil {
			var err error
			if e, err = s.st.lookup(f.session); err != nil {
				return err
			}
		}
		if e == nil && f.first == 1 && mark { // a log that lost its beginning
			e = &entry{row: Row{Session: f.session}}
		}
		if e != nil && e.row.Head+1 == f.first {
			clone := *e
			clone.row.damage(f.first, f.first, fmt.Sprintf("frame at position %d is damaged", position))
			group.rows[f.session] = &clone
			return nil
		}
	}
	if len(s.st.lost) == maxLost { // the newest one decides who is in doubt
		s.st.lost = s.st.lost[:maxLost-1]
	}
	s.st.lost = append(s.st.lost, position)
	return nil
}

// guessFrame reads the start of a frame whose checksum does not hold.
func guessFrame(raw []byte) (f frame, ok bool) {
	if len(raw) < frameHead+20 {
		return f, false
	}
	c := byteCursor{b: raw[frameHead:]}
	c.u8("flags")
	c.uvarint("frames_left")
	copy(f.session[:], c.take(16, "session"))
	f.first = c.uvarint("first seq")
	return f, c.fail == "" && f.first > 0
}

// whole is nil if no frame was lost without a trace of its session.
func (s *state) whole() error {
	if s.rolledBack != nil {
		return s.rolledBack
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.unsure != "" {
		return &CorruptError{Reason: s.unsure}
	}
	if n := len(s.lost); n > 0 {
		return &CorruptError{Position: s.lost[n-1], HasPosition: true, Reason: "a frame was lost here, and nothing says of which session"}
	}
	return nil
}

// doubt reports whether anything is missing that could have been the session's
// newest: then what it may do is not known.
func (s *state) doubt(row *Row) error {
	if s.rolledBack != nil {
		return s.rolledBack
	}
	return s.loss(row)
}

// loss reports whether a frame was lost that could have been the session's
// newest.
func (s *state) loss(row *Row) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.unsure != "" {
		return &CorruptError{Session: row.Session, Reason: s.unsure}
	}
	if n := len(s.lost); n > 0 && s.lost[n-1] > row.LastPos {
		return &CorruptError{Session: row.Session, Position: s.lost[n-1], HasPosition: true, Reason: "a frame was lost here that may have been this session's"}
	}
	return nil
}
