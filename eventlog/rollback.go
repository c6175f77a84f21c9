package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
)

// What shows that a store is not what it was. The strings are stable.
const (
	RolledBackSmaller = "smaller"               // the journal is shorter than CHECKPOINT says
	RolledBackDiffers = "differs"               // it is as long, and another one
	RolledBackIndex   = "index-ahead"           // the index has seen more of it
	RolledBackMissing = "checkpoint-missing"    // a store that signs has no CHECKPOINT
	RolledBackForeign = "checkpoint-foreign"    // it is signed by another key or of another log
	RolledBackBroken  = "checkpoint-unreadable" // it is no checkpoint
)

// RollbackError says that the journal is not, or can't be shown to be, the one
// that was there before: an older store.db was put back, its end was cut off, or
// what would tell was taken away. Fields that are not known are zero.
type RollbackError struct {
	Path     string
	Evidence string // one of the RolledBack constants
	Origin   string // of what was there before
	Size     uint64 // positions that it had
	Root     Hash   // of the tree over them
	Found    uint64 // positions that there are now
	Detail   string // what else is to be said

	note []byte // the signed statement, if there is one
}

func (e *RollbackError) Error() string {
	if e.Path == "" {
		return "rollback: " + e.reason()
	}
	return "rollback: " + e.Path + ": " + e.reason()
}

// kind is that of the finding.
func (e *RollbackError) kind() string {
	switch e.Evidence {
	case RolledBackDiffers:
		return FindTree
	case RolledBackForeign, RolledBackBroken:
		return FindSignature
	}
	return FindRollback
}

func (e *RollbackError) reason() string {
	what := map[string]string{
		RolledBackSmaller: fmt.Sprintf("CHECKPOINT was signed over %d positions, the journal has %d", e.Size, e.Found),
		RolledBackDiffers: fmt.Sprintf("the first %d positions of the journal are not those that CHECKPOINT was signed over", e.Size),
		RolledBackIndex:   fmt.Sprintf("the index has seen %d positions, the journal has %d", e.Size, e.Found),
		RolledBackMissing: "the store signs its journal, and CHECKPOINT is gone",
		RolledBackForeign: "CHECKPOINT is not this store's",
		RolledBackBroken:  "CHECKPOINT can't be read",
	}[e.Evidence]
	if e.Detail != "" {
		what += ": " + e.Detail
	}
	return what
}

func (e *RollbackError) Unwrap() error { return ErrRollback }

// indexAhead: the index is written only behind what was synced, so one that
// knows more than the journal has saw a journal that was longer.
func (s *Store) indexAhead(c *cover, next uint64) *RollbackError {
	edge := restoredEdge(c.Next, c.Edge)
	root, _ := edge.root() // zero if it is not known
	return &RollbackError{Path: s.dir, Evidence: RolledBackIndex, Origin: s.identity.Origin(), Size: c.Next, Root: root, Found: next}
}

// rolledBack notes the first evidence: nothing is granted from here on.
func (s *Store) rolledBack(re *RollbackError) {
	if s.evidence == nil {
		s.evidence = re
		s.notice(re.kind(), re.Found, re.reason())
	}
	if s.opts.ReadOnly {
		s.st.rolledBack = s.evidence
	}
}

// RolledBack says why the store is not taken for what it was, nil if it is. It
// can be set only on a store that was opened for reading: then logs can be read
// and checked, and no policy.
func (s *Store) RolledBack() *RollbackError { return s.st.rolledBack }

// heldTo reads the checkpoint that a directory is held to. One that never signed
// anything has none.
func heldTo(dir string, id Identity) (c Checkpoint, ok bool, re *RollbackError) {
	if id.Key == "" {
		return c, false, nil
	}
	fail := func(evidence string, err error) (Checkpoint, bool, *RollbackError) {
		re := &RollbackError{Path: dir, Evidence: evidence, Origin: id.Origin()}
		if err != nil {
			re.Detail = err.Error()
		}
		return Checkpoint{}, false, re
	}
	c, err := readCheckpoint(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fail(RolledBackMissing, nil)
	case err != nil:
		return fail(RolledBackBroken, err)
	}
	key, err := ParseVerifierKey(id.Key)
	if err == nil {
		err = c.Verify(key)
	}
	switch {
	case err != nil:
		return fail(RolledBackForeign, err)
	case c.Origin != id.Origin():
		return fail(RolledBackForeign, fmt.Errorf("it is of %s, this store is %s", c.Origin, id.Origin()))
	}
	return c, true, nil
}

// heldToCheckpoint compares the journal with the last checkpoint. It costs a
// signature and a few hashes: the stored nodes of the tree and at most 255
// frames are looked at. That what lies below them was not exchanged is for
// Check to say, which reads everything.
func (s *Store) heldToCheckpoint(ctx context.Context) error {
	s.signing = newCheckpointer(s)
	c, ok, re := heldTo(s.dir, s.identity)
	next := s.st.durable()
	switch {
	case re != nil:
		re.Found = next
	case !ok:
		return nil
	case c.Size > next:
		re = &RollbackError{Path: s.dir, Evidence: RolledBackSmaller, Origin: c.Origin, Size: c.Size, Root: c.Root, Found: next}
	default:
		root, err := s.rootAt(ctx, c.Size)
		if err == nil && root != c.Root && s.st.index != nil {
			// The index may be wrong, which is no rollback and mended by itself.
			if root, err = s.rootByScan(ctx, c.Size); err == nil && root == c.Root {
				return s.rebuild(ctx, next)
			}
		}
		if errors.Is(err, ErrCorrupt) && s.st.tree.err == nil {
			s.st.tree.err = err // no rollback, and reported where it is; but nothing is signed over it
		}
		if errors.Is(err, ErrCorrupt) || err == nil && root == c.Root {
			s.signing.last = c
			return nil
		}
		if err != nil {
			return err
		}
		re = &RollbackError{Path: s.dir, Evidence: RolledBackDiffers, Origin: c.Origin, Size: c.Size, Root: c.Root, Found: next}
	}
	if re.note = c.Note; !s.opts.ReadOnly && !s.opts.accept {
		return re
	}
	s.rolledBack(re)
	return nil
}

// rootByScan hashes the journal itself.
func (s *Store) rootByScan(ctx context.Context, size uint64) (Hash, error) {
	var g treeGrowth
	err := s.scan(ctx, scanOptions{to: size}, func(p *scanned) error {
		g.note(p.leaf, p.leafErr)
		return g.edge.err
	})
	if err != nil {
		return Hash{}, err
	}
	return g.edge.root()
}

// rebuild goes on without the index that was loaded, whose nodes are not those
// of the journal.
func (s *Store) rebuild(ctx context.Context, next uint64) error {
	if s.opts.fresh {
		return &CorruptError{Reason: "the tree of a new index is not that of the journal"}
	}
	s.notice(FindIndex, 0, "index not used: its tree is not that of the journal")
	s.st.index.close()
	unsure := s.st.unsure
	s.opts.fresh = true
	if err := s.loadState(ctx, next); err != nil {
		return err
	}
	s.st.unsure = unsure
	return s.heldToCheckpoint(ctx)
}

// TypeStoreRollbackAccepted says in the store's own session that somebody went
// on with a store that was found to be rolled back. Its content holds the
// checkpoint that it contradicts, as it was signed, and the reason.
const TypeStoreRollbackAccepted = "store/rollback-accepted"

// acceptedContent is the content of store/rollback-accepted.
type acceptedContent struct {
	Reason     string `json:"reason"`
	Checkpoint string `json:"checkpoint"`
}

// AcceptOptions say how a rollback is accepted.
type AcceptOptions struct {
	Options
	By     string // a code: who accepts it
	Reason string // for people; kept as content
}

// Accepted is what was accepted.
type Accepted struct {
	Was      RollbackError // what the store was found to be
	Identity Identity      // from now on
	Seq      uint64        // of the event in the store's own session
}

// AcceptRollback takes the store at dir as it is, although it was rolled back:
// for when the newer state is gone for good. That is written into the log, and
// the log goes on under another origin, so that no key ever signs two heads
// under one; whoever holds a checkpoint of the old one finds the contradiction
// and, in the store's own session, who took it on.
//
// The event is written first, then CHECKPOINT becomes that of the new origin,
// then the identity changes, then the head is signed. After a crash before the
// identity changed the store is as it was, with an event that says what was
// intended, and it can be accepted again; after it, all is done but that the head
// is signed at the next close.
//
// Errors: ErrInvalid (nothing to accept), ErrNotFound (no signing key), those of
// Open.
func AcceptRollback(ctx context.Context, dir string, o AcceptOptions) (out Accepted, err error) {
	opts := o.Options
	opts.ReadOnly, opts.accept = false, true
	s, err := Open(ctx, dir, opts)
	if err != nil {
		return out, err
	}
	out.Identity = s.identity
	out.Identity.Accepted, out.Identity.Incarnation = s.identity.Incarnation, nextIncarnation(s.identity.Incarnation)
	err = s.logAccepted(ctx, o, &out)
	if err = errors.Join(err, s.Close()); err != nil {
		return out, err
	}
	opts.accept, opts.incarnation = false, out.Identity.Incarnation
	if s, err = Open(ctx, dir, opts); err != nil {
		return out, err
	}
	return out, s.Close()
}

// changeOrigin makes the identity of a store whose rollback was accepted, and
// its first checkpoint: of nothing, so that the key has signed no head of the
// new origin that the journal has to continue.
func (s *Store) changeOrigin(id Identity) (Identity, error) {
	id.Accepted, id.Incarnation = id.Incarnation, s.opts.incarnation
	key, err := readSignKey(s.keyPath(), id.Store)
	if err != nil {
		return id, err
	}
	first, err := firstCheckpoint(key, id)
	if err != nil {
		return id, err
	}
	return id, replaceSynced(filepath.Join(s.dir, checkpointFile), first.Note)
}

// logAccepted writes the event.
func (s *Store) logAccepted(ctx context.Context, o AcceptOptions, out *Accepted) error {
	if s.evidence == nil {
		return invalidf("%s was not rolled back: there is nothing to accept", s.dir)
	}
	if s.key == nil {
		return fmt.Errorf("%w: the signing key, which has to sign the store's new origin", ErrNotFound)
	}
	out.Was = *s.evidence
	facts := map[string]any{"evidence": out.Was.Evidence, "origin": out.Was.Origin, "size": out.Was.Size, "found": out.Was.Found, "new_origin": out.Identity.Origin(), "by": o.By}
	if !out.Was.Root.IsZero() {
		facts["root"] = out.Was.Root
	}
	if root, err := s.rootAt(ctx, out.Was.Found); err == nil {
		facts["found_root"] = root
	}
	encoded, err := MakeFacts(facts)
	if err != nil {
		return err
	}
	content, err := json.Marshal(acceptedContent{Reason: o.Reason, Checkpoint: string(out.Was.note)})
	if err != nil {
		return err
	}
	results, err := s.Transact(ctx, EntryStore, func(v *View) ([]Batch, error) {
		row, err := v.Row(StoreSession)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		var events []NewEvent
		if row.Head == 0 {
			events = append(events, StoreCreated())
		}
		events = append(events, NewEvent{Type: TypeStoreRollbackAccepted, Facts: encoded, Media: MediaJSON, Content: content})
		return []Batch{{Session: StoreSession, Expect: At(row.Head), Events: events}}, nil
	})
	if err != nil {
		return err
	}
	out.Seq = results[0].LastSeq
	return nil
}
