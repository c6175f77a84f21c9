package policy

// Authority is everything that was handed down to a session:
//
//	child.own       = meet(parent.delegable, role preset, request)
//	child.delegable = meet(parent.delegable, request.delegable or child.own)
//
// Own is what the session may do, Delegable what it may hand on. They differ
// for a coordinator, which may do nothing but delegate and still has workers
// that edit; nobody exceeds what was handed down to him. [Derive] is the only
// way from a parent to a child, and [Authority.Narrow] the only way on from
// there: a session's authority never grows.
//
// The zero value permits nothing. It is an immutable value; the counts in its
// grants are read, never written.
type Authority struct {
	Own       Half
	Delegable Half

	// Operator are the operator rules captured for the session. In canonical
	// form their tool patterns are among the denied tools of both halves; their
	// paths are here alone.
	Operator OperatorRules

	// Explicit are the terms under which Delegable holds more than Own does;
	// empty: it holds it without terms. See [ExplicitGrant].
	Explicit []ExplicitGrant
}

// TopAuthority returns the authority of a root for which no profile was stated.
// Its sandbox and its approvals bound it beside this.
func TopAuthority() Authority { return Authority{Own: TopHalf(), Delegable: TopHalf()} }

// Canonical returns what a is worth, sharing nothing with it that could be
// written to: both halves in canonical form, under the operator rules whether
// or not their patterns were written into the halves too.
func (a Authority) Canonical() Authority {
	denied := a.Operator.Denied()
	a.Own.Profile.Denied = a.Own.Profile.Denied.Union(denied)
	a.Delegable.Profile.Denied = a.Delegable.Profile.Denied.Union(denied)
	a.Own, a.Delegable = a.Own.Canonical(), a.Delegable.Canonical()
	a.Explicit = append([]ExplicitGrant(nil), a.Explicit...)
	return a
}

// Within reports whether a may neither do nor hand on anything that o may not.
func (a Authority) Within(o Authority) bool {
	a, o = a.Canonical(), o.Canonical()
	return a.Own.Within(o.Own) && a.Delegable.Within(o.Delegable) && a.Operator.Covers(o.Operator)
}

// Equal reports whether both permit the same under the same terms.
func (a Authority) Equal(o Authority) bool { return a.line() == o.line() }

// Narrow meets a ceiling into both halves, as a policy/narrowed event does. It
// can only take away. A ceiling that leaves the tools open leaves them as they
// were stated, absent or null: nothing was taken, so nothing is spelled anew.
func (a Authority) Narrow(ceiling Half) Authority {
	open, own, delegable := ceiling.Profile.Tools.Inherits(), a.Own.Profile.Tools, a.Delegable.Profile.Tools
	a.Own, a.Delegable = a.Own.Meet(ceiling), a.Delegable.Meet(ceiling)
	if open {
		a.Own.Profile.Tools, a.Delegable.Profile.Tools = own, delegable
	}
	return a.Canonical()
}

// Under returns a bound by further operator rules: their patterns join the
// denied tools of both halves, with what denying them takes away. A root is put
// under the store's present rules for each decision, since it follows them; a
// child has those of its capture already.
func (a Authority) Under(rules OperatorRules) Authority {
	a.Operator = a.Operator.Union(rules)
	return a.Canonical()
}

// Validate reports, as a wrapped [ErrInvalid], why a must not be recorded.
func (a Authority) Validate() error {
	if err := a.Own.Validate(); err != nil {
		return err
	}
	if err := a.Delegable.Validate(); err != nil {
		return err
	}
	return checkExplicit(a.Explicit)
}

// Ceiling is the most that a child of a can be granted, in either half.
func (a Authority) Ceiling() Half { return a.Canonical().ceiling() }

// WithoutTerms returns a as it is where its explicit grants are not relied on:
// it hands on no more than it holds.
func (a Authority) WithoutTerms() Authority {
	a.Delegable = a.Own.Meet(a.Delegable)
	return a
}

// ceiling is what a child of a canonical a is met with. A deny rule or a deadline binds the
// descendants whichever half states it: a list of denied tools never shrinks,
// and nobody's child outlives him.
func (a Authority) ceiling() Half {
	c := a.Delegable
	c.Profile.Denied = a.Own.Profile.Denied.Union(c.Profile.Denied).Inherited()
	c.Profile.Limits.DeadlineMS = tighter(a.Own.Profile.Limits.DeadlineMS, c.Profile.Limits.DeadlineMS)
	c.Profile.Limits.MaxDepth = tighter(a.Own.Profile.Limits.MaxDepth, c.Profile.Limits.MaxDepth)
	return c.Canonical()
}
