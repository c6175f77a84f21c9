package materialize

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/replay"
	"childlog/snapshot"
)

// Delegate captures and creates in one call: what a harness does when nothing
// stands between the decision and the child. A key that is known finds its
// child before anything is captured, so a retry works whatever became of the
// parent. Errors: those of snapshot.Take and of Child.
func Delegate(ctx context.Context, s *eventlog.Store, parent uuid.UUID, o snapshot.Options, r Request) (Session, error) {
	if r.Key != "" {
		if found, err := Existing(ctx, s, parent, r); !errors.Is(err, eventlog.ErrNotFound) {
			return found, err
		}
	}
	c, err := snapshot.Take(ctx, s, parent, o)
	if err != nil {
		return Session{}, err
	}
	return Child(ctx, s, c, r)
}

// Existing returns the child that parent made under r's key. Errors:
// ErrNotFound; ErrConflict: the key stands for another request, for one that was
// redacted and can't be compared, or for a child that was purged; ErrEvidence:
// an imported log claims the key, which makes it nobody's child.
func Existing(ctx context.Context, s *eventlog.Store, parent uuid.UUID, r Request) (Session, error) {
	if err := r.normalize(); err != nil {
		return Session{}, err
	}
	id, err := s.ByKey(parent, r.Key)
	if err != nil {
		return Session{}, err
	}
	row, err := s.Row(id)
	if err != nil {
		return Session{}, keyOfPurged(err)
	}
	e, err := replay.Policy(ctx, s, id, 0)
	if err != nil {
		return Session{}, err
	}
	if err := native(&e, parent); err != nil {
		return Session{}, err
	}
	page, err := s.Read(ctx, id, eventlog.ReadOptions{From: e.ReceiptSeq, To: e.ReceiptSeq, Contents: true})
	if err != nil {
		return Session{}, err
	}
	if len(page.Events) != 1 {
		return Session{}, fmt.Errorf("%w: the receipt of session %s", eventlog.ErrPolicyUnreadable, id)
	}
	if err := sameWish(&page.Events[0], r); err != nil {
		return Session{}, err
	}
	return Session{ID: id, Seq: row.Head, Policy: e, Receipt: e.Receipt, Context: replay.RuntimeContext(&e), Existing: true}, nil
}

// keyOfPurged says that a key stands for a session that is no more. It is not
// free: a caller that retries means that child, and must not get another one
// under the old key without a word.
func keyOfPurged(err error) error {
	if errors.Is(err, eventlog.ErrPurged) {
		return fmt.Errorf("%w: the key can't be used again: %w", eventlog.ErrConflict, err)
	}
	return err
}

// native refuses a session that its log does not show to be parent's child. A
// name that an imported log brought must not lead a caller to take its policy,
// which is whatever the importer was given, for that of a child it asked for.
func native(e *replay.Effective, parent uuid.UUID) error {
	if e.Evidence || e.Parent != parent {
		return fmt.Errorf("%w: the key leads to session %s, which parent %s did not make", eventlog.ErrEvidence, e.Session, parent)
	}
	return nil
}

// Child creates the child of a capture, in one atomic unit with the parent's
// delegation/started. A run of the child that fails later leaves its log as it
// is; nothing is ever deleted here.
//
// With a key that is known it returns the child that exists, also for a capture
// that was spent on it, so that a caller whose reply was lost may repeat the
// very same call.
//
// Errors: ErrStaleCapture (used, its store closed, the parent closed or fenced
// since), ErrDepth, ErrWidening (a *policy.RefusedError: the parent can't hand
// on what was asked), ErrOpenTurn, ErrExists (an id in use), ErrConflict (the
// key stands for another request), ErrInvalid, ErrTooLarge, and those of a
// commit. Only after ErrOutcomeUnknown may the child exist; a retry under the
// same key tells.
func Child(ctx context.Context, s *eventlog.Store, c *snapshot.Capture, r Request) (Session, error) {
	if err := r.normalize(); err != nil {
		return Session{}, err
	}
	texts, err := r.texts()
	if err != nil {
		return Session{}, err
	}
	if r.Key != "" { // before anything that could fail now and did not then
		if found, err := Existing(ctx, s, c.Parent(), r); !errors.Is(err, eventlog.ErrNotFound) {
			return found, err
		}
	}
	root, style, err := workspace(r.Workspace)
	if err != nil {
		return Session{}, err
	}
	if root == "" {
		if root, style, err = workspace(c.WorkspaceRoot()); err != nil {
			return Session{}, err
		}
	}
	text, err := created{Label: r.Label, Cwd: root}.event()
	if err != nil {
		return Session{}, err
	}
	depth, ceiling := c.Depth()
	if depth+1 > ceiling || depth+1 > HardMaxDepth {
		return Session{}, fmt.Errorf("%w: attempted depth %d, allowed %d", eventlog.ErrDepth, depth+1, min(ceiling, HardMaxDepth))
	}
	// A capture that is spent may have been spent on this key, in a unit that is
	// still on its way: then the commit, which comes after it, finds the child.
	spent := c.Use(s)
	if spent != nil && (r.Key == "" || s.Closed()) {
		return Session{}, spent
	}
	giveBack := func() {
		if spent == nil {
			c.Unuse()
		}
	}
	b := &builder{c: c, r: r, spent: spent, texts: texts, text: text, root: root, style: style}
	if b.seed, err = seedOf(ctx, s, c, &r); err != nil {
		giveBack()
		return Session{}, err
	}
	_, err = s.Transact(ctx, eventlog.EntryDelegation, b.plan)
	if err != nil {
		if !errors.Is(err, eventlog.ErrOutcomeUnknown) {
			giveBack()
		}
		return Session{}, err
	}
	if b.existing { // the capture made nothing
		giveBack()
	}
	return readBack(ctx, s, Session{ID: b.id, Existing: b.existing})
}
