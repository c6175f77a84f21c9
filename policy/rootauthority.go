package policy

import "slices"

// RootAuthority is what a root has whose profile states own and delegable; a
// nil delegable is the same as own. What a wish leaves open is as wide as can
// be: a root has no parent to take it from, and its sandbox bounds it beside
// this. at is the event that records the profile, the origin of the deny rules
// and of the explicit grants.
//
// A root may be made to delegate only: what it can hand on is not bound by what
// it may do. Where explicit grants are stated they are the terms of the
// difference. Wrapped [ErrInvalid] for a wish that [Derive] would find to state
// nothing sensible, and for explicit grants without a delegable half.
func RootAuthority(own Wish, delegable *Wish, explicit []ExplicitGrant, at Origin, nowMS int64) (Authority, error) {
	if delegable == nil && len(explicit) > 0 {
		return Authority{}, invalid("explicit grants: got %d, want none without a delegable half to grant", len(explicit))
	}
	a := Authority{Explicit: slices.Clone(explicit)}
	for i := range a.Explicit {
		a.Explicit[i].Issuer = at
	}
	var err error
	if a.Own, err = own.rootHalf(at, nowMS); err != nil {
		return Authority{}, err
	}
	a.Delegable = a.Own
	if delegable != nil {
		if a.Delegable, err = delegable.rootHalf(at, nowMS); err != nil {
			return Authority{}, err
		}
	}
	a = a.Canonical()
	return a, a.Validate()
}

// rootHalf states a wish over the top.
func (w Wish) rootHalf(at Origin, nowMS int64) (Half, error) {
	if err := w.check(nowMS); err != nil {
		return Half{}, err
	}
	scope, err := (Contract{WriteScope: w.WriteScope}).Gate(NameSet{})
	if err != nil {
		return Half{}, err
	}
	h := w.fill(TopHalf(), scope)
	if h.Profile.Denied, err = NewDenyList(DenyRequest, at, w.DeniedTools...); err != nil {
		return Half{}, err
	}
	return h.Canonical(), nil
}

// CeilingOf is the half that a narrowing states by a wish: what the wish leaves
// open limits nothing. at is the event of the narrowing, the origin of the deny
// rules it adds. Wrapped [ErrInvalid] for a wish that states nothing sensible.
func CeilingOf(w Wish, at Origin, nowMS int64) (Half, error) { return w.rootHalf(at, nowMS) }

// RoleNames returns the names of all roles, without their aliases.
func RoleNames() []string { return roleNames() }
