package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// Narrowing is an order to hold less, for ever. At least one ceiling is stated.
type Narrowing struct {
	Session   uuid.UUID       // uuid.Nil with All
	Sandbox   *policy.Setting // a ceiling of the sandbox; its roots, if it names any, stand instead of the workspace
	Authority *policy.Wish    // a ceiling of what the session may do and of what it may hand on; what it leaves open is not limited
	Rules     bool            // the store's present operator rules, for children that captured older ones; with All not for roots, which follow them anyway
	Reason    string          // free text; content
	Subtree   bool            // every descendant too, those created meanwhile included
	All       bool            // every session of the store that is not evidence
}

// Narrowed is what a narrowing did to one session. Skipped says why nothing
// was written there; such a session holds no more than the ceiling, or nothing
// at all can be done in its name.
type Narrowed struct {
	Session       uuid.UUID
	Seq           uint64
	Before, After policy.Sandbox
	Lost          []policy.Cut // of the authority's own half, by field
	Skipped       string
	Unread        bool // written without reading the policy, which holds a type of a newer version; what changed is unknown
}

// Reasons for which a narrowing skips a session.
const (
	SkipNarrower   = "already narrower"
	SkipClosed     = "closed"
	SkipUnreadable = "policy unreadable: every call is denied"
	SkipEvidence   = "imported: evidence is never authority"
	SkipFollows    = "a root: it follows the store's rules as they are"
)

// Narrow meets a ceiling into the bound and the authority of a session and, on
// request, of its whole subtree or of every session, in one unit: all of it or
// nothing. The targets are enumerated inside the commit, so a child that is
// created at the same time is either born narrow or enumerated.
//
// Errors: ErrNotFound, ErrEvidence, ErrPolicyUnreadable (of the session
// itself), ErrInvalid, ErrTooLarge (more than 10,000 sessions to narrow).
func Narrow(ctx context.Context, s *eventlog.Store, n Narrowing) ([]Narrowed, error) {
	switch {
	case n.Reason == "":
		return nil, fmt.Errorf("%w: a narrowing needs a reason", eventlog.ErrInvalid)
	case n.Sandbox == nil && n.Authority == nil && !n.Rules:
		return nil, fmt.Errorf("%w: a narrowing needs a ceiling: of the sandbox, of the authority, or the store's rules", eventlog.ErrInvalid)
	case n.All != (n.Session == uuid.Nil) || n.All && n.Subtree:
		return nil, fmt.Errorf("%w: a narrowing is of one session, of its subtree, or of all", eventlog.ErrInvalid)
	}
	var out []Narrowed
	_, err := s.Transact(ctx, eventlog.EntryOperator, func(v *eventlog.View) ([]eventlog.Batch, error) {
		out = nil
		targets, err := n.targets(v)
		if err != nil {
			return nil, err
		}
		var rules policy.OperatorRules
		if n.Rules {
			if rules, err = RulesIn(v); err != nil {
				return nil, err
			}
		}
		var sandbox *policy.Sandbox
		var batches []eventlog.Batch
		for _, id := range targets {
			row, e, err := View(v, id)
			if id == n.Session && err != nil {
				return nil, err
			}
			// Of a subtree the workspace of its top counts for all of it; of all
			// sessions each one's own.
			if n.Sandbox != nil && (n.All || id == n.Session) {
				workspace := e.WorkspaceRoot
				if len(n.Sandbox.WritableRoots) > 0 {
					workspace = "" // named roots are the ceiling, not an addition to the workspace
				}
				value, err := n.Sandbox.Resolve(workspace)
				if err != nil {
					return nil, err
				}
				sandbox = &value
			}
			ceiling := eventlog.Ceiling{Sandbox: sandbox, Rules: rules}
			if n.All && row.Kind != eventlog.KindChild {
				ceiling.Rules = policy.OperatorRules{} // bound to these for ever it would not follow the store's any more
			}
			if n.Authority != nil {
				half, err := n.Authority.Half(policy.DenyRequest, policy.Origin{Session: id, Seq: row.Head + 1})
				if err != nil {
					return nil, err
				}
				ceiling.Half = &half
			}
			done, batch, err := narrowOne(row, e, err, ceiling, id, n.Reason)
			if err != nil {
				return nil, err
			}
			out = append(out, done)
			if batch != nil {
				batches = append(batches, *batch)
			}
		}
		return batches, nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// targets enumerates the sessions to narrow, parents before children.
func (n *Narrowing) targets(v *eventlog.View) ([]uuid.UUID, error) {
	if n.All {
		ids, err := v.Sessions()
		return slices.DeleteFunc(ids, func(id uuid.UUID) bool { return id == eventlog.StoreSession }), err
	}
	targets := []uuid.UUID{n.Session}
	if !n.Subtree {
		return targets, nil
	}
	below, err := v.Descendants(n.Session)
	for _, id := range below {
		if _, err := v.Row(id); !errors.Is(err, eventlog.ErrPurged) { // nothing is left to narrow
			targets = append(targets, id)
		}
	}
	return targets, err
}

// narrowOne lays out the narrowing of one session, whose policy was read with
// err; a nil batch is a session that was skipped.
func narrowOne(row eventlog.Row, e Effective, err error, ceiling eventlog.Ceiling, id uuid.UUID, reason string) (Narrowed, *eventlog.Batch, error) {
	// One member that can't be read must not keep the others wide. A type of a
	// newer version makes the policy unreadable here only: the version that
	// knows it would go on from a log without the ceiling, so it is written
	// blind, which a meet allows.
	unread := errors.Is(err, eventlog.ErrUnknownType)
	switch {
	case unread:
	case errors.Is(err, eventlog.ErrEvidence):
		return Narrowed{Session: id, Skipped: SkipEvidence}, nil, nil
	case errors.Is(err, eventlog.ErrPolicyUnreadable), errors.Is(err, eventlog.ErrCorrupt), errors.Is(err, eventlog.ErrNotFound):
		// A child that its parent's log names and whose own log is gone.
		return Narrowed{Session: id, Skipped: SkipUnreadable}, nil, nil
	case err != nil:
		return Narrowed{}, nil, err
	}
	done := Narrowed{Session: id, Seq: row.Head + 1, Before: e.Sandbox.Value, Unread: unread}
	if ceiling.IsZero() { // of the store's rules alone, and there are none or they are followed
		done.Skipped, done.Seq, done.After = SkipNarrower, row.Head, done.Before
		if row.Kind != eventlog.KindChild {
			done.Skipped = SkipFollows
		}
		return done, nil, nil
	}
	if row.ClosedSeq != 0 {
		done.Skipped, done.Seq, done.After = SkipClosed, row.Head, done.Before
		return done, nil, nil
	}
	if !unread {
		by := cause(policy.SourceNarrowing, id, done.Seq)
		ledger, authority := e.ledger, e.authority
		changed := ceiling.Sandbox != nil && ledger.Narrow(*ceiling.Sandbox, by)
		if !authority.Narrow(half(ceiling), ceiling.Rules, by) && !changed {
			done.Skipped, done.Seq, done.After = SkipNarrower, row.Head, done.Before
			return done, nil, nil
		}
		done.After = ledger.Effective().Value
		done.Lost = policy.Changes(e.Authority.Own, authority.Effective().Own, policy.RuleNarrowing)
	}
	facts, err := ceiling.Facts("operator")
	if err != nil {
		return Narrowed{}, nil, err
	}
	return done, &eventlog.Batch{Session: id, Expect: eventlog.At(row.Head), Events: []eventlog.NewEvent{{
		Type: eventlog.TypePolicyNarrowed, Facts: facts, Media: eventlog.MediaText, Content: []byte(reason)}}}, nil
}
