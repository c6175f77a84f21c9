package eventlog

import (
	"errors"
	"fmt"

	"github.com/google/uuid"

	"childlog/policy"
)

// bounds is what a native session may still become: as much of the fold of
// package replay as the writer needs to refuse a widening.
type bounds struct {
	created   Created
	ledger    policy.Ledger
	approvals policy.ApprovalLedger
	authority policy.Authority
	captured  *policy.Sandbox // a child's sandbox of source delegation
	granted   *Granted        // a child's receipt
	receipt   Hash            // its digest
	stated    policy.Origin   // its place
	principal Principal
	lockdown  []string
	role      policy.Role
	events    int
}

// foldBounds folds the stored policy-bearing events of a session and behind
// them the ones that a unit brings, which begin after head. A stored event
// that does not fit is ErrPolicyUnreadable; a new one is ErrWidening or
// ErrInvalid.
func foldBounds(stored []Event, session uuid.UUID, events []pending, head uint64) (*bounds, error) {
	b := new(bounds)
	for i := range stored {
		if err := b.add(&stored[i]); err != nil {
			return nil, fmt.Errorf("%w: session %s: seq %d: %w", ErrPolicyUnreadable, session, stored[i].Seq, err)
		}
	}
	for i := range events {
		if p := &events[i]; p.policy {
			ev := p.event(session, head+uint64(i)+1, 0, 0)
			if err := b.add(ev); err != nil {
				return nil, err
			}
			if err := checkSpelling(ev); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

func (b *bounds) add(ev *Event) error {
	if !IsKnown(ev.Type, ev.Version) {
		return fmt.Errorf("%w: %s version %d was written by a newer version", ErrUnknownType, ev.Type, ev.Version)
	}
	b.events++
	cause := func(src policy.Source) policy.Cause {
		return policy.Cause{Source: src, Origin: policy.Origin{Session: ev.Session, Seq: ev.Seq}}
	}
	switch ev.Type {
	case TypeSessionCreated:
		c, err := ParseCreated(ev)
		if err != nil {
			return badFacts(err)
		}
		b.created, b.authority = c, policy.TopAuthority()
		b.ledger, b.approvals = policy.RootLedger(c.Defaults.Sandbox, cause(policy.SourceDefault)), policy.RootApprovals(c.Defaults.Approvals, cause(policy.SourceDefault))
		if c.Kind == KindChild {
			b.ledger = policy.ChildLedger(nil, c.Defaults.Sandbox, cause(policy.SourceDefault), policy.Cause{})
			b.approvals = policy.ChildApprovals(cause(policy.SourceDefault))
		}
	case TypeSandboxMode:
		v, err := ParseSandbox(ev)
		if err != nil {
			return badFacts(err)
		}
		if ev.Source == SourceDelegation && b.captured == nil {
			b.captured = &v
			b.ledger = policy.ChildLedger(&v, b.created.Defaults.Sandbox, cause(policy.SourceDefault), cause(policy.SourceDelegation))
			return nil
		}
		return b.ledger.Switch(v, cause(policy.SourceSwitch))
	case TypeApprovalPolicy:
		a, err := ParseApproval(ev)
		if err != nil {
			return badFacts(err)
		}
		if ev.Source == SourceDelegation {
			b.approvals = policy.ChildApprovals(cause(policy.SourcePin))
		}
		return b.approvals.Switch(a, cause(policy.SourceSwitch))
	case TypePolicyNarrowed:
		ceiling, err := ParseNarrowed(ev)
		if err != nil {
			return badFacts(err)
		}
		if ceiling.Sandbox != nil {
			b.ledger.Narrow(*ceiling.Sandbox, cause(policy.SourceNarrowing))
		}
		if ceiling.Half != nil {
			b.authority = b.authority.Narrow(*ceiling.Half)
		}
		b.authority = b.authority.Under(ceiling.Rules)
	case TypePolicyProfile:
		if b.events != 2 || b.created.Kind == KindChild {
			return unauthorizedf("%s: got event %d of the policy of a %s, want it right after %s of a %s, once", ev.Type, b.events, b.created.Kind, TypeSessionCreated, KindRoot)
		}
		p, err := ParseProfile(ev)
		if err != nil {
			return badFacts(err)
		}
		b.authority, b.principal, b.lockdown, b.role = p.Authority.Canonical(), p.Principal, p.Lockdown, p.Choices.Role
	case TypeDelegationGranted:
		g, err := ParseGranted(ev)
		if err != nil {
			return badFacts(err)
		}
		if err := b.agrees(ev, &g); err != nil {
			return err
		}
		b.authority, b.principal, b.lockdown, b.role = g.Granted.Canonical(), g.Principal, g.Lockdown, g.Choices.Role
		b.granted, b.receipt, b.stated = &g, Digest(ev.Facts), policy.Origin{Session: ev.Session, Seq: ev.Seq}
	}
	return nil
}

// badFacts says of an event that is not stored yet what a reader would say of
// it once it is: there it is damage, here it is input.
func badFacts(err error) error {
	if ce := (*CorruptError)(nil); errors.As(err, &ce) {
		return invalidf("%s: facts/%s: %s", ce.Type, ce.Field, ce.Reason)
	}
	return err
}
