package eventlog

import (
	"maps"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
)

// group is what one transaction writes: the frames of its units, in the order
// of their positions, and what they change. Once it was handed to the writer
// nobody changes it.
type group struct {
	*changes
	units   []*unit
	answers []answer // of the units
	drafts  []*draft
	first   uint64 // position of the first frame
	next    uint64 // and after the last one
	bytes   uint64 // of frames and contents
	lag     uint64 // bytes of the frames alone, which an open may have to fold
	charge  int64  // bytes that it is taken to fill of a limited store.db
	totals  Totals // of the store, with this group
	erasing erasure
	tree    *treeGrowth
}

// answer is a unit's outcome, if the group is committed.
type answer struct {
	results []Result
	err     error
}

func newGroup(first uint64, totals Totals, tree *treeGrowth) *group {
	return &group{changes: newChanges(), first: first, next: first, totals: totals, tree: tree}
}

func (g *group) draft(position uint64) *draft {
	if position < g.first || position >= g.next {
		return nil
	}
	return g.drafts[position-g.first]
}

// put takes the frames of an admitted unit, which end before next.
func (g *group) put(drafts []*draft, next uint64) {
	for i, d := range drafts {
		d.continues, d.framesLeft = i > 0, uint64(len(drafts)-1-i)
		d.raw = appendFrame(make([]byte, 0, len(d.headers)+frameMost), &d.frame)
		d.headers = nil // the stage's, which it uses again
		g.tree.add(d.leaf(d.hashes[len(d.hashes)-1]))
		g.bytes += uint64(len(d.raw))
		g.lag += uint64(len(d.raw))
		for _, p := range d.events {
			for _, value := range p.chunks {
				g.bytes += uint64(len(value))
			}
		}
		if d.first == 1 {
			g.totals.Sessions++
		}
		g.totals.Events += d.count
		g.totals.Frames++
	}
	g.drafts = append(g.drafts, drafts...)
	g.next = next
}

// write puts the group into a transaction and sets the sequence that guards the
// journal's length.
func (g *group) write(tx *bolt.Tx) error {
	journal, contents := tx.Bucket(bucketJournal), tx.Bucket(bucketContents)
	journal.FillPercent, contents.FillPercent = 1, 1 // keys only ever grow at the end
	for i, d := range g.drafts {
		position := g.first + uint64(i)
		if err := journal.Put(positionKey(position), d.raw); err != nil {
			return err
		}
		for index, p := range d.events {
			for chunk, value := range p.chunks {
				if err := contents.Put(contentKey(position, uint32(index), uint32(chunk)), value); err != nil {
					return err
				}
			}
		}
	}
	if err := journal.SetSequence(g.next); err != nil || g.erasing.empty() {
		return err
	}
	return g.erasing.write(tx)
}

// absorb moves newer changes into c.
func (c *changes) absorb(newer *changes) {
	c.drop(newer.gone)
	maps.Copy(c.rows, newer.rows)
	maps.Copy(c.names, newer.names)
	maps.Copy(c.links, newer.links)
}

// clear empties c for another use.
func (c *changes) clear() {
	clear(c.rows)
	clear(c.names)
	clear(c.links)
	c.gone = nil
}

// storedID locates an event id for the recognition of retries.
type storedID struct {
	id  uuid.UUID
	seq uint64
}
