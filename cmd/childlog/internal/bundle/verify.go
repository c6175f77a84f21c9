package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/note"

	"childlog/eventlog"
	"childlog/replay"
)

// Anchors are what a check holds a bundle against. Both may be absent; then it
// can only be shown to agree with itself.
type Anchors struct {
	Key        note.Verifier // of the store; nil: none
	Checkpoint []byte        // a signed checkpoint that was kept outside; nil: none
}

// Verify reads a bundle from front to end and checks everything in it. Nothing
// in the bundle is trusted, the verifier key in it least of all. Memory grows
// with the number of sessions and their policy events.
//
// What is wrong inside is a finding. Errors: ErrInvalid (no bundle, or a
// checkpoint outside that can't be read), ErrNewerFormat, those of in.
func Verify(ctx context.Context, in io.Reader, a Anchors) (*Report, error) {
	v := &verifier{a: a, logs: map[uuid.UUID]*checkedLog{}, started: map[[2]uuid.UUID]told{}, granted: map[uuid.UUID]told{}, purged: map[uuid.UUID]bool{}}
	head, list, end, err := read(ctx, in, visitor{head: v.head, frame: v.frame, subtree: v.subtree})
	r := &v.report
	r.Head, r.Frames, r.Events, r.Withheld, r.Digest = *head, end.frames, end.events, end.withheld, end.digest
	switch {
	case errors.Is(err, eventlog.ErrCorrupt): // what was read so far is no proof of anything
		v.fail(eventlog.FindFrame, uuid.Nil, 0, "%v", err)
		for _, l := range list {
			r.Sessions = append(r.Sessions, SessionReport{Listed: l})
		}
		return r, nil
	case err != nil:
		return nil, err
	}
	v.finish(list, &end)
	return r, nil
}

// checkedLog is how far a session was followed.
type checkedLog struct {
	logState
	covered uint64
	policy  []eventlog.Event
	gone    []commitmentOf        // contents that are not here
	marked  map[commitmentOf]bool // contents that a marker says were erased
}

// told is one side's word for a delegation.
type told struct {
	seq     uint64
	other   uuid.UUID
	receipt eventlog.Hash
}

type verifier struct {
	a         Anchors
	report    Report
	tree      frontier
	signed    *eventlog.Checkpoint // the one inside, verified or not
	passed    bool                 // the tree was compared at its size
	outside   *eventlog.Checkpoint
	logs      map[uuid.UUID]*checkedLog
	started   map[[2]uuid.UUID]told // parent, child
	granted   map[uuid.UUID]told
	purged    map[uuid.UUID]bool // by the word of the store's own session
	accounted uint64             // positions that it says were purged
}

func (v *verifier) fail(kind string, session uuid.UUID, seq uint64, format string, args ...any) {
	v.report.add(Finding{Kind: kind, Session: session, Seq: seq, Detail: fmt.Sprintf(format, args...)})
}

func (v *verifier) missing(kind string, session uuid.UUID, seq uint64, format string, args ...any) {
	v.report.add(Finding{Kind: kind, Session: session, Seq: seq, Detail: fmt.Sprintf(format, args...), Missing: true})
}

// head looks at who vouches for what follows.
func (v *verifier) head(h *Head) error {
	v.report.Head = *h
	if h.Note == nil {
		v.missing(FindSignature, uuid.Nil, 0, "no checkpoint is in the bundle: nobody vouches for it")
	} else if c, err := eventlog.ParseCheckpoint(h.Note); err != nil {
		v.fail(FindSignature, uuid.Nil, 0, "%v", err)
	} else {
		v.inside(&c)
	}
	if v.a.Checkpoint != nil {
		c, err := eventlog.ParseCheckpoint(v.a.Checkpoint)
		if err == nil && v.a.Key != nil {
			err = c.Verify(v.a.Key)
		}
		if err != nil {
			return fmt.Errorf("%w: the checkpoint outside: %w", eventlog.ErrInvalid, err)
		}
		if v.outside = &c; c.Origin != v.origin() {
			v.outside = nil
			v.missing(FindSignature, uuid.Nil, 0, "the checkpoint outside is of %s, the bundle of %s: the store began anew since (a restore, a salvage, a rollback that was accepted), or it is another", c.Origin, v.origin())
		}
	}
	return v.atSize()
}

// origin names the log that a checkpoint of the bundle's store is of.
func (v *verifier) origin() string {
	return eventlog.Identity{Store: v.report.Store, Incarnation: v.report.Incarnation}.Origin()
}

// inside takes the checkpoint of the bundle for what it is: of this store, of a
// size that the bundle has, signed by whom the caller trusts.
func (v *verifier) inside(c *eventlog.Checkpoint) {
	v.signed, v.report.Checkpoint = c, c
	if c.Origin != v.origin() {
		v.fail(FindSignature, uuid.Nil, 0, "the checkpoint is of %s, the bundle of %s", c.Origin, v.origin())
	}
	if size := v.report.Size; c.Size > size {
		v.fail(FindTree, uuid.Nil, 0, "the checkpoint is of %d positions, the bundle accounts for %d", c.Size, size)
	}
	if v.a.Key == nil {
		return
	}
	if err := c.Verify(v.a.Key); err != nil {
		v.fail(FindSignature, uuid.Nil, 0, "%v", err)
		return
	}
	v.report.Signer = fmt.Sprintf("%s+%08x", v.a.Key.Name(), v.a.Key.KeyHash())
}

// atSize compares the tree with the checkpoints that are of its size now.
func (v *verifier) atSize() error {
	for _, c := range []*eventlog.Checkpoint{v.signed, v.outside} {
		if c == nil || c.Size != v.tree.size {
			continue
		}
		if root := v.tree.root(); root != c.Root {
			v.fail(FindTree, uuid.Nil, 0, "the tree of %d positions is %x, the checkpoint of %s says %x", c.Size, root[:8], c.Origin, c.Root[:8])
		} else if c == v.outside {
			v.report.Anchored = true
		}
		if c == v.signed {
			v.passed = true
		}
	}
	return nil
}

func (v *verifier) add(n node) error {
	if v.signed != nil && v.tree.size < v.signed.Size && v.tree.size+1<<n.level > v.signed.Size {
		v.fail(FindTree, uuid.Nil, 0, "a subtree of level %d at position %d spans the size of the checkpoint", n.level, n.first())
	}
	if err := v.tree.add(n); err != nil {
		return &eventlog.CorruptError{Reason: "bundle: " + err.Error()}
	}
	return v.atSize()
}

func (v *verifier) subtree(n node, tomb bool) error {
	if tomb {
		v.report.Purged++
	} else if v.report.Whole {
		v.missing(eventlog.FindMissing, uuid.Nil, 0, "positions %d to %d: frames are not here; the store itself may have lost them", n.first(), n.first()+1<<n.level-1)
	}
	return v.add(n)
}

// frame checks one frame with its contents.
func (v *verifier) frame(f *eventlog.RawFrame, withheld []bool) error {
	l := v.logs[f.Session]
	if l == nil {
		l = &checkedLog{logState: logState{hash: eventlog.Genesis(f.Session), imported: f.Imported}, marked: map[commitmentOf]bool{}}
		v.logs[f.Session] = l
	}
	switch {
	case f.First > l.head+1:
		v.missing(eventlog.FindMissing, f.Session, l.head+1, "seq %d to %d: the frames are not here", l.head+1, f.First-1)
	case f.First <= l.head:
		v.fail(eventlog.FindChain, f.Session, f.First, "seqs that were there before come again")
	case f.Prev != l.hash:
		v.fail(eventlog.FindChain, f.Session, f.First, "the chain before it: want %x, got %x", l.hash[:8], f.Prev[:8])
	}
	if f.Imported != l.imported {
		v.fail(eventlog.FindChain, f.Session, f.First, "frames that came from another store are mixed with others")
	}
	l.head, l.hash = f.Last(), f.After()
	for i := range f.Events {
		v.event(l, &f.Events[i], f.Chunks[i], withheld[i])
	}
	if err := v.add(node{0, f.Position, f.Leaf}); err != nil {
		return err
	}
	if v.signed != nil && f.Position < v.signed.Size {
		l.covered = l.head
	}
	return nil
}

func (v *verifier) event(l *checkedLog, ev *eventlog.Event, chunks [][]byte, withheld bool) {
	switch {
	case !ev.HasContent:
	case chunks != nil:
		v.report.Contents++
		if _, err := eventlog.DecodeChunks(ev, chunks); err != nil {
			v.fail(eventlog.FindContent, ev.Session, ev.Seq, "%v", err)
		}
	case !withheld:
		l.gone = append(l.gone, commitmentOf{ev.Seq, ev.Commitment})
	}
	if ev.Inherited != nil {
		return
	}
	for _, c := range erasedBy(ev) {
		l.marked[c] = true
	}
	if id := purgedBy(ev); id != uuid.Nil {
		v.purged[id] = true
		v.accounted += ev.Facts.Uint("frames")
	}
	if ev.PolicyBearing {
		kept := *ev
		kept.Facts = bytes.Clone(ev.Facts)
		l.policy = append(l.policy, kept)
	} else if !eventlog.IsKnown(ev.Type, ev.Version) {
		v.missing(FindPolicy, ev.Session, ev.Seq, "%s version %d was written by a newer version: its policy can't be judged by this one", ev.Type, ev.Version)
	}
	if ev.Source != eventlog.SourceDelegation {
		return
	}
	switch ev.Type {
	case eventlog.TypeDelegationStarted:
		child := ev.Facts.UUID("child")
		v.started[[2]uuid.UUID{ev.Session, child}] = told{ev.Seq, child, receiptOf(ev)}
	case eventlog.TypeDelegationGranted:
		v.granted[ev.Session] = told{ev.Seq, ev.Facts.UUID("parent"), eventlog.Digest(ev.Facts)}
	}
}

// finish judges what only shows at the end.
func (v *verifier) finish(list []Listed, end *trailer) {
	r := &v.report
	r.Root = v.tree.root()
	if v.tree.size != r.Size {
		v.missing(FindTree, uuid.Nil, 0, "the bundle accounts for %d positions and says %d", v.tree.size, r.Size)
	} else if r.Root != end.root {
		v.fail(FindTree, uuid.Nil, 0, "the root of the tree: the trailer says %x, it is %x", end.root[:8], r.Root[:8])
	}
	if v.signed != nil && !v.passed && v.signed.Size <= r.Size {
		v.fail(FindTree, uuid.Nil, 0, "the tree has no root at %d positions, the size of the checkpoint", v.signed.Size)
	}
	if v.outside != nil && !r.Anchored {
		v.outsideMissed()
	}
	named := map[uuid.UUID]bool{}
	for _, l := range list {
		named[l.Session] = true
		r.Sessions = append(r.Sessions, v.session(l))
	}
	for id, l := range v.logs {
		if !named[id] {
			v.fail(eventlog.FindMissing, id, l.head, "frames of a session that the bundle does not name")
		}
	}
	if r.Whole && r.Purged != v.accounted {
		v.missing(eventlog.FindMissing, uuid.Nil, 0, "%d positions are marked as purged, the store's own log accounts for %d", r.Purged, v.accounted)
	}
	v.family()
}

// outsideMissed says why the checkpoint outside proves nothing here.
func (v *verifier) outsideMissed() {
	switch {
	case v.outside.Size > v.report.Size:
		v.missing(FindTree, uuid.Nil, 0, "the checkpoint outside is of %d positions, the bundle ends at %d: it is older, or its end was cut off", v.outside.Size, v.report.Size)
	case !hasFinding(&v.report, FindTree):
		v.missing(FindTree, uuid.Nil, 0, "the checkpoint outside is of %d positions, and this selection has no root at that size; a bundle of the whole store has", v.outside.Size)
	}
}

func hasFinding(r *Report, kind string) bool {
	for _, f := range r.Findings {
		if f.Kind == kind && !f.Missing {
			return true
		}
	}
	return false
}

// session judges one log as a whole.
func (v *verifier) session(want Listed) SessionReport {
	out := SessionReport{Listed: want}
	l := v.logs[want.Session]
	if l == nil {
		v.missing(eventlog.FindMissing, want.Session, 1, "seq 1 to %d: no frame of the session is here", want.Head)
		return out
	}
	out.Covered = l.covered
	switch {
	case l.head < want.Head:
		v.missing(eventlog.FindMissing, want.Session, l.head+1, "seq %d to %d: the frames are not here", l.head+1, want.Head)
	case l.head > want.Head || l.hash != want.Hash:
		v.fail(eventlog.FindChain, want.Session, l.head, "the head is seq %d with hash %x, the list of sessions says %d with %x", l.head, l.hash[:8], want.Head, want.Hash[:8])
	default:
		out.Complete = true
	}
	if l.imported != want.Imported {
		v.fail(eventlog.FindChain, want.Session, 0, "from another store: the list of sessions says %t, the frames say %t", want.Imported, l.imported)
	}
	if v.signed != nil && l.covered < l.head {
		v.missing(FindTree, want.Session, l.covered+1, "seq %d to %d: the checkpoint of %d positions does not cover them", l.covered+1, l.head, v.signed.Size)
	}
	for _, c := range l.gone {
		switch {
		case l.marked[c]:
			v.report.Erased++
			out.Gone++
		case l.imported: // it came without it; what became of it stands where it came from
			v.report.Withheld++
			out.Gone++
		default:
			v.missing(eventlog.FindContent, want.Session, c.seq, "the content is gone, and nothing says that it was redacted")
		}
	}
	if out.Complete {
		v.policy(want.Session, l)
	}
	return out
}

// policy folds what the log says of its rights, as a resume there would.
func (v *verifier) policy(id uuid.UUID, l *checkedLog) {
	if id == eventlog.StoreSession {
		return // it holds none
	}
	if _, err := replay.Fold(l.policy); err != nil {
		v.fail(FindPolicy, id, 0, "%v", err)
	}
	l.policy = nil
}

// family compares what parents and children say of each other, where both logs
// are here. In a bundle of a whole store both must be.
func (v *verifier) family() {
	for k, s := range v.started {
		g, ok := v.granted[k[1]]
		switch {
		case ok && (g.receipt != s.receipt || g.other != k[0]):
			v.fail(eventlog.FindDelegation, k[0], s.seq, "child %s was started with receipt %x, its log holds %x of parent %s", k[1], s.receipt[:8], g.receipt[:8], g.other)
		case !ok && v.logs[k[1]] != nil && !v.logs[k[0]].imported:
			v.fail(eventlog.FindDelegation, k[0], s.seq, "child %s was started here and its log holds no receipt", k[1])
		case !ok && v.logs[k[1]] == nil && v.report.Whole && !v.logs[k[0]].imported && !v.purged[k[1]]:
			v.missing(eventlog.FindDelegation, k[0], s.seq, "child %s was started here and has no log in this bundle of a whole store", k[1])
		}
	}
	for child, g := range v.granted {
		if _, ok := v.started[[2]uuid.UUID{g.other, child}]; !ok && v.logs[g.other] != nil && !v.logs[child].imported {
			v.fail(eventlog.FindDelegation, child, g.seq, "the log of its parent %s does not name it", g.other)
		}
	}
}
