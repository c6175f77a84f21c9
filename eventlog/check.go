package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/vmihailenco/msgpack/v5"
	bolt "go.etcd.io/bbolt"

	"childlog/eventlog/pagecheck"
)

// Finding is one thing that a check found wrong, with its place. Kinds are
// stable strings.
type Finding struct {
	Kind     string    // one of the constants below
	Session  uuid.UUID // uuid.Nil: the store
	Seq      uint64    // 0: unknown
	Position uint64
	Detail   string
}

// Kinds of findings.
const (
	FindPages   = "pages"       // bbolt's own structure
	FindFrame   = "frame"       // a frame that can't be decoded
	FindMissing = "missing"     // a position or a range of seqs without events
	FindChain   = "chain"       // a previous hash that differs
	FindContent = "content"     // a content that is gone or is not what was committed to
	FindLink    = "policy-link" // a policy link that skips or invents an event
	FindUnit    = "unit"        // an atomic unit that is not whole
	FindIndex   = "index"       // derived state that differs from the journal
)

// CheckReport is the result of a full check.
type CheckReport struct {
	Totals
	Contents uint64 // contents compared with their commitments
	Findings []Finding
	More     uint64 // findings beyond maxFindings
}

// OK reports whether nothing was found.
func (r *CheckReport) OK() bool { return len(r.Findings) == 0 }

const maxFindings = 1000

func (r *CheckReport) add(f Finding) {
	if len(r.Findings) >= maxFindings {
		r.More++
		return
	}
	r.Findings = append(r.Findings, f)
}

// CheckOptions selects what a check covers.
type CheckOptions struct {
	Session  uuid.UUID          // uuid.Nil: every session
	Progress func(done, of int) // frames; called now and then, may be nil
}

// Check reads the whole journal once and compares everything with everything:
// pages, checksums, the chain of each session, policy links, atomic units,
// contents against their commitments, and the index against a fold of the
// journal. It writes nothing. Memory grows with the number of sessions.
func (s *Store) Check(ctx context.Context, o CheckOptions) (CheckReport, error) {
	c := &checker{s: s, o: o, fold: &Store{st: &state{over: newChanges()}, journal: s.journal, opts: Options{ReadOnly: true}}}
	if err := c.pages(ctx); err != nil {
		return c.report, err
	}
	next := s.st.durable()
	at := 0
	err := s.eachFrame(ctx, 0, next, func(tx *bolt.Tx, position uint64, raw []byte) error {
		if err := c.frame(tx, position, raw); err != nil {
			return err
		}
		if at++; o.Progress != nil && (at%4096 == 0 || position+1 == next) {
			o.Progress(at, int(next))
		}
		return nil
	})
	if err != nil {
		return c.report, err
	}
	c.endUnit(next)
	if err := c.index(ctx); err != nil {
		return c.report, err
	}
	for _, n := range s.notices {
		if n.Kind == FindIndex || n.Kind == FindMissing && c.report.OK() { // the rest was found again above
			c.report.add(n)
		}
	}
	return c.report, nil
}

type checker struct {
	s      *Store
	o      CheckOptions
	fold   *Store // a second fold of the journal, without the index
	report CheckReport
	left   uint64 // frames that the open unit still needs
	broken bool   // the frame before can't be read
}

func (c *checker) pages(ctx context.Context) error {
	f, err := os.Open(filepath.Join(c.s.dir, journalFile))
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if !c.s.opts.ReadOnly {
		return nil // pages are moving; the frames below are checked all the same
	}
	report, err := pagecheck.InspectAll(ctx, f, fi.Size())
	for _, p := range report.Problems {
		c.report.add(Finding{Kind: FindPages, Detail: p.String()})
	}
	return err
}

// frame checks one position.
func (c *checker) frame(tx *bolt.Tx, position uint64, raw []byte) error {
	group := newChanges()
	totals := c.fold.st.totals
	lost := func() error {
		c.broken = true
		if err := c.fold.lostFrame(group, position, raw, tx); err != nil {
			return err
		}
		c.fold.st.apply(group, position+1, 0, totals)
		return nil
	}
	if raw == nil {
		if tx.Bucket(bucketTombstones).Get(positionKey(position)) == nil {
			c.report.add(Finding{Kind: FindMissing, Position: position, Detail: "no frame and no tombstone"})
		}
		return lost()
	}
	f, err := decodeFrame(raw)
	if err == nil {
		c.unit(&f, position)
		err = c.fold.foldFrame(tx, group, position, raw, &totals)
	}
	if err != nil {
		guess, _ := guessFrame(raw)
		c.report.add(Finding{Kind: FindFrame, Session: guess.session, Seq: guess.first, Position: position, Detail: err.Error()})
		return lost()
	}
	c.fold.st.apply(group, position+1, 0, totals)
	if c.o.Session != uuid.Nil && c.o.Session != f.session {
		return nil
	}
	c.report.Frames++
	c.report.Events += f.count
	if f.first == 1 {
		c.report.Sessions++
	}
	if row := &group.rows[f.session].row; row.LastPolicy != f.lastPolicy {
		c.report.add(Finding{Kind: FindLink, Session: f.session, Seq: f.last(), Position: position,
			Detail: fmt.Sprintf("the frame names policy seq %d as the last, the log's is %d", f.lastPolicy, row.LastPolicy)})
	}
	c.contents(tx, position, raw)
	return nil
}

// unit checks that atomic units are whole. After a frame that can't be read,
// reported on its own, the unit that was open there can't be told.
func (c *checker) unit(f *frame, position uint64) {
	if !c.broken && (f.continues != (c.left > 0) || c.left > 0 && f.framesLeft != c.left-1) {
		c.report.add(Finding{Kind: FindUnit, Session: f.session, Seq: f.first, Position: position,
			Detail: fmt.Sprintf("the unit before wants %d more frames, this frame says continues %t with %d left", c.left, f.continues, f.framesLeft)})
	}
	c.left, c.broken = f.framesLeft, false
}

func (c *checker) endUnit(next uint64) {
	if c.left > 0 && !c.broken {
		c.report.add(Finding{Kind: FindUnit, Position: next, Detail: fmt.Sprintf("the journal ends inside a unit: %d frames are missing", c.left)})
	}
}

func (c *checker) contents(tx *bolt.Tx, position uint64, raw []byte) {
	r, err := newFrameReader(raw)
	if err != nil {
		return
	}
	var ev Event
	for {
		header, err := r.next(&ev)
		if err != nil || header == nil {
			return
		}
		if !ev.HasContent {
			continue
		}
		c.report.Contents++
		ev.Position = position
		if loadContent(tx, &ev, uint32(ev.Seq-r.first)); ev.ContentErr != nil {
			c.report.add(Finding{Kind: FindContent, Session: ev.Session, Seq: ev.Seq, Position: position, Detail: ev.ContentErr.Error()})
		}
	}
}

// index compares the rows, names and links in use with the fold just made.
func (c *checker) index(ctx context.Context) error {
	differs := func(session uuid.UUID, detail string) {
		if c.o.Session == uuid.Nil || c.o.Session == session {
			c.report.add(Finding{Kind: FindIndex, Session: session, Detail: detail})
		}
	}
	if ix := c.s.st.index; ix != nil {
		if err := ix.verify(); err != nil {
			c.report.add(Finding{Kind: FindIndex, Detail: err.Error()})
		}
	}
	for _, id := range sortedIDs(c.fold.st.over.rows) {
		want := c.fold.st.over.rows[id]
		for _, d := range want.row.Damage {
			kind := FindMissing
			if bytes.Contains([]byte(d.Reason), []byte("chain")) {
				kind = FindChain
			} else if bytes.Contains([]byte(d.Reason), []byte("policy link")) {
				kind = FindLink
			}
			if c.o.Session == uuid.Nil || c.o.Session == id {
				c.report.add(Finding{Kind: kind, Session: id, Seq: d.From, Detail: fmt.Sprintf("seq %d to %d: %s", d.From, d.To, d.Reason)})
			}
		}
		got, err := c.s.st.lookup(id)
		switch {
		case err != nil:
			differs(id, err.Error())
			continue
		case got == nil:
			differs(id, "the index has no row for a session of the journal")
			continue
		}
		if c.appended(&got.row) {
			continue
		}
		if !sameRow(&got.row, &want.row) {
			differs(id, fmt.Sprintf("the index says head %d hash %x, the journal %d %x", got.row.Head, got.row.Hash[:4], want.row.Head, want.row.Hash[:4]))
		}
		frames, err := c.s.st.frames(got, 1, int(got.row.Frames)+1)
		if err != nil || uint64(len(frames)) != got.row.Frames {
			differs(id, fmt.Sprintf("the index has %d of %d frame positions: %v", len(frames), got.row.Frames, err))
			continue
		}
		for i, p := range want.pending {
			if i >= len(frames) || frames[i] != p {
				differs(id, fmt.Sprintf("frame %d is not where the index says, but at position %d with seq %d", i, p.pos, p.first))
				break
			}
		}
	}
	for n, id := range c.fold.st.over.names {
		if got, err := c.s.st.byName(n); err != nil || got != id {
			differs(id, fmt.Sprintf("a name of this session leads to %s (%v)", got, err))
		}
	}
	for k, want := range c.fold.st.over.links {
		got, err := c.s.st.link(k)
		if err == nil && got != want { // what the parent consumed since stands in its log by now
			if e, err := c.s.st.lookup(k.parent); err == nil && e != nil && c.appended(&e.row) {
				continue
			}
		}
		if err != nil || got != want {
			differs(k.parent, fmt.Sprintf("the link to child %s says %d consumed, the journal %d (%v)", k.child, got.Consumed, want.Consumed, err))
		}
	}
	err := c.s.EachRow(ctx, func(row *Row) (bool, error) {
		if c.fold.st.over.rows[row.Session] == nil && row.LastPos < c.fold.st.next {
			differs(row.Session, "the index has a row for a session that the journal does not know")
		}
		return true, nil
	})
	if errors.Is(err, errIndex) {
		return nil // found above
	}
	return err
}

// appended reports whether the session went on after the scan.
func (c *checker) appended(row *Row) bool {
	return !c.s.opts.ReadOnly && row.LastPos >= c.fold.st.next
}

func sameRow(a, b *Row) bool {
	x, err1 := msgpack.Marshal(a)
	y, err2 := msgpack.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}
