package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"childlog/eventlog/pagecheck"
	"github.com/google/uuid"
	"github.com/vmihailenco/msgpack/v5"
)

// Finding is one thing that a check found wrong, with its place. Kinds are
// stable strings.
type Finding struct {
	Kind     string    // one of the constants below
	Session  uuid.UUID // uuid.Nil: the store
	Seq      uint64    // 0: unknown
	Position uint64
	Detail   string
	Absent   bool // something is not there, as opposed to being another than it was
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

	FindErased     = "erased"     // contents or frames that are gone and what tells of it, which disagree
	FindDelegation = "delegation" // a child that its parent's log does not know, or the other way round
)

// CheckReport is the result of a full check.
type CheckReport struct {
	Totals
	SignedReport
	Contents   uint64 // contents compared with their commitments, those that were erased included
	Redacted   uint64 // contents that were erased, each with its content/redacted
	Withheld   uint64 // contents that logs of other stores came without
	Purged     uint64 // sessions that were purged, each with its session/purged; of a whole store only
	Tombstones uint64 // positions of their frames; likewise
	Bytes      uint64 // of the frames and contents that were read, as stored
	Findings   []Finding
	More       uint64 // findings beyond maxFindings
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
	Session  uuid.UUID          // only what concerns this one; uuid.Nil: every session
	Progress func(done, of int) // frames; called now and then, by the caller's goroutine, may be nil
	Workers  int                // how many processors to use; 0: all. The findings are the same
	Against  Against            // what was kept elsewhere
}

// Check reads the whole journal once and compares everything with everything:
// pages, checksums, the chain of each session, policy links, atomic units,
// contents against their commitments, what parents and children say of each
// other, the tree over the journal against CHECKPOINT and against what was kept
// elsewhere, and the index against a fold of the journal. It writes nothing.
// Memory grows with the number of sessions, and by a few bytes with each frame.
// Frames are decoded by several goroutines; none is left at the end.
//
// Of one session are its own findings, and damage of the store in which events
// of it may have been lost; anchors must then be its own (ErrInvalid). Damage is a
// finding; an error means that the check itself was stopped.
func (s *Store) Check(ctx context.Context, o CheckOptions) (CheckReport, error) {
	c := &checker{s: s, o: o, fold: &Store{st: &state{over: newChanges()}, journal: s.journal, opts: Options{ReadOnly: true}},
		relatives: family{started: map[linkKey]statement{}, granted: map[uuid.UUID]statement{}}, positions: map[uuid.UUID]*positionList{}}
	if o.Workers <= 0 {
		c.o.Workers = runtime.GOMAXPROCS(0)
	}
	for _, a := range o.Against.Anchors {
		if !c.concerns(a.Session) { // what is found of it would be no finding of this check
			return c.report, invalidf("check: an anchor is of session %s, and only session %s is to be checked", a.Session, o.Session)
		}
	}
	if err := s.passage.enter(ctx, copies); err != nil {
		return c.report, err
	}
	defer s.passage.leave(copies)
	if err := c.pages(ctx); err != nil {
		return c.report, err
	}
	next := s.st.durable()
	c.signed.begin(c)
	at := 0
	err := s.scan(ctx, scanOptions{to: next, workers: c.o.Workers, verify: c.concerns}, func(p *scanned) error {
		if err := c.frame(p); err != nil {
			return err
		}
		c.signed.leaf(p)
		if at++; o.Progress != nil && (at%4096 == 0 || p.position+1 == next) {
			o.Progress(at, int(next))
		}
		return nil
	})
	if errors.Is(err, ErrCorrupt) { // the pages do not lead to all frames: nothing is left to compare
		c.add(Finding{Kind: FindPages, Detail: err.Error()})
		return c.report, nil
	}
	if err != nil {
		return c.report, err
	}
	c.endUnit(next)
	c.lost()
	c.signed.end(next)
	c.family()
	if err := c.erased(); err != nil {
		return c.report, err
	}
	if err := c.index(ctx); err != nil {
		return c.report, err
	}
	for _, n := range s.notices {
		if n.Kind == FindIndex || n.Kind == FindRollback || n.Kind == FindTree || n.Kind == FindSignature || n.Kind == FindMissing && !c.found { // the rest was found again above
			c.add(n)
		}
	}
	return c.report, nil
}

// CheckPages checks the pages of a store that can't be opened, for a report of
// what keeps it closed. It takes no lock and writes nothing.
func CheckPages(ctx context.Context, dir string) (CheckReport, error) {
	var report CheckReport
	problems, err := inspectAll(ctx, dir)
	for _, p := range problems {
		report.add(Finding{Kind: FindPages, Detail: p})
	}
	return report, err
}

// reasonOf is what is wrong, without the place, which a finding gives apart.
func reasonOf(err error) string {
	if ce := (*CorruptError)(nil); errors.As(err, &ce) && ce.Reason != "" {
		return ce.Reason
	}
	return err.Error()
}

type checker struct {
	s         *Store
	o         CheckOptions
	fold      *Store // a second fold of the journal, without the index
	report    CheckReport
	left      uint64 // frames that the open unit still needs
	broken    bool   // the frame before can't be read
	relatives family // what was said of delegations
	signed    signedCheck
	nobodys   []Finding // of a check of one session: frames that could be any's
	erasures  erasures
	found     bool // something is wrong, be it of another session
	positions map[uuid.UUID]*positionList
}

// add keeps a finding if it is about what was asked for.
func (c *checker) add(f Finding) {
	c.found = true
	if c.o.Session == uuid.Nil || f.Session == uuid.Nil || f.Session == c.o.Session {
		c.report.add(f)
	}
}

// nobody keeps a finding about a frame of which nothing says whose it was. The
// newest are kept, as in the state: they decide who is in doubt.
func (c *checker) nobody(f Finding) {
	c.found = true
	if c.o.Session == uuid.Nil {
		c.report.add(f)
		return
	}
	if len(c.nobodys) == maxFindings {
		c.nobodys = c.nobodys[1:]
	}
	c.nobodys = append(c.nobodys, f)
}

// lost decides, once all was read, which of those frames could be the asked
// session's: a log without a gap lost nothing before its head.
func (c *checker) lost() {
	e := c.fold.st.over.rows[c.o.Session]
	for _, f := range c.nobodys {
		if e == nil || len(e.row.Damage) > 0 || f.Position > e.row.LastPos {
			c.report.add(f)
		}
	}
}

func (c *checker) pages(ctx context.Context) error {
	if !c.s.opts.ReadOnly {
		return nil // pages are moving; the frames below are checked all the same
	}
	problems, err := inspectAll(ctx, c.s.dir)
	for _, p := range problems {
		c.add(Finding{Kind: FindPages, Detail: p})
	}
	return err
}

func inspectAll(ctx context.Context, dir string) (problems []string, err error) {
	f, err := os.Open(filepath.Join(dir, journalFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	report, err := pagecheck.InspectAll(ctx, f, fi.Size())
	for _, p := range report.Problems {
		problems = append(problems, p.String())
	}
	return problems, err
}

// concerns reports whether a session's contents count.
func (c *checker) concerns(session uuid.UUID) bool {
	return c.o.Session == uuid.Nil || c.o.Session == session
}

// frame checks one position.
func (c *checker) frame(p *scanned) error {
	fold, group := c.fold.st, c.fold.st.over // the fold is nobody else's: it is changed in place
	fold.next = p.position + 1
	c.report.Bytes += p.size + p.contents
	if p.envelope {
		c.unit(&p.frame, p.position)
	}
	if !p.stored || p.err != nil {
		return c.unread(group, p)
	}
	f := &p.frame
	if err := c.fold.foldEvents(group, f, p.position, p.events, &fold.totals); err != nil {
		return err
	}
	e := group.rows[f.session]
	c.keepPositions(e)
	for i := range p.events {
		c.relatives.note(&p.events[i])
		c.erasures.note(&p.events[i], c.add)
		c.signed.event(&p.events[i])
	}
	if !c.concerns(f.session) {
		return nil
	}
	c.report.Frames++
	c.report.Events += f.count
	if f.first == 1 {
		c.report.Sessions++
	}
	if e.row.LastPolicy != f.lastPolicy {
		c.add(Finding{Kind: FindLink, Session: f.session, Seq: f.last(), Position: p.position,
			Detail: fmt.Sprintf("the frame names policy seq %d as the last, the log's is %d", f.lastPolicy, e.row.LastPolicy)})
	}
	for i := range p.events {
		ev := &p.events[i]
		if !ev.HasContent {
			continue
		}
		if c.report.Contents++; ev.missing {
			c.erasures.miss(ev)
		} else if ev.ContentErr != nil {
			c.add(Finding{Kind: FindContent, Session: ev.Session, Seq: ev.Seq, Position: p.position, Detail: reasonOf(ev.ContentErr)})
		}
	}
	return nil
}

// unread notes a position without a frame, or with one that can't be read.
func (c *checker) unread(group *changes, p *scanned) error {
	c.broken = true
	if !p.purged {
		if err := c.fold.lose(group, p.position, p.guess, p.guessed, p.mark); err != nil {
			return err
		}
	}
	lost := c.fold.st.lost
	switch {
	case p.purged:
		c.erasures.tombs, c.erasures.last = c.erasures.tombs+1, p.position
	case !p.stored:
		c.nobody(Finding{Kind: FindMissing, Position: p.position, Detail: "no frame and no tombstone", Absent: true})
	case len(lost) > 0 && lost[len(lost)-1] == p.position: // what it names may be damaged too
		c.nobody(Finding{Kind: FindFrame, Session: p.guess.session, Seq: p.guess.first, Position: p.position, Detail: p.err.Error(), Absent: p.mark})
	default:
		c.add(Finding{Kind: FindFrame, Session: p.guess.session, Seq: p.guess.first, Position: p.position, Detail: p.err.Error(), Absent: p.mark})
	}
	return nil
}

// unit checks that atomic units are whole. After a frame that can't be read,
// reported on its own, the unit that was open there can't be told.
func (c *checker) unit(f *frame, position uint64) {
	if !c.broken && (f.continues != (c.left > 0) || c.left > 0 && f.framesLeft != c.left-1) {
		c.add(Finding{Kind: FindUnit, Session: f.session, Seq: f.first, Position: position,
			Detail: fmt.Sprintf("the unit before wants %d more frames, this frame says continues %t with %d left", c.left, f.continues, f.framesLeft)})
	}
	c.left, c.broken = f.framesLeft, false
}

func (c *checker) endUnit(next uint64) {
	if c.left > 0 && !c.broken {
		c.add(Finding{Kind: FindUnit, Position: next, Detail: fmt.Sprintf("the journal ends inside a unit: %d frames are missing", c.left)})
	}
}

// index compares the rows, names and links in use with the fold just made.
func (c *checker) index(ctx context.Context) error {
	differs := func(session uuid.UUID, detail string) {
		c.add(Finding{Kind: FindIndex, Session: session, Detail: detail})
	}
	if ix := c.s.st.index; ix != nil {
		if err := ix.verify(); err != nil {
			c.add(Finding{Kind: FindIndex, Detail: err.Error()})
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
			c.add(Finding{Kind: kind, Session: id, Seq: d.From, Detail: fmt.Sprintf("seq %d to %d: %s", d.From, d.To, d.Reason), Absent: kind == FindMissing})
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
		if detail := c.comparePositions(got, want); detail != "" {
			differs(id, detail)
		}
	}
	for n, id := range c.fold.st.over.names {
		got, err := c.s.st.byName(n)
		if n.space == nameCall && seqIn(got) > seqIn(id) && !c.s.opts.ReadOnly { // decided again after the scan
			continue
		}
		if err != nil || got != id {
			differs(n.of(id), fmt.Sprintf("a name of this session leads to %s (%v)", got, err))
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
