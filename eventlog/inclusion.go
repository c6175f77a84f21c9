package eventlog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
	signednote "golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Proof shows without a store that an event stands in a session's log: its
// header is the seq-th of the session's chain, in a frame that is a leaf of the
// tree whose head a key signed. It says nothing of what came after, and nothing
// of the content unless that, or its salt, is in it.
//
// Of the other events of the frame it holds hashes only: whoever is shown one
// event is not shown its neighbours.
type Proof struct {
	Checkpoint Checkpoint
	Position   uint64 // of the frame: the index of the leaf
	Path       []Hash // from the leaf's sibling up
	Event      EventProof
}

// EventProof is what the leaf is made of.
type EventProof struct {
	Session uuid.UUID
	Seq     uint64
	First   uint64 // seq of the frame's first event
	Count   uint32 // of the frame's events
	Before  Hash   // chain hash before the event
	Header  []byte // of the event, as it is hashed
	After   []Hash // SHA-256(tag, header) of each event of the frame behind it
	Salt    *Salt  // of the content; nil: not in the proof
	Content []byte // nil: not in the proof

	// Imported: the frame came from another store. The event is evidence,
	// whatever it says of itself; the leaf says so, too.
	Imported bool
}

// ProveOptions say what of the content goes into a proof.
type ProveOptions struct {
	Content bool // the content and its salt
	Salt    bool // the salt alone: who has the content can hold it against the proof, and short ones can be guessed
}

// Prove makes the proof of an event, against the last checkpoint, or a new one
// if that does not cover it and the store is open for writing with its key.
//
// Errors: ErrNotFound (no such event; nothing is signed that covers it), those of
// Checkpoint, ErrCorrupt (also a content that was erased and is asked for).
func (s *Store) Prove(ctx context.Context, session uuid.UUID, seq uint64, o ProveOptions) (*Proof, error) {
	e, err := s.lookup(session)
	if err != nil {
		return nil, err
	}
	if seq == 0 || seq > e.row.Head {
		return nil, fmt.Errorf("%w: session %s has no seq %d, its head is %d", ErrNotFound, session, seq, e.row.Head)
	}
	list, err := s.st.frames(e, seq, 1)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || list[0].first > seq {
		return nil, &CorruptError{Session: session, Seq: seq, Reason: "no frame is known that holds it"}
	}
	p := &Proof{Position: list[0].pos, Event: EventProof{Session: session, Seq: seq}}
	if err := s.journal.view(func(tx *bolt.Tx) error { return p.Event.read(tx, s, list[0], o) }); err != nil {
		return nil, err
	}
	if p.Checkpoint, err = s.signedOver(ctx, p.Position); err != nil {
		return nil, err
	}
	r, err := s.TreeHashes(ctx, p.Checkpoint.Size)
	if err != nil {
		return nil, err
	}
	path, err := tlog.ProveRecord(int64(p.Checkpoint.Size), int64(p.Position), r)
	if err != nil {
		return nil, err
	}
	for _, h := range path {
		p.Path = append(p.Path, Hash(h))
	}
	return p, nil
}

// signedOver is a checkpoint that covers a position.
func (s *Store) signedOver(ctx context.Context, position uint64) (Checkpoint, error) {
	c, ok := s.Signed()
	if ok && position < c.Size {
		return c, nil
	}
	if s.key != nil {
		return s.Checkpoint(ctx)
	}
	return c, fmt.Errorf("%w: no checkpoint covers position %d", ErrNotFound, position)
}

// read takes the event from its frame.
func (p *EventProof) read(tx *bolt.Tx, s *Store, at framePos, o ProveOptions) error {
	raw, err := txSource{s.st, tx}.frame(at.pos)
	if err != nil {
		return err
	}
	f, err := promised(append([]byte(nil), raw...), p.Session, at)
	if err != nil {
		return err
	}
	if p.Seq > f.last() {
		return damagedFrame(p.Session, at, fmt.Sprintf("the frame ends at seq %d, want %d in it", f.last(), p.Seq))
	}
	p.First, p.Count = f.first, uint32(f.count)
	p.Imported = f.imported
	r := frameReader{frame: f, rest: f.headers}
	hash := f.prev
	var ev Event
	for i := range f.count {
		header, err := r.next(&ev)
		if err != nil {
			return damagedFrame(p.Session, at, err.Error())
		}
		inner := headerHash(header)
		switch seq := f.first + i; {
		case seq < p.Seq:
			hash = chainLink(hash, inner)
		case seq > p.Seq:
			p.After = append(p.After, inner)
		default:
			p.Before, p.Header = hash, header
			if !o.Content && !o.Salt || !ev.HasContent {
				continue
			}
			ev.Session, ev.Position = p.Session, at.pos
			content, salt, err := readContent(&ev, uint32(i), tx.Bucket(bucketContents).Get)
			if err != nil {
				return &CorruptError{Session: p.Session, Seq: p.Seq, Position: at.pos, HasPosition: true, Reason: err.Error()}
			}
			if p.Salt = &salt; o.Content {
				p.Content = content
			}
		}
	}
	return nil
}

func headerHash(header []byte) Hash {
	return sha256.Sum256(append([]byte(tagHeader), header...))
}

// chainLink is chainNext for a header of which only the hash is known.
func chainLink(prev, inner Hash) Hash {
	var b [16 + 32 + 32]byte
	copy(b[:], tagChain)
	copy(b[16:], prev[:])
	copy(b[48:], inner[:])
	return sha256.Sum256(b[:])
}

// Verify checks the proof against the key and returns the event, without its
// content. Everything that the event says, its session, seq and facts included,
// is then covered by the signature. Errors: ErrUnverified.
func (p *Proof) Verify(key signednote.Verifier) (*Event, error) {
	fail := func(format string, args ...any) (*Event, error) {
		return nil, fmt.Errorf("%w: proof of session %s seq %d: %s", ErrUnverified, p.Event.Session, p.Event.Seq, fmt.Sprintf(format, args...))
	}
	if err := p.Checkpoint.Verify(key); err != nil {
		return nil, err
	}
	if _, _, ok := p.Checkpoint.Of(); !ok {
		return fail("its checkpoint is of %.80q, which is no childlog store", p.Checkpoint.Origin)
	}
	e := &p.Event
	if e.First == 0 || e.Seq < e.First || e.Seq-e.First >= uint64(e.Count) || uint64(len(e.After)) != uint64(e.Count)-1-(e.Seq-e.First) {
		return fail("it is not in a frame of %d events from seq %d with %d behind it", e.Count, e.First, len(e.After))
	}
	ev := new(Event)
	if err := decodeHeader(e.Header, ev); err != nil {
		return fail("%v", err)
	}
	if ev.Seq != e.Seq {
		return fail("the header is of seq %d", ev.Seq)
	}
	ev.Session, ev.Position, ev.Imported = e.Session, p.Position, e.Imported
	ev.Hash = chainLink(e.Before, headerHash(e.Header))
	after := ev.Hash
	for _, inner := range e.After {
		after = chainLink(after, inner)
	}
	kind := byte(leafNative)
	if e.Imported {
		kind = leafImported
	}
	leaf := leafHash(kind, e.Session, e.First, e.Count, after)
	if p.Checkpoint.Size > math.MaxInt64 || p.Position >= p.Checkpoint.Size {
		return fail("position %d is not below the checkpoint's size %d", p.Position, p.Checkpoint.Size)
	}
	path := make(tlog.RecordProof, len(p.Path))
	for i, h := range p.Path {
		path[i] = tlog.Hash(h)
	}
	if err := tlog.CheckRecord(path, int64(p.Checkpoint.Size), tlog.Hash(p.Checkpoint.Root), int64(p.Position), tlog.Hash(leaf)); err != nil {
		return fail("the event leads to another root than the one that was signed")
	}
	if e.Content != nil {
		if err := p.CheckContent(ev, e.Content); err != nil {
			return nil, err
		}
	}
	return ev, nil
}

// CheckContent holds a content against a verified event. Errors: ErrUnverified,
// ErrNotFound (the event has no content, or its salt is not in the proof).
func (p *Proof) CheckContent(ev *Event, content []byte) error {
	switch {
	case !ev.HasContent:
		return fmt.Errorf("%w: the event has no content", ErrNotFound)
	case p.Event.Salt == nil:
		return fmt.Errorf("%w: the salt of the content is not in the proof", ErrNotFound)
	case uint64(len(content)) != ev.ContentLen || commit(*p.Event.Salt, content) != ev.Commitment:
		return fmt.Errorf("%w: the content is not the one that the event committed to", ErrUnverified)
	}
	return nil
}

// ConsistencyProof shows without a store that a log only grew from one
// checkpoint to another: nothing that the older one was signed over was changed
// or removed.
type ConsistencyProof struct {
	Old, New Checkpoint
	Path     []Hash
}

// ProveConsistency makes the proof. Errors: ErrRollback (one of them is not of
// this journal, or of a longer one), ErrInvalid (old is larger than new).
func (s *Store) ProveConsistency(ctx context.Context, old, new Checkpoint) (*ConsistencyProof, error) {
	if old.Size > new.Size {
		return nil, invalidf("the older checkpoint has %d positions, the newer %d", old.Size, new.Size)
	}
	for _, c := range []Checkpoint{old, new} {
		root, err := s.rootAt(ctx, c.Size)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if err != nil || root != c.Root {
			evidence := RolledBackDiffers
			if err != nil {
				evidence = RolledBackSmaller
			}
			return nil, &RollbackError{Path: s.dir, Evidence: evidence, Origin: c.Origin, Size: c.Size, Root: c.Root, Found: s.st.durable()}
		}
	}
	p := &ConsistencyProof{Old: old, New: new}
	if old.Size == 0 || old.Size == new.Size {
		return p, nil
	}
	r, err := s.TreeHashes(ctx, new.Size)
	if err != nil {
		return nil, err
	}
	path, err := tlog.ProveTree(int64(new.Size), int64(old.Size), r)
	for _, h := range path {
		p.Path = append(p.Path, Hash(h))
	}
	return p, err
}

// Verify checks the proof against the key. Errors: ErrUnverified.
func (p *ConsistencyProof) Verify(key signednote.Verifier) error {
	if err := errors.Join(p.Old.Verify(key), p.New.Verify(key)); err != nil {
		return err
	}
	fail := func(why string) error {
		return fmt.Errorf("%w: %s at size %d does not continue %s at size %d: %s", ErrUnverified, p.New.Origin, p.New.Size, p.Old.Origin, p.Old.Size, why)
	}
	was, _, ok1 := p.Old.Of()
	is, _, ok2 := p.New.Of()
	switch {
	case !ok1 || !ok2 || was != is:
		return fail("they are not of one store")
	case p.Old.Size > p.New.Size:
		return fail("the log got shorter")
	case p.Old.Size == 0:
		var nothing treeEdge
		if root, _ := nothing.root(); root != p.Old.Root || len(p.Path) > 0 {
			return fail("the older one is no head of an empty log")
		}
		return nil
	}
	path := make(tlog.TreeProof, len(p.Path))
	for i, h := range p.Path {
		path[i] = tlog.Hash(h)
	}
	if err := tlog.CheckTree(path, int64(p.New.Size), tlog.Hash(p.New.Root), int64(p.Old.Size), tlog.Hash(p.Old.Root)); err != nil {
		return fail("the proof leads to other roots")
	}
	return nil
}
