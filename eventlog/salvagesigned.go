package eventlog

import "fmt"

// heldToSigned holds what is left to the checkpoint of the damaged store, as an
// open would. Without it a salvage would be the way around a rollback: an older
// store.db, or one whose end was cut off with a narrowing in it, is sound in
// itself, and the new store would grant what the old one refuses to. So it leaves
// the end in doubt, as damage there does. Where frames below the signed size are
// lost the tree can't be compared, and what is lost is stated anyway.
func (s *salvager) heldToSigned(id Identity) error {
	c, ok, re := heldTo(s.report.Source, id)
	switch {
	case re != nil:
	case !ok && s.report.IdentityFrom == identityNew: // who signs is gone with the identity; the size is a witness still
		if c, err := readCheckpoint(s.report.Source); err == nil && c.Size > s.end {
			re = &RollbackError{Evidence: RolledBackSmaller, Size: c.Size, Found: s.end}
		}
	case !ok:
	case c.Size > s.end:
		re = &RollbackError{Evidence: RolledBackSmaller, Size: c.Size, Found: s.end}
	default:
		root, complete, err := s.rootOfFound(c.Size, id.Salvaged)
		if err != nil {
			return err
		}
		if complete && root != c.Root {
			re = &RollbackError{Evidence: RolledBackDiffers, Size: c.Size, Found: s.end}
		}
	}
	if re != nil {
		s.doubt(re.reason())
	}
	return nil
}

// rootOfFound is the root of the tree over the first size positions. It is not
// complete if one of them was lost in this store. Of a store that was salvaged
// before, its own losses are leaves; which ones came since nobody can tell, so
// there a root that differs says nothing unless there is no loss.
func (s *salvager) rootOfFound(size uint64, salvaged bool) (root Hash, complete bool, err error) {
	var edge treeEdge
	var buf, scratch []byte
	f, lost := 0, false
	for p := uint64(0); p < size; p++ {
		if p%4096 == 0 {
			if err := s.ctx.Err(); err != nil {
				return root, false, err
			}
		}
		for f < len(s.frames) && s.frames[f].position < p {
			f++
		}
		var leaf Hash
		t, gone := s.tomb(p)
		switch {
		case gone:
			if leaf, err = purgedLeaf(p, t.value); err != nil {
				return root, false, nil
			}
		case f < len(s.frames) && s.frames[f].position == p:
			if buf, err = s.readFrame(&s.frames[f], buf); err != nil {
				return root, false, err
			}
			if leaf, scratch, err = frameLeaf(buf, scratch); err != nil {
				return root, false, fmt.Errorf("position %d: %w", p, err)
			}
		default:
			if lost = true; !salvaged {
				return root, false, nil
			}
			leaf = lostLeaf(p)
		}
		edge.add(leaf, nil)
	}
	root, err = edge.root()
	return root, !lost, err
}
