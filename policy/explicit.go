package policy

import (
	"fmt"
	"slices"
)

// maxExplicit is the most explicit grants one authority holds.
const maxExplicit = 64

// ExplicitGrant is the statement by which a session may hand on more than it
// may do itself, such as "the worker may edit src/". What may be handed on is
// the delegable half; the grant adds the terms, and names whom to ask.
//
// A delegation relies on the grants of its parent if its child would be smaller
// without what the parent's delegable half has beyond its own. It is then held
// to all their terms, since a record does not say which of several covers what,
// and the receipt cites them. Where the terms have run out the parent hands on
// the meet of its halves, as if nothing had been granted. Children made before
// keep what they have: terms bound delegations, deadlines bound sessions.
//
// An authority without explicit grants hands on its delegable half without
// terms.
type ExplicitGrant struct {
	ID        string // names of [CheckToolName]
	Issuer    Origin // the event that stated it
	ExpiresMS int64  // ms since 1970 UTC; at and after it no delegation may rely on it; 0: never
	Uses      uint64 // delegations that may rely on it, of any descendant; 0: any number
}

// GrantUse says how often earlier delegations relied on an explicit grant.
type GrantUse struct {
	ID     string
	Issuer Origin
	Used   uint64
}

// Validate reports, as a wrapped [ErrInvalid], why g must not be recorded.
func (g ExplicitGrant) Validate() error {
	switch {
	case g.ExpiresMS < 0 || g.ExpiresMS > MaxNumber:
		return invalid("explicit grant %s: got expiry %d ms, want 0 to 2^53", quoted(g.ID), g.ExpiresMS)
	case g.Uses > MaxNumber:
		return invalid("explicit grant %s: got %d uses, want 0 to 2^53", quoted(g.ID), g.Uses)
	}
	return checkName("explicit grant: id", g.ID)
}

func checkExplicit(grants []ExplicitGrant) error {
	if len(grants) > maxExplicit {
		return invalid("explicit grants: got %d, want at most %d", len(grants), maxExplicit)
	}
	for i, g := range grants {
		if err := g.Validate(); err != nil {
			return err
		}
		if slices.ContainsFunc(grants[:i], g.is) {
			return invalid("explicit grants: got %s twice, want each id once for an issuer", g.ID)
		}
	}
	return nil
}

func (g ExplicitGrant) is(o ExplicitGrant) bool { return g.ID == o.ID && g.Issuer == o.Issuer }

func (g ExplicitGrant) text() string {
	return fmt.Sprintf("%s@%s@%d:expires=%d:uses=%d", g.ID, g.Issuer.Session, g.Issuer.Seq, g.ExpiresMS, g.Uses)
}

// spent returns the rule by which the terms have run out, and the grant that
// did; false while all of them hold.
func spent(grants []ExplicitGrant, nowMS int64, uses []GrantUse) (g ExplicitGrant, by Rule, over bool) {
	for _, g := range grants {
		if g.ExpiresMS != 0 && nowMS >= g.ExpiresMS {
			return g, RuleGrantExpired, true
		}
		var used uint64
		for _, u := range uses {
			if u.ID == g.ID && u.Issuer == g.Issuer {
				used = max(used, u.Used)
			}
		}
		if g.Uses != 0 && used >= g.Uses {
			return g, RuleGrantSpent, true
		}
	}
	return ExplicitGrant{}, "", false
}

// addExplicit returns have with the grants of more that it has not.
func addExplicit(have, more []ExplicitGrant) []ExplicitGrant {
	all := slices.Clone(have)
	for _, g := range more {
		if !slices.ContainsFunc(all, g.is) {
			all = append(all, g)
		}
	}
	return all
}
