package eventlog

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	signednote "golang.org/x/mod/sumdb/note"
)

// Anchor is the head of a session's log as somebody noted it down elsewhere: at
// this seq its chain had this hash. It proves the log up to there without any
// key, and that nothing up to there was cut off.
type Anchor struct {
	Session uuid.UUID
	Seq     uint64
	Hash    Hash
}

// ParseAnchor reads "SESSION SEQ HASH", the hash in hexadecimal. Errors:
// ErrInvalid.
func ParseAnchor(text string) (a Anchor, err error) {
	bad := func(what string, got string) (Anchor, error) {
		return Anchor{}, invalidf("anchor: %s: got %.80q, want \"SESSION SEQ HASH\"", what, got)
	}
	parts := strings.Fields(text)
	if len(parts) != 3 {
		return bad("three words", text)
	}
	if a.Session, err = uuid.Parse(parts[0]); err != nil || len(parts[0]) != 36 {
		return bad("session", parts[0])
	}
	if a.Seq, err = strconv.ParseUint(parts[1], 10, 64); err != nil || a.Seq == 0 {
		return bad("seq", parts[1])
	}
	h, err := hex.DecodeString(parts[2])
	if err != nil || len(h) != len(a.Hash) {
		return bad("hash", parts[2])
	}
	a.Hash = Hash(h)
	return a, nil
}

// String is what ParseAnchor reads.
func (a Anchor) String() string { return fmt.Sprintf("%s %d %x", a.Session, a.Seq, a.Hash[:]) }

// What a check can say of a whole store, from best to worst.
const (
	StatusVerified   = "verified"
	StatusRedacted   = "verified_with_redactions" // and what was erased says so
	StatusIncomplete = "incomplete"               // what is missing was lost to damage, and is stated
	StatusFailed     = "failed"
)

// Status sums the report up. A store that was salvaged and of which nothing else
// is wrong is incomplete: it says itself what it lost.
func (r *CheckReport) Status() string {
	absent := func(f Finding) bool { return f.Absent }
	switch {
	case len(r.Findings) > 0 && r.Salvaged && r.More == 0 && !slices.ContainsFunc(r.Findings, func(f Finding) bool { return !absent(f) }):
		return StatusIncomplete
	case len(r.Findings) > 0:
		return StatusFailed
	case r.Redacted+r.Withheld+r.Purged+r.Tombstones > 0:
		return StatusRedacted
	}
	return StatusVerified
}

// Kinds of findings about what was signed or noted down.
const (
	FindRollback  = "rollback"  // the journal is older than what was signed, or what would tell is gone
	FindTree      = "tree"      // it is as long, and not what was signed
	FindTwoHeads  = "two-heads" // one key signed two journals under one origin
	FindSignature = "signature" // a checkpoint that the key did not sign, or that is of another store
	FindAnchor    = "anchor"    // a log that is not, or no more, what was noted down of it
	FindKey       = "key"       // the signing key is not where it should be: a notice, no finding
)

// Against is what a check is given that was kept elsewhere. Without it a store
// that was put back as a whole looks like itself.
type Against struct {
	Key         signednote.Verifier // of the checkpoints; nil: the store's own, which whoever can write the store can replace
	Checkpoints []Checkpoint
	Anchors     []Anchor
}

// SignedReport is what came of comparing the journal with what was signed.
type SignedReport struct {
	Signed    *SignedHead  // CHECKPOINT; nil: there is none that binds the store
	Outside   []SignedHead // Against.Checkpoints, in their order
	Heads     []Anchor     // the Against.Anchors that hold
	Anchored  uint64       // positions that a checkpoint from outside vouches for
	Positions uint64       // of the journal
	Salvaged  bool         // frames were lost before, as the store itself says
}

// SignedHead is a checkpoint that the journal was compared with.
type SignedHead struct {
	Checkpoint
	Holds bool // the key signed it, and the journal begins with what it was signed over
}

// signedCheck compares the journal, as it is read, with what was signed and what
// was noted down elsewhere. Every root is hashed anew from the leaves: two
// checkpoints that both hold are consistent with each other.
type signedCheck struct {
	c       *checker
	key     signednote.Verifier
	tree    treeEdge
	own     *SignedHead
	outside []*SignedHead
	due     []*SignedHead // to be compared, smallest first
	roots   map[*SignedHead]Hash
	anchors map[Ref]Hash // what the journal has where an anchor was noted
}

// begin reads CHECKPOINT and orders what has to be compared.
func (s *signedCheck) begin(c *checker) {
	s.c, s.roots, s.anchors = c, map[*SignedHead]Hash{}, map[Ref]Hash{}
	c.report.Salvaged = c.s.identity.Salvaged
	for _, a := range c.o.Against.Anchors {
		s.anchors[Ref{a.Session, a.Seq}] = Hash{}
	}
	if s.key = c.o.Against.Key; s.key == nil && c.s.identity.Key != "" {
		key, err := ParseVerifierKey(c.s.identity.Key)
		if err != nil {
			c.add(Finding{Kind: FindSignature, Detail: reasonOf(err)})
		}
		s.key = key
	}
	own, err := readCheckpoint(c.s.dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if c.o.Against.Key != nil {
			c.add(Finding{Kind: FindSignature, Detail: "a key was given, and nothing here is signed"})
		}
	case err != nil:
		if c.s.evidence == nil { // else it is told there
			c.add(Finding{Kind: FindSignature, Detail: reasonOf(err)})
		}
	default:
		s.own = s.take(own, "CHECKPOINT")
		c.report.Signed = s.own
	}
	for i := range c.o.Against.Checkpoints {
		s.outside = append(s.outside, s.take(c.o.Against.Checkpoints[i], "a checkpoint from outside"))
	}
	slices.SortStableFunc(s.due, func(a, b *SignedHead) int { return cmp.Compare(a.Size, b.Size) })
	s.compare()
}

// superseded reports whether a checkpoint binds the store no more, since a
// rollback of it was accepted.
func (s *Store) superseded(c *Checkpoint) bool {
	store, incarnation, ok := c.Of()
	return ok && store == s.identity.Store && incarnation <= s.identity.Accepted
}

// take checks who signed a head; one that nobody vouches for is not compared.
func (s *signedCheck) take(c Checkpoint, what string) *SignedHead {
	h := &SignedHead{Checkpoint: c}
	store, _, ok := c.Of()
	switch {
	case s.key == nil:
		s.c.add(Finding{Kind: FindSignature, Detail: fmt.Sprintf("%s of %s can't be verified: no key is known", what, c.Origin)})
	case c.Verify(s.key) != nil:
		if what == "CHECKPOINT" && s.c.o.Against.Key == nil && s.c.s.evidence != nil {
			break // it is told there
		}
		s.c.add(Finding{Kind: FindSignature, Detail: what + ": " + c.Verify(s.key).Error()})
	case !ok || store != s.c.s.identity.Store:
		s.c.add(Finding{Kind: FindSignature, Detail: fmt.Sprintf("%s is of %s, this store is %s", what, c.Origin, s.c.s.identity.Origin())})
	default:
		s.due = append(s.due, h)
	}
	return h
}

// leaf takes the next position, and compares the heads of that size.
func (s *signedCheck) leaf(p *scanned) {
	if p.leafErr != nil {
		s.tree.spoil(p.leafErr)
	} else {
		s.tree.add(p.leaf, nil)
	}
	s.compare()
}

func (s *signedCheck) compare() {
	for ; len(s.due) > 0 && s.due[0].Size == s.tree.size; s.due = s.due[1:] {
		if root, err := s.tree.root(); err == nil {
			s.roots[s.due[0]] = root
			s.due[0].Holds = root == s.due[0].Root
		}
	}
}

// event notes what the journal has where an anchor was kept.
func (s *signedCheck) event(ev *Event) {
	if len(s.anchors) == 0 {
		return
	}
	at := Ref{ev.Session, ev.Seq}
	if _, ok := s.anchors[at]; ok {
		s.anchors[at] = ev.Hash
	}
}

// end reports what does not hold. next is the end of the journal.
func (s *signedCheck) end(next uint64) {
	s.c.report.Positions = next
	cut := map[*SignedHead]bool{}
	for _, h := range s.due { // larger than the journal
		cut[h] = true
	}
	switch {
	case s.own == nil || s.c.s.evidence != nil: // what is wrong is told there
	case cut[s.own]: // signed since this check began
		s.c.report.Signed = nil
	default:
		s.differs(s.own, "CHECKPOINT", FindTree)
	}
	for _, h := range s.outside {
		kind := FindTree
		if s.own != nil && s.own.Holds && s.own.Origin == h.Origin {
			kind = FindTwoHeads
		}
		switch {
		case !cut[h]:
			s.differs(h, "a checkpoint that was kept elsewhere", kind)
		case s.c.s.superseded(&h.Checkpoint):
			s.c.add(Finding{Kind: FindRollback, Position: next, Detail: fmt.Sprintf("a checkpoint of %s that was kept elsewhere was signed over %d positions, the journal has %d; the rollback was accepted, as %s in the store's own session says",
				h.Origin, h.Size, next, TypeStoreRollbackAccepted)})
		default:
			s.c.add(Finding{Kind: FindRollback, Position: next, Detail: fmt.Sprintf("a checkpoint of %s that was kept elsewhere was signed over %d positions, the journal has %d", h.Origin, h.Size, next)})
		}
		if h.Holds {
			s.c.report.Anchored = max(s.c.report.Anchored, h.Size)
		}
		s.c.report.Outside = append(s.c.report.Outside, *h)
	}
	s.twoHeads()
	s.heads()
}

// differs reports a head that was compared and does not hold.
func (s *signedCheck) differs(h *SignedHead, what, kind string) {
	root, compared := s.roots[h]
	detail := fmt.Sprintf("%s of %s at size %d ", what, h.Origin, h.Size)
	switch {
	case h.Holds:
		return
	case compared && kind == FindTwoHeads:
		detail += fmt.Sprintf("and the CHECKPOINT here were signed by one key under one origin and contradict each other (root %x, here %x): a copy of the store went on by itself, or the journal was rewritten and signed again", h.Root[:8], root[:8])
	case compared:
		detail += fmt.Sprintf("has root %x, the journal %x: what was signed was changed since", h.Root[:8], root[:8])
	case s.tree.err != nil && h != s.own: // the damage is told by itself
		detail += "can't be compared: " + reasonOf(s.tree.err)
	default:
		return // its signature was refused
	}
	s.c.add(Finding{Kind: kind, Position: h.Size, Detail: detail, Absent: !compared})
}

// twoHeads finds contradictions among what was given, whatever the store holds.
func (s *signedCheck) twoHeads() {
	var all []*SignedHead
	for _, h := range append([]*SignedHead{s.own}, s.outside...) {
		if h == nil || s.key == nil || h.Verify(s.key) != nil {
			continue
		}
		for _, other := range all {
			if other.Origin == h.Origin && other.Size == h.Size && other.Root != h.Root && !(other.Holds || h.Holds) {
				s.c.add(Finding{Kind: FindTwoHeads, Position: h.Size, Detail: fmt.Sprintf("two checkpoints of %s at size %d have the roots %x and %x: one key signed two heads under one origin", h.Origin, h.Size, other.Root[:8], h.Root[:8])})
			}
		}
		all = append(all, h)
	}
}

// heads compares the anchors of single sessions.
func (s *signedCheck) heads() {
	for _, a := range s.c.o.Against.Anchors {
		got := s.anchors[Ref{a.Session, a.Seq}]
		f := Finding{Kind: FindAnchor, Session: a.Session, Seq: a.Seq}
		e := s.c.fold.st.over.rows[a.Session]
		switch {
		case got == a.Hash && !got.IsZero(): // zero: the journal has nothing there
			s.c.report.Heads = append(s.c.report.Heads, a)
			continue
		case !got.IsZero():
			f.Detail = fmt.Sprintf("the log has hash %x at seq %d, the anchor says %x: it was rewritten", got[:8], a.Seq, a.Hash[:8])
		case e == nil:
			f.Detail = "the anchor is of a session that has no log here: it was removed"
		case e.row.Head < a.Seq:
			f.Detail = fmt.Sprintf("the log ends at seq %d, the anchor is of seq %d: it was truncated", e.row.Head, a.Seq)
		default:
			f.Detail = fmt.Sprintf("seq %d, which the anchor is of, can't be read", a.Seq)
		}
		s.c.add(f)
	}
}
