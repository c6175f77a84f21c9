package materialize

import (
	"fmt"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// profileSeq is the place of policy/profile in a root's log.
const profileSeq = 2

// Authority is what the profile gives a root. at is the event that states it:
// the origin of its deny rules and the issuer of its grants. What a half leaves
// open is as wide as can be: a root has no parent to take it from. Errors:
// ErrInvalid.
func (p *Profile) Authority(at policy.Origin) (policy.Authority, error) {
	if p.Delegable == nil && len(p.Explicit) > 0 {
		return policy.Authority{}, fmt.Errorf("%w: explicit grants: got %d, want none without a delegable half to grant", eventlog.ErrInvalid, len(p.Explicit))
	}
	var a policy.Authority
	var err error
	if a.Own, err = p.Own.Half(policy.DenyRequest, at); err != nil {
		return policy.Authority{}, fmt.Errorf("own: %w", err)
	}
	a.Delegable = a.Own
	if p.Delegable != nil {
		if a.Delegable, err = p.Delegable.Half(policy.DenyRequest, at); err != nil {
			return policy.Authority{}, fmt.Errorf("delegable: %w", err)
		}
	}
	for _, g := range p.Explicit {
		g.Issuer = at
		a.Explicit = append(a.Explicit, g)
	}
	return a.Canonical(), a.Validate()
}

// facts resolves the profile of the root id into what is recorded.
func (p *Profile) facts(id uuid.UUID) (eventlog.Facts, error) {
	a, err := p.Authority(policy.Origin{Session: id, Seq: profileSeq})
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if err := p.Principal.Check(); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if p.Choices.Role != "" && !p.Choices.Role.Known() {
		_, err := policy.ParseRole(string(p.Choices.Role))
		return nil, fmt.Errorf("profile: %w", err)
	}
	for _, name := range p.Lockdown {
		if err := policy.CheckToolName(name); err != nil {
			return nil, fmt.Errorf("profile: lockdown: %w", err)
		}
	}
	return eventlog.Profile{Authority: a, Choices: p.Choices, Principal: p.Principal, Palette: p.Palette.Entries(),
		Lockdown: lockdownNames(p.Lockdown)}.Facts()
}
