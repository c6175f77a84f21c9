// Package ops holds what the command and the operations of package harness
// do alike on an open store: it puts the answers together that both give, so
// that they are the same. Input is read and checked before; printing comes after.
package ops

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// Resolve finds the session that is named. Text that can't name one is answered
// like text that names none (ErrNotFound): either way the session is not there.
func Resolve(ctx context.Context, s *eventlog.Store, text string) (uuid.UUID, error) {
	id, err := s.Resolve(ctx, text)
	if errors.Is(err, eventlog.ErrInvalid) {
		return uuid.Nil, fmt.Errorf("%w: session %q: want an id, a prefix of four digits or more, or SYSTEM:ID", eventlog.ErrNotFound, text)
	}
	return id, err
}

// ParentOf finds the session in whose name a request is made. A whole id is
// taken at its word, known or not: whether it is the recorded parent is a
// question of authority, and for the library to answer.
func ParentOf(ctx context.Context, s *eventlog.Store, text string) (replay.Caller, error) {
	if id, err := uuid.Parse(text); err == nil && len(text) == 36 && id != uuid.Nil {
		return replay.AsParent(id), nil
	}
	id, err := Resolve(ctx, s, text)
	return replay.AsParent(id), err
}

// Present resolves the default in force for a session's tree: its roots are
// those of the tree's root session, where the recorded default comes from too.
// What nobody stated is taken as recorded. Nil if nothing was stated, or if the
// session's policy can't be read: whoever asks next says so better.
func Present(ctx context.Context, s *eventlog.Store, session uuid.UUID, sandbox *policy.Setting, approvals policy.Approval) (*policy.Defaults, error) {
	if sandbox == nil && approvals == "" {
		return nil, nil
	}
	e, err := replay.Policy(ctx, s, session, 0)
	if err != nil {
		return nil, nil
	}
	d := e.Defaults
	if approvals != "" {
		d.Approvals = approvals
	}
	if sandbox != nil {
		workspace := e.WorkspaceRoot
		if root, err := s.Row(e.Root); err == nil {
			workspace = root.WorkspaceRoot
		}
		if d.Sandbox, err = sandbox.Resolve(workspace); err != nil {
			return nil, err
		}
	}
	return &d, nil
}

// Root begins a session that nobody delegated.
func Root(ctx context.Context, s *eventlog.Store, r materialize.RootRequest) (wire.Created, materialize.Session, error) {
	made, err := materialize.Root(ctx, s, r)
	if err != nil {
		return wire.Created{}, made, err
	}
	v, err := created(s, made)
	return v, made, err
}

// created renders a creation; what was captured is the caller's to add.
func created(s *eventlog.Store, made materialize.Session) (wire.Created, error) {
	row, err := s.Row(made.ID)
	if err != nil {
		return wire.Created{}, err
	}
	shown := wire.SessionOf(&row, s.Boot())
	return wire.Created{Session: made.ID.String(), Seq: row.Head, Hash: wire.Hex(row.Hash), Kind: row.Kind, Label: row.Label, Parent: shown.Parent,
		External: shown.External, Existing: made.Existing, Policy: wire.PolicyOf(&made.Policy), RuntimeContext: made.Context}, nil
}

// Delegate makes a child and tells what it got.
func Delegate(ctx context.Context, s *eventlog.Store, parent uuid.UUID, o snapshot.Options, r materialize.Request) (wire.Delegated, materialize.Session, error) {
	made, err := materialize.Delegate(ctx, s, parent, o, r)
	if err != nil {
		return wire.Delegated{}, made, err
	}
	c, err := created(s, made)
	if err != nil {
		return wire.Delegated{}, made, err
	}
	if c.Captured, err = captured(ctx, s, &made.Policy); err != nil {
		return wire.Delegated{}, made, err
	}
	return wire.DelegatedOf(c, &made.Policy), made, nil
}

// captured tells what the delegation of a child took from the parent, as of
// the child's birth.
func captured(ctx context.Context, s *eventlog.Store, e *replay.Effective) (*wire.Captured, error) {
	born, err := replay.Policy(ctx, s, e.Session, e.BornSeq)
	if err != nil {
		return nil, err
	}
	c := &wire.Captured{Parent: e.Parent.String(), Seq: e.ParentSeq}
	if born.Bound.Cause().Source == policy.SourceDelegation {
		v := wire.SandboxOf(born.Bound.Value)
		c.Sandbox = &v
	}
	return c, nil
}
