package materialize

import (
	"fmt"

	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// profileSeq is the place of policy/profile in a root's log.
const profileSeq = 2

// facts resolves the profile of the root id into what is recorded. nowMS is
// the store's clock, ms since 1970.
func (p *Profile) facts(id uuid.UUID, nowMS int64) (eventlog.Facts, error) {
	at := policy.Origin{Session: id, Seq: profileSeq}
	authority, err := policy.RootAuthority(p.Own, p.Delegable, p.Explicit, at, nowMS)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if err := p.Principal.Check(); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if p.Choices.Role != "" && !p.Choices.Role.Known() {
		return nil, fmt.Errorf("profile: %w", &policy.UnknownRoleError{Got: string(p.Choices.Role), Known: policy.RoleNames()})
	}
	for _, name := range p.Lockdown {
		if err := policy.CheckToolName(name); err != nil {
			return nil, fmt.Errorf("profile: lockdown: %w", err)
		}
	}
	return eventlog.Profile{Authority: authority, Choices: p.Choices, Principal: p.Principal, Palette: p.Palette.Entries(), Lockdown: lockdownNames(p.Lockdown)}.Facts()
}
