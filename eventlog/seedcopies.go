package eventlog

import (
	"github.com/google/uuid"
)

// seedCopies are the copies of events that are to be erased, wherever they are.
// A fork copies from its parent and an adoption from evidence that is no parent
// of it; each may be forked in turn. So copies are not looked for down the tree
// but where the index says that some are: every event that names an original
// leaves a link from there, see relations.
//
// What is copied into evidence is the word of a file, or a guess of the importer
// where the original was not at hand. There a copy of another type than its
// original is listed and not erased.
type seedCopies struct {
	v     *View
	order []uuid.UUID                     // the named session first
	seqs  map[uuid.UUID]map[uint64]string // why, by seq
	also  []SameText
}

func newCopies(v *View, session uuid.UUID, seqs map[uint64]string) *seedCopies {
	return &seedCopies{v: v, order: []uuid.UUID{session}, seqs: map[uuid.UUID]map[uint64]string{session: seqs}}
}

// find goes from the named session to all copies, and to copies of those.
// Evidence may say in a circle that it is copied from one another, so a seq is
// followed once.
func (c *seedCopies) find() error {
	type step struct {
		session uuid.UUID
		seqs    map[uint64]string
	}
	first := c.order[0]
	for todo := []step{{first, c.seqs[first]}}; len(todo) > 0; todo = todo[1:] {
		at := todo[0]
		holders, err := c.v.st.linked(at.session, true)
		if err != nil {
			return err
		}
		if len(holders) == 0 {
			continue
		}
		types, err := c.types(at.session, at.seqs)
		if err != nil {
			return err
		}
		for _, holder := range holders {
			fresh, err := c.in(holder, at.session, types)
			if err != nil {
				return err
			}
			if len(fresh) > 0 {
				todo = append(todo, step{holder, fresh})
			}
		}
	}
	return nil
}

// types are those of the events. A seq that is not there is left out.
func (c *seedCopies) types(session uuid.UUID, seqs map[uint64]string) (map[uint64]string, error) {
	e, err := c.v.st.lookup(session)
	if err != nil || e == nil {
		return nil, err
	}
	out := make(map[uint64]string, len(seqs))
	var frame []seqEvent // the one read last
	for _, seq := range sortedSeqs(seqs) {
		if seq == 0 || seq > e.row.Head {
			continue
		}
		if len(frame) == 0 || seq > frame[len(frame)-1].Seq {
			if frame, err = frameOf(e, c.v.st, seq); err != nil {
				return nil, err
			}
		}
		out[seq] = frame[seq-frame[0].Seq].Type
	}
	return out, nil
}

// in notes the copies that holder has of events of another session, and returns
// those that were not known. A native seed is as long as its log says; evidence
// may hold copies anywhere, so all of it is read. A log of another store takes
// no event that says what was erased, so its copies are only listed.
func (c *seedCopies) in(holder, origin uuid.UUID, types map[uint64]string) (map[uint64]string, error) {
	e, err := c.v.st.lookup(holder)
	if err != nil || e == nil {
		return nil, err // purged
	}
	var out map[uint64]string
	left := e.row.SeedLen
	for seq := uint64(1); seq <= e.row.Head && (left > 0 || e.row.Evidence); {
		events, err := frameOf(e, c.v.st, seq)
		if err != nil {
			return nil, err
		}
		for i := range events {
			ev := &events[i]
			if ev.Inherited == nil {
				continue
			}
			left -= min(left, 1)
			typ := types[ev.Inherited.Seq]
			switch {
			case ev.Inherited.Session != origin || typ == "" || c.seqs[holder][ev.Seq] != "":
			case e.row.Imported:
				c.also = append(c.also, SameText{holder, ev.Seq, ev.Type, "a copy in another store's log: redact it there, or purge it here"})
			case e.row.Evidence && typ != ev.Type:
				c.also = append(c.also, SameText{holder, ev.Seq, ev.Type, "said to be a copy, and of another type"})
			default:
				if out == nil {
					out = map[uint64]string{}
				}
				out[ev.Seq] = WhyCopy
			}
		}
		seq = events[len(events)-1].Seq + 1
	}
	if len(out) == 0 {
		return nil, nil
	}
	if c.seqs[holder] == nil {
		c.order, c.seqs[holder] = append(c.order, holder), map[uint64]string{}
	}
	for seq, why := range out {
		c.seqs[holder][seq] = why
	}
	return out, nil
}
