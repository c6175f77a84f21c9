package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// PurgeRequest is an order to remove whole sessions.
type PurgeRequest struct {
	Order
	Session uuid.UUID
	Subtree bool // everything below it too; without it a session that has children is refused
	DryRun  bool // only say what would go

	at steps
}

// PurgeReport is what a purge removed, or would remove; the named session first.
type PurgeReport struct {
	Sessions []Purged
	Events   uint64
	Frames   uint64
	DryRun   bool

	// Before and After are the checkpoints around it; of size 0 where none could
	// be signed: no key is here, or a damaged frame is in the way.
	Before, After Checkpoint
}

// ChildrenError says that a session has children, without which it can't go.
type ChildrenError struct {
	Session  uuid.UUID
	Children []uuid.UUID
}

func (e *ChildrenError) Error() string {
	names := make([]string, len(e.Children))
	for i, id := range e.Children {
		names[i] = id.String()
	}
	return fmt.Sprintf("conflict: session %s has children: %s", e.Session, strings.Join(names, ", "))
}

func (e *ChildrenError) Unwrap() error { return ErrConflict }

// sweepFrames (a variable for tests) and sweepChunks bound what one commit of a purge removes: a
// transaction holds the pages that it changes in memory, and other writers wait
// for it.
var sweepFrames = 1024

const sweepChunks = 16 << 10

// Purge removes a session, and with Subtree all below it, or nothing. What stays
// is session/purged in the store's own session (ids, digests, who, when and
// why), and at the position of each frame its leaf of the tree: whoever keeps a
// copy of the log, a checkpoint or a proof can still hold it against this store.
//
// The logs of others do not change. A parent's delegation/started goes on naming
// the child, and its receipt digest is in the record. The id, the idempotency
// key and the external id of a purged session stay taken, and what it used up of
// an explicit grant stays used up.
//
// A purge is two steps. One commit records it, and from then on the sessions are
// gone for every reader, in this process and after a crash. Their frames and
// contents follow in commits of bounded size; if the process dies before the
// last of them, the next one that opens the store to write goes on. As with
// Redact the bytes stay in free pages until Compact, and backups and exports
// that were made before are out of reach. Backup and Compact wait for a purge.
//
// Every frame is proven before anything is recorded: a damaged session is
// refused, since nobody could say what was purged, and the others go on. Memory
// is about 50 bytes a frame.
//
// Errors: ErrNotFound, ErrPurged (before), ErrHeld (a *HeldError), ErrConflict
// (an open activation; a *ChildrenError; the log went on meanwhile), ErrCorrupt,
// ErrInvalid and those of a commit. An error of a later commit says that the
// purge is recorded and not finished.
func (s *Store) Purge(ctx context.Context, r PurgeRequest) (PurgeReport, error) {
	if err := r.check(); err != nil {
		return PurgeReport{}, err
	}
	if err := s.passage.enter(ctx, erasers); err != nil {
		return PurgeReport{}, err
	}
	defer s.passage.leave(erasers)
	s.purges.Lock()
	defer s.purges.Unlock()
	if err := s.journal.purged(); err != nil {
		return PurgeReport{}, err
	}
	p := purge{s: s, r: &r}
	if err := p.prove(ctx); err != nil {
		return PurgeReport{}, err
	}
	out := PurgeReport{DryRun: r.DryRun}
	var err error
	if !r.DryRun {
		if out.Before, err = p.anchored(ctx); err != nil {
			return PurgeReport{}, err
		}
	}
	_, err = s.erase(ctx, func(v *View) ([]Batch, error) {
		out.Sessions = nil
		records, err := p.records(v)
		if err != nil {
			return nil, err
		}
		if out.Sessions = records; r.DryRun {
			return nil, nil
		}
		return p.batch(v, records)
	})
	if err != nil {
		return PurgeReport{}, err
	}
	for i := range out.Sessions {
		out.Events += out.Sessions[i].Head
		out.Frames += out.Sessions[i].Frames
	}
	if r.DryRun {
		return out, nil
	}
	if err = r.at.reached("recorded"); err == nil {
		err = p.sweep(ctx)
	}
	if err != nil {
		err = errors.Join(err, s.noteCondemned())
		return out, fmt.Errorf("the purge is recorded and not finished; the next open for writing finishes it: %w", err)
	}
	if out.After, err = p.anchored(ctx); err != nil {
		err = fmt.Errorf("the purge is done, and what is left could not be signed: %w", err)
	}
	return out, err
}

// anchored signs what is durable, before a purge is recorded and after it is
// finished. Where nothing can be signed, without a key or over damage, there is
// no checkpoint, and the purge goes on: it is for those who keep the records.
func (p *purge) anchored(ctx context.Context) (Checkpoint, error) {
	c, err := p.s.Checkpoint(ctx)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrCorrupt) {
		return Checkpoint{}, nil
	}
	return c, err
}

// purge is one run.
type purge struct {
	s       *Store
	r       *PurgeRequest
	members []*entry // the named session first, parents before children
	frames  []provenFrame
}

// provenFrame is a frame that is to go.
type provenFrame struct {
	purgedFrame
	chunks uint32 // of its contents
}

// prove collects the sessions and reads every frame of them, before the commit.
func (p *purge) prove(ctx context.Context) error {
	todo, seen := []uuid.UUID{p.r.Session}, map[uuid.UUID]bool{}
	for ; len(todo) > 0; todo = todo[1:] {
		if seen[todo[0]] {
			continue
		}
		seen[todo[0]] = true
		e, err := p.s.lookup(todo[0])
		if errors.Is(err, ErrPurged) && len(p.members) > 0 {
			continue // a child that went before
		}
		if err != nil {
			return err
		}
		p.members = append(p.members, e)
		children, err := p.s.Children(todo[0])
		if err != nil {
			return err
		}
		todo = append(todo, children...)
	}
	for _, e := range p.members {
		if d := e.row.Damage; len(d) > 0 {
			return &CorruptError{Session: e.row.Session, Seq: d[0].From, Reason: d[0].Reason + "; a damaged session is not purged"}
		}
		if err := p.s.eachLeaf(ctx, e, func(f purgedFrame, chunks uint32) error {
			p.frames = append(p.frames, provenFrame{f, chunks})
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// records decides inside the commit whether the sessions may go, and what is
// kept of each.
func (p *purge) records(v *View) ([]Purged, error) {
	top := p.r.Session
	if top == StoreSession {
		return nil, invalidf("the store's own session is never purged")
	}
	below, err := v.Descendants(top)
	if err != nil {
		return nil, err
	}
	below = slices.DeleteFunc(below, func(id uuid.UUID) bool { return errors.Is(v.st.absent(id), ErrPurged) })
	if len(below) > 0 && !p.r.Subtree {
		children, err := v.Children(top)
		if err != nil {
			return nil, err
		}
		return nil, &ChildrenError{top, slices.DeleteFunc(children, func(id uuid.UUID) bool { return !slices.Contains(below, id) })}
	}
	ids := append([]uuid.UUID{top}, below...)
	if len(ids) != len(p.members) {
		return nil, fmt.Errorf("%w: session %s got another child while it was to be purged", ErrConflict, top)
	}
	var out []Purged
	for i, id := range ids {
		row, err := v.Row(id)
		if err != nil {
			return nil, err
		}
		was := &p.members[i].row
		if was.Session != id || was.Head != row.Head || was.Hash != row.Hash {
			return nil, fmt.Errorf("%w: session %s went on while it was to be purged", ErrConflict, id)
		}
		if held, err := v.heldBy(id); err != nil || held != nil {
			return nil, errorOr(err, held)
		}
		if row.Open {
			return nil, fmt.Errorf("%w: session %s has an open activation, epoch %d", ErrConflict, id, row.Epoch)
		}
		if err := v.st.doubt(&row); err != nil {
			return nil, err
		}
		record, err := p.record(v, &row)
		if err != nil {
			return nil, err
		}
		out = append(out, record)
	}
	return out, nil
}

func (p *purge) record(v *View, row *Row) (Purged, error) {
	out := Purged{Session: row.Session, Top: p.r.Session, Kind: row.Kind, Parent: row.Parent, Root: row.Root, Evidence: row.Evidence, Head: row.Head, Hash: row.Hash,
		Frames: row.Frames, Created: unixMilli(row.FirstTime), Last: unixMilli(row.LastTime), Code: p.r.Code, Basis: p.r.Basis, By: p.r.By, At: v.Now()}
	events, err := v.Policy(row.Session)
	if err != nil {
		return out, err
	}
	ours := func(n name) bool { id, err := v.st.byName(n); return err == nil && id == row.Session }
	for i := range events {
		switch ev := &events[i]; ev.Type {
		case TypeSessionCreated:
			if c, err := ParseCreated(ev); err == nil && c.External != nil && ours(name{nameExternal, c.External.IDHash}) {
				out.External = c.External
			}
		case TypeDelegationGranted:
			out.Receipt = Digest(ev.Facts)
			if g, err := ParseGranted(ev); err == nil {
				if out.Relied = g.Relied; !g.Key.IsZero() && ours(name{nameKey, g.Key}) {
					out.Key = g.Key
				}
			}
		}
	}
	return out, nil
}

// batch records the purge.
func (p *purge) batch(v *View, records []Purged) ([]Batch, error) {
	b := Batch{Session: StoreSession}
	switch row, err := v.Row(StoreSession); {
	case err == nil:
		b.Expect = At(row.Head)
	case errors.Is(err, ErrNotFound):
		b.Events = append(b.Events, StoreCreated())
	default:
		return nil, err
	}
	order := p.r.Order
	for i := range records {
		ev, err := order.event(TypeSessionPurged, records[i].facts())
		if err != nil {
			return nil, err
		}
		b.Events, b.condemn = append(b.Events, ev), append(b.condemn, records[i].Session)
		order.Reason = "" // said once
	}
	return []Batch{b}, nil
}
